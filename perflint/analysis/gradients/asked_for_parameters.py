"""Modules that nothing tells but what they are asked for, `self.actor.parameters()`: no other object has parameters."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.summary import CallFacts
from perflint.torch_model.modules import PARAMETER_ITERATORS


def is_asked_for_parameters(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether an attribute of an object, or a name of a function, is one whose parameters its class, or the function,
    takes, or gives it the state of such a one.
    """
    text = _dotted(node)
    if not text:
        return False
    around = ctx.tree.class_of(node) if text.startswith("self.") else ctx.tree.function_of(node)
    return around is not None and text in ctx.once(_asked, around)


def _dotted(node: ast.expr) -> str:
    """`self.actor` and `actor`; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return f"self.{node.attr}" if is_own else ""  # type: ignore[attr-defined]


def _asked(around: ast.AST, ctx: FileFacts) -> frozenset[str]:
    name = ctx.tree.qualname(around)  # type: ignore[arg-type]
    functions = ctx.summary.functions
    is_class = isinstance(around, ast.ClassDef)
    inside = [facts for facts in functions.values() if facts.in_class == name] if is_class else [functions.get(name)]
    calls = [call for facts in inside if facts is not None for call in facts.calls if type(call.func) is str]
    found = {str(call.func).rpartition(".")[0] for call in calls if _last(call) in PARAMETER_ITERATORS}
    found |= {str(call.func).rpartition(".")[0] for call in calls if _takes_state_of(call, found)}
    return frozenset(found)


def _last(call: CallFacts) -> str:
    return str(call.func).rpartition(".")[2]


def _takes_state_of(call: CallFacts, modules: set[str]) -> bool:
    """`target.load_state_dict(critic.state_dict())`"""
    if _last(call) != "load_state_dict" or not call.args:
        return False
    state = call.args[0]
    if type(state) is not tuple or state[0] != "call" or type(state[1]) is not str:
        return False
    whole, _, method = state[1].rpartition(".")
    return method == "state_dict" and whole in modules
