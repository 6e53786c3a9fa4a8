"""Code behind a switch that is off by default: what costs less than a microsecond is nothing there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Context, Scope, callee_name, is_constant, walk

_ON = ("const", "bool", True)


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
    named = ctx.tree.naming((function.name,), ctx.tree.module, (function.name,))
    parts = (part for statement in named for part in ctx.tree.own(statement))
    calls = [part for part in parts if isinstance(part, ast.Call) and part.lineno in lines]
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
    defaults = ctx.once(_all_defaults, ctx.tree.module).get(name)
    if not defaults or not all(is_constant(default, value=False) for default in defaults):
        return False
    return _ON not in ctx.program.whole.given(name)


def _all_defaults(module: ast.Module, _: Context) -> dict[str, list[ast.expr]]:
    """By parameter, its defaults in the functions of a file."""
    found: dict[str, list[ast.expr]] = {}
    for function in walk(module):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for given, default in _defaults(function.args):
                found.setdefault(given.arg, []).append(default)
    return found


def _defaults(given: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    positional = [*given.posonlyargs, *given.args]
    yield from zip(positional[len(positional) - len(given.defaults) :], given.defaults)
    yield from ((item, default) for item, default in zip(given.kwonlyargs, given.kw_defaults) if default is not None)
