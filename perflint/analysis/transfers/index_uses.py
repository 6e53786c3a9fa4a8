"""What else is known of an index of the host: that it counts up by one, that another use reads its numbers there."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name

_COUNTING = ("torch.arange", "numpy.arange", "range", "builtins.range")
_MOST_BOUNDS = 2
_NUMBERS = frozenset({"int", "float", "bool", "range", "list", "tuple", "print", "str"})
_READING = frozenset({"item", "tolist", "numpy", "__int__", "__float__"})


def counts_up_by_one(index: ast.expr, ctx: FileFacts) -> bool:
    """`torch.arange(start, stop)`, wherever the index comes from: what it selects is a slice."""
    origins = ctx.inference.origins(index)
    return bool(origins) and all(isinstance(origin, ast.Call) and _counts(origin, ctx) for origin in origins)


def _counts(call: ast.Call, ctx: FileFacts) -> bool:
    if callee_name(call) in ("list", "tuple") and len(call.args) == 1 and isinstance(call.args[0], ast.Call):
        return _counts(call.args[0], ctx)
    told = {item.arg for item in call.keywords}
    return ctx.target(call.func) in _COUNTING and 1 <= len(call.args) <= _MOST_BOUNDS and "step" not in told


def is_read_on_host(index: ast.expr, ctx: FileFacts) -> bool:
    """Whether the host reads the numbers of an index elsewhere: `int(index[-1])`, a loop over them."""
    if not isinstance(index, ast.Name):
        return False
    flow = ctx.inference.flow
    uses = (use for made in flow.definitions(index) for use in flow.uses_of(made))
    return any(use is not index and _reads(use, ctx) for use in uses)


def _reads(use: ast.expr, ctx: FileFacts) -> bool:
    parent = ctx.tree.parent(use)
    while isinstance(parent, ast.Subscript) and parent.value is use:
        use, parent = parent, ctx.tree.parent(parent)
    if isinstance(parent, ast.Attribute):
        called = ctx.tree.parent(parent)
        return parent.attr in _READING and isinstance(called, ast.Call) and called.func is parent
    if isinstance(parent, ast.Call):
        return use in parent.args and callee_name(parent) in _NUMBERS
    if isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)):
        return parent.iter is use
    return isinstance(parent, (ast.If, ast.While, ast.IfExp)) and parent.test is use
