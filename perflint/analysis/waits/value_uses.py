"""What the program does with a number that it reads from the device: what can be advised depends on it."""

from __future__ import annotations

import ast
import enum

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name
from perflint.syntax.named import one_target


class Use(enum.Enum):
    """The first of these that holds for any use of a value."""

    CHECK = "check"  # an assertion, or an `if` that raises
    HOST = "host"  # an argument of a library that works on the host, an array
    SIZE = "size"  # a bound of a slice, a shape, a count
    LOOKUP = "lookup"  # a place in a list or a key of a dict
    BRANCH = "branch"  # decides what runs
    TENSOR = "tensor"  # made a tensor again
    OTHER = "other"


#: Functions and methods that take sizes, whatever their other arguments are.
_SIZED = frozenset(
    "range zeros ones empty full rand randn randint randperm arange new_zeros new_ones new_empty new_full view reshape "
    "expand repeat split chunk narrow unflatten islice topk linspace eye unfold broadcast_to tile pad one_hot "
    "pack_padded_sequence".split()
)
#: Functions that make a tensor of a number, with the place and the name of the parameter that it is handed to.
_FILLED = {
    "full": (1, "fill_value"),
    "new_full": (1, "fill_value"),
    "full_like": (1, "fill_value"),
    "tensor": (0, "data"),
    "as_tensor": (0, "data"),
    "scalar_tensor": (0, "s"),
}
#: What a tensor tells without its values.
_OUTSIDE = frozenset("shape dtype device ndim".split())
#: Libraries that compute on the host, or keep what they are given.
_ON_HOST = (
    "numpy.",
    "scipy.",
    "sklearn.",
    "skimage.",
    "cv2.",
    "PIL.",
    "json.",
    "pickle.",
    "csv.",
    "pandas.",
    "matplotlib.",
)
#: Functions that give a number of the numbers they are given.
_NUMERIC = frozenset("int float bool round abs min max len sum ceil floor sqrt log exp isnan isinf isfinite".split())
_DEPTH = 4


def use_of(value: ast.expr, ctx: FileFacts) -> Use:
    """What becomes of a value, under whatever names it goes in its function."""
    found = _uses(value, ctx, _DEPTH)
    if Use.TENSOR in found and found != {Use.TENSOR}:
        found.discard(Use.TENSOR)  # it is on the host in any case
    # What is also needed otherwise is on the host in any case, where a check costs nothing.
    found = found - {Use.CHECK} or found
    return next((use for use in Use if use in found), Use.OTHER)


def check_around(node: ast.AST, ctx: FileFacts) -> ast.Assert | ast.If | None:
    """The assertion, or the `if` that does nothing but raise, whose test `node` is part of."""
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.Assert, ast.If)):
            return outer if child is outer.test and is_check(outer) else None
        if isinstance(outer, (ast.stmt, ast.Lambda)):
            return None
        child = outer
    return None


def ends_loop(test: ast.expr, ctx: FileFacts) -> bool:
    """Whether a test decides that a loop ends: of a `while`, or of an `if` that breaks or returns from a loop."""
    child: ast.AST = test
    for outer in ctx.tree.ancestors(test):
        if isinstance(outer, ast.While):
            return child is outer.test
        if isinstance(outer, ast.If):
            leaves = [*outer.body[-1:], *outer.orelse[-1:]]
            return (
                child is outer.test
                and any(isinstance(item, (ast.Break, ast.Return)) for item in leaves)
                and bool(ctx.loops(outer))
            )
        if isinstance(outer, ast.stmt):
            return False
        child = outer
    return False


def is_check(statement: ast.stmt) -> bool:
    """Whether a statement stops the program where a test says so, and does nothing else."""
    if isinstance(statement, ast.Assert):
        return True
    return isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Raise) and not statement.orelse


def _uses(value: ast.expr, ctx: FileFacts, depth: int) -> set[Use]:
    child: ast.AST = value
    for outer in ctx.tree.ancestors(value):
        if isinstance(outer, ast.Slice):
            return {Use.SIZE}
        if isinstance(outer, ast.Subscript):
            if child is not outer.value:
                return {Use.OTHER} if ctx.kind(outer.value).is_tensor else {Use.LOOKUP}
        elif isinstance(outer, ast.Attribute):
            if outer.attr in _OUTSIDE:
                return set()
            if outer.attr == "numpy":
                return {Use.HOST}
        elif isinstance(outer, ast.Call) and child is not outer.func:
            if is_fill_value(outer, child):
                return {Use.TENSOR}
            if (ctx.target(outer.func) or "").startswith(_ON_HOST):
                return {Use.HOST}
            if callee_name(outer) in _SIZED:
                return {Use.SIZE}
            if callee_name(outer) not in _NUMERIC:
                return {Use.OTHER}
        elif isinstance(outer, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            return _tested(outer, child)
        elif isinstance(outer, ast.comprehension):
            return {Use.BRANCH} if child in outer.ifs else {Use.OTHER}
        elif isinstance(outer, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            found = _uses_of_names(outer, ctx, depth - 1) if depth else set()
            return found | _uses(outer, ctx, depth) if isinstance(outer, ast.NamedExpr) else found
        elif isinstance(outer, (ast.stmt, ast.Lambda, ast.JoinedStr, ast.Dict)):
            return {Use.OTHER}
        child = outer
    return {Use.OTHER}


def is_fill_value(call: ast.Call, given: ast.AST) -> bool:
    """Whether a call makes a tensor whose entries are what it is given: `torch.full((n,), value)`."""
    place, name = _FILLED.get(callee_name(call), (-1, ""))
    if given in call.args:
        return call.args.index(given) == place
    return any(item.arg == name and given in (item, item.value) for item in call.keywords)


def _tested(outer: ast.If | ast.While | ast.IfExp | ast.Assert, child: ast.AST) -> set[Use]:
    if child is not outer.test:
        return set()
    return {Use.CHECK} if isinstance(outer, ast.stmt) and is_check(outer) else {Use.BRANCH}


def _uses_of_names(statement: ast.AST, ctx: FileFacts, depth: int) -> set[Use]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]  # type: ignore[attr-defined]
    flow = ctx.inference.flow
    found: set[Use] = set()
    for target in targets:
        for name in ast.walk(target):
            made = flow.definition_at(name) if isinstance(name, ast.Name) else None
            for use in flow.uses_of(made) if made is not None else ():
                found |= _uses(use, ctx, depth)
    return found


def later_uses(node: ast.AST, ctx: FileFacts) -> list[ast.Name]:
    """The uses of the one name that the statement around a value binds."""
    statement = ctx.tree.statement_of(node)
    target = one_target(statement)
    made = ctx.inference.flow.definition_at(target) if isinstance(target, ast.Name) else None
    return ctx.inference.flow.uses_of(made) if made is not None else []
