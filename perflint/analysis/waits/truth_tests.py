"""What asks a device tensor whether it is true: the tests of branches, loops and comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.analysis.naming.values import HOLDS_LENGTHS
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag
from perflint.analysis.values.origin import Provenance, is_from
from perflint.analysis.waits.accelerators import uses_accelerator
from perflint.analysis.waits.exceptional import is_exceptional
from perflint.analysis.waits.host_values import ARRAYS, asks_the_host, speaks_of_arrays
from perflint.analysis.waits.host_work import in_forward
from perflint.analysis.waits.losses import is_loss
from perflint.analysis.waits.reads import certainty_on_device, is_unknown_in_step
from perflint.finding import Confidence
from perflint.ir.callees import last_name
from perflint.ir.summary import FunctionFacts
from perflint.syntax.walk import walk

#: Comparisons that ask no tensor for its value.
_NEVER_ASK = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
#: What reduces a tensor to one answer.
_REDUCED = ("any", "all")
#: Whence no sizes come: what a model learns, and its gradients.
_OF_MODELS = (Provenance.PARAMETER, Provenance.BUFFER)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def tests(node: ast.AST) -> Iterator[ast.expr]:
    """What a branch, loop, assertion, comprehension, `and` or `or` asks whether it is true."""
    if isinstance(node, COMPREHENSIONS):
        for generator in node.generators:
            yield from generator.ifs
    elif isinstance(node, ast.BoolOp):
        yield from node.values[:-1]  # the last one is the result
    elif isinstance(node, (ast.If, ast.While, ast.Assert, ast.IfExp)):
        yield node.test


def is_tested(node: ast.BoolOp, ctx: FileFacts) -> bool:
    """Whether `and` or `or` is part of a condition, which asks for all of it: `ok = a.any() and b.any()` is none."""
    child: ast.AST = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.BoolOp, ast.UnaryOp, ast.NamedExpr)):
            child = outer
            continue
        if isinstance(outer, ast.comprehension):
            return child in outer.ifs
        return isinstance(outer, (ast.If, ast.While, ast.Assert, ast.IfExp)) and child is outer.test
    return False


def leaves(test: ast.expr) -> Iterator[ast.expr]:
    """The values that are asked whether they are true."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from leaves(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from leaves(test.operand)
    elif isinstance(test, ast.NamedExpr):
        yield from leaves(test.value)
    elif isinstance(test, ast.IfExp):
        yield from leaves(test.body)
        yield from leaves(test.orelse)
    else:
        yield test


def is_asked(leaf: ast.expr, ctx: FileFacts) -> bool:
    """Whether a leaf of a test asks a device tensor, on a way that runs as a rule, and is the first to ask it."""
    if certainty_asked(leaf, ctx) is None or is_exceptional(leaf, ctx) or _was_asked(leaf, ctx):
        return False
    return not any(_is_of_list(side, ctx) for side in _sides(leaf))


def _is_of_list(side: ast.expr, ctx: FileFacts) -> bool:
    """Whether a value is one of those that a mapping holds under a key under which this file puts a list of numbers or
    texts, whatever the mapping's annotation says: `dict[str, Tensor]` is written for what the model takes.
    """
    if not isinstance(side, ast.Name):
        return False
    for outer in ctx.tree.ancestors(side):
        if isinstance(outer, (ast.For, ast.comprehension)):
            names = {part.id for part in walk(outer.target) if isinstance(part, ast.Name)}
            if side.id in names:
                keys = {
                    part.slice.value
                    for part in walk(outer.iter)
                    if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant)
                }
                return any(isinstance(key, str) and _holds_list(key, ctx) for key in keys)
    return False


def _holds_list(key: str, ctx: FileFacts) -> bool:
    for node in walk(ctx.tree.module):
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Subscript):
            if isinstance(target.slice, ast.Constant) and target.slice.value == key and _is_list(node.value, ctx):
                return True
    return False


def _is_list(value: ast.expr, ctx: FileFacts) -> bool:
    kind = ctx.kind(value)
    return kind.tag is Tag.SEQUENCE and (
        kind.element is None or kind.element.tag in (Tag.NUMBER, Tag.STRING, Tag.NEVER)
    )


def _was_asked(leaf: ast.expr, ctx: FileFacts) -> bool:
    """`if worst == 0: ... elif worst > limit`: the first test has waited for the value already."""
    names = {part.id for part in _sides(leaf) if isinstance(part, ast.Name) and ctx.kind(part).is_tensor}
    statement = ctx.tree.statement_of(leaf)
    if not names or not isinstance(statement, ast.If):
        return False
    child: ast.AST = statement
    outer = ctx.tree.parent(child)
    while isinstance(outer, ast.If) and child is next(iter(outer.body if child in outer.body else outer.orelse), None):
        asked = {part.id for test in leaves(outer.test) for part in _sides(test) if isinstance(part, ast.Name)}
        if names <= asked:
            return True
        child, outer = outer, ctx.tree.parent(outer)
    return False


def _sides(leaf: ast.expr) -> Iterator[ast.expr]:
    """What a test looks at: the two sides of a comparison, or the value itself."""
    if isinstance(leaf, ast.Compare):
        yield leaf.left
        yield from leaf.comparators
    else:
        yield leaf


def certainty_asked(leaf: ast.expr, ctx: FileFacts) -> Confidence | None:
    """How sure it is that a device tensor is asked; None where that is not known."""
    if isinstance(leaf, (ast.Constant, ast.JoinedStr)):
        return None
    if isinstance(leaf, ast.UnaryOp) and isinstance(leaf.op, ast.Invert):
        return certainty_asked(leaf.operand, ctx)  # `~x.any()` is as much a tensor as `x.any()`
    if (found := _searched(leaf, ctx)) is not None:
        return found
    if (kept := kept_answer(leaf, ctx)) is not None:
        return certainty_asked(kept, ctx)
    if asks_the_host(leaf, ctx):
        return None
    through = next((found for side in _sides(leaf) if (found := read_by_helper(side, ctx)) is not None), None)
    through = reduced_by_helper(leaf, ctx) if through is None else through
    if through is not None:
        return through
    found = _chained(leaf, ctx) or certainty_on_device(leaf, ctx)
    if found is None:
        unknown = _reduces_unknown(leaf, ctx) or _is_tensor_of_step(leaf, ctx) or _compares_loss(leaf, ctx)
        return Confidence.MEDIUM if unknown else None
    if isinstance(leaf, ast.Compare) and found < Confidence.HIGH and _compares_sizes(leaf, ctx):
        return None
    if isinstance(leaf, (ast.Call, ast.Compare)) or (ctx.kind(leaf).scalar and found is Confidence.HIGH):
        return found
    if isinstance(leaf, ast.Attribute):
        return found if _is_surely_tensor(leaf, ctx) else None  # a buffer that says what was done
    if isinstance(leaf, ast.Subscript):
        return found if _is_surely_tensor(leaf.value, ctx) and not isinstance(leaf.slice, ast.Slice) else None
    is_tensor = isinstance(leaf, ast.Name) and (_is_row_of_tensor(leaf, ctx) or _is_reduced(leaf, ctx))
    return found if is_tensor else None


def _searched(leaf: ast.expr, ctx: FileFacts) -> Confidence | None:
    """How sure `0 in target` looks for a number in a device tensor, or for a tensor in a list: compared there,
    read by the host.
    """
    if not (isinstance(leaf, ast.Compare) and len(leaf.ops) == 1 and isinstance(leaf.ops[0], (ast.In, ast.NotIn))):
        return None
    looked_for, within = ctx.kind(leaf.left), leaf.comparators[0]
    if looked_for.tag is not Tag.NUMBER and not looked_for.is_tensor:
        return None  # a text, as a rule: what it is looked for in takes longer to tell
    held = ctx.kind(within).element if ctx.kind(within).tag is Tag.SEQUENCE else None
    if held is not None and looked_for.is_tensor and held.tag in (Tag.TENSOR, Tag.NUMBER):
        return certainty_on_device(leaf.left, ctx)  # `found not in taken`: compared with one after the other
    return certainty_on_device(within, ctx) if ctx.kind(within).tag is Tag.TENSOR else None


def _is_reduced(leaf: ast.Name, ctx: FileFacts) -> bool:
    """Whether a name holds what calls reduced to one value, on every way to the test, `wrong = torch.any(x < 0)`, or
    what a comparison of such a value gave: `is_done = gradient.abs().max() <= limit`.
    """
    made = ctx.inference.origins(leaf)
    return bool(made) and all(
        isinstance(one, (ast.Call, ast.Compare))
        and ctx.kind(one).tag is Tag.TENSOR
        and (
            ctx.kind(one).scalar
            or (isinstance(one, ast.Compare) and any(ctx.kind(side).scalar for side in _sides(one)))
        )
        for one in made
    )


def _is_surely_tensor(node: ast.expr, ctx: FileFacts) -> bool:
    kind = ctx.kind(node)
    return kind.tag is Tag.TENSOR and kind.certainty is Confidence.HIGH


def read_by_helper(node: ast.expr, ctx: FileFacts) -> Confidence | None:
    """How sure it is that `node` calls a function of the project that reads the device tensor it is given, as
    `def item(x): return x.item() if hasattr(x, "item") else x` does. The read is in the helper, the need for it here.
    """
    facts = _helper(node, ctx)
    if facts is None or not isinstance(node, ast.Call):
        return None
    reads = f"{facts.params[0].name}.item"
    is_read = any(isinstance(value, tuple) and value[:2] == ("call", reads) for value in _given(facts))
    return certainty_on_device(node.args[0], ctx) if is_read else None


def reduced_by_helper(node: ast.expr, ctx: FileFacts) -> Confidence | None:
    """How sure it is that `node` calls a function of the project that reduces the device tensor it is given to one
    answer: `def has_nan(x): return x != x if isinstance(x, float) else torch.isnan(x).any()`.
    """
    facts = _helper(node, ctx)
    is_reduced = facts is not None and any(
        isinstance(value, tuple) and value[0] == "call" and last_name(value[1]) in _REDUCED for value in _given(facts)
    )
    if not is_reduced or not isinstance(node, ast.Call) or not ctx.kind(node.args[0]).is_tensor:
        return None
    return certainty_on_device(node.args[0], ctx)


def _helper(node: ast.expr, ctx: FileFacts) -> FunctionFacts | None:
    """The function of the project that a call gives its one argument to."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return None
    target = ctx.project_target(node.func)
    if target is None or target.kind != FUNCTION:
        return None
    facts = ctx.program.function(Scope(target.path, target.name))
    return facts if len(facts.params) == 1 else None


def _given(facts: FunctionFacts) -> list[Any]:
    """What a function may return."""
    return [part for value in facts.returns for part in (value[1] if _is_either(value) else (value,))]


def _is_either(value: Any) -> bool:
    """`a if test else b` in the notation of summaries."""
    return isinstance(value, tuple) and value[0] == "either"


def _chained(leaf: ast.expr, ctx: FileFacts) -> Confidence | None:
    """`low <= x < high` asks for `low <= x` before it compares again, and gives no tensor of both."""
    if not isinstance(leaf, ast.Compare) or len(leaf.ops) < 2 or any(isinstance(op, _NEVER_ASK) for op in leaf.ops):
        return None
    sides = (side for side in (leaf.left, *leaf.comparators) if not isinstance(side, ast.Constant))
    return max((found for side in sides if (found := certainty_on_device(side, ctx)) is not None), default=None)


def _compares_sizes(leaf: ast.Compare, ctx: FileFacts) -> bool:
    """Whether a number is compared with names of which it is only likely that they hold tensors: `L == H * W`, with H
    and W out of what a module gives.
    """
    sides = (leaf.left, *leaf.comparators)
    known = [side for side in sides if ctx.kind(side).tag is Tag.NUMBER and not _is_literal(side)]
    others = [part for side in sides if side not in known for part in walk(side)]
    if any(_is_surely_tensor(side, ctx) or is_from(ctx.kind(side).origin, *_OF_MODELS) for side in sides):
        return False
    return bool(known) and not any(isinstance(part, (ast.Call, ast.Subscript)) for part in others)


def _is_literal(node: ast.expr) -> bool:
    """`0`, `-1`"""
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _is_row_of_tensor(leaf: ast.Name, ctx: FileFacts) -> bool:
    """Whether a comprehension that filters by `leaf` takes it from a tensor, `for i, keep in zip(ids, mask) if keep`,
    or a loop takes it from one.

    Of other names that hold a tensor, a bare test more often asks whether there is one at all.
    """
    for outer in ctx.tree.ancestors(leaf):
        if isinstance(outer, COMPREHENSIONS):
            found = [ctx.kind(item).is_tensor for part in outer.generators for item in _rows_of(part, leaf, ctx)]
            return any(found)
        if isinstance(outer, ast.For) and (sources := list(_rows_of(outer, leaf, ctx))):
            made = ctx.inference.flow.definitions(leaf)
            return all(item.node is outer for item in made) and ctx.kind(sources[0]).tag is Tag.TENSOR
    return False


def _rows_of(loop: ast.For | ast.comprehension, leaf: ast.Name, ctx: FileFacts) -> Iterator[ast.expr]:
    """What a loop goes through where it gives its parts the name of `leaf`."""
    pairs = [(loop.target, loop.iter)]
    while pairs:
        target, source = pairs.pop()
        if isinstance(target, ast.Tuple) and isinstance(source, ast.Call):
            if ctx.target(source.func) == "zip":
                pairs += zip(target.elts, source.args)
            elif ctx.target(source.func) == "enumerate" and source.args:
                pairs.append((target.elts[-1], source.args[0]))
        elif isinstance(target, ast.Name) and target.id == leaf.id:
            yield source


def _compares_loss(leaf: ast.expr, ctx: FileFacts) -> bool:
    """`loss > limit` of a loss that something unknown made: a tensor, unless it was read to a number before."""
    if not isinstance(leaf, ast.Compare) or any(isinstance(op, _NEVER_ASK) for op in leaf.ops):
        return False
    return any(not ctx.kind(side).known and is_loss(side, ctx) for side in _sides(leaf))


def _is_tensor_of_step(leaf: ast.expr, ctx: FileFacts) -> bool:
    """`loss == inf` in a forward or a step of training: certainly a tensor, of which the place alone is unknown."""
    if not isinstance(leaf, (ast.Call, ast.Compare)):
        return False
    kind = ctx.kind(leaf)
    if not kind.is_tensor or kind.certainty is not Confidence.HIGH:
        return False
    if ctx.role(leaf) not in ("train", "optimizer") and not in_forward(leaf, ctx):
        return False
    return is_unknown_in_step(leaf, kind, ctx, also=(Tag.TENSOR,))


def _reduces_unknown(leaf: ast.expr, ctx: FileFacts) -> bool:
    """`x.any()` or `x.all() <= 1` in a forward or a training step, `shapes.prod(1).sum() == n` in a forward: without
    arrays about, only a tensor has these.
    """
    call = leaf.left if isinstance(leaf, ast.Compare) else leaf
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
        return False
    is_compared = isinstance(leaf, ast.Compare) and call.func.attr in ("sum", "max", "min", "mean")
    if not (call.func.attr in _REDUCED or (is_compared and in_forward(call, ctx))):
        return False
    if is_compared and any(HOLDS_LENGTHS.search(name) for name in names_in(call.func.value)):
        return False  # what sequences are packed by is on the host
    if call.args or call.keywords or ctx.kind(call.func.value).known or _works_with_arrays(call, ctx):
        return False
    return (ctx.role(call) == "train" or in_forward(call, ctx)) and uses_accelerator(ctx)


def _works_with_arrays(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the function around is about arrays: another one of the file says nothing of it."""
    if not ctx.mentions(*ARRAYS, "pl"):
        return False
    around = ctx.tree.function_of(node)
    return around is None or any(
        speaks_of_arrays(part, ctx) or (isinstance(part, ast.Name) and part.id == "pl") for part in walk(around)
    )


def kept_answer(leaf: ast.expr, ctx: FileFacts) -> ast.expr | None:
    """What a name holds that keeps what stands last in an `and` or `or`, which has not asked it itself:
    `begins = padded and mask[0].all()` and then `if not begins`.
    """
    for made in ctx.inference.origins(leaf) if isinstance(leaf, ast.Name) else ():
        last = made.values[-1] if isinstance(made, ast.BoolOp) else None
        if isinstance(last, ast.Call) and isinstance(last.func, ast.Attribute) and last.func.attr in _REDUCED:
            return last
    return None


def chooses_values(node: ast.AST) -> bool:
    """Whether all that a test decides is which value a name gets, or is returned."""
    if isinstance(node, (ast.IfExp, ast.BoolOp)):
        return True
    if not isinstance(node, ast.If):
        return False
    chosen = (ast.Assign, ast.AugAssign, ast.AnnAssign)
    if all(isinstance(item, chosen) for item in (*node.body, *node.orelse)):
        return True
    return all(
        isinstance(item, chosen) or (isinstance(item, ast.Return) and item.value is not None)
        for item in (*node.body, *node.orelse)
    )
