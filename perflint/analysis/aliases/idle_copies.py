"""Copies of tensors of a forward that nobody needs: neither the source nor the copy is written into while both live."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.aliases.points_to import Memory, meet
from perflint.analysis.aliases.writes import Write, is_behind, writes_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Tag
from perflint.analysis.waits.host_work import in_forward
from perflint.ir.calls import callee_name
from perflint.syntax.bindings import Binding
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

#: What asks for a property of a tensor.
_ASKED = frozenset({"shape", "dtype", "device", "ndim", "is_cuda", "requires_grad"})
#: Layers that write into what they are given if they are told so, and what may hold them:
#: https://docs.pytorch.org/docs/stable/nn.html
_IN_PLACE = frozenset(
    "ReLU ReLU6 LeakyReLU RReLU ELU SELU CELU SiLU Mish Hardtanh Hardswish Hardsigmoid Threshold Dropout Dropout1d "
    "Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout Sequential Module".split()
)
_READING = (tensors.FRESH_METHODS | {"size", "dim", "numel"}) - {"clone"}


def is_idle_copy(clone: ast.Call, ctx: FileFacts) -> bool:
    """Whether `x.detach().clone()` in a forward could be what it copies.

    The source is the function's own: an argument of a forward, or what an operation gave. The copy is bound to a name
    all of whose uses only read it, so that it goes nowhere; and nothing behind the clone writes into the source.
    """
    assert isinstance(clone.func, ast.Attribute)
    statement, source = ctx.tree.parent(clone), clone.func.value
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target, root = statement.targets[0], _root(source)
    if not isinstance(target, ast.Name) or root is None or not _is_own(root, ctx) or not in_forward(clone, ctx):
        return False
    flow = ctx.inference.flow
    made = flow.definition_at(target)
    uses = flow.uses_of(made) if made is not None else []
    scope = ctx.tree.scope_of(clone)
    for use in uses:
        if ctx.tree.scope_of(use) is not scope or flow.definitions(use) != (made,) or not _only_reads(use, ctx):
            return False
    if not uses:
        return False
    return not _is_written(source, clone, ctx)


def _root(value: ast.expr) -> ast.Name | None:
    """`x` of `x`, `x.detach()` and `x.permute(1, 0)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in tensors.VIEW_METHODS | {"detach"}:
            return None
        value = value.func.value
    return value if isinstance(value, ast.Name) else None


def _is_own(root: ast.Name, ctx: FileFacts) -> bool:
    """Whether a name holds a tensor that was handed in or computed here, and no parameter or buffer of a module."""
    if ctx.kind(root).tag not in (Tag.TENSOR, Tag.UNKNOWN):
        return False
    definitions = ctx.inference.flow.definitions(root)
    return bool(definitions) and all(
        made.binding is Binding.PARAM
        or (
            made.binding is Binding.ASSIGN
            and isinstance(made.value, (ast.Call, ast.BinOp))
            and (_root(made.value) is None or _is_own_before(made.value, ctx))
        )
        for made in definitions
    )


def _is_own_before(value: ast.expr, ctx: FileFacts) -> bool:
    inner = _root(value)
    made = ctx.inference.flow.definitions(inner) if inner is not None else ()
    return bool(made) and all(item.binding is Binding.PARAM for item in made)


def _only_reads(use: ast.Name, ctx: FileFacts) -> bool:
    """Whether an operation takes a name and gives a tensor of its own."""
    parent = ctx.tree.parent(use)
    if isinstance(parent, (ast.BinOp, ast.Compare, ast.UnaryOp)):
        return True
    if isinstance(parent, ast.Attribute):
        return parent.attr in _ASKED or (parent.attr in _READING and not parent.attr.endswith("_"))
    if not isinstance(parent, ast.Call) or use not in parent.args:
        return False
    target = ctx.target(parent.func) or ""
    plain = target in tensors.FUNCTIONS and not callee_name(parent).endswith("_")
    return plain and not any(item.arg in ("out", "inplace") for item in parent.keywords)


def _is_written(source: ast.expr, clone: ast.Call, ctx: FileFacts) -> bool:
    """Whether anything behind the clone, or in another turn of a loop around it, may write into the source."""
    function = ctx.tree.outermost_scope(clone)
    memory = Memory(function, clone, ctx, host=False)
    spots = {through: memory.spots(source, through=through) for through in (False, True)}
    loops = ctx.loops(clone)
    for write in (*writes_of(function, memory), *_by_layers(function, ctx)):
        if isinstance(write.part, ast.Return) or _is_of_plain_layer(write, ctx):
            continue
        if not is_behind(write.part, clone, ctx) and not any(loop in ctx.loops(write.part) for loop in loops):
            continue
        if any(meet(memory.spots(item, through=write.plain), spots[write.plain]) for item in write.targets):
            return True
    return False


def _by_layers(function: ast.AST, ctx: FileFacts) -> Iterator[Write]:
    """Calls of layers that may work in place."""
    for part in walk(function):
        if isinstance(part, ast.Call) and _layer(part, ctx) in _IN_PLACE:
            yield Write(part, part.args)


def _is_of_plain_layer(write: Write, ctx: FileFacts) -> bool:
    """A call of a layer of torch's that leaves what it is given as it is."""
    return not write.plain and isinstance(write.part, ast.Call) and _layer(write.part, ctx) not in ("", *_IN_PLACE)


def _layer(call: ast.Call, ctx: FileFacts) -> str:
    """The name of the class of torch's whose instance is called."""
    kind = ctx.kind(call.func)
    of_torch = kind.tag is Tag.MODULE and not kind.path and kind.qualified.startswith("torch.nn.")
    return kind.qualified.rpartition(".")[2] if of_torch else ""
