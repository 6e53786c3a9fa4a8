"""What a value is computed from inside of a loop, and whether one turn of the loop needs another."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import arguments_of
from perflint.syntax.walk import walk

Turning = ast.For | ast.comprehension


def turning_loops(node: ast.AST, ctx: FileFacts) -> Iterator[tuple[Turning, ast.AST]]:
    """The `for` loops and comprehensions of the same function around `node`, innermost first, each with its region."""
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return
        if isinstance(outer, ast.For) and child in outer.body:
            yield outer, outer
        elif isinstance(outer, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            for generator in reversed(outer.generators):
                if child is not generator:
                    yield generator, outer
        child = outer


def needed(value: ast.expr, region: ast.AST) -> tuple[set[str], list[ast.AST]]:
    """Names that `value` is computed from inside of `region`, and the values that they are given there."""
    names: set[str] = set()
    parts: list[ast.AST] = [value]
    waiting: list[ast.AST] = [value]
    given = _given(region)
    while waiting:
        for part in walk(waiting.pop()):
            name = part.id if isinstance(part, ast.Name) else _own_attribute(part)
            if name and name not in names:
                names.add(name)
                parts += given.get(name, ())
                waiting += given.get(name, ())
    return names, parts


def feeds_itself(call: ast.Call, region: ast.AST, given: list[ast.expr] | None = None) -> bool:
    """Whether what a call is given in a region, or these of its arguments, comes from an earlier turn's call."""
    return any(
        part is call
        for item in (arguments_of(call) if given is None else given)
        for value in needed(item, region)[1]
        if value is not item
        for part in walk(value)
    )


def is_of_own_size(made: ast.expr, own: set[str], region: ast.AST) -> bool:
    """Whether a sample may have another size than the next: the loop asks it for its size, or cuts it to one."""
    return _has_own_size(own, region) or any(
        isinstance(part, ast.Subscript) and _is_cut_for(own, part, region)
        for value in needed(made, region)[1]
        for part in walk(value)
    )


def _is_cut_for(own: set[str], rows: ast.Subscript, region: ast.AST) -> bool:
    """`motions[i : i + 1, : lengths[i]]`: each turn has a length of its own, where padding may give something else.
    Windows, `motion[i : i + 8]`, are of one length.
    """
    for item in rows.slice.elts if isinstance(rows.slice, ast.Tuple) else [rows.slice]:
        if isinstance(item, ast.Slice):
            bounds = [bound for bound in (item.lower, item.upper) if bound is not None]
            if sum(bool(own & needed(bound, region)[0]) for bound in bounds) == 1:
                return True
    return False


def _has_own_size(own: set[str], region: ast.AST) -> bool:
    """Whether the loop asks a sample for its size: then another one may have another."""
    return any(
        isinstance(part, ast.Attribute)
        and part.attr in ("shape", "size")
        and isinstance(part.value, ast.Name)
        and part.value.id in own
        for part in walk(region)
    )


def _own_attribute(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        return f"{node.value.id}.{node.attr}"
    return ""


def _given(region: ast.AST) -> dict[str, list[ast.AST]]:
    """What the names set in a region are given: assigned, stored into, looped over, entered or called with."""
    found: dict[str, list[ast.AST]] = {}
    for part in walk(region):
        pairs: list[tuple[ast.expr, ast.AST]] = []
        if isinstance(part, ast.Assign):
            pairs = [(target, part.value) for target in part.targets]
        elif isinstance(part, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and part.value is not None:
            pairs = [(part.target, part.value)]
        elif isinstance(part, (ast.For, ast.comprehension)) and part is not region:
            pairs = [(part.target, part.iter)]
        elif isinstance(part, ast.withitem) and part.optional_vars is not None:
            pairs = [(part.optional_vars, part.context_expr)]
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
            # `history.append(answer)`, `env.step(action)`: the receiver may remember what it was given.
            call = part.value
            if isinstance(call.func, ast.Attribute):
                pairs = [(call.func.value, argument) for argument in call.args]
        for target, value in pairs:
            for name in _stored(target):
                found.setdefault(name, []).append(value)
    return found


def _stored(target: ast.expr) -> Iterator[str]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _stored(item)
    elif isinstance(target, ast.Starred):
        yield from _stored(target.value)
    elif isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute) and _own_attribute(target):
        yield _own_attribute(target)
    elif isinstance(target, (ast.Attribute, ast.Subscript)):
        yield from _stored(target.value)


def bound_by(turning: Turning) -> set[str]:
    return {part.id for part in walk(turning.target) if isinstance(part, ast.Name)}


def regions_of_turns(node: ast.AST, ctx: FileFacts) -> list[ast.AST]:
    """Loops and comprehensions of the same function that run `node` once a turn, innermost first."""
    found: list[ast.AST] = []
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            break
        if isinstance(outer, (ast.For, ast.AsyncFor, ast.While)) and child in outer.body:
            found.append(outer)
        if isinstance(outer, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            first = outer.generators[0]
            if child is not first:
                found.append(outer)
        child = outer
    return found
