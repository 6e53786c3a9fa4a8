"""Calls in their plain form, whatever is between a function and its call: `getattr(self, "step")(x)`,
`partial(step, x)(y)` and `step = self.step` before `step(x)` are calls of `self.step` and `step` in the tree, at their
own places.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Sequence

from perflint.syntax.walk import HOLDING, blocks, visit_naming, walked

#: `getattr(self, "step")`, without a default.
_NAMED = re.compile(r"getattr\([^()]*\(?[^()]*\)?, *r?([\"'])\w+\1,?\s*\)")
_PARTIAL = re.compile(r"partial\(.*\)\(")
#: `step = self.step`
_BOUND = re.compile(r" = [A-Za-z_]\w*(?:\.\w+)+[ \t]*(?:#.*)?\n")
_FAR = 1 << 30
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def call_plainly(module: ast.Module, text: str) -> None:
    """Write the calls of a file in their plain form."""
    if "getattr(" in text and _NAMED.search(text) is not None:
        visit_naming(("getattr",), module, text, _Attributes())
    if "partial(" in text and _PARTIAL.search(text) is not None:
        visit_naming(("partial",), module, text, _Partials())
    if " = " in text:
        bound = _bound(text)
        if bound:
            _call_methods(module.body, bound)


def _bound(text: str) -> dict[int, str]:
    """The lines on which a file binds a name to an attribute, where it calls something by that name."""
    found: dict[int, str] = {}
    at, line = 0, 1
    for match in _BOUND.finditer(text):
        start = match.start()
        name = text[text.rfind("\n", 0, start) + 1 : start].lstrip()
        if name.isidentifier() and (f" {name}(" in text or f"({name}(" in text):
            line, at = line + text.count("\n", at, start), start
            found[line] = name
    return found


def _call_methods(body: Sequence[ast.AST], bound: dict[int, str]) -> None:
    for node in body:
        if node.__class__ not in HOLDING:
            continue
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", _FAR)
        names = {name for line, name in bound.items() if first < line <= last}
        if names and isinstance(node, _FUNCTIONS):
            _call_what_is_bound(node, names)
        if names:
            _call_methods(blocks(node), bound)


class _Attributes(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) == 2):
            return node
        base, name = node.args
        if node.keywords or not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            return node
        if not name.value.isidentifier() or name.value.startswith("__"):
            return node
        return ast.copy_location(ast.Attribute(base, name.value, ast.Load()), node)


class _Partials(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        made = node.func
        if not isinstance(made, ast.Call) or not made.args or any(isinstance(each, ast.Starred) for each in made.args):
            return node
        if _last(made.func) != "partial" or {each.arg for each in made.keywords} & {each.arg for each in node.keywords}:
            return node
        function, *first = made.args
        return ast.copy_location(ast.Call(function, [*first, *node.args], [*made.keywords, *node.keywords]), node)


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _call_what_is_bound(function: ast.FunctionDef | ast.AsyncFunctionDef, names: set[str]) -> None:
    """Call the methods themselves that a function binds to names which it does nothing but call."""
    used = _Used(function, names)
    for name, bound in used.bound.items():
        path = ast.unparse(bound[0].value)
        calls = used.calls.get(name, [])
        is_plain = len(bound) == used.stores[name] and len(calls) == used.loads.get(name, 0)
        if not calls or not is_plain or any(ast.unparse(each.value) != path for each in bound):
            continue
        first = min(each.lineno for each in bound)
        around = [path, *(path[:place] for place, sign in enumerate(path) if sign == ".")]
        if any(used.changed.get(each, 0) >= first for each in around):
            continue
        for call in calls:
            if call.lineno > first:
                call.func = _placed(bound[0].value, call.func)


def _placed(value: ast.expr, at: ast.expr) -> ast.expr:
    """A name with attributes, as if it stood in another place."""
    made = copy.deepcopy(value)
    for each in ast.walk(made):
        if isinstance(each, ast.expr):
            ast.copy_location(each, at)
    return made


class _Used:
    """How a function uses names: where it binds them to attributes, how often it sets and reads them, what it calls."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef, names: set[str]) -> None:
        self.bound: dict[str, list[ast.Assign]] = {}
        self.calls: dict[str, list[ast.Call]] = {}
        self.stores: dict[str, int] = {}
        self.loads: dict[str, int] = {}
        #: The last line on which a name or a dotted name is set.
        self.changed: dict[str, int] = {}
        for node in _nodes(function):
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    self.loads[node.id] = self.loads.get(node.id, 0) + 1
                else:
                    self.stores[node.id] = self.stores.get(node.id, 0) + 1
                    self.changed[node.id] = max(self.changed.get(node.id, 0), node.lineno)
            elif isinstance(node, ast.arg):
                self.stores[node.arg] = self.stores.get(node.arg, 0) + 1
            elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                self.changed[ast.unparse(node)] = max(self.changed.get(ast.unparse(node), 0), node.lineno)
            elif isinstance(node, ast.Assign):
                target = node.targets[0]
                if isinstance(target, ast.Name) and target.id in names and len(node.targets) == 1:
                    if isinstance(node.value, ast.Attribute) and _is_dotted(node.value):
                        self.bound.setdefault(target.id, []).append(node)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                self.calls.setdefault(node.func.id, []).append(node)
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                for name in node.names:
                    self.stores[name] = self.stores.get(name, 0) + 1


def _nodes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    for part in (function.args, *function.body):
        yield from walked(part)


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
