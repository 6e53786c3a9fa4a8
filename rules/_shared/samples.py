"""What the rules about single samples share: who is given a value, and whether one turn of a loop needs another."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Context, argument, is_constant, last_name, walk
from perflint.api.gradients import arguments
from perflint.api.names import SEVERAL_TEXTS, TO_SHOW

#: Methods that leave a tensor what it is: the same sample, somewhere else or in another type.
_MOVES = frozenset(
    "to cuda cpu float half double bfloat16 long int type detach clone contiguous requires_grad_ unsqueeze to_device "
    "pin_memory items".split()
)
_DEEP = 5
_FEW = 10
_WRAPPERS = ("enumerate", "tqdm", "zip", "list", "sorted", "reversed")
_SHOWN = frozenset({"desc", "description", "total", "unit", "leave", "disable", "ncols", "postfix"})

Turning = ast.For | ast.comprehension


def takers(value: ast.expr, ctx: Context, depth: int = _DEEP) -> Iterator[ast.Call]:
    """The calls that are given `value` itself: as an argument, through moves, keys, attributes and names."""
    child: ast.AST = value
    for outer in ctx.tree.ancestors(value):
        if isinstance(outer, ast.Attribute):
            child = outer
        elif isinstance(outer, ast.Subscript) and child is outer.value and isinstance(outer.slice, ast.Constant):
            child = outer
        elif isinstance(outer, ast.Call):
            if child is not outer.func and not _lengthens(outer):
                yield outer
                return
            if child is not outer.func:
                child = outer
                continue
            if not isinstance(child, ast.Attribute) or child.attr not in _MOVES:
                return
            child = outer
        elif isinstance(outer, (ast.Starred, ast.keyword, ast.DictComp)):
            child = outer
        elif isinstance(outer, ast.comprehension):
            if child is not outer.iter or not moves_values(ctx.tree.parent(outer)):
                return
            child = outer
        elif isinstance(outer, (ast.List, ast.Tuple)):
            # One sample's pieces, put together along its own length.
            joined = ctx.tree.parent(outer)
            if not isinstance(joined, ast.Call) or not _lengthens(joined):
                return
            child = outer
        elif isinstance(outer, (ast.Assign, ast.AnnAssign)):
            targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target]
            if depth > 0 and child is outer.value and len(targets) == 1 and isinstance(targets[0], ast.Name):
                yield from _takers_of(targets[0], ctx, depth - 1)
            return
        else:
            return


def moves_values(node: ast.AST | None) -> bool:
    """Whether a value is `{k: v.to(device) for k, v in inputs.items()}`: the same inputs, somewhere else."""
    if not isinstance(node, ast.DictComp) or len(node.generators) != 1 or node.generators[0].ifs:
        return False
    target, value = node.generators[0].target, node.value
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES:
        value = value.func.value
    return (
        isinstance(target, ast.Tuple)
        and isinstance(target.elts[-1], ast.Name)
        and isinstance(value, ast.Name)
        and value.id == target.elts[-1].id
    )


def handed_out(rows: ast.expr, ctx: Context) -> str:
    """What a loop goes through, without what its progress bar shows: `tqdm(rows, desc="by model")`."""
    if isinstance(rows, ast.Call) and any(item.arg in _SHOWN for item in rows.keywords):
        kept = [item.value for item in rows.keywords if item.arg not in _SHOWN]
        return " ".join([ctx.text(rows.func), *(handed_out(item, ctx) for item in [*rows.args, *kept])])
    if isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name) and rows.func.id in _WRAPPERS:
        return " ".join([rows.func.id, *(handed_out(item, ctx) for item in rows.args)])
    return ctx.text(rows)


def shows_each(turning: Turning, ctx: Context) -> bool:
    """Whether a loop over samples or examples prints each of its turns: a handful, for a person to look at."""
    if not isinstance(turning, ast.For) or not TO_SHOW.search(handed_out(turning.iter, ctx)):
        return False
    return any(
        isinstance(item, ast.Expr)
        and isinstance(item.value, ast.Call)
        and isinstance(item.value.func, ast.Name)
        and item.value.func.id == "print"
        for item in turning.body
    )


def is_several_texts(text: ast.expr, ctx: Context) -> bool:
    """Whether what is tokenized is a list of texts."""
    for item in ctx.inference.origins(text) if isinstance(text, ast.Name) else [text]:
        if isinstance(item, (ast.ListComp, ast.Tuple)) or (isinstance(item, ast.List) and len(item.elts) != 1):
            return True
        if isinstance(item, ast.Subscript) and isinstance(item.slice, ast.Slice):
            return True
    return isinstance(text, (ast.Name, ast.Attribute)) and bool(SEVERAL_TEXTS.search(last_name(text)))


def _lengthens(call: ast.Call) -> bool:
    """Whether a call is `torch.cat((a, b), dim=1)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("cat", "concat", "concatenate"):
        return False
    dim = argument(call, 1, "dim")
    return is_constant(dim, 1) or (
        isinstance(dim, ast.UnaryOp) and isinstance(dim.op, ast.USub) and is_constant(dim.operand, 1)
    )


def _takers_of(name: ast.Name, ctx: Context, depth: int) -> Iterator[ast.Call]:
    definition = ctx.inference.flow.definition_at(name)
    if definition is None:
        return
    for use in ctx.inference.flow.uses_of(definition):
        yield from takers(use, ctx, depth)


def turning_loops(node: ast.AST, ctx: Context) -> Iterator[tuple[Turning, ast.AST]]:
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
        for item in (arguments(call) if given is None else given)
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
