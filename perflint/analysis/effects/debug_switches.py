"""Statements that switch a debugging mode on, and what it costs."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import argument, callee_name, is_constant, keyword
from perflint.torch_model import debugging
from perflint.torch_model.names import last

#: The last names of what is set, and what sets variables of the environment.
_SET = frozenset(last(name) for name in debugging.SETTINGS)
_WRITERS = ("os.environ.setdefault", "os.environ.update", "os.putenv")


def debug_setting(node: ast.Assign, ctx: FileFacts) -> tuple[str, str] | None:
    """`os.environ["NAME"] = "1"` and `torch._dynamo.config.disable = True`."""
    if len(node.targets) != 1:
        return None
    target = node.targets[0]
    # What is written comes first: nearly every assignment sets something else.
    if isinstance(target, ast.Subscript):
        found = _variable(target.slice, node.value)
        return found if found is not None and ctx.target(target.value) == "os.environ" else None
    if isinstance(target, ast.Attribute) and target.attr in _SET and is_constant(node.value, value=True):
        owner = ctx.target(target.value) or ""
        cost = debugging.SETTINGS.get(f"{owner}.{target.attr}")
        return (ctx.text(target), cost) if cost else None
    return None


def _variable(name: ast.expr, value: ast.expr) -> tuple[str, str] | None:
    if not (isinstance(name, ast.Constant) and isinstance(value, ast.Constant)):
        return None
    if not (isinstance(name.value, str) and isinstance(value.value, str)):
        return None
    values, cost = debugging.ENVIRONMENT.get(name.value, (frozenset(), ""))
    on = value.value.upper() in values if values else value.value not in ("", "0")
    return (f"{name.value}={value.value}", cost) if cost and on else None


def debug_switch(node: ast.AST, ctx: FileFacts) -> tuple[str, str] | None:
    """A call that switches a debugging mode on: what is written, and what it costs."""
    assert isinstance(node, ast.Call)
    name = callee_name(node)
    if name in ("setdefault", "putenv", "update"):
        found = _in_update(node) if name == "update" else _variable(*node.args) if len(node.args) == 2 else None
        return found if found is not None and ctx.target(node.func) in _WRITERS else None
    target = ctx.target(node.func)
    if name == "Trainer":
        is_lightning = target is not None and "lightning" in target
        wanted = is_lightning and is_constant(keyword(node, "detect_anomaly"), value=True)
        return ("detect_anomaly=True", debugging.SWITCHES["torch.autograd.detect_anomaly"]) if wanted else None
    cost = debugging.SWITCHES.get(target or "")
    if cost is None or not _turns_on(node, name):
        return None
    return ctx.text(node), cost


def _in_update(node: ast.Call) -> tuple[str, str] | None:
    for given in node.args:
        if isinstance(given, ast.Dict):
            for key, value in zip(given.keys, given.values):
                found = None if key is None else _variable(key, value)
                if found:
                    return found
    return None


def _turns_on(node: ast.Call, name: str) -> bool:
    if name == "set_detect_anomaly":
        return is_constant(argument(node, 0, "mode"), value=True)
    enabled = argument(node, 0, "enabled")
    if name == "_record_memory_history":
        return enabled is None or (isinstance(enabled, ast.Constant) and enabled.value not in (None, False))
    return name == "detect_anomaly" or enabled is None or is_constant(enabled, value=True)
