"""What says nothing, or the same in other words, in its plain form: `model.train(False)` is `model.eval()`, and
`Variable(x, requires_grad=False)` is `Variable(x)`.
"""

from __future__ import annotations

import ast
import re

from perflint.syntax.walk import visit_naming, walked

_SWITCH = re.compile(r"\.train\( *(?:mode *= *)?(?:False|True) *\)")
_ASKED = re.compile(r"\bVariable\(.*requires_grad *= *False")
#: What only modules are asked for, so that what is asked for it is no trainer.
_OF_MODULES = frozenset("cuda to parameters state_dict load_state_dict eval".split())


def say_modes_plainly(module: ast.Module, text: str) -> None:
    """Write what sets the modes of modules, and what asks inputs for no gradients, as most write it."""
    if ".train(" in text and _SWITCH.search(text) is not None:
        visit_naming((".train(",), module, text, _Modes(_modules(module)))
    if "Variable(" in text and _ASKED.search(text) is not None:
        visit_naming(("Variable(",), module, text, _Inputs())


class _Modes(ast.NodeTransformer):
    """`model.train(False)` and `model.train(True)`, where the file shows that it is a module: a trainer's `train` may
    take what it likes.
    """

    def __init__(self, modules: frozenset[str]) -> None:
        self.modules = modules

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "train":
            return node
        given = [*call.args, *[each.value for each in call.keywords if each.arg == "mode"]]
        if len(given) != 1 or len(call.args) + len(call.keywords) != 1 or not isinstance(given[0], ast.Constant):
            return node
        mode = given[0].value
        if not isinstance(mode, bool) or ast.unparse(call.func.value) not in self.modules:
            return node
        call.func.attr = "train" if mode else "eval"
        call.args, call.keywords = [], []
        return node


def _modules(module: ast.Module) -> frozenset[str]:
    """What a file calls, and what it asks for what only modules have: `model` of `model(x)` and `model.cuda()`."""
    found: set[str] = set()
    for node in walked(module):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            found.add(ast.unparse(node.func))
            if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_MODULES:
                found.add(ast.unparse(node.func.value))
    return frozenset(found)


class _Inputs(ast.NodeTransformer):
    """Inputs ask for no gradients unless they are told to."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "Variable":
            node.keywords = [each for each in node.keywords if not _asks_for_none(each)]
        return node


def _asks_for_none(given: ast.keyword) -> bool:
    return given.arg == "requires_grad" and isinstance(given.value, ast.Constant) and given.value.value is False
