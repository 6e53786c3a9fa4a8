"""How many turns a loop has at most, where the program says it: literals, constants, defaults, early ends."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.bound_parameters import default_of
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import callee_name
from perflint.ir.notation import last_name
from perflint.ir.summary import LoopFacts, Value
from perflint.syntax.walk import walk

#: What goes through its first argument, turn by turn.
_WRAPPERS = frozenset({"enumerate", "tqdm", "zip", "list", "sorted", "reversed"})
#: What goes through the entries of a mapping.
_OF_ENTRIES = frozenset({"items", "keys", "values"})
#: Methods of containers that put nothing in.
_ASKING = frozenset("get copy index count sort reverse pop popitem clear remove join".split())
#: How many names a count is followed through.
_LINKS = 2


def most_turns(loop: ast.stmt | ast.comprehension, ctx: FileFacts) -> int | None:
    """The number of turns that a `for` loop cannot exceed by default; None where nobody says one."""
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.comprehension)):
        return None
    ends = [] if isinstance(loop, ast.comprehension) else [_end(item, loop) for item in loop.body]
    return min((count for count in (_length(loop.iter, ctx, _LINKS), *ends) if count is not None), default=None)


def length_of(rows: ast.expr, ctx: FileFacts) -> int | None:
    """As `most_turns`, of what a loop would go through."""
    return _length(rows, ctx, _LINKS)


def _length(rows: ast.expr, ctx: FileFacts, links: int) -> int | None:
    """How many rows there are at most: `range(10)`, `(a, b)`, `rows[:8]`, the items of a dict that is written out, and
    names of these.
    """
    entries = rows.func if isinstance(rows, ast.Call) and not rows.args else None
    if isinstance(entries, ast.Attribute) and entries.attr in _OF_ENTRIES:
        return _length(entries.value, ctx, links)
    while isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name) and rows.args:
        if rows.func.id == "range":
            return _range(rows, ctx, links)
        if rows.func.id not in _WRAPPERS:
            return None
        rows = rows.args[0]
    if isinstance(rows, (ast.List, ast.Tuple, ast.Set)):
        return None if any(isinstance(item, ast.Starred) for item in rows.elts) else len(rows.elts)
    if isinstance(rows, ast.Dict):
        return None if None in rows.keys else len(rows.keys)
    if isinstance(rows, ast.Subscript) and isinstance(rows.slice, ast.Slice):
        stop = rows.slice.upper
        return stop.value if isinstance(stop, ast.Constant) and type(stop.value) is int and stop.value > 0 else None
    if isinstance(rows, ast.IfExp):
        return _largest(_length(item, ctx, links) for item in (rows.body, rows.orelse))
    if isinstance(rows, (ast.Name, ast.Attribute)) and links:
        made = [item for item in ctx.inference.origins(rows) if item is not rows]
        found = _largest(_length(item, ctx, links - 1) for item in made)
        if found is None or isinstance(rows, ast.Attribute):
            return found if made else _by_default(rows, ctx)
        is_filled = any(isinstance(item, (ast.Dict, ast.List, ast.Set)) for item in made)
        return _with_added(rows, found, ctx) if is_filled else found
    return None


def _by_default(rows: ast.expr, ctx: FileFacts) -> int | None:
    """How many rows a parameter has by default: `kernels=(12, 16)`."""
    function = ctx.tree.function_of(rows)
    if function is None or not isinstance(rows, ast.Name):
        return None
    bound = ctx.inference.flow.definitions(rows)
    default = default_of(function, rows.id) if any(isinstance(item.node, ast.arg) for item in bound) else None
    return len(default.elts) if isinstance(default, (ast.List, ast.Tuple)) else None


def _with_added(rows: ast.Name, count: int, ctx: FileFacts) -> int | None:
    """How many entries a container has once it is filled, one more for each line such as `texts["glad"] = ...`; None
    where a loop puts them in, or a call may.
    """
    made = set(ctx.inference.flow.definitions(rows))
    for name, is_one in ctx.once(_filled, ctx.tree.scope_of(rows)).get(rows.id, ()):
        if isinstance(name.ctx, ast.Store) or not made.isdisjoint(ctx.inference.flow.definitions(name)):
            if not is_one:
                return None
            count += 1
    return count


def _filled(scope: ast.AST, ctx: FileFacts) -> dict[str, list[tuple[ast.Name, bool]]]:
    """Where a function may put something into containers, by their names, and whether that is one entry, once."""
    found: dict[str, list[tuple[ast.Name, bool]]] = {}
    for part in ctx.tree.walk(scope):
        name: ast.expr | None = None
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
            name = part.value
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            name = None if part.func.attr in _OF_ENTRIES | _ASKING else part.func.value
        elif isinstance(part, ast.AugAssign):
            name = part.target
        if isinstance(name, ast.Name):
            found.setdefault(name.id, []).append((name, isinstance(part, ast.Subscript) and not ctx.loops(part)))
    return found


def _range(call: ast.Call, ctx: FileFacts, links: int) -> int | None:
    start = _count(call.args[0], ctx, links) if len(call.args) > 1 else 0
    stop = _count(call.args[min(1, len(call.args) - 1)], ctx, links)
    return None if start is None or stop is None else max(stop - start, 0)


def _count(value: ast.expr, ctx: FileFacts, links: int) -> int | None:
    """A number that is written out, or what a name or an option is by default."""
    if isinstance(value, ast.Constant):
        return value.value if type(value.value) is int else None
    if isinstance(value, ast.Call) and callee_name(value) == "len" and len(value.args) == 1:
        return _length(value.args[0], ctx, links)
    if not isinstance(value, (ast.Name, ast.Attribute)):
        return None
    made = [item for item in ctx.inference.origins(value) if item is not value] if links else []
    found = _largest(_count(item, ctx, links - 1) for item in made)
    if found is not None:
        return found
    return _largest(
        item if type(item) is int else None
        for item in ctx.program.whole.option_defaults(last_name(value).strip("_"), ctx.path)
    )


def turns_told(loop: LoopFacts, path: str, ctx: FileFacts) -> int | None:
    """As `most_turns`, of a loop of any file: `range(30)`, `range(args.epochs)` with a default of the option."""
    rows = loop.iterable
    while isinstance(rows, tuple) and rows[0] == "call" and rows[2] and last_of(rows[1]) in _WRAPPERS:
        rows = rows[2][0]
    if not (isinstance(rows, tuple) and rows[0] == "call" and last_of(rows[1]) in ("range", "trange") and rows[2]):
        return None
    bounds = rows[2]
    start = _told(bounds[0], path, ctx) if len(bounds) > 1 else 0
    stop = _told(bounds[min(1, len(bounds) - 1)], path, ctx)
    # Where a run begins again from a checkpoint, it has fewer.
    return None if stop is None else max(stop - (start or 0), 0)


def _told(value: Value, path: str, ctx: FileFacts) -> int | None:
    if isinstance(value, tuple):
        return value[2] if value[0] == "const" and type(value[2]) is int else None
    if not isinstance(value, str):
        return None
    defaults = ctx.program.whole.option_defaults(value.rpartition(".")[2].strip("_"), path)
    return _largest(item if type(item) is int else None for item in defaults)


def _largest(counts: Iterable[int | None]) -> int | None:
    """The largest of some counts; None where there are none, or one is not known."""
    known = list(counts)
    return max((count for count in known if count is not None), default=None) if None not in known else None


def _end(statement: ast.stmt, loop: ast.For | ast.AsyncFor) -> int | None:
    """The turn on which `if step >= 10: break` ends a loop, told by its own count."""
    if not (isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Break)):
        return None
    test, counted = statement.test, {part.id for part in walk(loop.target) if isinstance(part, ast.Name)}
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name)):
        return None
    limit = test.comparators[0]
    if not isinstance(test.ops[0], (ast.Gt, ast.GtE, ast.Eq)) or test.left.id not in counted:
        return None
    return limit.value if isinstance(limit, ast.Constant) and type(limit.value) is int else None
