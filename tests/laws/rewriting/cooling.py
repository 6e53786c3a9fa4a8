"""What takes away the cost of a finding: everything on the host, one iteration, a test that holds now and then, an
option that is off by default.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.api import Rule

from . import cools, marked

#: Calls that a loop over steps makes in each iteration.
_STEPPING = frozenset({"backward", "step"})
_LOOPS = (ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def _about_devices(rule: type[Rule]) -> bool:
    return rule.claims is not None and (rule.claims.waits or "to-device" in rule.claims.adopts)


@cools(about=_about_devices)
def on_the_host(module: ast.Module) -> bool:
    """`"cuda"` becomes `"cpu"`, and `x.cuda()` is `x`."""
    changer = _ToHost()
    for statement in _statements_of(module):
        before, changer.changed = changer.changed, False
        changer.visit(statement)
        if changer.changed:
            marked(statement)
        changer.changed |= before
    return changer.changed


@cools()
def for_one_iteration(module: ast.Module) -> bool:
    """Each loop over steps ends with its first iteration."""

    def ended(loop: ast.stmt) -> list[ast.stmt] | None:
        if isinstance(loop.body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)):  # type: ignore[attr-defined]
            return None
        if any(isinstance(part, ast.Continue) for part in ast.walk(loop)):
            return None
        marked(loop)
        loop.body.append(ast.copy_location(ast.Break(), loop.body[-1]))  # type: ignore[attr-defined]
        return [loop]

    return _loops_over_steps(module, ended)


@cools()
def now_and_then(module: ast.Module) -> bool:
    """`if passed % 1000 == 0: print(loss.item())`: what a loop over steps does besides its steps."""

    def seldom(loop: ast.stmt) -> list[ast.stmt] | None:
        body: list[ast.stmt] = loop.body  # type: ignore[attr-defined]
        if not any(map(_is_beside, body)):
            return None
        loop.body = [_guarded("passed % 1000 == 0", each) if _is_beside(each) else each for each in body]  # type: ignore[attr-defined]
        loop.body.insert(0, ast.copy_location(ast.parse("passed += 1").body[0], loop))  # type: ignore[attr-defined]
        return [ast.copy_location(ast.parse("passed = 0").body[0], loop), loop]

    return _loops_over_steps(module, seldom)


@cools()
def for_debugging(module: ast.Module) -> bool:
    """`if OPTIONS.debug:` around each loop over steps, of an option that is off by default."""
    changed = _loops_over_steps(module, lambda loop: [_guarded("OPTIONS.debug", loop)])
    if changed:
        text = "from argparse import ArgumentParser\nPARSER = ArgumentParser()\n"
        text += "PARSER.add_argument('--debug', action='store_true')\nOPTIONS = PARSER.parse_args()\n"
        at = next((n for n, each in enumerate(module.body) if not _begins_file(each)), len(module.body))
        module.body[at:at] = ast.parse(text).body
    return changed


def _begins_file(statement: ast.stmt) -> bool:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")


def _statements_of(module: ast.Module) -> list[ast.stmt]:
    """Functions and methods, and the statements outside of them."""
    found: list[ast.stmt] = []
    for statement in module.body:
        found += statement.body if isinstance(statement, ast.ClassDef) else [statement]
    return found


class _ToHost(ast.NodeTransformer):
    def __init__(self) -> None:
        self.changed = False

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, str) or not (node.value == "cuda" or node.value.startswith("cuda:")):
            return node
        self.changed = True
        return ast.copy_location(ast.Constant("cpu"), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        first = node.values[0] if node.values else None
        if not isinstance(first, ast.Constant) or not str(first.value).startswith("cuda:"):
            return node
        self.changed = True
        return ast.copy_location(ast.Constant("cpu"), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "cuda":
            return node
        self.changed = True
        return node.func.value


def _guarded(test: str, statement: ast.stmt) -> ast.stmt:
    marked(statement)
    return ast.copy_location(ast.If(ast.parse(test, mode="eval").body, [statement], []), statement)


def _is_beside(statement: ast.stmt) -> bool:
    """Whether a statement only calls something that is no part of a step."""
    if not isinstance(statement, (ast.Expr, ast.AugAssign)):
        return False
    calls = [part for part in ast.walk(statement) if isinstance(part, ast.Call)]
    parts = {*_STEPPING, "zero_grad", "update", "unscale_", "clip_grad_norm_", "synchronize"}
    return bool(calls) and not any(_called(call) in parts for call in calls)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _loops_over_steps(module: ast.Module, write: Callable[[ast.stmt], list[ast.stmt] | None]) -> bool:
    """Write the innermost loops anew that run a backward pass or step an optimizer; whether there were any."""
    changer = _Loops(write)
    changer.visit(module)
    return changer.changed


class _Loops(ast.NodeTransformer):
    def __init__(self, write: Callable[[ast.stmt], list[ast.stmt] | None]) -> None:
        self.write, self.changed = write, False

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> ast.AST | list[ast.stmt]:
        inner = _own(node)
        if any(isinstance(part, _LOOPS) and _steps(part) for part in inner[1:]) or not _steps(node):
            self.generic_visit(node)
            return node
        written = self.write(node)
        self.changed |= written is not None
        return written or node


def _steps(loop: ast.AST) -> bool:
    return any(isinstance(part, ast.Call) and _called(part) == "backward" for part in _own(loop))


def _own(node: ast.AST) -> list[ast.AST]:
    """What stands in a statement, functions and classes left out."""
    found, waiting = [], [node]
    while waiting:
        part = waiting.pop()
        found.append(part)
        waiting += [each for each in ast.iter_child_nodes(part) if not isinstance(each, _FUNCTIONS)]
    return found
