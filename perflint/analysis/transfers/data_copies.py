"""Host data that constructors and element writes copy to the device, while the host waits."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.analysis.feasibility.device_branches import goes_to_xla, is_without_cuda
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.invariants.constant_tensors import is_constant_copy, is_fallback_copy, is_traced
from perflint.analysis.invariants.number_sources import round_trip
from perflint.analysis.phases.generation import beside_generation
from perflint.analysis.phases.seldom import hands_over, is_empty_case, is_export, is_tried_out
from perflint.analysis.transfers.host_data import certainty_of_host
from perflint.analysis.values.implicit_copies import OVERWRITING, copied_data, indices_of, written_element
from perflint.analysis.values.kind import Place, Tag
from perflint.analysis.waits.accelerators import uses_accelerator
from perflint.analysis.waits.exceptional import is_exceptional
from perflint.analysis.waits.host_work import in_step, works_on_host
from perflint.analysis.waits.reads import certainty_on_device, counts_steps, is_on_device
from perflint.finding import Confidence
from perflint.ir.calls import callee_name, keyword
from perflint.syntax.walk import walk
from perflint.torch_model.names import last
from perflint.torch_model.tensors import DEFAULT_TYPE


class DataCopy(NamedTuple):
    """An expression that copies `data` of the host to the device."""

    node: ast.expr
    data: ast.expr
    certainty: Confidence


def data_copy_at(node: ast.AST, ctx: FileFacts) -> DataCopy | None:
    """What a constructor copies to the device, or an assignment to one element of a device tensor."""
    found = copied_at(node, ctx)
    if found is None or ctx.role(node) == "data" or not uses_accelerator(ctx) or _is_rare(node, ctx):
        return None
    if isinstance(found.node, ast.Call) and is_constant_copy(found.node, found.data, found.node, ctx):
        return None  # constant-tensor-in-hot-path says it better
    return found


def copied_at(node: ast.AST, ctx: FileFacts) -> DataCopy | None:
    """As `data_copy_at`, wherever it stands and however often it runs."""
    return ctx.once(_copied, node)


def _copied(node: ast.AST, ctx: FileFacts) -> DataCopy | None:
    if isinstance(node, ast.Assign):
        return _element(node, ctx) or _part(node, ctx)
    if not isinstance(node, ast.Call):
        return None
    return _overwritten(node, ctx) if callee_name(node) == OVERWRITING else _constructed(node, ctx)


def _overwritten(call: ast.Call, ctx: FileFacts) -> DataCopy | None:
    """`inputs.resize_(batch.shape).copy_(batch)`: what is on the device is overwritten with a tensor of the host."""
    if not isinstance(call.func, ast.Attribute) or len(call.args) != 1 or call.keywords:
        return None
    if isinstance(call.args[0], (ast.Starred, ast.Constant)) or not _is_host_tensor(call.args[0], call.func.value, ctx):
        return None
    placed = certainty_on_device(call.func.value, ctx)
    return None if placed is None else DataCopy(call, call.args[0], min(placed, Confidence.MEDIUM))


def _constructed(call: ast.Call, ctx: FileFacts) -> DataCopy | None:
    """`torch.tensor([w, h], device=x.device)`, `x.new_tensor(counts)`."""
    dotted = ctx.target(call.func) or ""
    default = "" if keyword(call, "device") else ctx.program.whole.makes_on_card(ctx.path)
    data = copied_data(call, dotted, default)
    if data is None or (isinstance(data, (ast.List, ast.Tuple)) and not data.elts):
        return None
    if dotted == DEFAULT_TYPE and ctx.kind(data).tag not in (Tag.SEQUENCE, Tag.ARRAY):
        return None  # a number is a size
    certainty = certainty_of_host(data, ctx)
    if certainty is None and (dotted == "torch.tensor" or callee_name(call) == "new_tensor"):
        # It is there for data of the host: of a tensor it gives a warning. Tensors in a list are read one by one.
        kind = ctx.kind(data)
        is_list = kind.tag is Tag.SEQUENCE and kind.certainty is not Confidence.LOW
        holds = is_list and kind.element is not None and (kind.element.holds_tensors or kind.element.known)
        # What a loader gives is taken for a tensor, and may be an array; a tensor of the host is copied as well.
        is_part = kind.is_tensor and (kind.on_host or (not kind.on_accelerator and kind.certainty < Confidence.HIGH))
        certainty = Confidence.MEDIUM if (is_list and not holds) or is_part or not kind.known else None
    if certainty is None and last(dotted) in ("as_tensor", "asarray") and _is_host_tensor(data, call, ctx):
        certainty = Confidence.MEDIUM  # as `.to(device)` of it
    placed = _certainty_of_place(call, ctx)
    if certainty is None or placed is None:
        return None
    return DataCopy(call, data, min(certainty, placed))


def _is_host_tensor(data: ast.expr, made: ast.expr, ctx: FileFacts) -> bool:
    """Whether data is a tensor of the host: of several callers the one that makes this hot tells, where what is made of
    it there is on the device.
    """
    kind = ctx.kind(data)
    if kind.place is Place.UNKNOWN:
        kind = ctx.kind_on_route(data)
        if not ctx.kind_on_route(made).on_accelerator:
            return False
    return kind.is_tensor and kind.on_host and kind.certainty is not Confidence.LOW


def _element(statement: ast.Assign, ctx: FileFacts) -> DataCopy | None:
    """`shapes[level, 0] = height`"""
    target = written_element(statement)
    if target is None or ctx.kind(statement.value).tag is not Tag.NUMBER:
        return None
    written = ctx.kind(target.value)
    given = indices_of(target)
    if written.tag is not Tag.TENSOR or written.rank != len(given) or not is_on_device(target.value, ctx):
        return None
    if any(ctx.kind(item).tag is not Tag.NUMBER for item in given):
        return None
    return DataCopy(target, statement.value, min(written.certainty, ctx.kind(statement.value).certainty))


def _part(statement: ast.Assign, ctx: FileFacts) -> DataCopy | None:
    """`rows[i, :n] = tokens[:n]`: what a tensor of the host fills of one on the device is copied there. A number would
    be filled in by a kernel, and to write by a mask or by positions takes a tensor of the device.
    """
    target, value = statement.targets[0], statement.value
    if len(statement.targets) != 1 or not isinstance(target, ast.Subscript) or isinstance(value, ast.Constant):
        return None
    if any(not isinstance(item, ast.Slice) and ctx.kind(item).tag is not Tag.NUMBER for item in indices_of(target)):
        return None
    given = ctx.kind(value)
    if not given.is_tensor or given.scalar or not given.on_host or given.certainty is Confidence.LOW:
        return None
    placed = certainty_on_device(target.value, ctx)
    return None if placed is None else DataCopy(target, value, min(placed, given.certainty))


def _certainty_of_place(call: ast.Call, ctx: FileFacts) -> Confidence | None:
    """How sure it is that the copy goes to an accelerator."""
    if callee_name(call) == "new_tensor" and isinstance(call.func, ast.Attribute):
        return certainty_on_device(call.func.value, ctx)
    made = ctx.kind(call)
    if not made.on_accelerator or is_without_cuda(call, ctx) or goes_to_xla(keyword(call, "device"), ctx):
        return None
    given = keyword(call, "device")
    if made.place is Place.DEVICE:
        return Confidence.HIGH
    if isinstance(given, ast.Attribute) and given.attr == "device" and not ctx.kind(given.value).on_accelerator:
        # `x.device` of a tensor that nothing is known of: what a forward or a step works on was moved before.
        names = [getattr(part, "id", "") or getattr(part, "attr", "") for part in walk(given.value)]
        return Confidence.MEDIUM if in_step(call, ctx) and not counts_steps(names, call, ctx) else None
    return made.certainty


def _is_rare(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the copy is made for an odd batch, once, for an export, or beside a wait that takes longer."""
    if works_on_host(node, ctx) or is_exceptional(node, ctx) or is_traced(node, ctx) or is_export(ctx):
        return True
    if is_empty_case(node, ctx) or is_fallback_copy(node, ctx) or is_tried_out(node, ctx):
        return True
    if isinstance(node, ast.Call) and round_trip(node, ctx):
        return True
    return hands_over(node, ctx) or beside_generation(node, ctx)
