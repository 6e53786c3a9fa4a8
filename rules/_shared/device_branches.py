"""Which branches a program takes only where it does not run on CUDA: those of MPS, XLA and the CPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Context, callee_name, last_name

#: Types of devices, as `torch.device(...).type` gives them.
_TYPES = frozenset("cpu cuda mps xla xpu hpu npu meta".split())
_CUDA = frozenset({"torch.cuda.is_available", "torch.accelerator.is_available"})
_OTHERS = frozenset({"torch.backends.mps.is_available", "torch.mps.is_available", "torch.xpu.is_available"})
_JUMPS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_DEPTH = 3


def is_without_cuda(node: ast.AST, ctx: Context) -> bool:
    """Whether a test around `node`, or one before it that leaves the block, lets it run on other devices alone."""
    return any(_rules_out_cuda(test, ctx, _DEPTH, holds=holds) for test, holds in _tests(node, ctx))


def goes_to_xla(device: ast.expr | None, ctx: Context) -> bool:
    """Whether an expression is a device of XLA, which takes copies of its own and ignores `non_blocking`."""
    if device is None:
        return False
    origins = [device, *ctx.inference.origins(device)]
    return any(
        (isinstance(item, ast.Call) and (ctx.target(item.func) or "").startswith("torch_xla."))
        or "xla" in _types(item, ctx)
        for item in origins
    )


def _tests(node: ast.AST, ctx: Context) -> Iterator[tuple[ast.expr, bool]]:
    """Each test that decides whether `node` runs, and what it is where `node` does."""
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.If, ast.IfExp, ast.While)) and child is not outer.test:
            arm = outer.body
            yield outer.test, child is arm or (isinstance(arm, list) and child in arm)
        block = next((item for item in _blocks(outer) if child in item), [])
        for earlier in block[: block.index(child)] if child in block else ():
            if isinstance(earlier, ast.If) and not earlier.orelse and isinstance(earlier.body[-1], _JUMPS):
                yield earlier.test, False
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        child = outer


def _blocks(outer: ast.AST) -> list[list[ast.AST]]:
    blocks = (getattr(outer, name, None) for name in ("body", "orelse", "finalbody"))
    return [block for block in blocks if isinstance(block, list)]


def _rules_out_cuda(test: ast.expr, ctx: Context, depth: int, *, holds: bool) -> bool:
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
    if isinstance(test, ast.Attribute):
        return test.attr in ("is_mps", "is_xla", "is_xpu", "is_cpu") if holds else test.attr == "is_cuda"
    return isinstance(test, ast.Compare) and len(test.ops) == 1 and _compares(test, ctx, holds=holds)


def _compares(test: ast.Compare, ctx: Context, *, holds: bool) -> bool:
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


def _types(node: ast.expr, ctx: Context) -> frozenset[str]:
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
