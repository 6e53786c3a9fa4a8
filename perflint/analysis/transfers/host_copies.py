"""Copies of host tensors that the host waits for in hot code: what is copied, where to, and out of what."""

from __future__ import annotations

import ast
import enum
from typing import NamedTuple

from perflint.analysis.feasibility.at_nodes import is_in_training
from perflint.analysis.feasibility.device_branches import goes_to_xla, is_without_cuda
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.invariants.number_sources import Origin, Source, origin_of
from perflint.analysis.phases.generation import beside_generation
from perflint.analysis.transfers.batch_movers import is_batch_mover, was_moved_in_place, was_put_off
from perflint.analysis.transfers.empty_tensors import holds_no_elements
from perflint.analysis.transfers.host_data import certainty_of_host, is_written_out
from perflint.analysis.transfers.moves import (
    aligns,
    constructor,
    has_unblocking_move,
    moves_in_its_own_way,
    names_no_device,
    only_converts,
)
from perflint.analysis.transfers.pageable import made_in_step
from perflint.analysis.values.kind import Device, Kind, Place, Tag
from perflint.analysis.values.origin import Provenance, is_from
from perflint.analysis.waits.accelerators import uses_accelerator
from perflint.analysis.waits.host_work import in_forward, region_of
from perflint.analysis.waits.reads import certainty_on_device
from perflint.finding import Confidence, Heat
from perflint.ir.calls import callee_name, has_unpacking, is_constant, keyword
from perflint.ir.notation import value_of
from perflint.torch_model import tensors

MOVES = ("to", "cuda", "type", "type_as")
_MADE_THERE = tensors.CONSTRUCTORS | tensors.LIKE_CONSTRUCTORS
#: What takes `device=`, and copies nothing when it is given.
_CAN_BE_TOLD = _MADE_THERE - tensors.COPYING_CONSTRUCTORS - {"torch.from_file"}
#: Methods that fill what has only been given a size.
_FILLS = frozenset("random_ normal_ uniform_ zero_ fill_ bernoulli_ exponential_".split())
#: Roles of code that trains nothing: its results go to the host on every turn, or once.
PASSES = frozenset({"eval", "batches", "texts", "decode", "infer"})


class What(enum.Enum):
    """What is copied: it decides what helps."""

    BATCH = "a loader's batch, or data of the host"
    MADE = "made by functions that take `device=`, out of sizes"
    CONSTANT = "the same numbers each time"
    FETCHED = "numbers that were on the device before"


class Copy(NamedTuple):
    """One call that copies a host tensor to an accelerator while the host waits."""

    call: ast.Call
    value: Kind
    destination: Device
    origin: Origin
    what: What

    @property
    def moved(self) -> ast.expr:
        assert isinstance(self.call.func, ast.Attribute)
        return self.call.func.value


def copies_in(region: ast.AST, ctx: FileFacts) -> dict[int, Copy]:
    """The copies in a function, by the ids of their calls, in their order."""
    calls = (part for part in ctx.walk(region) if isinstance(part, ast.Call) and callee_name(part) in MOVES)
    hot = sorted(
        (call for call in calls if ctx.heat(call) >= Heat.STEP), key=lambda call: (call.lineno, call.col_offset)
    )
    found = ((call, _copy_of(call, ctx)) for call in hot)
    return {id(call): copy for call, copy in found if copy is not None}


def copy_at(node: ast.Call, ctx: FileFacts) -> Copy | None:
    return ctx.once(copies_in, ctx.tree.scope_of(node)).get(id(node))


def _copy_of(node: ast.Call, ctx: FileFacts) -> Copy | None:
    if not isinstance(node.func, ast.Attribute) or has_unpacking(node):
        return None
    if asks_not_to_block(node, ctx) and made_in_step(node.func.value, ctx) is None:
        return None
    put_off = was_put_off(node, ctx)
    # The arguments are asked first: what is moved may take long to find out.
    if not put_off and (only_converts(node, ctx) or names_no_device(node, ctx)):
        return None
    value = _as_it_came(node.func.value, ctx)
    if value.place is Place.UNKNOWN and value.tag in (Tag.TENSOR, Tag.UNKNOWN):
        # Of several callers one may give what is on the device: the one that makes this hot tells.
        there = ctx.kind_on_route(node.func.value)
        if there.is_tensor and there.place is Place.HOST and not ctx.is_for_users(node):
            value = there.at_most(Confidence.MEDIUM)
    if put_off or (value.place is Place.UNKNOWN and is_batch_mover(node, ctx) and uses_accelerator(ctx)):
        value = value.but(tag=Tag.BATCH, place=Place.HOST, certainty=Confidence.MEDIUM)
    if not value.holds_tensors or value.place is not Place.HOST:
        return None
    given = ctx.given_on_route(node.func.value) if ctx.kind(node.func.value).is_tensor else None
    if given is not None and _is_made_there(*given):
        value = value.but(certainty=Confidence.HIGH)
    # Asked last: most of what is moved is on the device already, and where it is moved to takes long to find out.
    destination = Device.MAYBE if put_off else _destination(node, ctx)
    if destination is None or destination is Device.MPS or is_without_cuda(node, ctx):
        return None
    if callee_name(node) == "to" and goes_to_xla(keyword(node, "device") or next(iter(node.args), None), ctx):
        return None
    if ctx.role(node) == "data" or _is_reported_elsewhere(node.func.value, ctx):
        return None
    if _moves_itself(node, ctx) or (aligns(node, ctx) and not _is_surely_host(node, value, ctx)):
        return None
    if value.tag is Tag.BATCH and moves_in_its_own_way(node, ctx):
        return None
    if not (value.is_tensor and value.certainty is Confidence.HIGH) and has_unblocking_move(node, ctx):
        return None  # a class of the project may be what is moved, whose method raises for the option
    if beside_generation(node, ctx) or was_moved_in_place(node, ctx) or _are_tokens_of_a_call(node, value, ctx):
        return None
    if holds_no_elements(node.func.value, ctx):
        return None
    origin = origin_of(node.func.value, ctx)
    return Copy(node, value, destination, origin, _what(value, origin, ctx))


def _as_it_came(value: ast.expr, ctx: FileFacts) -> Kind:
    """What is moved: of `table.type_as(x)`, where nobody knows where `x` is, the table: one of both copies it."""
    kind = ctx.kind(value)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "type_as":
        return ctx.kind(value.func.value) if kind.place is Place.UNKNOWN else kind
    return kind


def _what(value: Kind, origin: Origin, ctx: FileFacts) -> What:
    if origin.source is Source.DEVICE:
        return What.FETCHED
    if (
        value.tag is Tag.BATCH
        or is_from(value.origin, Provenance.LOADER, Provenance.NAMED_LOADER)
        or origin.source is Source.DATA
    ):
        return What.BATCH
    made = [ctx.target(call.func) for call in origin.made]
    if made and all(target in _CAN_BE_TOLD for target in made):
        return What.MADE
    return What.CONSTANT if origin.source is Source.CONSTANT and not origin.drawn else What.BATCH


def is_pass(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the code around trains nothing, by whatever way it is reached: it evaluates, generates or looks. The
    forward of a module is there to be trained, whatever calls it here, but for what it does out of training alone.
    """
    if ctx.heat(node) >= Heat.STEP and not is_in_training(node, ctx):
        return True
    if ctx.role(node) not in PASSES or in_forward(node, ctx) or ctx.program.is_in_training(ctx.scope(node)):
        return False
    around = ctx.walk(region_of(node, ctx))
    return not any(isinstance(part, ast.Call) and callee_name(part) == "backward" for part in around)


def sized_type(copy: Copy, ctx: FileFacts) -> str:
    """The type of a legacy constructor that is given sizes: `torch.LongTensor(n).random_(8)`; empty for any other."""
    origins = ctx.inference.origins(copy.moved)
    value = origins[0] if len(origins) == 1 else copy.moved
    made = constructor(value, frozenset(tensors.LEGACY_DTYPES), ctx)
    if made is None or not made.args:
        return ""
    # Several are sizes; what is given alone may be a list or an array of values, even of sizes.
    is_size = all(ctx.kind(item).tag in (Tag.NUMBER, Tag.SHAPE) for item in made.args) or (
        len(made.args) > 1 and all(origin_of(item, ctx).source is Source.SIZES for item in made.args)
    )
    is_filled = isinstance(value, ast.Call) and callee_name(value) in _FILLS
    return tensors.LEGACY_DTYPES[ctx.target(made.func) or ""] if is_size or is_filled else ""


def _are_tokens_of_a_call(node: ast.Call, value: Kind, ctx: FileFacts) -> bool:
    """Whether a model that takes texts makes tokens of them: that takes longer than sending them, and is nothing that
    training does.
    """
    if ctx.role(node) == "texts" and not in_forward(node, ctx):
        return True
    return (
        is_from(value.origin, Provenance.TOKENIZER)
        and in_forward(node, ctx)
        and ctx.role(node) not in ("train", "batches")
    )


def _is_reported_elsewhere(value: ast.expr, ctx: FileFacts) -> bool:
    """`torch.zeros(n).to(device)`, `x.pin_memory().to(device)`: other rules say what is wrong, and `torch.Tensor([])`
    holds nothing.
    """
    if isinstance(value, ast.Call) and callee_name(value) == "pin_memory":
        return True
    made = constructor(value, _MADE_THERE | frozenset(tensors.LEGACY_DTYPES), ctx)
    if made is None:
        return False
    target = ctx.target(made.func)
    if not made.args or (isinstance(made.args[0], (ast.List, ast.Tuple)) and not made.args[0].elts):
        return True
    if target in tensors.COPYING_CONSTRUCTORS:
        # What is no data of the host for sure may be a tensor of the device.
        return is_written_out(made.args[0], ctx) or certainty_of_host(made.args[0], ctx) is None
    return target in _MADE_THERE


def _moves_itself(call: ast.Call, ctx: FileFacts) -> bool:
    """`self.weights = self.weights.to(device)`: a copy the first time, nothing after that."""
    assert isinstance(call.func, ast.Attribute)
    parent = ctx.tree.parent(call)
    if not isinstance(parent, ast.Assign):
        return False
    moved = call.func.value
    # `self.mask = grown(self.mask, n).to(device)` gives back what it had, as long as that is enough.
    kept = {ctx.text(item) for item in (moved.args if isinstance(moved, ast.Call) else (moved,))}
    return any(isinstance(target, ast.Attribute) and ctx.text(target) in kept for target in parent.targets)


def _is_surely_host(call: ast.Call, value: Kind, ctx: FileFacts) -> bool:
    """Beside an alignment, elements of a batch are not sure enough: something may have moved the batch before. What is
    made here, or by what is called, is where it was made: in hot code, if it is neither kept nor instead of an argument
    that is given as a rule.
    """
    assert isinstance(call.func, ast.Attribute)
    moved = call.func.value
    if value.certainty is Confidence.HIGH and isinstance(moved, (ast.Attribute, ast.Call)):
        return True
    if (given := ctx.given_on_route(moved)) is not None and _is_kept_there(*given):
        return not _is_kept(call, ctx)
    if not is_from(value.origin, Provenance.CONSTRUCTOR, Provenance.LIKE) or value.optional:
        return False
    if value.certainty is Confidence.HIGH:
        return not _is_kept(call, ctx)
    return value.certainty is Confidence.MEDIUM and (isinstance(moved, ast.Call) or _is_item_of_own(moved))


def _is_item_of_own(moved: ast.expr) -> bool:
    """`self.tables[key]`: what the class puts there is known, and nothing but the class moves it: a module moves what
    it registers, and nothing in its dicts and lists.
    """
    return isinstance(moved, ast.Subscript) and isinstance(moved.value, ast.Attribute)


def _is_kept_there(given: ast.expr, ctx: FileFacts) -> bool:
    """Whether the call that makes this hot hands over what its object keeps on the host: `picked(self.table, i)`."""
    kind = ctx.kind(given)
    return isinstance(given, ast.Attribute) and kind.place is Place.HOST and kind.certainty is Confidence.HIGH


def _is_made_there(given: ast.expr, ctx: FileFacts) -> bool:
    """Whether that call makes on the host what it hands over, where it stands: `moved(torch.arange(n) + first)`."""
    made = given
    while isinstance(made, ast.BinOp):
        made = made.left if isinstance(made.left, (ast.Call, ast.BinOp)) else made.right
    kind = ctx.kind(given)
    is_new = isinstance(made, ast.Call) and is_from(kind.origin, Provenance.CONSTRUCTOR)
    return is_new and kind.place is Place.HOST and kind.certainty is Confidence.HIGH


def _is_kept(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether what is moved stays for the turns that follow, or stands in for an argument: `self.table = table.to(d)`,
    `return table.to(d)` of a table that was handed in and had to grow, `if mask is None: mask = made.to(d)`.
    """
    parent, function = ctx.tree.parent(call), ctx.tree.function_of(call)
    if isinstance(parent, ast.Assign) and any(isinstance(target, ast.Attribute) for target in parent.targets):
        return True
    assert isinstance(call.func, ast.Attribute)
    moved = call.func.value
    if function is None or not isinstance(moved, ast.Name):
        return False
    if moved.id not in {item.arg for item in (*function.args.args, *function.args.kwonlyargs)}:
        return False
    tests = (ctx.text(test) for test, holds in ctx.conditions(call) if holds)
    return isinstance(parent, ast.Return) or f"{moved.id} is None" in tests


def asks_not_to_block(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether `non_blocking` is given at all, by keyword or position: `.to(d, t, True)`, `.cuda(None, True)`. Its name
    was `async` before that was a keyword. A parameter that no call sets asks for nothing.
    """
    assert isinstance(call.func, ast.Attribute)
    if any(keyword(call, name) is not None for name in ("non_blocking", "async")):
        return blocks_by_parameter(call, ctx) is None
    position = 2 if call.func.attr == "to" else 1
    return len(call.args) > position or any(is_constant(item, value=True) for item in call.args)


def blocks_by_parameter(call: ast.Call, ctx: FileFacts) -> ast.FunctionDef | None:
    """The function whose parameter says whether a copy blocks, `x.to(device, non_blocking=non_blocking)`, where it is
    False by default and each call leaves it so. A batch's own `to` is told where it is called.
    """
    asked, around = keyword(call, "non_blocking"), ctx.tree.function_of(call)
    if not isinstance(asked, ast.Name) or not isinstance(around, ast.FunctionDef) or around.name in MOVES:
        return None
    if not all(isinstance(item.node, ast.arg) for item in ctx.inference.flow.definitions(asked)):
        return None
    literals = ctx.program.literals(value_of(asked), ctx.scope(asked))
    return around if literals and all(item == ("const", "bool", False) for item in literals) else None


def _destination(call: ast.Call, ctx: FileFacts) -> Device | None:
    """Where the copy goes, None when the call moves to the host, or that cannot be told."""
    result = ctx.kind(call)
    if callee_name(call) == "type_as" and result.is_tensor and result.place is Place.UNKNOWN:
        result = ctx.kind_on_route(call)  # of several callers, the one that makes this hot tells where it goes
        if not result.on_accelerator and call.args and certainty_on_device(call.args[0], ctx) is not None:
            return Device.MAYBE
    if not result.on_accelerator:
        return None
    return result.device or Device.MAYBE
