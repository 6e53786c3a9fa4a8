"""Keys and values whose heads are written out once for each head of the queries."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.callees import last_name
from perflint.ir.calls import argument, callee_name, is_constant
from perflint.torch_model.names import last

_REPEATS = ("torch.repeat_interleave",)
#: Functions that repeat heads, by where they are defined.
_LIBRARY_REPEATS = ("repeat_kv",)
_HEAD_DIMENSIONS = (1, -3)
_MERGES = frozenset({"reshape", "flatten"})


def repetition_of_heads(node: ast.expr, ctx: FileFacts) -> ast.Call | None:
    """The call that repeats heads, where all that may be given here comes from one."""
    origins = [item for item in ctx.inference.origins(node) if not _is_input(item, node)]
    found = [item for item in origins if isinstance(item, ast.Call) and _repeats(item, ctx)]
    return found[0] if found and len(found) == len(origins) else None


def _is_input(item: ast.expr, node: ast.expr) -> bool:
    return item is node and isinstance(node, ast.Name)


def _repeats(call: ast.Call, ctx: FileFacts) -> bool:
    if callee_name(call) == "repeat_interleave":
        position = 2 if ctx.is_call_of(call, *_REPEATS) else 1
        dim = argument(call, position, "dim")
        return dim is not None and any(is_constant(_number(dim), number) for number in _HEAD_DIMENSIONS)
    target = ctx.target(call.func)
    if target is not None:
        return target.startswith("transformers.") and last(target) in _LIBRARY_REPEATS
    return _expands_heads(call, ctx)


def _number(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return ast.Constant(-node.operand.value)  # type: ignore[operator]
    return node


def _expands_heads(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a function of the project expands a new dimension and merges it with the next: `repeat_kv(x, n)`."""
    ref = ctx.project_target(call.func)
    facts = ctx.program.summaries[ref.path].functions.get(ref.name) if ref is not None else None
    if facts is None or "expand" not in facts.identifiers.split():
        return False
    return any(_method(value) in _MERGES for value in facts.returns)


def _method(value: object) -> str:
    """The method that gives a returned value, as a summary has it."""
    if not isinstance(value, tuple) or value[0] != "call":
        return ""
    return last_name(value[1])
