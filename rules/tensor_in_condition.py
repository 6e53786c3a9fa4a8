"""TPL202: branches that ask the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Heat, Impact, Nodes, Rule, Tag

from ._waits import ARRAYS, certainty_on_device, in_forward, is_exceptional, uses_accelerator, works_on_host

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class TensorInCondition(Rule):
    """A branch on a device tensor makes the host wait for the value before it can go on.

    Why it is slow
    `if`, `while`, `assert`, `and`, `or`, `not` and the conditional expression turn a tensor into a Python bool. For a
    device tensor that is one wait until all work queued before has run, for each tensor that is asked. Inside a
    forward it happens once per layer, and the device idles until the host has queued more. `assert` does so as well.

    What to write instead
    Compute both and choose on the device: `torch.where(mask, a, b)`, `masked_fill`, or multiply by the mask; an empty
    mask changes nothing then, so `if mask.any():` can go. Ask about shapes, lengths or configuration, which the host
    knows. Checks: `torch._assert_async(condition)`, or every N steps, or behind a debugging switch.

    When to leave it
    Tests of shapes, sizes, dtypes, `is None`, lengths, Python numbers and flags, tensors on the CPU, checks under an
    every-N guard, values that the test before has asked for: perflint is silent there. A loop that must stop when the
    device says so has to ask; it can ask every few turns. Under `torch.compile` an `assert` becomes an asynchronous
    check; an `if` cuts the graph.

    Fix safety
    There is no automatic fix: skipping work for an empty mask and computing with it can differ where values are not
    finite, and a check that comes later changes where a run stops.
    """

    code, name = "TPL202", "tensor-in-condition"
    impact = Impact.MEDIUM
    listens = (Nodes(ast.If, ast.While, ast.Assert, ast.IfExp, *_COMPREHENSIONS),)
    at_least = Heat.STEP
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        asked = [leaf for test in _tests(node) for leaf in _leaves(test) if _is_asked(leaf, ctx)]
        if not asked or works_on_host(asked[0], ctx):
            return
        yield self.finding(
            asked[0],
            ctx,
            _message(node, asked, ctx),
            advice=_advice(node, asked[0], ctx),
            confidence=min(self.confidence, *(_certainty(leaf, ctx) or Confidence.LOW for leaf in asked)),
            impact=Impact.HIGH if in_forward(asked[0], ctx) else None,
        )


def _tests(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, _COMPREHENSIONS):
        for generator in node.generators:
            yield from generator.ifs
    elif isinstance(node, (ast.If, ast.While, ast.Assert, ast.IfExp)):
        yield node.test


def _leaves(test: ast.expr) -> Iterator[ast.expr]:
    """The values that are asked whether they are true."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _leaves(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _leaves(test.operand)
    elif isinstance(test, ast.NamedExpr):
        yield from _leaves(test.value)
    else:
        yield test


def _is_asked(leaf: ast.expr, ctx: Context) -> bool:
    return _certainty(leaf, ctx) is not None and not is_exceptional(leaf, ctx) and not _was_asked(leaf, ctx)


def _was_asked(leaf: ast.expr, ctx: Context) -> bool:
    """`if worst == 0: ... elif worst > limit`: the first test has waited for the value already."""
    names = {part.id for part in _sides(leaf) if isinstance(part, ast.Name) and ctx.kind(part).is_tensor}
    statement = ctx.tree.statement_of(leaf)
    if not names or not isinstance(statement, ast.If):
        return False
    child: ast.AST = statement
    outer = ctx.tree.parent(child)
    while isinstance(outer, ast.If) and child is next(iter(outer.body if child in outer.body else outer.orelse), None):
        asked = {part.id for test in _leaves(outer.test) for part in _sides(test) if isinstance(part, ast.Name)}
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


def _certainty(leaf: ast.expr, ctx: Context) -> Confidence | None:
    """How sure it is that a device tensor is asked; None where that is not known."""
    if isinstance(leaf, (ast.Constant, ast.JoinedStr)) or _asks_the_host(leaf):
        return None
    found = certainty_on_device(leaf, ctx)
    if found is None:
        return Confidence.MEDIUM if _reduces_unknown(leaf, ctx) else None
    if isinstance(leaf, ast.Compare) and found < Confidence.HIGH and _compares_sizes(leaf, ctx):
        return None
    if isinstance(leaf, (ast.Call, ast.Compare)) or (ctx.kind(leaf).scalar and found is Confidence.HIGH):
        return found
    return found if isinstance(leaf, ast.Name) and _is_row_of_tensor(leaf, ctx) else None


def _compares_sizes(leaf: ast.Compare, ctx: Context) -> bool:
    """Whether a number is compared with names of which it is only likely that they hold tensors: `L == H * W`, with H
    and W out of what a module gives.
    """
    sides = (leaf.left, *leaf.comparators)
    known = [side for side in sides if ctx.kind(side).tag is Tag.NUMBER and not isinstance(side, ast.Constant)]
    others = [part for side in sides if side not in known for part in ast.walk(side)]
    return bool(known) and not any(isinstance(part, (ast.Call, ast.Subscript)) for part in others)


def _is_row_of_tensor(leaf: ast.Name, ctx: Context) -> bool:
    """Whether a comprehension that filters by `leaf` takes it from a tensor: `for i, keep in zip(ids, mask) if keep`.

    Of other names that hold a tensor, a bare test more often asks whether there is one at all.
    """
    outer = next((node for node in ctx.tree.ancestors(leaf) if isinstance(node, _COMPREHENSIONS)), None)
    for generator in outer.generators if outer is not None else ():
        target, source = generator.target, generator.iter
        if isinstance(target, ast.Tuple) and isinstance(source, ast.Call) and ctx.target(source.func) == "zip":
            pairs = list(zip(target.elts, source.args))
        else:
            pairs = [(target, source)]
        for name, values in pairs:
            if isinstance(name, ast.Name) and name.id == leaf.id:
                return ctx.kind(values).is_tensor
    return False


#: Functions that give a bool or number of the host for whatever they are given.
_HOST_FUNCTIONS = frozenset("isinstance issubclass hasattr callable len id type".split())


def _asks_the_host(leaf: ast.expr) -> bool:
    """Whether the shape of a test alone says that no tensor is asked: most tests are such, and this costs nothing."""
    if isinstance(leaf, ast.Call):
        return isinstance(leaf.func, ast.Name) and leaf.func.id in _HOST_FUNCTIONS
    if isinstance(leaf, ast.Compare):
        compared = (leaf.left, *leaf.comparators)
        return any(_is_text(item) for item in leaf.comparators) or all(_is_size(item) for item in compared)
    return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_size(node: ast.expr) -> bool:
    """A literal, `len(x)`, `x.ndim`, `x.shape[0]`, and sums of such."""
    if isinstance(node, ast.BinOp):
        return _is_size(node.left) and _is_size(node.right)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "len"
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and _is_size(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr in ("ndim", "shape") and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    return isinstance(node, ast.Constant)


def _reduces_unknown(leaf: ast.expr, ctx: Context) -> bool:
    """`x.any()` or `x.all() <= 1` in a forward or a training step: without arrays about, only a tensor has these."""
    call = leaf.left if isinstance(leaf, ast.Compare) else leaf
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("any", "all")):
        return False
    if call.args or call.keywords or ctx.kind(call.func.value).known or ctx.mentions(*ARRAYS, "pl"):
        return False
    return (ctx.role(call) == "train" or in_forward(call, ctx)) and uses_accelerator(ctx)


def _message(node: ast.AST, asked: list[ast.expr], ctx: Context) -> str:
    statement = {ast.While: "loop", ast.Assert: "assert"}.get(type(node), "branch")
    text = ctx.text(asked[0])
    short = text if len(text) <= 60 else f"{text[:57]}..."
    words = (
        f"`{short}` is a device tensor, and this {statement} {ctx.heat(asked[0]).phrase}: the host waits for its value."
    )
    if len(asked) > 1:
        words += f" {len(asked)} tensors are asked here, each with a wait of its own."
    return words


def _advice(node: ast.AST, leaf: ast.expr, ctx: Context) -> str:
    if isinstance(node, ast.Assert):
        return f"Check every N steps or behind a debugging switch, or use `torch._assert_async({ctx.text(leaf)})`."
    if isinstance(leaf, ast.Call) and isinstance(leaf.func, ast.Attribute) and leaf.func.attr in ("any", "all"):
        return "Do the masked work always (`torch.where`, `masked_fill`): with an empty mask it changes nothing."
    if isinstance(node, ast.While):
        return "Ask every few turns, or bound the number of turns by what the host knows."
    return "Choose on the device with `torch.where`, or ask about something the host knows."
