"""Tensors that hold no elements: copying one returns at once, and waits for nothing."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name, is_constant, keyword
from perflint.torch_model import tensors

#: What hands its tensor on as it is.
_WRAPPERS = frozenset({"Variable", "Parameter"})
#: Constructors that take a size, as one argument for each dimension or as a sequence.
_SIZED = frozenset(f"torch.{name}" for name in "zeros ones empty rand randn full".split()) | tensors.HOST_CONSTRUCTORS


def holds_no_elements(value: ast.expr, ctx: FileFacts) -> bool:
    """Whether a tensor is certainly created without elements: `torch.Tensor()`, `torch.tensor([])`, `torch.ones(0, 4)`.
    A cast, and what wraps it, changes nothing about that.
    """
    made = ctx.inference.origins(value)
    return bool(made) and all(isinstance(item, ast.Call) and _is_without(item, ctx) for item in made)


def _is_without(call: ast.Call, ctx: FileFacts) -> bool:
    name = callee_name(call)
    if name in _WRAPPERS and call.args:
        return holds_no_elements(call.args[0], ctx)
    target = ctx.target(call.func) or ""
    if isinstance(call.func, ast.Attribute) and name in tensors.CAST_METHODS:
        return holds_no_elements(call.func.value, ctx)
    if target in tensors.HOST_CONSTRUCTORS and not call.args:
        return not call.keywords
    if target in tensors.COPYING_CONSTRUCTORS | tensors.HOST_CONSTRUCTORS and call.args and _is_empty(call.args[0]):
        return True
    if target not in _SIZED:
        return False
    size = keyword(call, "size") or (call.args[0] if call.args else None)
    if isinstance(size, (ast.Tuple, ast.List)):
        # What these are given as a sequence are the elements themselves: `torch.FloatTensor([0, 1])`.
        return target not in tensors.HOST_CONSTRUCTORS and any(is_constant(item, 0) for item in size.elts)
    return any(is_constant(item, 0) for item in (call.args[:1] if name == "full" else call.args))


def _is_empty(data: ast.expr) -> bool:
    return isinstance(data, (ast.List, ast.Tuple)) and not data.elts
