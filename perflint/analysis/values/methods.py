"""What the methods of known kinds give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from perflint.analysis.values import dtypes, library, pictures, shapes, transfers
from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.kind import (
    ARRAY,
    NEVER,
    NONE,
    NUMBER,
    SHAPE,
    STRING,
    UNKNOWN,
    Device,
    Kind,
    Place,
    Tag,
    join,
    mapping,
    same_place,
    sequence,
    tensor,
)
from perflint.analysis.values.operations import iterate, part_of
from perflint.analysis.values.origin import Origin, Provenance, is_from
from perflint.analysis.values.ranks import SCALAR
from perflint.analysis.values.scattering import is_scattering
from perflint.finding import Confidence
from perflint.torch_model import arrays, frameworks, modules, tensors, wrappers
from perflint.torch_model.names import canonical, last

_MOVES = tensors.TO_DEVICE_METHODS | {"to", "cpu", "pin_memory"}
#: What is called of something that was moved, whatever it is, is called of a tensor by these.
_OF_TENSORS = (tensors.FRESH_METHODS | tensors.VIEW_METHODS) - {"values", "indices"}
_ARRAY_REDUCTIONS = frozenset("mean sum std var max min prod any all argmax argmin ptp".split())
_OF_KEYS = frozenset(dir(str))
_VIEWS = frozenset({"items", "keys", "values", "get", "pop", "copy", "setdefault", "update", "popitem"})


class _MethodCall(NamedTuple):
    """`receiver.name(arguments)`. `written` is the text of the first argument."""

    receiver: Kind
    name: str
    arguments: Arguments
    written: str

    def on(self, receiver: Kind) -> _MethodCall:
        return self._replace(receiver=receiver)


def method(receiver: Kind, name: str, arguments: Arguments, written: str = "") -> Kind:
    """The result of `receiver.name(...)`. `written` is the text of the first argument."""
    if receiver.tag is Tag.NUMBER:
        return NUMBER
    if receiver.tag is Tag.TENSOR and receiver.certainty is Confidence.LOW and name not in _OF_KEYS:
        receiver = receiver.but(certainty=Confidence.MEDIUM)  # one of a batch may be a key, which has no such method
    call = _MethodCall(receiver, name, arguments, written)
    return _METHODS.get(receiver.tag, _unknown)(call)


def called(receiver: Kind, arguments: Arguments) -> Kind:
    """The result of calling an instance of a library class."""
    if receiver.tag is Tag.MODULE:
        return module_result(receiver, arguments)
    if receiver.tag is Tag.TOKENIZER:
        return _tokenized(arguments)
    if receiver.tag is Tag.INSTANCE and not receiver.path:
        return pictures.transformed(receiver, arguments)
    if (
        receiver.tag is Tag.UNKNOWN
        and receiver.place is not Place.UNKNOWN
        and is_from(receiver.origin, Provenance.MOVE)
    ):
        return module_result(receiver.but(tag=Tag.MODULE), arguments)  # nothing else is moved and then called
    return NEVER if receiver.tag is Tag.NEVER else UNKNOWN


def module_result(module: Kind, arguments: Arguments) -> Kind:
    """What a library's module, or one that is not known, gives for these inputs."""
    inputs = list(arguments.kinds())
    place, device = result_place(module, inputs)
    name = canonical(module.qualified)
    given = (kind.origin for kind in inputs if kind.holds_tensors and kind.origin)
    origin = next(given, Origin(Provenance.MODULE))
    certainty = library.certainty_of(inputs, place)
    single = tensor(place, device=device, fresh=True, requires_grad=True, certainty=certainty, origin=origin)
    if modules.is_loss_module(name):
        # `reduction="none"` at construction is not kept with the kind.
        return single.but(rank=SCALAR)
    if name in modules.TUPLE_MODULES:
        return sequence(items=(single, single))
    if modules.is_torch_module(name) and name not in modules.CONTAINER_MODULES:
        return single
    return Kind(Tag.OUTPUT, place, device=device, requires_grad=True, certainty=Confidence.MEDIUM, origin=origin)


#: Modules that take their inputs to a device where there is one.
_TAKING = (Provenance.MOVE, Provenance.SCATTERED)


def result_place(module: Kind, inputs: list[Kind]) -> tuple[Place, Device | None]:
    """Where a module's results are: with its parameters, or with its inputs where that is all that is known."""
    if module.place.is_accelerator and module.place is not Place.MODULE:
        return module.place, module.device
    place, device = same_place(inputs)
    if place is Place.UNKNOWN:
        given = {kind.element.place for kind in inputs if kind.tag is Tag.MAPPING and kind.element is not None}
        place = given.pop() if len(given) == 1 else place
    if place is Place.UNKNOWN or (place is Place.HOST and module.place is Place.MODULE):
        return module.place, module.device
    if (
        place is Place.HOST
        and module.place is Place.UNKNOWN
        and is_from(module.origin, Provenance.MOVE, Provenance.SCATTERED)
    ):
        # `if args.cuda: net = net.cuda()`: where there is a device, it is the module that takes its inputs there.
        return Place.TARGET, Device.MAYBE
    return place, device


def _tensor(call: _MethodCall) -> Kind:
    if call.name in _MOVES:
        return transfers.transfer(call.receiver, call.name, call.arguments, call.written)
    if call.name in ("item", "equal", "allclose", "is_nonzero"):
        return NUMBER
    if call.name == "numpy":
        return ARRAY
    if call.name == "tolist":
        return NUMBER if call.receiver.scalar else sequence(UNKNOWN)
    if call.name in ("size", "stride"):
        return NUMBER if len(call.arguments) or call.arguments.keywords else SHAPE
    if call.name in tensors.NUMBER_METHODS:
        return NUMBER
    if call.name == "backward":
        return NONE
    if call.name in tensors.NEW_METHODS:
        return _new(call.receiver, call.name, call.arguments)
    if call.name in tensors.DIMENSIONED:
        return _dimensioned(call.receiver, call.name, call.arguments)
    if call.name == "type" and not len(call.arguments) and not call.arguments.keywords:
        return STRING.but(device=transfers.device_at(call.receiver))  # the name of the type, which says where it is
    if call.name in ("type", "type_as"):
        return transfers.cast_like(_viewed(call), call.arguments)
    if call.name in tensors.VIEW_METHODS or call.name in tensors.CAST_METHODS:
        return _viewed(call)
    if call.name.endswith("_") and not call.name.startswith("_"):
        return call.receiver.but(fresh=False)
    if call.name == "split" and isinstance(call.arguments.constant(0), str):
        return sequence(STRING)  # what is split at a text is a text
    if call.name in tensors.TUPLE_METHODS:
        return shapes.several(call.name, _fresh(call.receiver, call.name, call.arguments))
    if call.name in tensors.FRESH_METHODS:
        return shapes.positions(call.name, _fresh(call.receiver, call.name, call.arguments), call.arguments)
    if call.name in ("register_hook", "register_post_accumulate_grad_hook"):
        return Kind(Tag.INSTANCE, qualified="torch.utils.hooks.RemovableHandle")
    return UNKNOWN


def _viewed(call: _MethodCall) -> Kind:
    receiver, name = call.receiver, call.name
    grad = False if name in ("detach", "detach_") else True if name == "requires_grad_" else receiver.requires_grad
    fresh = receiver.fresh if name != "detach" else False
    rank = shapes.of_method(name, receiver.rank, call.arguments)
    dtype = dtypes.of_operation(name, (receiver.dtype,))
    return receiver.but(rank=rank, dtype=dtype, requires_grad=grad, fresh=fresh, optional=False)


def _fresh(receiver: Kind, name: str, arguments: Arguments) -> Kind:
    place, device = same_place([receiver, *arguments.kinds()])
    others = [receiver, *(kind for kind in arguments.kinds() if kind.tag is not Tag.NUMBER)]
    dtype = dtypes.of_operation(name, (kind.dtype for kind in others if kind.is_tensor or kind is receiver))
    return tensor(
        place,
        device=device,
        rank=shapes.of_method(name, receiver.rank, arguments),
        dtype=dtype,
        fresh=True,
        requires_grad=receiver.requires_grad,
        certainty=receiver.certainty,
        origin=receiver.origin,
    )


def _new(receiver: Kind, name: str, arguments: Arguments) -> Kind:
    rank = shapes.of_new(name, arguments)
    dtype = shapes.given_dtype(arguments) if arguments.has("dtype") else receiver.dtype
    if arguments.has("device"):
        device = transfers.device_of(arguments.at(-1, "device"))
        return tensor(device.place, device=device, rank=rank, fresh=True, dtype=dtype)
    made = tensor(receiver.place, device=receiver.device, rank=rank, fresh=True, certainty=receiver.certainty)
    return made.but(origin=receiver.origin, dtype=dtype)


def _dimensioned(receiver: Kind, name: str, arguments: Arguments) -> Kind:
    made = _fresh(receiver, name, arguments)
    if arguments.has("dim") or len(arguments):
        second = arguments.at(0, "dim")
        if second is not None and second.holds_tensors:
            return made
        return shapes.values_and_indices(made)
    return made


def _structure(call: _MethodCall) -> Kind:
    """Batches and model outputs: a dict, a tuple, an object with fields, or a tensor."""
    if call.name in _MOVES:
        return transfers.transfer(call.receiver, call.name, call.arguments, call.written)
    part = part_of(call.receiver)
    if call.name in _VIEWS:
        return _mapping(call.on(mapping(part).but(items=call.receiver.items)))
    if call.name == "to_tuple":
        return sequence(part)
    found = _tensor(call.on(part))
    return found.at_most(Confidence.MEDIUM) if found.known else UNKNOWN


def _mapping(call: _MethodCall) -> Kind:
    value = call.receiver.element or UNKNOWN
    if call.name == "items":
        return sequence(sequence(items=(STRING, value)))
    if call.name == "values":
        return sequence(value)
    if call.name == "keys":
        return sequence(STRING)
    if call.name in ("get", "pop", "setdefault"):
        key = call.arguments.constant(0)
        found = call.receiver.item(key) if isinstance(key, str) else None
        default = call.arguments.at(1)
        result = found or value
        return join((result, default)) if default is not None and default.known else result
    if call.name == "copy":
        return call.receiver.but(fresh=True)
    if call.name == "update":
        return NONE
    if call.name in _MOVES and call.receiver.tag is Tag.MAPPING:
        return transfers.transfer(call.receiver, call.name, call.arguments, call.written)
    return UNKNOWN


def _sequence(call: _MethodCall) -> Kind:
    if call.name in ("append", "extend", "insert", "sort", "reverse", "remove", "clear", "add"):
        return NONE
    if call.name in ("pop", "popleft"):
        return iterate(call.receiver)
    if call.name in ("index", "count"):
        return NUMBER
    if call.name == "copy":
        return call.receiver.but(fresh=True)
    return UNKNOWN


def _module(call: _MethodCall) -> Kind:
    if call.name in ("to", "cuda", "cpu", "xpu"):
        moved = transfers.transfer(call.receiver, call.name, call.arguments, call.written).but(fresh=False)
        return moved.but(origin=call.receiver.origin) if is_scattering(call.receiver) else moved
    if call.name in wrappers.MODULE_CHAIN:
        return call.receiver
    if call.name == "forward":
        return module_result(call.receiver, call.arguments)
    place = call.receiver.place
    held = tensor(place, device=call.receiver.device, requires_grad=True, origin=Origin(Provenance.PARAMETER))
    if call.name in ("items", "values") and call.receiver.element is not None:
        part = iterate(call.receiver)
        return sequence(part if call.name == "values" else sequence(items=(STRING, part)))
    if call.name == "state_dict":
        return Kind(
            Tag.STATE_DICT, place, device=call.receiver.device, element=held.but(requires_grad=False), fresh=True
        )
    if call.name in modules.TENSOR_ITERATORS:
        return sequence(held if call.name == "parameters" else held.but(requires_grad=None))
    if call.name in modules.NAMED_TENSOR_ITERATORS:
        return sequence(sequence(items=(STRING, held)))
    inner = Kind(Tag.MODULE, place, device=call.receiver.device, certainty=Confidence.MEDIUM)
    if call.name in modules.MODULE_ITERATORS:
        return sequence(inner)
    if call.name in modules.NAMED_MODULE_ITERATORS:
        return sequence(sequence(items=(STRING, inner)))
    if call.name in modules.MODULE_METHODS:
        return inner
    if call.name in modules.GENERATE_METHODS:
        made = result_place(call.receiver, list(call.arguments.kinds()))
        return tensor(
            made[0], device=made[1], fresh=True, certainty=Confidence.MEDIUM, origin=Origin(Provenance.GENERATED)
        )
    if call.name in ("zero_grad", "add_module", "register_module"):
        return NONE
    if call.name.startswith("register_") and call.name.endswith("_hook"):
        return Kind(Tag.INSTANCE, qualified="torch.utils.hooks.RemovableHandle")
    return UNKNOWN


def _optimizer(call: _MethodCall) -> Kind:
    if call.name == "state_dict":
        return Kind(Tag.OPTIMIZER_STATE, fresh=True)
    return NONE if call.name in ("zero_grad", "add_param_group") else UNKNOWN


def _scaler(call: _MethodCall) -> Kind:
    if call.name == "scale":
        inner = call.arguments.at(0) or UNKNOWN
        return inner.but(fresh=True) if inner.holds_tensors else tensor(inner.place, rank=SCALAR, fresh=True)
    return NUMBER if call.name in ("get_scale", "get_growth_factor", "is_enabled") else UNKNOWN


def _scheduler(call: _MethodCall) -> Kind:
    return sequence(NUMBER) if call.name == "get_last_lr" else UNKNOWN


def _loader(call: _MethodCall) -> Kind:
    return NUMBER if call.name == "__len__" else call.receiver if call.name == "__iter__" else UNKNOWN


def _array(call: _MethodCall) -> Kind:
    if call.name == "item":
        return NUMBER
    if call.name == "tolist":
        return sequence(UNKNOWN)
    if call.name in _ARRAY_REDUCTIONS and not len(call.arguments) and not call.arguments.keywords:
        return NUMBER
    return ARRAY


def _string(call: _MethodCall) -> Kind:
    if call.name == "format" and call.receiver.device is not None:
        return STRING.but(device=call.receiver.device)  # `"cuda:{}".format(rank)`
    if call.name in arrays.STRING_METHODS:
        return STRING
    if call.name in arrays.STRING_LIST_METHODS:
        return sequence(STRING)
    return NUMBER if call.name in arrays.NUMBER_METHODS else UNKNOWN


def _tokenizer(call: _MethodCall) -> Kind:
    if call.name in ("decode", "convert_ids_to_tokens", "apply_chat_template") and not call.arguments.has(
        "return_tensors"
    ):
        return STRING
    if call.name == "batch_decode":
        return sequence(STRING)
    if call.name in ("encode", "apply_chat_template", "convert_tokens_to_ids"):
        return tensor(Place.HOST) if call.arguments.has("return_tensors") else sequence(NUMBER)
    if call.name in ("encode_plus", "batch_encode_plus", "pad", "__call__"):
        return _tokenized(call.arguments)
    return UNKNOWN


def promised(arguments: Arguments, unknown: Kind) -> Kind:
    """What something unknown gives that is asked for `return_tensors="pt"`, as tokenizers and processors are."""
    if arguments.constant(-1, "return_tensors") == "pt" and not arguments.has("device"):
        return _tokenized(arguments).at_most(Confidence.MEDIUM)
    return unknown


def _tokenized(arguments: Arguments) -> Kind:
    if arguments.constant(-1, "return_tensors") == "pt":
        return Kind(Tag.BATCH, Place.HOST, certainty=Confidence.HIGH, origin=Origin(Provenance.TOKENIZER), fresh=True)
    return mapping(sequence(NUMBER)) if not arguments.has("return_tensors") and arguments.exact else UNKNOWN


def _instance(call: _MethodCall) -> Kind:
    qualified = call.receiver.qualified
    if qualified.startswith(modules.DISTRIBUTION_PACKAGES):
        made = tensor(
            call.receiver.place,
            device=call.receiver.device,
            fresh=True,
            origin=Origin(Provenance.DISTRIBUTION, last(qualified)),
        )
        return NUMBER if call.name == "has_rsample" else made
    if qualified in arrays.GENERATORS and call.name in arrays.DRAWN_BY:
        return library.call(f"numpy.random.{arrays.DRAWN_BY[call.name]}", call.arguments)
    if qualified in frameworks.PREPARERS:
        found = _preparer(call.name, call.arguments)
        if found is not None:
            return found
    return _unknown(call.on(UNKNOWN))


def _preparer(name: str, arguments: Arguments) -> Kind | None:
    if name in wrappers.PREPARE_METHODS:
        return prepared(arguments)
    if name in ("gather", "gather_for_metrics", "reduce", "pad_across_processes", *wrappers.UNWRAP_METHODS):
        return arguments.at(0) or UNKNOWN
    if name in ("backward", "print", "wait_for_everyone", "log", "clip_grad_value_"):
        return NONE
    return tensor(Place.TARGET, rank=SCALAR, fresh=True) if name == "clip_grad_norm_" else None


def prepared(arguments: Arguments) -> Kind:
    """`accelerator.prepare(...)`: modules and batches are on the device afterwards."""
    made = []
    for thunk in arguments.positional:
        kind = thunk()
        if kind.tag is Tag.LOADER:
            kind = library.transfers_of_loader(kind, "prepare")
        elif kind.tag is Tag.MODULE:
            kind = transfers.moved(kind, Device.MAYBE, Origin(Provenance.PREPARED, "prepare"))
        made.append(kind)
    if len(made) == 1 and arguments.exact:
        return made[0]
    return sequence(items=made) if arguments.exact else UNKNOWN


def _unknown(call: _MethodCall) -> Kind:
    """A method of something that is not known: some methods tell what their receiver is."""
    if call.receiver.tag is Tag.NEVER:
        return NEVER
    if call.name in ("to", *tensors.TO_DEVICE_METHODS):
        return (
            transfers.transfer(call.receiver, call.name, call.arguments, call.written)
            if call.receiver.tag is Tag.UNKNOWN
            else UNKNOWN
        )
    if call.name == "cpu":
        return UNKNOWN.but(place=Place.HOST)
    if call.name in wrappers.PREPARE_METHODS and any(
        thunk().tag in (Tag.LOADER, Tag.MODULE, Tag.OPTIMIZER) for thunk in call.arguments.positional
    ):
        return prepared(call.arguments)
    if call.name in wrappers.UNWRAP_METHODS:
        first = call.arguments.at(0)
        return first if first is not None and first.tag is Tag.MODULE else UNKNOWN
    if call.name in wrappers.MOVING_METHODS:
        return _moved_batch(call)
    if call.name in ("gather_for_metrics", "pad_across_processes") and len(call.arguments):
        return call.arguments.at(0) or UNKNOWN
    placed = call.receiver.tag is Tag.UNKNOWN and call.receiver.place is not Place.UNKNOWN
    if call.name in tensors.TELLING_METHODS or (placed and call.name in _OF_TENSORS):
        origin = call.receiver.origin or Origin(Provenance.METHOD, call.name)
        guess = tensor(call.receiver.place, device=call.receiver.device, certainty=Confidence.MEDIUM, origin=origin)
        return _tensor(call.on(guess)).at_most(Confidence.MEDIUM)
    is_mode = call.name == "eval" and call.arguments.exact and not len(call.arguments)
    if (is_mode or call.name in modules.MODULE_METHODS) and call.receiver.tag in (Tag.UNKNOWN, Tag.INSTANCE):
        # `model.cuda().eval()` is where the first of the calls put it.
        place, device = call.receiver.place, call.receiver.device
        return Kind(Tag.MODULE, place, device=device, certainty=Confidence.MEDIUM, origin=call.receiver.origin)
    if call.name in ("item", "numel", "dim", "nelement"):
        return NUMBER
    if call.name == "numpy":
        return ARRAY.at_most(Confidence.MEDIUM)
    if call.name == "size" and len(call.arguments) < 2:
        return (NUMBER if len(call.arguments) else SHAPE).at_most(Confidence.MEDIUM)
    if call.name in ("modules", "named_modules") and not len(call.arguments):
        return _module(call.on(Kind(Tag.MODULE, call.receiver.place, device=call.receiver.device)))
    if call.name == "parameters" and not len(call.arguments):
        return sequence(tensor(requires_grad=True, certainty=Confidence.MEDIUM))
    if call.name == "named_parameters":
        return sequence(sequence(items=(STRING, tensor(requires_grad=True, certainty=Confidence.MEDIUM))))
    if call.name in ("strip", "lower", "upper", "startswith", "endswith", "splitlines"):
        return _string(call.on(STRING))
    return UNKNOWN


def _moved_batch(call: _MethodCall) -> Kind:
    first = call.arguments.at(0) or UNKNOWN
    given = first if first.known else Kind(Tag.BATCH, certainty=Confidence.MEDIUM)
    return transfers.moved(given, Device.MAYBE, Origin(Provenance.MOVE, call.name)).at_most(Confidence.MEDIUM)


_Handler = Callable[[_MethodCall], Kind]
_METHODS: Mapping[Tag, _Handler] = {
    Tag.TENSOR: _tensor,
    Tag.BATCH: _structure,
    Tag.OUTPUT: _structure,
    Tag.MAPPING: _mapping,
    Tag.STATE_DICT: _mapping,
    Tag.SEQUENCE: _sequence,
    Tag.MODULE: _module,
    Tag.OPTIMIZER: _optimizer,
    Tag.SCALER: _scaler,
    Tag.SCHEDULER: _scheduler,
    Tag.LOADER: _loader,
    Tag.ARRAY: _array,
    Tag.STRING: _string,
    Tag.TOKENIZER: _tokenizer,
    Tag.INSTANCE: _instance,
}
