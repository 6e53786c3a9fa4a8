"""Parts of a batch whose memory this process makes behind a loader, or without one: pageable, whatever a loader pins,
so that their copies block although they are asked not to.
"""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.data import FEW_NUMBERS
from perflint.analysis.transfers.own_memory import made_anew
from perflint.analysis.values.kind import Tag
from perflint.analysis.values.origin import Provenance, is_from
from perflint.finding import Heat
from perflint.ir.calls import callee_name
from perflint.syntax.bindings import Binding
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

#: Their result is at least as large as what they are given; what a reduction or a comparison makes is small, and a
#: copy of up to 64 KB does not block.
_AS_LARGE = frozenset(
    "cat concat concatenate stack hstack vstack dstack clamp clip flip fliplr flipud roll rot90 repeat tile lerp "
    "interpolate normalize pad".split()
)
_OF_ARRAYS = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.tensor", "torch.Tensor", "torch.FloatTensor"})
#: Give the same memory: `from_numpy(points).contiguous()` of a whole array.
_SAME = tensors.VIEW_METHODS | {"contiguous"}


def made_in_step(moved: ast.expr, ctx: FileFacts) -> ast.expr | None:
    """What of a batch is moved that was made here: an array, the result of an operation, or an entry that an iterator
    of the project makes; None for what is small, or may be pinned.
    """
    return ctx.once(_made_in_step, moved)


def of_array(moved: ast.expr, ctx: FileFacts) -> ast.Call | None:
    """`torch.from_numpy(batch["points"])`: a loader pins tensors, and no arrays."""
    made = _under_views(moved)
    if isinstance(made, ast.Name):
        origins = ctx.inference.origins(made)
        made = _under_views(origins[0]) if len(origins) == 1 else made
    if not isinstance(made, ast.Call) or not made.args or ctx.target(made.func) not in _OF_ARRAYS:
        return None
    given = ctx.kind(made.args[0])
    is_array = callee_name(made) == "from_numpy" or given.tag is Tag.ARRAY
    if not is_array or not _is_of_loader(made.args[0], ctx):
        return None
    # `torch.from_numpy(images.numpy())` is the memory of a tensor, which may be pinned.
    given_by = [made.args[0], *ctx.inference.origins(made.args[0])]
    return None if any(isinstance(item, ast.Call) and callee_name(item) == "numpy" for item in given_by) else made


def of_own_iterator(moved: ast.expr, ctx: FileFacts) -> bool:
    """`[entry.cuda() for entry in batch]`, `images.cuda()` of what `__iter__` of a class, or a generator, makes with
    `torch.tensor`: a loader's batch, whatever its collate function makes, is the loader's.
    """
    origin = ctx.kind(moved).origin
    if not isinstance(moved, ast.Name) or origin is None or origin.name not in _OF_ARRAYS:
        return False
    inner = next(
        (part for part in ctx.tree.ancestors(moved) if isinstance(part, (ast.ListComp, ast.GeneratorExp))), None
    )
    over = [item.iter for item in inner.generators if ctx.text(item.target) == moved.id] if inner is not None else []
    batch = over[0] if over else moved
    found = ctx.inference.flow.definitions(batch) if isinstance(batch, ast.Name) else ()
    return bool(found) and all(item.binding is Binding.FOR and _gives_steps(item.node, ctx) for item in found)


def _gives_steps(loop: ast.AST, ctx: FileFacts) -> bool:
    """Whether the iterations of a loop are steps, so that what it gives is a batch."""
    return isinstance(loop, ast.For) and ctx.body_heat(loop) >= Heat.STEP > ctx.heat(loop)


def _made_in_step(moved: ast.expr, ctx: FileFacts) -> ast.expr | None:
    if of_own_iterator(moved, ctx):
        return None if FEW_NUMBERS.search(ctx.text(moved)) else moved
    made: ast.expr | None = of_array(moved, ctx)
    if made is None and _is_of_loader(moved, ctx):
        computed = made_anew(moved, ctx)
        made = computed if computed is not None and _is_as_large(computed) else None
    if made is None or any(FEW_NUMBERS.search(ctx.text(part)) for part in walk(made) if isinstance(part, ast.expr)):
        return None
    return made


def _is_as_large(made: ast.expr) -> bool:
    """Whether a result is as large as a batch of floats: a quotient, or all of what is given."""
    if isinstance(made, ast.BinOp):
        return isinstance(made.op, ast.Div)
    return isinstance(made, ast.Call) and callee_name(made) in _AS_LARGE


def _is_of_loader(value: ast.expr, ctx: FileFacts) -> bool:
    return is_from(ctx.kind(value).origin, Provenance.LOADER, Provenance.NAMED_LOADER)


def _under_views(value: ast.expr) -> ast.expr:
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _SAME:
        value = value.func.value
    return value
