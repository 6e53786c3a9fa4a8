"""What an annotation says of a value. Works on text, so that it serves trees and summaries alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from perflint.analysis.values import dtypes, records
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
    mapping,
    sequence,
    tensor,
)
from perflint.analysis.values.origin import Origin, Provenance, is_from
from perflint.analysis.values.ranks import SOME
from perflint.finding import Confidence
from perflint.torch_model import loaders, modules
from perflint.torch_model.names import canonical, last

#: The kind of instances of a class given by its dotted name as written; `UNKNOWN` when it cannot be told.
InstanceOf = Callable[[str], Kind]

_WRAPPERS = frozenset({"Optional", "Union", "Annotated", "Final", "ClassVar", "Required", "NotRequired", "InitVar"})
_SEQUENCES = frozenset(
    "list List Sequence Iterable Iterator tuple Tuple set Set frozenset Collection Generator MutableSequence deque "
    "AsyncIterator AsyncIterable".split()
)
_MAPPINGS = frozenset("dict Dict Mapping MutableMapping OrderedDict defaultdict".split())
_NUMBERS = frozenset({"int", "float", "bool", "complex", "SupportsFloat", "Number"})
#: Types of jaxtyping: `Float[Tensor, "b c"]`, `Int[torch.Tensor, ""]`.
_JAXTYPING = frozenset(
    "Float Float16 Float32 Float64 BFloat16 Int Int8 Int16 Int32 Int64 UInt UInt8 Bool Num Real Complex Shaped Inexact "
    "Integer Key".split()
)


_JAX_DTYPES = {
    "Bool": Dtype.BOOL,
    "Float": Dtype.FLOATING,
    **dict.fromkeys(("Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "Integer"), Dtype.INT),
    **dict.fromkeys(("Float16", "BFloat16"), Dtype.HALF),
    "Float32": Dtype.FLOAT,
    "Float64": Dtype.DOUBLE,
    "Complex": Dtype.COMPLEX,
}


def kind_of(annotation: str, instance_of: InstanceOf) -> Kind:
    """The kind that an annotation (its source text) promises; `UNKNOWN` when it promises nothing."""
    text = annotation.strip().strip("'\"")
    if not text:
        return UNKNOWN
    parts = split(text, "|") if "|" in text else ()
    if len(parts) > 1:
        return _union([kind_of(part, instance_of) for part in parts])
    head, arguments = taken_apart(text)
    return _one(head, arguments, instance_of)


def _union(kinds: list[Kind]) -> Kind:
    """`Optional[X]` is X that may be None; of `X | Y` only what both are is known."""
    rest = [kind for kind in kinds if kind.tag is not Tag.NONE]
    if len(rest) == 1:
        return rest[0].but(optional=True) if len(kinds) > 1 and rest[0].known else rest[0]
    tags = {kind.tag for kind in rest}
    return rest[0] if len(tags) == 1 else UNKNOWN


def _one(head: str, arguments: list[str], instance_of: InstanceOf) -> Kind:
    short = last(head)
    if short in _WRAPPERS:
        if short == "Annotated" or len(arguments) == 1:
            found = kind_of(arguments[0], instance_of) if arguments else UNKNOWN
            return found.but(optional=True) if short == "Optional" and found.known else found
        return _union([kind_of(argument, instance_of) for argument in arguments])
    if head == "None":
        return NONE
    if short in _JAXTYPING and len(arguments) == 2:
        return _jax(short, arguments, instance_of)
    if short in _SEQUENCES:
        return _sequence(short, arguments, instance_of)
    if short in _MAPPINGS:
        return mapping(kind_of(arguments[1], instance_of) if len(arguments) == 2 else None)
    if short in _NUMBERS:
        return NUMBER
    if short == "str":
        return STRING
    if short in ("type", "Type", "Callable", "Any", "object", "Self", "TypeVar"):
        return UNKNOWN
    return instance_of(head)


def _rank(dimensions: str) -> int | None:
    """How many dimensions jaxtyping names: `"b c h w"`; of `"..."` and `"*batch"` there may be any number."""
    names = dimensions.split()
    if not any(name.startswith(("*", "...", "#*", "?*")) for name in names):
        return len(names)
    return SOME if len(names) > 1 else None


def _jax(short: str, arguments: list[str], instance_of: InstanceOf) -> Kind:
    found = kind_of(arguments[0], instance_of)
    if found.tag is Tag.TENSOR:
        dimensions = arguments[1].strip().strip("'\"").strip()
        return found.but(rank=_rank(dimensions), dtype=_JAX_DTYPES.get(short))
    return found


def _sequence(short: str, arguments: list[str], instance_of: InstanceOf) -> Kind:
    kinds = [kind_of(argument, instance_of) for argument in arguments if argument != "..."]
    if short in ("tuple", "Tuple") and len(arguments) > 1 and "..." not in arguments:
        return sequence(items=kinds)
    element = kinds[0] if kinds else None
    return sequence(element if element is not None and element.known else None)


def kept(found: Kind, promised: Kind) -> Kind:
    """What is known of a value that has been followed and annotated: the annotation says what it is where following
    it did not, and following it says where it is.
    """
    if found.tag is Tag.NEVER or not promised.known:
        return found
    if found.tag is promised.tag and found.tag in (Tag.SEQUENCE, Tag.MAPPING) and found.element is None:
        # `rows: list[Row] = []`: what will be in it. Of tensors only what is put there says where they are.
        holds = promised.element
        return found if found.items or holds is None or holds.holds_tensors else promised
    if promised.holds_tensors and (not found.known or found.tag in (Tag.BATCH, Tag.OUTPUT)):
        return promised.but(
            place=found.place, device=found.device, pinned=found.pinned, origin=found.origin or promised.origin
        )
    return found if found.known else promised


def merged(annotated: Kind, passed: Kind) -> Kind:
    """The annotation, with what callers say where it is silent."""
    if not annotated.known:
        return passed
    if annotated.tag is Tag.TENSOR and passed.tag is Tag.NUMBER:
        return passed  # every known caller gives a number: `status(loss.item())`
    if passed.tag is annotated.tag or (annotated.tag is Tag.TENSOR and passed.holds_tensors):
        if annotated.tag in (Tag.SEQUENCE, Tag.MAPPING):
            holds = passed.items or (passed.element is not None and passed.element.known)
            return passed if holds else annotated
        # Callers of whom one made it and another was given it say nothing of where it is: it is handed in.
        is_told = passed.place is not Place.UNKNOWN or not is_from(passed.origin, Provenance.CONSTRUCTOR)
        origin = passed.origin if is_told else annotated.origin
        of_tensor = passed if passed.is_tensor else annotated
        return annotated.but(
            place=passed.place,
            device=passed.device,
            pinned=passed.pinned,
            origin=origin,
            rank=of_tensor.rank if annotated.rank is None else annotated.rank,
            dtype=of_tensor.dtype if annotated.dtype is None else annotated.dtype,
        )
    if annotated.tag is Tag.SEQUENCE and passed.tag in (Tag.LOADER, Tag.DATASET, Tag.TENSOR):
        return passed
    return annotated


def library_instance(dotted: str) -> Kind:
    """An instance of a library class, by its dotted name, as far as an annotation tells."""
    name = canonical(dotted)
    if name in ("torch.Tensor", "torch.LongTensor", "torch.FloatTensor", "torch.BoolTensor", "torch.IntTensor"):
        return tensor(origin=Origin(Provenance.ANNOTATION), dtype=dtypes.named(name))
    if name.startswith("torch.cuda.") and name.endswith("Tensor"):
        return tensor(Place.DEVICE, device=Device.CUDA, dtype=dtypes.named(name))
    if name in ("torch.nn.Parameter", "torch.nn.Buffer"):
        return tensor(requires_grad=name == "torch.nn.Parameter")
    if name == "torch.device":
        return Kind(Tag.DEVICE, device=Device.MAYBE)
    if name == "torch.dtype":
        return DTYPE
    if name in ("numpy.ndarray", "numpy.typing.NDArray", "numpy.typing.ArrayLike"):
        return ARRAY
    if loaders.is_loader(name):
        place = Place.TARGET if loaders.is_device_loader(name) else Place.HOST
        origin = Origin(Provenance.LOADER, last(name))
        batch = Kind(Tag.BATCH, place, certainty=Confidence.MEDIUM, origin=origin)
        return Kind(Tag.LOADER, place, element=batch, qualified=name, origin=origin)
    return records.annotated(name) or _trained(name)


def _trained(name: str) -> Kind:
    short = last(name)
    if short in ("BatchEncoding", "BatchFeature") and name.startswith("transformers."):
        return Kind(Tag.BATCH, certainty=Confidence.MEDIUM, origin=Origin(Provenance.ANNOTATION, short))
    if name == "torch.optim.Optimizer" or modules.makes_optimizer(name):
        return Kind(Tag.OPTIMIZER, qualified=name)
    if modules.makes_scheduler(name):
        return Kind(Tag.SCHEDULER, qualified=name)
    if modules.makes_scaler(name):
        return Kind(Tag.SCALER, qualified=name)
    if modules.makes_tokenizer(name) or short.startswith("PreTrainedTokenizer"):
        return Kind(Tag.TOKENIZER, qualified=name)
    if modules.is_module_class(name):
        return Kind(Tag.MODULE, qualified=name)
    if loaders.is_dataset(name):
        return Kind(Tag.DATASET, qualified=name)
    if name.startswith("transformers.") and short.endswith("Output"):
        return Kind(Tag.OUTPUT, certainty=Confidence.MEDIUM)
    if name.startswith("builtins.") or not short[:1].isupper():
        return UNKNOWN
    return Kind(Tag.INSTANCE, qualified=name)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[str, tuple[str, ...]]:
    head, _, rest = text.partition("[")
    arguments = split(rest[: rest.rfind("]")], ",") if rest else []
    return head.strip().strip("'\""), tuple(arguments)


def taken_apart(text: str) -> tuple[str, list[str]]:
    """`Dict[str, Tensor]` as (`Dict`, [`str`, `Tensor`])."""
    head, arguments = _parsed(text)
    return head, list(arguments)


def split(text: str, separator: str) -> list[str]:
    """The parts of an annotation between separators that stand in no bracket or string."""
    parts: list[str] = []
    depth = start = 0
    quote = ""
    for index, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif letter == separator and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]
