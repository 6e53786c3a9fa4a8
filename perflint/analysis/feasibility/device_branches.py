"""Which branches a program takes only where it does not run on CUDA: those of MPS, XLA and the CPU."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name
from perflint.ir.control_flow import Inherited
from perflint.ir.notation import last_name

#: Types of devices, as `torch.device(...).type` gives them.
_TYPES = frozenset("cpu cuda mps xla xpu hpu npu meta".split())
_CUDA = frozenset({"torch.cuda.is_available", "torch.accelerator.is_available"})
_OTHERS = frozenset({"torch.backends.mps.is_available", "torch.mps.is_available", "torch.xpu.is_available"})
_COUNTING = frozenset({"torch.cuda.device_count", "torch.accelerator.device_count"})
_DEPTH = 3


def is_without_cuda(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a test that decides on `node` lets it run on other devices alone."""
    place: ast.AST | None = node
    while place is not None:
        graph = ctx.control_flow(place)
        if ctx.once(_without_cuda, graph.scope).holds(place):
            return True
        # What a lambda is made under holds for what it does.
        place = graph.scope if isinstance(graph.scope, ast.Lambda) else None
    return False


def _without_cuda(scope: ast.AST, ctx: FileFacts) -> Inherited:
    body = scope.body  # type: ignore[attr-defined]
    graph = ctx.control_flow(body[0] if isinstance(body, list) else body)
    return Inherited(graph, lambda condition: _rules_out_cuda(condition[0], ctx, _DEPTH, holds=condition[1]))


def rules_out_cuda(test: ast.expr, ctx: FileFacts, *, holds: bool) -> bool:
    """Whether a test comes out so only where the program does not run on CUDA."""
    return _rules_out_cuda(test, ctx, _DEPTH, holds=holds)


def goes_to_xla(device: ast.expr | None, ctx: FileFacts) -> bool:
    """Whether an expression is a device of XLA, which takes copies of its own and ignores `non_blocking`."""
    if device is None:
        return False
    origins = [device, *ctx.inference.origins(device)]
    return any(
        (isinstance(item, ast.Call) and (ctx.target(item.func) or "").startswith("torch_xla."))
        or "xla" in _types(item, ctx)
        for item in origins
    )


def _rules_out_cuda(test: ast.expr, ctx: FileFacts, depth: int, *, holds: bool) -> bool:
    if depth == 0:
        return False
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _rules_out_cuda(test.operand, ctx, depth, holds=not holds)
    if isinstance(test, ast.BoolOp):
        parts = (_rules_out_cuda(part, ctx, depth, holds=holds) for part in test.values)
        return any(parts) if isinstance(test.op, ast.And) is holds else all(parts)
    if isinstance(test, ast.Name):
        origins = [item for item in ctx.inference.origins(test) if item is not test]
        return bool(origins) and all(_rules_out_cuda(item, ctx, depth - 1, holds=holds) for item in origins)
    if isinstance(test, ast.Call):
        target = ctx.target(test.func) or ""
        if callee_name(test) == "startswith" and isinstance(test.func, ast.Attribute) and test.args:
            named = _types(test.args[0], ctx)
            return _is_ruled_out(named, holds=holds) if _is_type(test.func.value) else False
        return target in _OTHERS if holds else target in _CUDA
    if isinstance(test, ast.Attribute) and test.attr == "is_cuda":
        return _is_of_host(test.value, ctx) is holds  # of what is on the host it is false, whatever the program runs on
    if isinstance(test, ast.Attribute):
        return holds and test.attr in ("is_mps", "is_xla", "is_xpu", "is_cpu")
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    return (not holds and _counts_devices(test, ctx)) or _compares(test, ctx, holds=holds)


def _is_of_host(value: ast.expr, ctx: FileFacts) -> bool:
    kind = ctx.kind(value)
    return kind.holds_tensors and kind.on_host


def _counts_devices(test: ast.Compare, ctx: FileFacts) -> bool:
    """`torch.cuda.device_count() >= 1`"""
    counted, op, least = test.left, test.ops[0], test.comparators[0]
    if not isinstance(counted, ast.Call) or ctx.target(counted.func) not in _COUNTING:
        return False
    if not isinstance(least, ast.Constant):
        return False
    return (isinstance(op, ast.GtE) and least.value == 1) or (isinstance(op, (ast.Gt, ast.NotEq)) and least.value == 0)


def _compares(test: ast.Compare, ctx: FileFacts, *, holds: bool) -> bool:
    left, op, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(op, (ast.In, ast.NotIn)) and isinstance(left, ast.Constant):
        left, right = right, left  # `"mps" in str(device)`
    named = _types(right, ctx)
    if not named and isinstance(op, (ast.Eq, ast.NotEq)):
        left, named = right, _types(left, ctx)
    if not named or not _is_type(left):
        return False
    return _is_ruled_out(named, holds=holds is isinstance(op, (ast.Eq, ast.In, ast.Is)))


def _is_ruled_out(named: frozenset[str], *, holds: bool) -> bool:
    return bool(named) and "cuda" not in named if holds else named == {"cuda"}


def _is_type(node: ast.expr) -> bool:
    """Whether a value may be a device or its type: it is compared with the name of one."""
    if isinstance(node, ast.Call):
        return callee_name(node) in ("str", "device") and bool(node.args)
    return isinstance(node, (ast.Name, ast.Subscript)) or last_name(node) != ""


def _types(node: ast.expr, ctx: FileFacts) -> frozenset[str]:
    """The types of devices that are written out: `"mps"`, `torch.device("mps")`, `("mps", "cpu")`; none where another
    value stands among them.
    """
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        each = [_types(item, ctx) for item in node.elts]
        return frozenset().union(*each) if all(each) else frozenset()
    if isinstance(node, ast.Call) and ctx.is_call_of(node, "torch.device") and node.args:
        return _types(node.args[0], ctx)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return frozenset({node.value.partition(":")[0]}) & _TYPES
    return frozenset()
