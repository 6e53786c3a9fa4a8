"""What a value is, and where it lives. Plain frozen data; `join` is what is left when a value may be either of two."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

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

    @property
    def is_accelerator(self) -> bool:
        """Whether code put there means to run on an accelerator."""
        return self in (Place.DEVICE, Place.TARGET, Place.MODULE)


class Device(enum.Enum):
    """Which device a device expression names."""

    CUDA = "cuda"
    CPU = "cpu"
    MPS = "mps"
    CUDA_OR_CPU = "cuda or cpu"  # chosen at run time, and nothing else
    MAYBE = "maybe"  # chosen at run time: cuda, cpu or mps
    ACCELERATOR = "accelerator"  # xpu, hpu, npu, xla: not the host, not CUDA

    @property
    def may_be_cuda(self) -> bool:
        """Whether it is CUDA, or CUDA where there is one."""
        return self in (Device.CUDA, Device.CUDA_OR_CPU)

    @property
    def place(self) -> Place:
        """Where a tensor is that was made on or moved to this device. MPS counts as `TARGET`: it is no CUDA."""
        if self in (Device.CUDA, Device.ACCELERATOR):
            return Place.DEVICE
        return Place.HOST if self is Device.CPU else Place.TARGET


class Kind(NamedTuple):
    """The abstract value of an expression.

    `element` is the kind of what iterating gives (of a mapping: of its values; of a loader: of its batches), `items`
    the kinds of known positions or keys. `qualified` is the dotted name of the class of a library instance, of a
    library function or class; for project things their qualname, with their file in `path`. `scalar` is a 0-d tensor
    such as a loss. `fresh` is a result just made, which nothing else refers to. `optional` values may also be None.
    `certainty` says how sure all this is; `how` says why, for messages.
    """

    tag: Tag
    place: Place = Place.UNKNOWN
    device: Device | None = None
    element: Kind | None = None
    items: tuple[tuple[int | str, Kind], ...] = ()
    qualified: str = ""
    path: str = ""
    pinned: bool = False
    scalar: bool = False
    requires_grad: bool | None = None
    fresh: bool = False
    optional: bool = False
    certainty: Confidence = Confidence.HIGH
    how: str = ""

    @property
    def known(self) -> bool:
        return self.tag not in (Tag.UNKNOWN, Tag.NEVER)

    @property
    def is_tensor(self) -> bool:
        return self.tag is Tag.TENSOR

    @property
    def holds_tensors(self) -> bool:
        """A tensor, or a structure of tensors that is handled as one: a batch, a model's output."""
        return self.tag in (Tag.TENSOR, Tag.BATCH, Tag.OUTPUT)

    @property
    def on_host(self) -> bool:
        return self.place is Place.HOST

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
        if isinstance(key, int) and key < 0 and self.tag is Tag.SEQUENCE and self.items:
            return self.item(len(self.items) + key)
        return None

    def but(self, **changes: object) -> Kind:
        """A copy with some fields changed."""
        return self._replace(**changes)  # type: ignore[arg-type]

    def at_most(self, certainty: Confidence) -> Kind:
        return self if self.certainty <= certainty else self._replace(certainty=certainty)

    def __str__(self) -> str:
        """As pinned in test cases: `tensor host pinned scalar`."""
        words = [self.tag.value]
        if self.place is not Place.UNKNOWN:
            words.append(self.place.value)
        if self.device is not None and (self.tag is Tag.DEVICE or self.place is Place.DEVICE):
            words.append(self.device.value)
        words += [name for name in ("pinned", "scalar", "fresh", "optional") if getattr(self, name)]
        return " ".join(words)


UNKNOWN = Kind(Tag.UNKNOWN, certainty=Confidence.LOW)
NEVER = Kind(Tag.NEVER)
NONE = Kind(Tag.NONE)
NUMBER = Kind(Tag.NUMBER)
#: What a loader that only its name tells gives.
NAMED_BATCH = Kind(Tag.BATCH, Place.HOST, certainty=Confidence.MEDIUM, how="a batch of what is named a loader")
#: What has a loader's name, and nothing else to tell what it is: who passes on batches of the device moves them no
#: more, so what is moved comes from the host.
NAMED_LOADER = Kind(Tag.LOADER, Place.HOST, element=NAMED_BATCH, certainty=Confidence.MEDIUM, how="named as a loader")
STRING = Kind(Tag.STRING)
SHAPE = Kind(Tag.SHAPE, element=NUMBER)
DTYPE = Kind(Tag.DTYPE)
ARRAY = Kind(Tag.ARRAY)
TENSOR = Kind(Tag.TENSOR)

#: Structures of tensors: what a batch may turn out to be.
_STRUCTURES = frozenset({Tag.TENSOR, Tag.BATCH, Tag.OUTPUT, Tag.MAPPING, Tag.SEQUENCE})


def limited(kind: Kind, depth: int) -> Kind:
    """`kind` with nothing known of what is held more than `depth` containers deep: no value grows for ever."""
    if kind.element is None and not kind.items:
        return kind
    if not depth:
        return kind._replace(element=None, items=())
    element = None if kind.element is None else limited(kind.element, depth - 1)
    items = tuple((key, limited(item, depth - 1)) for key, item in kind.items)
    return kind if element == kind.element and items == kind.items else kind._replace(element=element, items=items)


def tensor(place: Place = Place.UNKNOWN, **fields: object) -> Kind:
    return TENSOR._replace(place=place, **fields)  # type: ignore[arg-type]


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


def join(kinds: Iterable[Kind]) -> Kind:
    """What is known of a value that may be any of `kinds`: what they agree on, `UNKNOWN` when they are different. Those
    behind one of which nothing is known are not asked for.
    """
    result: Kind | None = None
    optional = recursive = False
    for kind in kinds:
        if kind.tag is Tag.NEVER:
            continue
        if kind.element is not None and kind.element.tag is Tag.NEVER and not kind.items:
            # A container of what a helper is still making by calling itself: it holds what the other arms give.
            recursive = True
            continue
        if kind.tag is Tag.NONE:
            optional = True
            continue
        result = kind if result is None else _join(result, kind)
        if result is UNKNOWN:
            return UNKNOWN
    if result is None:
        return NONE if optional else NEVER
    if recursive and result.tag is Tag.TENSOR and result.place is not Place.UNKNOWN:
        result = Kind(Tag.BATCH, result.place, result.device, pinned=result.pinned, how=result.how)
        result = result.at_most(Confidence.MEDIUM)
    return result._replace(optional=True).at_most(Confidence.MEDIUM) if optional and result.known else result


def _join(left: Kind, right: Kind) -> Kind:
    if left == right:
        return left
    if left.tag is Tag.UNKNOWN or right.tag is Tag.UNKNOWN:
        both = left.tag is right.tag and left.place is right.place
        return UNKNOWN._replace(place=left.place) if both else UNKNOWN
    if left.tag is not right.tag:
        return _join_tags(left, right)
    if left.tag is Tag.CLASS and left.qualified != right.qualified:
        for one, other in ((left, right), (right, left)):
            if one.qualified == other.qualified.replace("torch.", "torch.cuda.", 1):
                # `torch.cuda.FloatTensor if cuda else torch.FloatTensor`: where there is a device, tensors of it.
                return one._replace(device=Device.MAYBE)
    place = join_places(left.place, right.place)
    return Kind(
        left.tag,
        place,
        device=left.device if left.device is right.device else _join_devices(left, right),
        element=_join_elements(left, right),
        items=_join_items(left, right),
        qualified=left.qualified if (left.qualified, left.path) == (right.qualified, right.path) else "",
        path=left.path if (left.qualified, left.path) == (right.qualified, right.path) else "",
        pinned=left.pinned and right.pinned,
        scalar=left.scalar and right.scalar,
        requires_grad=left.requires_grad if left.requires_grad == right.requires_grad else None,
        fresh=left.fresh and right.fresh,
        optional=left.optional or right.optional,
        certainty=min(left.certainty, right.certainty),
        how=left.how,
    )


def _join_tags(left: Kind, right: Kind) -> Kind:
    """Different tags: structures of tensors in one place have something in common, and what can be gone through."""
    if {left.tag, right.tag} == {Tag.LOADER, Tag.SEQUENCE}:
        # `bar(loader) if shown else loader`
        element = _join_elements(left, right) if left.element is not None and right.element is not None else None
        return UNKNOWN if element is None else Kind(Tag.SEQUENCE, element=element)
    if left.tag in _STRUCTURES and right.tag in _STRUCTURES:
        places = {leaf_place(left), leaf_place(right)}
        if len(places) == 1 and Place.UNKNOWN not in places:
            return Kind(Tag.BATCH, places.pop(), certainty=Confidence.MEDIUM, how=left.how or right.how)
    return UNKNOWN


def leaf_place(kind: Kind) -> Place:
    """Where the tensors of a structure are."""
    if kind.tag in (Tag.TENSOR, Tag.BATCH, Tag.OUTPUT):
        return kind.place
    if kind.tag in (Tag.MAPPING, Tag.SEQUENCE) and kind.element is not None:
        return leaf_place(kind.element)
    return Place.UNKNOWN


def join_places(left: Place, right: Place) -> Place:
    """Where a value is that is in one of two places; a device one of two is not known exactly."""
    if left is right:
        return left
    if left.is_accelerator and right.is_accelerator:
        return Place.TARGET
    return Place.UNKNOWN


def _join_devices(left: Kind, right: Kind) -> Device | None:
    if left.tag in (Tag.DEVICE, Tag.STRING) and left.device is not None and right.device is not None:
        either = {left.device, right.device} <= {Device.CUDA, Device.CPU, Device.CUDA_OR_CPU}
        return Device.CUDA_OR_CPU if either else Device.MAYBE
    return None


def _join_elements(left: Kind, right: Kind) -> Kind | None:
    # An empty list or dict says nothing about what a filled one holds.
    if left.element is None or right.element is None:
        return left.element or right.element
    found = _join(left.element, right.element)
    return found if found.known else None


def _join_items(left: Kind, right: Kind) -> tuple[tuple[int | str, Kind], ...]:
    if left.tag is Tag.MAPPING:
        return tuple(
            (key, both)
            for key, kind in left.items
            if (other := right.item(key)) is not None and (both := join((kind, other))).known
        )
    if len(left.items) != len(right.items):
        return ()
    joined = tuple((key, join((kind, other))) for (key, kind), (_, other) in zip(left.items, right.items))
    return joined if all(kind.known for _, kind in joined) else ()


def same_place(kinds: Iterable[Kind]) -> tuple[Place, Device | None]:
    """Where the result of an operation on these values is. Tensors of one operation share a device, except that a
    0-d tensor on the host may go with tensors on any device.
    """
    # Something unknown that was moved is on the device all the same.
    places = [kind for kind in kinds if kind.holds_tensors or (not kind.known and kind.on_accelerator)]
    for wanted in (Place.DEVICE, Place.TARGET, Place.MODULE):
        for kind in places:
            if kind.place is wanted:
                return wanted, kind.device
    if places and all(kind.place is Place.HOST for kind in places):
        return Place.HOST, None
    if any(kind.place is Place.HOST and not kind.scalar and kind.certainty is Confidence.HIGH for kind in places):
        return Place.HOST, None
    return Place.UNKNOWN, None
