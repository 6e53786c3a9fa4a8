"""What the rules about waiting for the device share: which expressions read a device tensor's values on the host."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.phases import (
    DEBUGGING_FILE,
    MAKES_OUTPUT,
)
from perflint.analysis.naming.values import HOLDS_SEVERAL, MAPPING_OF_TENSORS, ON_HOST, OPTIMIZER_STEPS, TENSOR_TYPE
from perflint.analysis.transfers.moves import names_no_device, only_converts
from perflint.analysis.values.kind import Device, Kind, Place, Tag
from perflint.analysis.values.origin import Provenance, is_from
from perflint.analysis.waits.accelerators import uses_accelerator
from perflint.analysis.waits.host_values import CONSTANTS, is_of_host, speaks_of_arrays
from perflint.analysis.waits.host_work import in_forward, region_of
from perflint.analysis.waits.losses import is_loss, is_propagated, without_reductions
from perflint.finding import Confidence
from perflint.ir.calls import callee_name, keyword
from perflint.syntax.walk import walk
from perflint.torch_model import tensors
from perflint.torch_model.devices import ACCELERATOR_WORDS

#: Methods that copy values to the host, and the functions that read those of their arguments.
READ_METHODS = ("item", "tolist", "cpu", "to", "type")
_READ_FUNCTIONS = frozenset(
    name.removeprefix("builtins.")
    for name in tensors.READING_FUNCTIONS
    # Making a list of a tensor unbinds it; numpy refuses device tensors, so what it gets is on the host.
    if not name.startswith("numpy.") and name not in ("builtins.list", "builtins.tuple", "builtins.set")
) - {"round"} | {name for name, wait in tensors.SYNC_FUNCTIONS.items() if wait is tensors.Wait.READ}
_ITERATING = frozenset({"min", "max", "sorted", "any", "all", "map"})
#: Methods of a gradient scaler that read its scale.
_SCALER_READS = ("get_scale", "state_dict")
READ_NAMES = (*READ_METHODS, *sorted({name.rpartition(".")[2] for name in _READ_FUNCTIONS}), *_SCALER_READS, "map")
#: What makes one number of a tensor's element, where it is mapped.
_OF_ONE_NUMBER = frozenset({"builtins.int", "builtins.float", "builtins.bool"})
_BACKWARD = ("backward", "manual_backward")
#: What torch computes, of values that may be given from anywhere.
_COMPUTED = (Provenance.FUNCTION, Provenance.PARAMETER, Provenance.LIKE, Provenance.MOVE, Provenance.METHOD)
#: What makes a tensor of an array, where that lies.
_OF_ARRAYS = frozenset({"torch.from_numpy"})
_STEP_ROLES = ("train", "batches", "texts", "eval", "decode")


class Read(NamedTuple):
    """One place where the host waits for a value: the tensor it reads, and how sure it is that it is a device's."""

    value: ast.expr
    certainty: Confidence
    copies: bool = False  # `.cpu()`: all values, which stay a tensor


def device_read(node: ast.AST, ctx: FileFacts) -> Read | None:
    """The device tensor whose values the call `node`, or `loss.data[0]`, brings to the host; None for anything else."""
    if isinstance(node, ast.Subscript):
        return ctx.once(_read_of_old_torch, node) if _is_first_of_data(node) else None
    return ctx.once(_device_read, node) if isinstance(node, ast.Call) else None


def _is_first_of_data(node: ast.Subscript) -> bool:
    is_first = isinstance(node.slice, ast.Constant) and node.slice.value == 0 and isinstance(node.ctx, ast.Load)
    return is_first and isinstance(node.value, ast.Attribute) and node.value.attr == "data"


def _read_of_old_torch(node: ast.Subscript, ctx: FileFacts) -> Read | None:
    """`loss.data[0]` of one number, which torch before 0.5 gave Python as `loss.item()` does: the code is written for
    such. Of a tensor with rows it is the first row, which stays a tensor.
    """
    assert isinstance(node.value, ast.Attribute)
    value = node.value.value
    kind = ctx.kind(value)
    if kind.rank is None and _may_be_on_device(kind) and is_propagated(value, ctx):
        return Read(value, Confidence.MEDIUM)
    certainty = certainty_on_device(value, ctx) if kind.scalar or is_propagated(value, ctx) else None
    return None if certainty is None else Read(value, certainty)


def _device_read(node: ast.Call, ctx: FileFacts) -> Read | None:
    name = callee_name(node)
    if isinstance(node.func, ast.Attribute) and name in (*READ_METHODS, *_SCALER_READS):
        return _read_by_method(node, node.func.value, name, ctx)
    if (
        isinstance(node.func, ast.Attribute)
        and name in tensors.ANSWERING_METHODS
        and ctx.kind(node.func.value).is_tensor
    ):
        certainty = certainty_on_device(node.func.value, ctx)
        return None if certainty is None else Read(node.func.value, certainty)
    values = mapped_over(node, ctx) if name == "map" else node.args
    if name not in READ_NAMES or not values or (name != "map" and ctx.target(node.func) not in _READ_FUNCTIONS):
        return None
    for value in values:
        certainty = None if is_of_host(value, ctx) else certainty_on_device(value, ctx)
        if certainty is None and len(values) == 1 and name in _ITERATING:
            element = ctx.kind(value).element
            certainty = None if element is None else kind_on_device(element, value, ctx)
        if certainty is not None:
            return Read(value, certainty)
    if ctx.target(node.func) in tensors.SYNC_FUNCTIONS and _compares_unknown(values, ctx):
        return Read(values[0], Confidence.MEDIUM)
    return None


def _compares_unknown(values: list[ast.expr], ctx: FileFacts) -> bool:
    """`torch.equal(a, b)` in a forward or a step, where nothing is known of either: torch takes nothing but tensors."""
    return all(is_unknown_in_step(value, ctx.kind(value), ctx) for value in values)


def mapped_over(node: ast.Call, ctx: FileFacts) -> list[ast.expr]:
    """The tensor each of whose elements becomes a number: `map(int, box)`."""
    if len(node.args) != 2 or ctx.inference.qualified(node.func) != "builtins.map":
        return []
    return node.args[1:] if ctx.inference.qualified(node.args[0]) in _OF_ONE_NUMBER else []


def _read_by_method(call: ast.Call, value: ast.expr, name: str, ctx: FileFacts) -> Read | None:
    if _counts_of_packing(value, ctx):
        return None
    if name in _SCALER_READS:
        kind = ctx.kind(value)
        return Read(value, kind.certainty) if kind.tag is Tag.SCALER else None
    if name == "type":
        return _read_by_type(call, value, ctx)
    if name in ("cpu", "to") and not _may_go_to_host(call, name, ctx):
        return None
    if name not in ("cpu", "to") and (call.args or call.keywords):
        return None
    certainty = certainty_on_device(value, ctx)
    if name == "to" and not _goes_to_host(call, ctx):
        return None
    if name in ("cpu", "to") and is_from(ctx.kind(value).origin, Provenance.METHOD):
        if not ctx.kind_on_route(value).on_accelerator:
            certainty = None  # it is a tensor, and what is copied down may have been kept there
    if certainty is None and (given := ctx.given_on_route(value)) is not None and is_loss(*given):
        certainty = Confidence.MEDIUM
    if name in ("cpu", "to"):
        # Only a model is moved for good by `vae.cpu()`: of a tensor the result is wanted.
        is_wanted = not isinstance(ctx.tree.parent(call), ast.Expr)
        if certainty is None and is_wanted:
            whole = _as_it_was(value, ctx)
            found = _is_unknown_value(whole, ctx) or (whole is not value and _is_out_of_graph(value, ctx))
            certainty = Confidence.MEDIUM if found or _is_output(ctx.kind(value)) else None
        return Read(value, certainty, copies=True) if certainty is not None else None
    kind = ctx.kind(value)
    # What a model gives may be of many forms, but only a tensor has these methods.
    if certainty is None and kind.tag is Tag.UNKNOWN and kind.place.is_accelerator:
        certainty = Confidence.MEDIUM  # whatever it is, it was moved
    if certainty is None and kind.tag in (Tag.OUTPUT, Tag.BATCH) and kind.place.is_accelerator:
        certainty = None if kind.certainty is Confidence.LOW else Confidence.MEDIUM
    if certainty is None and name == "item" and _may_be_on_device(kind) and is_loss(value, ctx):
        certainty = Confidence.MEDIUM
    also = (Tag.SEQUENCE, Tag.TENSOR) if name == "item" else ()  # no list has an `item`: it is something else here
    if certainty is None and is_unknown_in_step(value, kind, ctx, also):
        certainty = Confidence.MEDIUM
    return None if certainty is None else Read(value, certainty)


def _read_by_type(call: ast.Call, value: ast.expr, ctx: FileFacts) -> Read | None:
    """`x.type(torch.FloatTensor)`: that is the type of the host's tensors."""
    if len(call.args) != 1 or is_from(ctx.kind(value).origin, Provenance.METHOD):
        return None
    given = ctx.kind(call.args[0])
    named = given.qualified if given.tag is Tag.CLASS else getattr(call.args[0], "value", None)
    certainty = certainty_on_device(value, ctx) if named in tensors.LEGACY_DTYPES else None
    return None if certainty is None else Read(value, certainty, copies=True)


def _is_output(kind: Kind) -> bool:
    """Whether a value is what a model on the device gave, of whatever form: only a tensor of it has these methods."""
    return kind.tag is Tag.OUTPUT and kind.place.is_accelerator and kind.certainty is not Confidence.LOW


def is_unknown_in_step(value: ast.expr, kind: Kind, ctx: FileFacts, also: tuple[Tag, ...] = ()) -> bool:
    """Whether nothing is known of what is read in a forward or a step, and nothing speaks for the host: no numpy,
    lengths or tokenizers in it, and a program, or for a step a file, that means to use an accelerator.
    """
    if (kind.known and kind.tag not in (Tag.OUTPUT, *also)) or kind.place is not Place.UNKNOWN:
        return False
    if ctx.inference.is_impossible(value):
        return False
    names = [getattr(part, "id", "") or getattr(part, "attr", "") for part in walk(value)]
    is_called_loss = any("loss" in name.lower() for name in names)
    if not in_forward(value, ctx):
        role = ctx.role(value)
        if role not in _STEP_ROLES or not ((is_called_loss and role == "train") or _means_accelerator(value, ctx)):
            return False
    if any(_speaks_for_host(part, ctx) for part in walk(value) if type(part) is ast.Name):
        return False
    if _holds_part_beside_input(walk(value), ctx):
        return False
    of_host = isinstance(value, ast.Call) and any(_is_host_tensor(item, ctx) for item in value.args)
    # What is computed of an array that nothing has moved is on the host, whatever it is computed with.
    of_host |= kind.origin is not None and kind.origin.name in _OF_ARRAYS
    if of_host or (kind.is_tensor and DEBUGGING_FILE.search(ctx.path)):
        return False
    if not uses_accelerator(ctx) or any(ON_HOST.search(name) for name in names):
        return False
    if is_called_loss:
        return True  # arrays beside it are the labels' and the metrics'
    around = ctx.tree.function_of(value)
    return around is None or not any(speaks_of_arrays(part, ctx) for part in walk(around))


def _is_host_tensor(value: ast.expr, ctx: FileFacts) -> bool:
    return ctx.kind(value).is_tensor and ctx.kind(value).place is Place.HOST


def _speaks_for_host(name: ast.Name, ctx: FileFacts) -> bool:
    return _is_of_dataset(name, ctx) or _was_brought_down(name, ctx) or _was_given_by_name(name, ctx)


def _was_given_by_name(name: ast.Name, ctx: FileFacts) -> bool:
    """`for key, value in kwargs.items()`, where no call is known to give a tensor: meters take numbers as well, and
    most of what they are told is numbers.
    """
    around = ctx.tree.function_of(name)
    given = getattr(getattr(around, "args", None), "kwarg", None)
    if given is None:
        return False
    sources = [item.value for item in ctx.inference.flow.definitions(name) if isinstance(item.node, ast.For)]
    parts = [part for item in sources if item is not None for part in walk(item) if isinstance(part, ast.Name)]
    return any(part.id == given.arg and ctx.kind(part).element is None for part in parts)


def _is_of_dataset(name: ast.Name, ctx: FileFacts) -> bool:
    """`camera = self.train_dataset.cameras[0]`: what a dataset holds is on the host."""
    return any(
        isinstance(part, (ast.Name, ast.Attribute))
        and "dataset" in (getattr(part, "attr", "") or getattr(part, "id", ""))
        for origin in ctx.inference.origins(name)
        for part in walk(origin)
    )


def _was_brought_down(name: ast.Name, ctx: FileFacts) -> bool:
    """`codes = frames[0].cpu()` in one branch, and something unknown in another: nothing says that it is different."""
    return any(
        isinstance(origin, ast.Call) and isinstance(origin.func, ast.Attribute) and origin.func.attr in ("cpu", "numpy")
        for origin in ctx.inference.origins(name)
    )


def _means_accelerator(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the file, or one that leads to it, means to run on an accelerator, or is a library's, or the iteration
    trains a model of such a program.
    """
    if ctx.mentions(*ACCELERATOR_WORDS) or not ctx.program.whole.has_step_loops:
        return True
    if ctx.program.is_run_by_framework(ctx.scope(node), ctx.context(node)):
        return True
    _, route, _ = ctx.heat_and_route(node)
    around = {hop.path for hop in route} | {edge.caller.path for edge in ctx.program.callers(ctx.scope(node))}
    if ctx.program.mentions(ACCELERATOR_WORDS, sorted(around)):
        return True
    return any(isinstance(part, ast.Call) and callee_name(part) in _BACKWARD for part in ctx.walk(region_of(node, ctx)))


def _is_unknown_value(value: ast.expr, ctx: FileFacts) -> bool:
    """Whether nothing is known of what `.cpu()` is called on but that it is no model: then it is a device tensor."""
    kind = ctx.kind(value)
    if kind.known or not uses_accelerator(ctx):
        return False
    root = value
    while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
        root = root.func if isinstance(root, ast.Call) else root.value
    name = ctx.text(value).rpartition(".")[2].lower()
    return isinstance(root, ast.Name) and HOLDS_SEVERAL.search(name) is None


def _is_out_of_graph(value: ast.expr, ctx: FileFacts) -> bool:
    """`loss.detach()`, of which nothing tells but that it is a tensor: what a graph is recorded of is on the device."""
    if not isinstance(value, ast.Call) or callee_name(value) != "detach" or not uses_accelerator(ctx):
        return False
    return ctx.kind(value).is_tensor and ctx.kind(value).place is Place.UNKNOWN


def _as_it_was(value: ast.expr, ctx: FileFacts) -> ast.expr:
    """`loss` of `loss.detach()` in a step of training. What a hook or a forward detaches, it keeps for later."""
    whole = without_reductions(value)
    if "loss" in ctx.text(whole).lower() or (ctx.role(value) == "train" and not in_forward(value, ctx)):
        return whole
    return value


def _may_go_to_host(call: ast.Call, name: str, ctx: FileFacts) -> bool:
    """Whether `.cpu()` or `.to(...)` waits, and names more than a type."""
    waits = keyword(call, "non_blocking")
    if waits is not None and not (isinstance(waits, ast.Constant) and waits.value is False):
        return False
    says_where = bool(call.args) or keyword(call, "device") is not None
    return name == "cpu" or (says_where and not (only_converts(call, ctx) or names_no_device(call, ctx)))


def _goes_to_host_by_default(call: ast.Call, ctx: FileFacts) -> bool:
    """`drawn.to(device=place_of(self.low, self.high))` of what is known to be on the device: to the host, unless a user
    gave tensors for the bounds. What was put where another tensor lies may have come there before.
    """
    if not isinstance(call.func, ast.Attribute) or ctx.kind(call).device is not Device.CPU_OR_GIVEN:
        return False
    moved = ctx.kind(call.func.value)
    return moved.place.is_accelerator and moved.device is not Device.GIVEN


def _goes_to_host(call: ast.Call, ctx: FileFacts) -> bool:
    return (
        any(isinstance(item, ast.Constant) and item.value == "cpu" for item in (*call.args, keyword(call, "device")))
        or ctx.kind(call).place is Place.HOST
        or _goes_to_host_by_default(call, ctx)
    )


def certainty_on_device(node: ast.expr, ctx: FileFacts) -> Confidence | None:
    """How sure it is that `node` is a tensor that lives on an accelerator wherever the program has one; None where it
    is not known to.
    """
    if _counts_of_packing(node, ctx):
        return None
    kind = ctx.kind(node)
    found = kind_on_device(kind, node, ctx)
    if found is not None or kind.place is not Place.UNKNOWN or kind.tag not in (Tag.UNKNOWN, Tag.TENSOR):
        return found
    # One caller may give it on the host, and the one that makes this hot on the device.
    there = ctx.kind_on_route(node)
    if kind.is_tensor and there.tag is Tag.UNKNOWN and there.on_accelerator:
        return Confidence.MEDIUM  # whatever that call moved there is a tensor here
    return min(there.certainty, Confidence.MEDIUM) if there.is_tensor and there.on_accelerator else None


def _counts_of_packing(node: ast.expr, ctx: FileFacts) -> bool:
    """`batch_sizes[0]` of a packed sequence: its counts are on the host, wherever its data are."""
    while isinstance(node, ast.Subscript):
        node = node.value
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name == "batch_sizes" and ctx.mentions("PackedSequence", "pack_padded_sequence", "pack_sequence")


def is_on_device(node: ast.expr, ctx: FileFacts) -> bool:
    return certainty_on_device(node, ctx) is not None


def kind_on_device(kind: Kind, node: ast.expr, ctx: FileFacts) -> Confidence | None:
    """As `certainty_on_device`, of a value of this kind that `node` gives or holds."""
    if kind.tag is not Tag.TENSOR or kind.certainty is Confidence.LOW or kind.device is Device.CPU_OR_GIVEN:
        return None
    if kind.place in (Place.DEVICE, Place.TARGET):
        return kind.certainty
    if kind.place is Place.MODULE:
        return kind.certainty if uses_accelerator(ctx) else None
    # What a module's forward or a training step is handed has been moved before.
    if (
        kind.place is Place.UNKNOWN
        and is_from(kind.origin, Provenance.ANNOTATION, Provenance.USE)
        and _is_handed(node, ctx)
    ):
        return Confidence.MEDIUM
    # What is moved to a place that nobody knows is moved to where the model is.
    computed = is_from(kind.origin, *_COMPUTED)
    if kind.place is Place.UNKNOWN and computed and _is_trained_on(node, ctx):
        return Confidence.MEDIUM
    return None


def _is_trained_on(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether what torch computes of values that nothing is known of belongs to a step of training, to a forward, or to
    the reading of a text: on the device, unless a name in it speaks for the host.
    """
    works = ctx.role(node) in ("train", "texts", "optimizer") or in_forward(node, ctx)
    if not works or not uses_accelerator(ctx):
        return False
    exprs = (node, *ctx.inference.origins(node))
    parts = [part for expr in exprs for part in walk(expr)]
    if _holds_part_beside_input(parts, ctx):
        return False
    plain = {id(part.value) for part in parts if isinstance(part, ast.Attribute) and part.attr in CONSTANTS}
    names = [getattr(part, "id", "") or getattr(part, "attr", "") for part in parts if id(part) not in plain]
    return not any(ON_HOST.search(name) for name in names) and not counts_steps(names, node, ctx)


def counts_steps(names: Iterable[str], node: ast.AST, ctx: FileFacts) -> bool:
    """Whether names speak of the steps that an optimizer has made, which are counted on the host."""
    return ctx.role(node) == "optimizer" and any(OPTIMIZER_STEPS.search(name) for name in names)


def _is_handed(node: ast.expr, ctx: FileFacts) -> bool:
    if _holds_part_beside_input(walk(node), ctx):
        return False
    if ctx.role(node) not in ("train", "batches", "texts") and not in_forward(node, ctx):
        return False  # an optimizer is handed numbers of its own, which it keeps on the host
    _, route, _ = ctx.heat_and_route(node)
    # Pictures and files are made from what was copied to the host.
    return uses_accelerator(ctx) and not any(MAKES_OUTPUT.search(hop.text) for hop in route[1:])


def _holds_part_beside_input(parts: Iterable[ast.AST], ctx: FileFacts) -> bool:
    return any(isinstance(part, ast.Subscript) and _is_beside_input(part.value, ctx) for part in parts)


def _is_beside_input(value: ast.expr, ctx: FileFacts) -> bool:
    """`params` of `(image: Tensor, params: dict[str, Tensor])`: what a mapping brings along with the input was drawn or
    chosen for it, where nothing tells. A mapping alone is the batch, which was moved.
    """
    if not isinstance(value, ast.Name):
        return False
    given = [item.node for item in ctx.inference.flow.definitions(value)]
    function = ctx.tree.function_of(value)
    if function is None or len(given) != 1 or not isinstance(given[0], ast.arg):
        return False
    if given[0].annotation is None or not MAPPING_OF_TENSORS.search(ctx.text(given[0].annotation)):
        return False
    others = (item.annotation for item in (*function.args.posonlyargs, *function.args.args))
    return any(item is not None and TENSOR_TYPE.search(ctx.text(item)) for item in others)


def _may_be_on_device(kind: Kind) -> bool:
    return not kind.known or (kind.tag is Tag.TENSOR and kind.place is Place.UNKNOWN)
