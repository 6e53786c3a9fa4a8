"""What a value is, and where it lives. Plain frozen data; `join` is what is left when a value may be either of two."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

from perflint.analysis.values.dtypes import Dtype, join_dtypes
from perflint.analysis.values.origin import Origin, Provenance, join_origins
from perflint.analysis.values.ranks import SCALAR, join_ranks
from perflint.finding import Confidence


class Tag(enum.Enum):
    """The kinds of values. `UNKNOWN` says nothing; `NEVER` is a value that cannot occur here."""

    TENSOR = "tensor"
    MODULE = "module"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    LOADER = "loader"
    BATCH = "batch"
    OUTPUT = "output"
    STATE_DICT = "state_dict"
    OPTIMIZER_STATE = "optimizer_state"
    SCALER = "scaler"
    TOKENIZER = "tokenizer"
    DATASET = "dataset"
    ARRAY = "array"
    NUMBER = "number"
    STRING = "string"
    DEVICE = "device"
    DTYPE = "dtype"
    SHAPE = "shape"
    GENERATOR = "generator"
    NONE = "none"
    FUNCTION = "function"
    CLASS = "class"
    SEQUENCE = "sequence"
    MAPPING = "mapping"
    INSTANCE = "instance"
    UNKNOWN = "unknown"
    NEVER = "never"

    __hash__ = object.__hash__


class Place(enum.Enum):
    """Where a tensor's memory is.

    `HOST` and `DEVICE` (an accelerator) are certain. `TARGET` was moved to a device expression that may also be the
    CPU or MPS. `MODULE` is wherever the module it belongs to has been put. `UNKNOWN` says nothing.
    """

    HOST = "host"
    DEVICE = "device"
    TARGET = "target"
    MODULE = "module"
    UNKNOWN = "unknown"

    __hash__ = object.__hash__

    @property
    def is_accelerator(self) -> bool:
        """Whether code put there means to run on an accelerator."""
        return self in _OF_ACCELERATORS


class Device(enum.Enum):
    """Which device a device expression names."""

    CUDA = "cuda"
    CPU = "cpu"
    MPS = "mps"
    CUDA_OR_CPU = "cuda or cpu"  # chosen at run time, and nothing else
    MAYBE = "maybe"  # chosen at run time: cuda, cpu or mps
    GIVEN = "given"  # where something is that nothing is known of
    CPU_OR_GIVEN = "cpu or given"  # the host, unless something is given that is elsewhere
    ACCELERATOR = "accelerator"  # xpu, hpu, npu, xla: not the host, not CUDA

    __hash__ = object.__hash__

    @property
    def may_be_cuda(self) -> bool:
        """Whether it is CUDA, or CUDA where there is one."""
        return self in (Device.CUDA, Device.CUDA_OR_CPU)

    @property
    def place(self) -> Place:
        """Where a tensor is that was made on or moved to this device. MPS counts as `TARGET`: it is no CUDA."""
        if self is Device.CPU_OR_GIVEN:
            return Place.UNKNOWN
        if self in (Device.CUDA, Device.ACCELERATOR):
            return Place.DEVICE
        return Place.HOST if self is Device.CPU else Place.TARGET


#: The members that are asked for again and again: until Python 3.12 each look-up in the class costs six of these.
_TENSOR, _BATCH, _OUTPUT, _SEQUENCE, _MAPPING = Tag.TENSOR, Tag.BATCH, Tag.OUTPUT, Tag.SEQUENCE, Tag.MAPPING
_UNKNOWN, _NEVER, _NONE = Tag.UNKNOWN, Tag.NEVER, Tag.NONE
_HOST, _NOWHERE = Place.HOST, Place.UNKNOWN
_OF_ACCELERATORS = (Place.DEVICE, Place.TARGET, Place.MODULE)


class Kind(NamedTuple):
    """The abstract value of an expression.

    `element` is the kind of what iterating gives (of a mapping: of its values; of a loader: of its batches), `items`
    the kinds of known positions or keys. `qualified` is the dotted name of the class of a library instance, of a
    library function or class; for project things their qualname, with their file in `path`. `rank` is the number of
    dimensions (see `ranks`), `dtype` the type of a tensor's numbers. `fresh` is a result just made, which nothing else
    refers to. `optional` values may also be None. `mixed` is one of several structures of tensors, or a loader or a
    list; a `bare` container may also be one that nothing was seen to fill, and a `longer` sequence may go on after its
    `items`. `certainty` says how sure all this is, `origin` what tells it. Components that are not known are None, or
    what their type calls `UNKNOWN`.

    Kinds are a lattice: `NEVER` is its bottom, `UNKNOWN` its top, `join` the least upper bound. Of an `element`, None
    (nothing was seen in it) is the bottom and `UNKNOWN` the top.
    """

    tag: Tag
    place: Place = Place.UNKNOWN
    device: Device | None = None
    element: Kind | None = None
    items: tuple[tuple[int | str, Kind], ...] = ()
    qualified: str = ""
    path: str = ""
    pinned: bool = False
    rank: int | None = None
    dtype: Dtype | None = None
    requires_grad: bool | None = None
    fresh: bool = False
    optional: bool = False
    certainty: Confidence = Confidence.HIGH
    mixed: bool = False
    bare: bool = False
    longer: bool = False
    origin: Origin | None = None

    @property
    def scalar(self) -> bool:
        """Whether this is known to be a 0-d tensor, such as a loss."""
        return self.rank == SCALAR

    @property
    def is_mask(self) -> bool:
        """A tensor of booleans that is no single one: what it selects has a size of its own."""
        return self.tag is _TENSOR and self.dtype is Dtype.BOOL and self.rank != SCALAR

    @property
    def known(self) -> bool:
        return self.tag not in (_UNKNOWN, _NEVER)

    @property
    def is_tensor(self) -> bool:
        return self.tag is _TENSOR

    @property
    def holds_tensors(self) -> bool:
        """A tensor, or a structure of tensors that is handled as one: a batch, a model's output."""
        return self.tag in (_TENSOR, _BATCH, _OUTPUT)

    @property
    def on_host(self) -> bool:
        return self.place is _HOST

    @property
    def on_accelerator(self) -> bool:
        return self.place.is_accelerator

    @property
    def on_cuda(self) -> bool:
        return self.place is Place.DEVICE and self.device is Device.CUDA

    def item(self, key: int | str) -> Kind | None:
        """The kind at a known position or key, None when it is not known."""
        for name, kind in self.items:
            if name == key:
                return kind
        if isinstance(key, int) and key < 0 and self.tag is _SEQUENCE and self.items and not self.longer:
            return self.item(len(self.items) + key)
        if self.tag is _BATCH and isinstance(key, str) and self.items:
            # `"raw*"` stands for all keys that begin so.
            ends = ((name, kind) for name, kind in self.items if isinstance(name, str) and name[-1:] == "*")
            return next((kind for name, kind in ends if key.startswith(name[:-1])), None)
        return None

    def but(self, **changes: object) -> Kind:
        """A copy with some fields changed: `_replace`, in a fourth of its time."""
        fields: list[object] = [*self]
        for name, value in changes.items():
            fields[_PLACES[name]] = value
        return tuple.__new__(Kind, fields)

    def at_most(self, certainty: Confidence) -> Kind:
        is_less = self.certainty <= certainty or self.tag is _NEVER
        return self if is_less else self.but(certainty=certainty)

    def __str__(self) -> str:
        """As pinned in test cases: `tensor host pinned scalar`."""
        words = [self.tag.value]
        if self.place is not Place.UNKNOWN:
            words.append(self.place.value)
        if self.device is not None and (self.tag is Tag.DEVICE or self.place is Place.DEVICE):
            words.append(self.device.value)
        words += [name for name in ("pinned", "scalar", "fresh", "optional") if getattr(self, name)]
        return " ".join(words)


#: By name, the places of a kind's fields.
_PLACES = {name: place for place, name in enumerate(Kind._fields)}

UNKNOWN = Kind(Tag.UNKNOWN, certainty=Confidence.LOW)
NEVER = Kind(Tag.NEVER)
NONE = Kind(Tag.NONE)
NUMBER = Kind(Tag.NUMBER)
#: What a loader that only its name tells gives.
NAMED_BATCH = Kind(Tag.BATCH, Place.HOST, certainty=Confidence.MEDIUM, origin=Origin(Provenance.NAMED_LOADER))
#: What has a loader's name, and nothing else to tell what it is: who passes on batches of the device moves them no
#: more, so what is moved comes from the host.
NAMED_LOADER = Kind(
    Tag.LOADER, Place.HOST, element=NAMED_BATCH, certainty=Confidence.MEDIUM, origin=Origin(Provenance.NAMED_LOADER)
)
STRING = Kind(Tag.STRING)
SHAPE = Kind(Tag.SHAPE, element=NUMBER)
DTYPE = Kind(Tag.DTYPE)
ARRAY = Kind(Tag.ARRAY)
TENSOR = Kind(Tag.TENSOR)


def limited(kind: Kind, depth: int) -> Kind:
    """`kind` with nothing known of what is held more than `depth` containers deep: no value grows for ever."""
    if kind.element is None and not kind.items:
        return kind
    if not depth:
        return _flat(kind)
    element = None if kind.element is None else limited(kind.element, depth - 1)
    items = tuple((key, limited(item, depth - 1)) for key, item in kind.items)
    return kind if element == kind.element and items == kind.items else kind.but(element=element, items=items)


def _flat(kind: Kind) -> Kind:
    """What covers a structure and holds nothing itself."""
    if kind.tag not in (Tag.MAPPING, Tag.SEQUENCE, Tag.LOADER):
        return kind.but(element=kind.element and UNKNOWN, items=())
    place = _tensors_at(kind)
    if place is None:
        return UNKNOWN
    return _join_tags(kind, Kind(Tag.BATCH, place, element=None if place is not Place.UNKNOWN else NEVER, mixed=True))


def tensor(place: Place = Place.UNKNOWN, **fields: object) -> Kind:
    return TENSOR.but(place=place, **fields)


def sequence(element: Kind | None = None, items: Iterable[Kind] = (), *, qualified: str = "") -> Kind:
    """A list, tuple or other iterable. With `items`, the element is what they have in common."""
    known = tuple(items)
    if known and element is None:
        element = join(known)
    return Kind(Tag.SEQUENCE, element=element, items=tuple(enumerate(known)), qualified=qualified)


def mapping(element: Kind | None = None, items: Iterable[tuple[str, Kind]] = ()) -> Kind:
    known = tuple(items)
    if known and element is None:
        element = join(kind for _, kind in known)
    return Kind(Tag.MAPPING, element=element, items=known)


#: A mapping that nothing is in, such as `**options` that no caller gives any.
NOTHING_NAMED = Kind(Tag.MAPPING, qualified="empty")


def is_empty(kind: Kind) -> bool:
    """Whether a container is known to hold nothing."""
    return kind.qualified == "empty" and kind.tag in (_SEQUENCE, _MAPPING) and kind.element is None and not kind.items


def join(kinds: Iterable[Kind]) -> Kind:
    """What is known of a value that may be any of `kinds`: their least upper bound. `NEVER` adds nothing, and what
    comes after `UNKNOWN`, which nothing changes, is not asked for.
    """
    result = NEVER
    for kind in kinds:
        result = _join(result, kind)
        if result is UNKNOWN:
            break
    return result


def leq(left: Kind, right: Kind) -> bool:
    """Whether `right` covers `left`, in the order that `join` makes."""
    return _join(left, right) == right


def _join(left: Kind, right: Kind) -> Kind:
    if left.tag is _NEVER or right.tag is _NEVER:
        return NEVER if left.tag is right.tag else right if left.tag is _NEVER else left
    if left == right:
        return left
    if left.tag is _UNKNOWN or right.tag is _UNKNOWN:
        return _join_unknown(left, right)
    if left.tag is _NONE or right.tag is _NONE:
        if left.tag is right.tag:
            return NONE
        other = right if left.tag is _NONE else left
        return other.but(optional=True).at_most(Confidence.MEDIUM)
    if left.tag is not right.tag or left.mixed or right.mixed:
        return _join_tags(left, right)
    qualified, path, device = _join_names(left, right)
    element, items = _join_elements(left, right), _join_items(left, right)
    is_longer = left.longer or right.longer or len(left.items) != len(right.items)
    return Kind(
        left.tag,
        join_places(left.place, right.place),
        device=device,
        element=element,
        items=items,
        qualified=qualified,
        path=path,
        pinned=left.pinned and right.pinned,
        rank=join_ranks(left.rank, right.rank),
        dtype=join_dtypes(left.dtype, right.dtype),
        requires_grad=left.requires_grad if left.requires_grad == right.requires_grad else None,
        fresh=left.fresh and right.fresh,
        optional=left.optional or right.optional,
        certainty=min(left.certainty, right.certainty),
        longer=bool(items) and left.tag is _SEQUENCE and is_longer,
        bare=left.bare or right.bare if element is None else _is_bare(left) or _is_bare(right),
        origin=join_origins(left.origin, right.origin),
    )


def _join_tags(left: Kind, right: Kind) -> Kind:
    """Different tags: structures of tensors in one place have something in common, and what can be gone through."""
    tags = {left.tag, right.tag}
    made = Kind(
        _BATCH,
        optional=left.optional or right.optional,
        certainty=min(left.certainty, right.certainty, Confidence.MEDIUM),
        mixed=True,
        origin=join_origins(left.origin, right.origin),
    )
    if tags <= {Tag.LOADER, _SEQUENCE}:
        # `bar(loader) if shown else loader`
        return made.but(tag=_SEQUENCE, element=_join_elements(left, right), certainty=_least(left, right))
    one, other = _tensors_at(left), _tensors_at(right)
    if one is None or other is None:
        return UNKNOWN
    if one is _NOWHERE and other is _NOWHERE:
        return made.but(element=NEVER)
    place = other if one is _NOWHERE else one if other is _NOWHERE else join_places(one, other)
    return UNKNOWN if place is _NOWHERE else made.but(place=place)


def _join_unknown(left: Kind, right: Kind) -> Kind:
    """Something unknown that has been moved, and something else: all that is known of both is where they are."""
    one, other = _tensors_at(left), _tensors_at(right)
    if one is None or other is None:
        return UNKNOWN
    place = other if one is _NOWHERE else one if other is _NOWHERE else join_places(one, other)
    return UNKNOWN if place is _NOWHERE else UNKNOWN.but(place=place)


def _least(left: Kind, right: Kind) -> Confidence:
    return min(left.certainty, right.certainty)


def _tensors_at(kind: Kind) -> Place | None:
    """Where all tensors of a structure are, which holds nothing else. None where that is not known, `UNKNOWN` for a
    structure that holds none so far: a helper that calls itself has yet to say what is in it.
    """
    if kind.tag in (_TENSOR, _BATCH, _OUTPUT):
        is_empty = kind.mixed and kind.element is not None and kind.element.tag is _NEVER
        return kind.place if is_empty or kind.place is not _NOWHERE else None
    if kind.tag in (_NEVER, _NONE):
        return _NOWHERE
    if kind.tag is _UNKNOWN:
        return None if kind.place is _NOWHERE else kind.place
    is_container = kind.tag in (_MAPPING, _SEQUENCE) and not kind.mixed
    return _tensors_at(kind.element) if is_container and not kind.bare and kind.element is not None else None


def _is_bare(kind: Kind) -> bool:
    return kind.bare or (kind.element is None and kind.tag in (_MAPPING, _SEQUENCE))


def leaf_place(kind: Kind) -> Place:
    """Where the tensors of a structure are."""
    if kind.tag in (_TENSOR, _BATCH, _OUTPUT):
        return kind.place
    if kind.tag in (_MAPPING, _SEQUENCE) and kind.element is not None:
        return leaf_place(kind.element)
    return _NOWHERE


def join_places(left: Place, right: Place) -> Place:
    """Where a value is that is in one of two places; a device one of two is not known exactly."""
    if left is right:
        return left
    if left.is_accelerator and right.is_accelerator:
        # On a device, on one that may be the CPU, where a module has been put: of which less and less is known.
        return Place.MODULE if Place.MODULE in (left, right) else Place.TARGET
    return _NOWHERE


def _join_names(left: Kind, right: Kind) -> tuple[str, str, Device | None]:
    """What a value is an instance of or names, with its file, and its device."""
    same = (left.qualified, left.path) == (right.qualified, right.path)
    if left.tag is not Tag.CLASS:
        return left.qualified if same else "", left.path if same else "", _join_devices(left, right)
    if same:
        return left.qualified, left.path, left.device or right.device
    for one, other in ((left, right), (right, left)):
        if one.qualified and one.qualified == other.qualified.replace("torch.", "torch.cuda.", 1):
            # `torch.cuda.FloatTensor if cuda else torch.FloatTensor`: where there is a device, tensors of it.
            return one.qualified, "", Device.MAYBE
    return "", "", None


def _join_devices(left: Kind, right: Kind) -> Device | None:
    both = {left.device, right.device}
    if len(both) == 1 or None in both:
        return left.device if len(both) == 1 else None
    either, given = both <= {Device.CUDA, Device.CPU, Device.CUDA_OR_CPU}, both <= _CPU_OR_GIVEN
    return Device.CUDA_OR_CPU if either else Device.CPU_OR_GIVEN if given else Device.MAYBE


_CPU_OR_GIVEN = {Device.CPU, Device.GIVEN, Device.CPU_OR_GIVEN}


def _join_elements(left: Kind, right: Kind) -> Kind | None:
    # An empty list or dict says nothing about what a filled one holds.
    if left.element is None or right.element is None:
        return left.element or right.element
    return _join(left.element, right.element)


def _join_items(left: Kind, right: Kind) -> tuple[tuple[int | str, Kind], ...]:
    if left.items == right.items:
        return left.items
    if left.tag is Tag.SEQUENCE:
        return tuple((key, _join(kind, other)) for (key, kind), (_, other) in zip(left.items, right.items))
    others = dict(right.items)
    return tuple(sorted(((key, _join(kind, others[key])) for key, kind in left.items if key in others), key=by_key))


def by_key(item: tuple[int | str, Kind]) -> tuple[bool, str]:
    """The order of the items of a mapping: by their keys, numbers before texts."""
    return isinstance(item[0], str), str(item[0])


#: What is no tensor by its type and holds tensors where it has been moved: a packed sequence, something unknown.
_MOVED = (Tag.UNKNOWN, Tag.INSTANCE)


#: Devices of one value, what says most first.
_CERTAIN = (
    Device.CUDA,
    Device.ACCELERATOR,
    Device.MPS,
    Device.CPU,
    Device.CUDA_OR_CPU,
    Device.GIVEN,
    Device.MAYBE,
    Device.CPU_OR_GIVEN,
    None,
)


def same_place(kinds: Iterable[Kind]) -> tuple[Place, Device | None]:
    """Where the result of an operation on these values is. Tensors of one operation share a device, except that a
    0-d tensor on the host may go with tensors on any device. So what is known best of one holds for all.
    """
    # Something unknown that was moved is on the device all the same, and on the host where nothing else is unknown.
    kinds = [*kinds]
    is_told = all(kind.tag is not Tag.UNKNOWN or kind.place is not Place.UNKNOWN for kind in kinds)
    places = [kind for kind in kinds if kind.holds_tensors or (kind.tag in _MOVED and kind.on_accelerator)]
    places += [kind for kind in kinds if is_told and kind.tag is Tag.UNKNOWN and kind.on_host]
    for wanted in (Place.DEVICE, Place.TARGET, Place.MODULE):
        found = [kind.device for kind in places if kind.place is wanted]
        if found:
            return wanted, min(found, key=_CERTAIN.index)
    if places and all(kind.place is Place.HOST for kind in places):
        return Place.HOST, None
    if places and all(kind.place is Place.HOST or kind.device is Device.CPU_OR_GIVEN for kind in places):
        return Place.UNKNOWN, Device.CPU_OR_GIVEN
    return Place.UNKNOWN, None
