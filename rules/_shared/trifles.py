"""What makes a cost of less than a microsecond nothing: switches that are off, and work beside it that takes longer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Context, Scope, callee_name, function_of, is_constant, pattern, walk
from perflint.api.names import FILTERS, WRITER_CLASS, WRITES_OR_FILTERS

#: Where samples are made, again in each epoch.
_SAMPLES = pattern(r"__getitem__|__iter__|collate")
_ON = ("const", "bool", True)
#: What starts other programs.
_PROGRAMS = frozenset({"subprocess", "Popen", "check_call", "check_output"})
_STORES = frozenset({"save", "dump", "savez", "savez_compressed", "to_csv", "to_parquet"})
_READS = frozenset({"load", "read_csv", "read_parquet"})


def is_a_trifle(node: ast.AST, ctx: Context) -> bool:
    """Whether nobody would notice a look-up at `node`: hardly ever asked for, or lost beside something slow."""
    return is_behind_a_switch(node, ctx) or _is_seldom(node, ctx) or _fills_a_file(node, ctx)


def is_behind_a_switch(node: ast.AST, ctx: Context) -> bool:
    """Whether `node` only runs where a switch is on that is off by default: `if keep_digits and re.search(...)`, also
    where this file leads to it: `if self.print_nans: self.find_nans()`.
    """
    if _is_switched(node, ctx):
        return True
    function = ctx.tree.function_of(node)
    callers = ctx.program.callers(ctx.own_scope(function)) if function is not None else ()
    if function is None or not callers or any(edge.caller.path != ctx.path for edge in callers):
        return False
    lines = {edge.line for edge in callers}
    calls = [part for part in walk(ctx.tree.module) if isinstance(part, ast.Call) and part.lineno in lines]
    calls = [call for call in calls if callee_name(call) == function.name]
    return len(calls) == len(lines) and all(_is_switched(call, ctx) for call in calls)


def _is_switched(node: ast.AST, ctx: Context) -> bool:
    return any(holds and _is_off(_switch(test, ctx), ctx) for test, holds in ctx.conditions(node))


def _switch(test: ast.expr, ctx: Context) -> str:
    """The name of a parameter, or of an attribute that only holds one of that name: `verbose`, `self.verbose`."""
    if isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name) and test.value.id == "self":
        cls = ctx.facts(test).in_class
        held = ctx.summary.classes[cls].attributes.get(test.attr, ()) if cls in ctx.summary.classes else ()
        if not held or any(value != test.attr for value, _ in held):
            return ""
        return "" if ctx.program.whole.is_set_elsewhere(test.attr, Scope(ctx.path, f"{cls}.__init__")) else test.attr
    return test.id if isinstance(test, ast.Name) else ""


def _is_off(name: str, ctx: Context) -> bool:
    """Whether the functions of the file that have a parameter of this name and a default for it switch it off, and
    nobody switches it on.
    """
    defaults = [
        default
        for function in walk(ctx.tree.module)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for given, default in _defaults(function.args)
        if given.arg == name
    ]
    if not defaults or not all(is_constant(default, value=False) for default in defaults):
        return False
    return _ON not in ctx.program.whole.given(name)


def _defaults(given: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    positional = [*given.posonlyargs, *given.args]
    yield from zip(positional[len(positional) - len(given.defaults) :], given.defaults)
    yield from ((item, default) for item, default in zip(given.kwonlyargs, given.kw_defaults) if default is not None)


def _is_seldom(node: ast.AST, ctx: Context) -> bool:
    """Whether a function on the way writes results, looks through all data once, or runs other programs."""
    around = ctx.tree.function_of(node)
    _, route, _ = ctx.heat_and_route(node)
    paths = [*(hop.path for hop in route[1:]), ctx.path]
    often = bool(route) and _SAMPLES.search(route[0].text) is not None
    for hop, path in zip(route, paths):
        function = function_of(hop)
        owner, _, name = function.rpartition(".")
        if _says_seldom(name, often=often) or WRITER_CLASS.search(owner):
            return True
        facts = ctx.program.summaries[path].functions.get(function) if path in ctx.program.summaries else None
        if facts is not None and not _PROGRAMS.isdisjoint(facts.identifiers.split()):
            return True
    return around is not None and _says_seldom(around.name, often=often)


def _says_seldom(name: str, *, often: bool) -> bool:
    """Whether a name says that a function writes or filters; a sample is filtered whenever it is made."""
    return bool(WRITES_OR_FILTERS.search(name)) and not (often and FILTERS.search(name))


def _fills_a_file(node: ast.AST, ctx: Context) -> bool:
    """Whether the function around `node` keeps what it makes in a file, and reads that the next time."""
    function = ctx.tree.function_of(node)
    if function is None:
        return False
    called = [part for part in ctx.walk(function) if isinstance(part, ast.Call)]
    stored = any(callee_name(part) in _STORES and part.lineno > node.lineno for part in called)  # type: ignore[attr-defined]
    return stored and any(
        isinstance(part, ast.Return)
        and isinstance(part.value, ast.Call)
        and callee_name(part.value) in _READS
        and part.lineno < node.lineno  # type: ignore[attr-defined]
        for part in ctx.walk(function)
    )
