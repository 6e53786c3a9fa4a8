"""What says nothing, or the same in other words, in its plain form: `model.train(False)` is `model.eval()`, and
`Variable(x, requires_grad=False)` is `Variable(x)`.
"""

from __future__ import annotations

import ast
import re

from perflint.syntax.walk import visit_naming

_SWITCH = re.compile(r"\.train\( *(?:mode *= *)?(?:False|True) *\)")
_ASKED = re.compile(r"\bVariable\(.*requires_grad *= *False")
#: What only modules are asked for, so that what is asked for it is no trainer.
_OF_MODULES = ("(", ".cuda(", ".to(", ".parameters(", ".state_dict(", ".load_state_dict(", ".eval(")


def say_modes_plainly(module: ast.Module, text: str) -> None:
    """Write what sets the modes of modules, and what asks inputs for no gradients, as most write it."""
    if ".train(" in text and _SWITCH.search(text) is not None:
        visit_naming((".train(",), module, text, _Modes(text))
    if "Variable(" in text and _ASKED.search(text) is not None:
        visit_naming(("Variable(",), module, text, _Inputs())


class _Modes(ast.NodeTransformer):
    """`model.train(False)` and `model.train(True)`, where the file shows that it is a module: a trainer's `train` may
    take what it likes.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "train":
            return node
        given = [*call.args, *[each.value for each in call.keywords if each.arg == "mode"]]
        if len(given) != 1 or len(call.args) + len(call.keywords) != 1 or not isinstance(given[0], ast.Constant):
            return node
        mode, owner = given[0].value, ast.unparse(call.func.value)
        if not isinstance(mode, bool) or not any(f"{owner}{asked}" in self.text for asked in _OF_MODULES):
            return node
        call.func.attr = "train" if mode else "eval"
        call.args, call.keywords = [], []
        return node


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
