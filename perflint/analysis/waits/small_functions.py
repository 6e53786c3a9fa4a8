"""How many kernels a small function of the project launches, where all that it does can be counted."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk_own
from perflint.torch_model import tensors

__all__ = ["launches_of"]

#: Methods that launch nothing, and those that launch a kernel or two; no products of matrices, and no reads.
_NONE = tensors.VIEW_METHODS | tensors.NUMBER_METHODS | frozenset({"size", "unbind", "chunk", "split"})
_PRODUCTS = frozenset("matmul mm bmm addmm addbmm addmv addr baddbmm mv inner outer kron det inverse cholesky".split())
_ONE = (tensors.FRESH_METHODS | tensors.CAST_METHODS) - _PRODUCTS - frozenset(tensors.SYNC_METHODS)
#: Functions that are no methods.
_JOINS = frozenset("cat stack concat zeros_like ones_like empty_like full_like zeros ones full arange empty".split())
#: What repeats, or hands over to what nobody sees.
_UNCOUNTED = (ast.For, ast.AsyncFor, ast.While, ast.comprehension, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom)
_OF_NUMBERS = frozenset("len range isinstance tuple list zip enumerate".split())


def launches_of(call: ast.Call, ctx: FileFacts) -> int | None:
    """The most that a call of a function of the project launches: what its text says, branches and all. None where it
    repeats something, waits, or calls what is neither a function of torch nor a method that tensors have.
    """
    ref = ctx.project_target(call.func)
    other = ctx.at(ref.path) if ref is not None else None
    function = other.inference.classes.function_node(ref.name) if ref is not None and other is not None else None
    return None if function is None or other is None else other.once(_counted, function)


def _counted(function: ast.AST, ctx: FileFacts) -> int | None:
    count = 0
    body = function.body if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    for part in (inner for statement in body for inner in walk_own(statement)):
        found = _one(part, ctx)
        if found is None:
            return None
        count += found
    return count


def _one(part: ast.AST, ctx: FileFacts) -> int | None:
    if isinstance(part, _UNCOUNTED) or (isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult)):
        return None
    if isinstance(part, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.AugAssign)):
        return 1
    if isinstance(part, ast.Subscript):
        index = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        return 0 if all(isinstance(item, (ast.Slice, ast.Constant, ast.UnaryOp)) for item in index) else None
    return _called(part, ctx) if isinstance(part, ast.Call) else 0


def _called(call: ast.Call, ctx: FileFacts) -> int | None:
    name, target = callee_name(call), ctx.target(call.func) or ""
    if target.startswith("torch."):
        return None if name in _PRODUCTS or target in tensors.SYNC_FUNCTIONS or name not in _ONE | _JOINS else 1
    if isinstance(call.func, ast.Name):
        return 0 if name in _OF_NUMBERS and not ctx.refs(call.func) else None
    return 0 if name in _NONE else 1 if name in _ONE else None
