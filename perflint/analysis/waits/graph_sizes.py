"""Calls of libraries for graphs that look up a size in an index of the device: `scatter(x, index)`."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.waits.reads import is_on_device
from perflint.ir.calls import argument, arguments_of, callee_name, is_constant
from perflint.torch_model import graphs
from perflint.torch_model.names import canonical


def looked_up(call: ast.Call, ctx: FileFacts) -> ast.expr | None:
    """The tensor of the device whose numbers such a call reads; None where it is told the size, and for other calls."""
    spared = sparing(call, ctx)
    if spared is None or any(_is_given(call, name, place) for name, place in spared):
        return None
    given = arguments_of(call)
    return next((item for item in given if not isinstance(item, ast.Starred) and is_on_device(item, ctx)), None)


def sparing(call: ast.Call, ctx: FileFacts) -> tuple[tuple[str, int], ...] | None:
    """The arguments that spare a call the look-up, by name and place; None where the call does none."""
    if callee_name(call) not in graphs.WAITING_NAMES:
        return None
    target = ctx.target(call.func)
    return None if target is None else graphs.WAITING.get(canonical(target))


def _is_given(call: ast.Call, name: str, place: int) -> bool:
    found = argument(call, place, name)
    return found is not None and not is_constant(found, None)
