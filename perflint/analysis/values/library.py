"""What calling a library's function or class gives, by its dotted name and the kinds of its arguments."""

from __future__ import annotations

from perflint.analysis.call_graph.process_defaults import BY_TYPE
from perflint.analysis.values import dtypes, pictures, records, shapes, stand_ins, transfers
from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.dtypes import Dtype
from perflint.analysis.values.kind import (
    ARRAY,
    DTYPE,
    NONE,
    NUMBER,
    STRING,
    UNKNOWN,
    Device,
    Kind,
    Place,
    Tag,
    join,
    leaf_place,
    mapping,
    same_place,
    sequence,
    tensor,
)
from perflint.analysis.values.operations import iterate, part_of, rank_of
from perflint.analysis.values.origin import Origin, Provenance
from perflint.analysis.values.placing import held_by_module
from perflint.analysis.values.ranks import broadcast
from perflint.analysis.values.scattering import handed_back
from perflint.finding import Confidence
from perflint.torch_model import arrays, devices, graphs, loaders, modules, tensors, wrappers
from perflint.torch_model.distributed import COLLECTIVES
from perflint.torch_model.names import canonical, last, within

_VIEW_FUNCTIONS = tensors.VIEW_METHODS
_CONVERSIONS = {"builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset", "collections.deque"}
_MAPPINGS = {"collections.OrderedDict", "collections.defaultdict"}
_CONVERTED = {"builtins.min", "builtins.max", "builtins.sum", "builtins.abs"}

_PACKING = within("torch.nn.utils", "pack_padded_sequence pack_sequence")
_PACKED = "torch.nn.utils.rnn.PackedSequence"
_DTYPES = frozenset(
    "float16 float32 float64 bfloat16 half float double int8 int16 int32 int64 uint8 int long short bool complex64 "
    "complex128 cfloat float8_e4m3fn float8_e5m2 uint16 uint32 uint64".split()
)


def named(dotted: str) -> Kind:
    """A library's function, class, module or constant."""
    name = canonical(dotted)
    short = last(name)
    if name.startswith("torch.") and short in _DTYPES and name.count(".") == 1:
        return DTYPE.but(qualified=name, dtype=dtypes.named(name))
    if name in ("math.pi", "math.inf", "math.nan", "math.e", "numpy.pi", "numpy.inf", "numpy.nan"):
        return NUMBER
    return Kind(Tag.CLASS if short[:1].isupper() else Tag.FUNCTION, qualified=name)


def call(dotted: str, arguments: Arguments, default: Kind | None = None) -> Kind:
    """The result of calling the library thing `dotted`. `default` is the device that new tensors are made on where
    `torch.device` is entered or a default device is set, None for the host.
    """
    name = canonical(dotted)
    if name in wrappers.IDENTITIES:
        return handed_back(name, arguments)
    if name in wrappers.HANDED_BACK:
        return _handed_in_a_tuple(name, arguments)
    if name.startswith("torch."):
        if (found := _torch(name, arguments, default)) is not None:
            return found
    if name.startswith("builtins."):
        return _builtin(name, arguments)
    if name in tensors.FUNCTIONS:
        return _result(name, arguments)
    if name in graphs.SEVERAL or name in graphs.OF_EDGES:
        return _of_graph(name, arguments)
    return _other(name, arguments)


def _torch(name: str, arguments: Arguments, default: Kind | None) -> Kind | None:
    if (found := _made(name, arguments, default)) is not None:
        return found
    if name in tensors.NUMBER_FUNCTIONS:
        return NUMBER
    if name in stand_ins.KNOWN:
        return stand_ins.called(name)
    if name == "torch.device":
        return transfers.make_device(arguments)
    if name in ("torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.UninitializedParameter"):
        inner = arguments.at(0) or tensor()
        source = Provenance.BUFFER if name == "torch.nn.Buffer" else Provenance.PARAMETER
        made = tensor(inner.place, device=inner.device, rank=inner.rank, dtype=inner.dtype)
        return made.but(requires_grad=source is Provenance.PARAMETER, origin=Origin(source))
    short = name.removeprefix("torch.")
    if short in tensors.DIMENSIONED:
        return _dimensioned(name, arguments)
    if short == "where":
        made = _result(name, arguments)
        return sequence(made.but(rank=1, dtype=Dtype.INT)) if len(arguments) == 1 else made
    if short == "nonzero":
        made = _result(name, arguments)
        return sequence(made.but(rank=1)) if arguments.is_true("as_tuple") else made
    if short in ("unique", "unique_consecutive"):
        return shapes.unique(_result(name, arguments), arguments)
    if name in _PACKING:
        first = arguments.at(0, "input" if name.endswith("_padded_sequence") else "sequences") or UNKNOWN
        place, device = same_place([first.element if first.tag is Tag.SEQUENCE and first.element else first])
        return Kind(Tag.INSTANCE, place, device=device, qualified=_PACKED)
    if name in tensors.TUPLE_FUNCTIONS:
        made = _result(name, arguments)
        return shapes.several(short, made.but(rank=shapes.of_grid(arguments)) if short == "meshgrid" else made)
    if last(name).startswith(("has_torch_function", "handle_torch_function")) or "._" in name:
        return None  # torch.nn.functional has them at hand too, and `_Reduction.get_enum`
    if name in tensors.FUNCTIONS or (name.startswith(tensors.FUNCTIONAL_MODULES) and last(name)[:1].islower()):
        return _result(name, arguments)
    if name in COLLECTIVES:
        return NONE
    if name.startswith(modules.DISTRIBUTION_PACKAGES):
        return distribution(Kind(Tag.INSTANCE, qualified=name), arguments)
    return Kind(Tag.INSTANCE, qualified=name) if name in ("torch.Generator", "torch.cuda.Generator") else None


def distribution(made: Kind, arguments: Arguments) -> Kind:
    """A distribution, which draws where its parameters are."""
    kinds = list(arguments.kinds())
    place, device = same_place(kinds)
    if kinds and arguments.exact and all(kind.tag is Tag.NUMBER for kind in kinds):
        place = Place.HOST  # torch makes tensors of numbers, where it makes them unless told otherwise
    return made.but(place=place, device=device)


def _made(name: str, arguments: Arguments, default: Kind | None) -> Kind | None:
    """A tensor that comes into being."""
    made = Origin(Provenance.CONSTRUCTOR, name)
    if name in tensors.HOST_CONSTRUCTORS:
        dtype = dtypes.named(tensors.LEGACY_DTYPES.get(name, ""))
        fresh = name not in ("torch.from_numpy", "torch.frombuffer")
        device = default.device if default and default.qualified == BY_TYPE and name == tensors.DEFAULT_TYPE else None
        return tensor(device.place if device else Place.HOST, device=device, fresh=fresh, dtype=dtype, origin=made)
    if name in tensors.DEVICE_CONSTRUCTORS:
        return tensor(Place.DEVICE, device=Device.CUDA, fresh=True, dtype=dtypes.named(name), origin=made)
    if name in tensors.CONSTRUCTORS:
        place, device = _place_of_new(arguments, default)
        if name in tensors.SPARSE_CONSTRUCTORS and not arguments.has("device"):
            given = [kind for kind in arguments.kinds() if kind.holds_tensors or not kind.known]
            place, device = same_place(given) if given else (place, device)  # where the values are
        if name in ("torch.tensor", "torch.as_tensor", "torch.asarray") and not arguments.has("device"):
            source = arguments.at(0)
            if source is not None and source.tag is Tag.TENSOR:
                place, device = source.place, source.device  # a copy is where the tensor is
                made = made if name == "torch.tensor" else source.origin or made  # it is the tensor that it was
        return tensor(
            place,
            device=device,
            fresh=name not in ("torch.as_tensor", "torch.asarray"),
            rank=shapes.of_constructor(name, arguments),
            dtype=shapes.dtype_of_constructor(name, arguments),
            pinned=arguments.is_true("pin_memory"),
            requires_grad=True if arguments.is_true("requires_grad") else None,
            origin=made,
        )
    if name in tensors.LIKE_CONSTRUCTORS:
        source = arguments.at(0) or UNKNOWN
        place, device = (
            _place_of_new(arguments, default) if arguments.has("device") else (leaf_place(source), source.device)
        )
        dtype = shapes.given_dtype(arguments) if arguments.has("dtype") else source.dtype
        return tensor(
            place, device=device, fresh=True, rank=source.rank, dtype=dtype, origin=Origin(Provenance.LIKE, name)
        )
    return None


def _place_of_new(arguments: Arguments, default: Kind | None) -> tuple[Place, Device | None]:
    if arguments.has("device"):
        given = arguments.at(-1, "device")
        if given is not None and given.tag is Tag.NONE:
            return Place.HOST, None
        device = transfers.device_of(given)
        return device.place, device
    if default is not None:
        return transfers.device_of(default).place, default.device
    # An unpacked `**factory_kwargs` may hold a device.
    return (Place.HOST, None) if arguments.named else (Place.UNKNOWN, None)


def _tensors_in(arguments: Arguments) -> list[Kind]:
    """Tensors given directly or in a list: `torch.cat([a, b])`."""
    found = []
    for kind in arguments.kinds():
        if kind.tag is Tag.SEQUENCE and kind.items:
            found += [item for _, item in kind.items]
        elif kind.tag is Tag.SEQUENCE and kind.element is not None:
            found.append(kind.element)
        else:
            found.append(kind)
    return found


def _result(name: str, arguments: Arguments) -> Kind:
    short = last(name)
    given = _tensors_in(arguments)
    numbers = [kind for kind in given if kind.tag is not Tag.STRING]  # `rounding_mode="trunc"`
    if any(kind.tag is Tag.NEVER for kind in given):
        given = [kind for kind in given if kind.tag is not Tag.NEVER]
    place, device = same_place(given)
    if numbers and arguments.exact and name != "torch.where" and all(kind.tag is Tag.NUMBER for kind in numbers):
        place = Place.HOST  # `torch.div(size, 2)`: numbers become tensors of the host
    holders = [kind for kind in given if kind.holds_tensors]
    rank = shapes.of_function(name, arguments, given)
    dtype = dtypes.of_operation(short, (kind.dtype for kind in given if kind.tag is not Tag.NUMBER))
    grad = True if any(kind.requires_grad for kind in holders) else None
    origin = next(
        (kind.origin for kind in holders if kind.place is place and kind.origin), Origin(Provenance.FUNCTION, name)
    )
    fresh = short not in _VIEW_FUNCTIONS and short not in tensors.CAST_METHODS
    certainty = certainty_of(holders, place)
    made = tensor(place, device=device, fresh=fresh, requires_grad=grad, certainty=certainty, origin=origin)
    return made.but(rank=rank, dtype=dtype)


def _of_graph(name: str, arguments: Arguments) -> Kind:
    """What a function of a library for graphs gives, part by part: of `coalesce(edge_index)` the edges alone."""
    made = _result(name, arguments).but(rank=None, dtype=None)
    types = graphs.SEVERAL.get(name) or (("torch.long", "") if arguments.at(1, "edge_attr") is not None else ())
    if not types:
        return made.but(dtype=Dtype.INT)
    return sequence(items=[made.but(dtype=dtypes.named(item) if item else None) for item in types])


def certainty_of(inputs: list[Kind], place: Place) -> Confidence:
    """How sure the place of a result is: as sure as that of its inputs. That it is a tensor is certain."""
    if place is Place.UNKNOWN:
        return Confidence.HIGH
    # Something unknown that was moved is on the device all the same; what it is does not matter here.
    given = (kind.certainty if kind.known else Confidence.MEDIUM for kind in inputs if kind.place is place)
    return max(given, default=Confidence.HIGH)


def _dimensioned(name: str, arguments: Arguments) -> Kind:
    """`torch.max(x)` is one number, `torch.max(x, dim)` values and indices, `torch.max(a, b)` elementwise."""
    made = _result(name, arguments)
    second = arguments.at(1, "dim")
    if arguments.has("dim") or (second is not None and second.tag is Tag.NUMBER):
        return shapes.values_and_indices(made)
    if second is not None and not second.holds_tensors:
        return UNKNOWN
    return made


def _builtin(name: str, arguments: Arguments) -> Kind:
    short = name.removeprefix("builtins.")
    wrapper = loaders.wrapper_of(name)
    if wrapper is not None:
        return _wrapped(wrapper, arguments)
    first = arguments.at(0)
    if short == "range":
        return sequence(NUMBER)
    if short == "next":
        return iterate(first) if first is not None else UNKNOWN
    if name == "builtins.tuple" and first is not None and first.tag is Tag.SEQUENCE and first.items:
        return first.but(qualified="", fresh=True)
    if name in _CONVERSIONS:
        return sequence(iterate(first), qualified="") if first is not None else sequence(qualified="empty")
    if short == "dict":
        return _dict(arguments)
    if name in _CONVERTED:
        return _reduced(short, arguments)
    if short == "map":
        return sequence(UNKNOWN)
    if short in ("round", "divmod", "pow") and first is not None and first.holds_tensors:
        return _result(f"torch.{short}", arguments)
    if name in arrays.NUMBER_FUNCTIONS:
        return NUMBER
    if name in arrays.STRING_FUNCTIONS:
        return STRING
    if short == "print":
        return NONE
    return UNKNOWN


def _reduced(short: str, arguments: Arguments) -> Kind:
    """`sum(losses)`, `max(a, b)`, `abs(x)`."""
    first = arguments.at(0)
    if first is None:
        return UNKNOWN
    if short == "abs":
        return first if first.tag is not Tag.TENSOR else first.but(fresh=True)
    kinds = list(arguments.kinds()) if len(arguments) > 1 and short != "sum" else [iterate(first)]
    if any(kind.holds_tensors for kind in kinds):
        place, device = same_place(kinds)
        rank = broadcast(rank_of(kind) for kind in kinds)
        return tensor(place, device=device, rank=rank, fresh=short == "sum", certainty=Confidence.MEDIUM)
    found = join(kinds)
    return found if found.known else UNKNOWN


def _dict(arguments: Arguments) -> Kind:
    first = arguments.at(0)
    if first is not None:
        if first.tag in (Tag.MAPPING, Tag.STATE_DICT, Tag.BATCH, Tag.OUTPUT):
            return first.but(fresh=True)
        pair = iterate(first)
        value = pair.item(1) if pair.tag is Tag.SEQUENCE else None
        return mapping(value)
    return mapping(items=((name, thunk()) for name, thunk in arguments.keywords.items()))


def _wrapped(wrapper: loaders.Wrapper, arguments: Arguments) -> Kind:
    inner = arguments.at(wrapper.argument, "iterable")
    if wrapper.shape == "counted":
        return sequence(sequence(items=(NUMBER, iterate(inner) if inner is not None else UNKNOWN)))
    if wrapper.shape == "zipped":
        parts = [iterate(thunk()) for thunk in arguments.positional]
        return sequence(sequence(items=parts)) if arguments.exact and parts else sequence(UNKNOWN)
    if inner is None:
        return UNKNOWN
    if wrapper.shape == "chunk":
        return sequence(sequence(iterate(inner)))
    if inner.tag in (Tag.LOADER, Tag.SEQUENCE):
        return inner
    if inner.tag is Tag.UNKNOWN:
        return UNKNOWN
    return sequence(iterate(inner))


def _other(name: str, arguments: Arguments) -> Kind:
    if name in tensors.TRANSFER_FUNCTIONS:
        value, device = tensors.TRANSFER_FUNCTIONS[name]
        inner = arguments.at(value) or UNKNOWN
        return transfers.moved(
            inner, transfers.device_of(arguments.at(device, "device")), Origin(Provenance.MOVE, name)
        )
    if name in devices.DEVICE_FUNCTIONS:
        known = transfers.device_named(devices.DEVICE_FUNCTIONS[name])
        return Kind(Tag.DEVICE, device=known or Device.MAYBE)
    wrapper = loaders.wrapper_of(name)
    if wrapper is not None:
        made = _wrapped(wrapper, arguments)
        if name in loaders.DEVICE_WRAPPERS and made.tag is Tag.LOADER:
            return transfers_of_loader(made, name)
        return made
    return (
        _data(name, arguments)
        or records.made(name, arguments)
        or pictures.function(name, arguments)
        or _training(name, arguments)
        or _values(name, arguments)
        or (Kind(Tag.INSTANCE, qualified=name) if last(name)[:1].isupper() else UNKNOWN)
    )


def _handed_in_a_tuple(name: str, arguments: Arguments) -> Kind:
    """`amp.initialize(model, optimizer)`: each of them, or the only one that is given."""
    kinds = [arguments.at(place, keyword) for place, keyword in wrappers.HANDED_BACK[name]]
    known = [kind for kind in kinds if kind is not None]
    if not arguments.exact or not known:
        return UNKNOWN
    return (
        known[0]
        if len(known) == 1 and name not in wrappers.ALWAYS_SEVERAL
        else sequence(items=[kind or UNKNOWN for kind in kinds])
    )


def _data(name: str, arguments: Arguments) -> Kind | None:
    if loaders.is_loader(name):
        return loader(name, arguments)
    if last(name) == "splits" and name[: -len(".splits")] in loaders.PLACING_LOADERS:
        return sequence(loader(name[: -len(".splits")], arguments))  # one for each part of the data
    if name == "torch.utils.data.random_split":
        inner = arguments.at(0)
        return sequence(inner if inner is not None and inner.known else Kind(Tag.DATASET, qualified=name))
    if loaders.is_dataset(name):
        return _dataset(name, arguments)
    if modules.makes_tokenizer(name):
        return Kind(Tag.TOKENIZER, qualified=name)
    return None


def loader(name: str, arguments: Arguments) -> Kind:
    """A data loader: its element is the batch it gives."""
    pinned = arguments.constant(-1, "pin_memory")
    asked = arguments.at(-1, "pin_memory") if arguments.has("pin_memory") else None
    page_locked = pinned is True or (asked is not None and "pin_memory" not in arguments.constants)
    place, device = (Place.TARGET, Device.MAYBE) if loaders.is_device_loader(name) else (Place.HOST, None)
    if name in loaders.PLACING_LOADERS and arguments.has("device"):
        place, device = _told_place(arguments)
    origin = Origin(Provenance.LOADER, last(name))
    batch = Kind(Tag.BATCH, place, device=device, pinned=page_locked, certainty=Confidence.MEDIUM, origin=origin)
    dataset = arguments.at(0, "dataset")
    plain = not arguments.has("collate_fn")
    if dataset is not None and dataset.tag is Tag.DATASET and dataset.element is not None and plain:
        batch = collated(dataset.element, batch)
    return Kind(Tag.LOADER, place, element=batch, pinned=page_locked, qualified=canonical(name), origin=origin)


def _told_place(arguments: Arguments) -> tuple[Place, Device | None]:
    """Where batches are made by `device=`. A number may be that of a device, or -1, as torchtext once had it."""
    given = arguments.at(-1, "device")
    if given is None or given.tag is Tag.NONE:
        return Place.HOST, None
    device = transfers.device_of(given)
    return (Place.UNKNOWN, None) if given.tag is Tag.NUMBER else (device.place, device)


def collated(sample: Kind, batch: Kind) -> Kind:
    """What the default collation makes of samples of a known structure."""
    if sample.tag in (Tag.TENSOR, Tag.NUMBER, Tag.ARRAY):
        if sample.tag is Tag.TENSOR and sample.place is Place.UNKNOWN:
            return part_of(batch)
        place = sample.place if sample.tag is Tag.TENSOR and sample.place is not Place.UNKNOWN else batch.place
        return tensor(place, device=sample.device, pinned=batch.pinned, fresh=True, origin=batch.origin)
    if sample.tag is Tag.SEQUENCE and sample.items:
        return sequence(items=[collated(item, batch) for _, item in sample.items])
    if sample.tag is Tag.MAPPING and sample.items:
        return mapping(items=((str(key), collated(item, batch)) for key, item in sample.items))
    if sample.tag is Tag.STRING:
        return sequence(STRING)
    if sample.tag is Tag.UNKNOWN and batch.tag is Tag.BATCH:
        return part_of(batch)
    return batch


def _dataset(name: str, arguments: Arguments) -> Kind:
    if name == "torch.utils.data.TensorDataset":
        parts = [thunk() for thunk in arguments.positional]
        whole = arguments.exact and all(part.tag is Tag.TENSOR for part in parts)
        element = sequence(items=(part.but(fresh=False) for part in parts)) if whole and parts else None
        return Kind(Tag.DATASET, qualified=name, element=element)
    inner = arguments.at(0, "datasets" if name in _CHAINED else "dataset") if name in loaders.PASSING_ON else None
    if inner is not None and inner.tag in (Tag.SEQUENCE, Tag.MAPPING) and name in _CHAINED:
        inner = inner.element
    if inner is not None and inner.tag is Tag.DATASET:
        return inner.but(fresh=False)
    return Kind(Tag.DATASET, qualified=name)


#: Made of a list of data sets.
_CHAINED = ("torch.utils.data.ConcatDataset", "torch.utils.data.ChainDataset")


def transfers_of_loader(kind: Kind, name: str) -> Kind:
    """A loader whose batches are put on the device for the user."""
    batch = kind.element or Kind(Tag.BATCH, Place.HOST, certainty=Confidence.MEDIUM)
    put = transfers.moved(batch, Device.MAYBE, Origin(Provenance.PREPARED, name))
    return kind.but(place=Place.TARGET, element=put, pinned=False)


def _held(arguments: Arguments) -> Kind | None:
    """What a list or a dict of modules or parameters holds, given to its constructor."""
    given = arguments.at(0)
    if given is None or given.tag not in (Tag.SEQUENCE, Tag.MAPPING) or given.element is None:
        return None
    return held_by_module(given.element)


def _training(name: str, arguments: Arguments) -> Kind | None:
    if modules.makes_scheduler(name):
        return Kind(Tag.SCHEDULER, qualified=name)
    if modules.makes_optimizer(name):
        return Kind(Tag.OPTIMIZER, qualified=name)
    if modules.makes_scaler(name):
        return Kind(Tag.SCALER, qualified=name)
    if modules.makes_module(name) or name in modules.CONTAINER_MODULES:
        made = Kind(Tag.MODULE, qualified=name)
        return made.but(element=_held(arguments)) if name in modules.CONTAINER_MODULES else made
    if name in modules.STATE_DICT_FUNCTIONS:
        return Kind(Tag.STATE_DICT, element=tensor())
    return None


def _values(name: str, arguments: Arguments) -> Kind | None:
    if name in _MAPPINGS:
        return mapping() if name == "collections.defaultdict" else _dict(arguments)
    if name in arrays.GENERATORS:
        return Kind(Tag.INSTANCE, qualified=name)
    if name in arrays.DRAWS and _is_one_draw(arguments, arrays.DRAWS[name]):
        return NUMBER
    if name == "numpy.random.choice" and arguments.exact and len(arguments) == 1 and not arguments.has("size"):
        return None  # one of what it chooses from
    if name in arrays.ARRAY_TUPLES or (name == "numpy.where" and arguments.exact and len(arguments) == 1):
        return sequence(ARRAY)
    if name in arrays.ARRAY_FUNCTIONS:
        return ARRAY
    if name in arrays.ARRAY_REDUCTIONS:
        whole = len(arguments) == 1 and not arguments.has("axis")
        return NUMBER if whole else ARRAY
    if name in arrays.NUMBER_FUNCTIONS:
        return NUMBER
    return STRING if name in arrays.STRING_FUNCTIONS else None


def _is_one_draw(arguments: Arguments, most: int) -> bool:
    """Whether a draw is given no size, nor parameters for many of them."""
    if not arguments.exact or len(arguments) > most or arguments.has("size"):
        return False
    return not any(kind.tag in (Tag.ARRAY, Tag.TENSOR, Tag.SEQUENCE) for kind in arguments.kinds())
