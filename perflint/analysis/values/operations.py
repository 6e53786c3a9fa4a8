"""Literals, operators, items and iteration. Pure functions on kinds."""

from __future__ import annotations

import ast

from perflint.analysis.values import dtypes
from perflint.analysis.values.dtypes import Dtype
from perflint.analysis.values.kind import (
    ARRAY,
    NEVER,
    NONE,
    NUMBER,
    SHAPE,
    STRING,
    UNKNOWN,
    Kind,
    Place,
    Tag,
    join,
    mapping,
    same_place,
    sequence,
    tensor,
)
from perflint.analysis.values.origin import Origin, Provenance
from perflint.analysis.values.ranks import SCALAR, SOME, broadcast, fewer, placed
from perflint.analysis.values.transfers import device_named
from perflint.finding import Confidence

#: What no operator, index or loop takes: where None stands, the program ends.
_NOTHING = (Tag.NEVER, Tag.NONE)
_COMPARING = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


#: Parts of batches that are texts wherever the batch is. `text`, `ids` and `keys` are tensors at times.
_TEXTS = frozenset(
    "name names path paths file files filename filenames file_name file_names fname fnames img_path img_paths "
    "image_path image_paths caption captions transcript transcripts sentence sentences url urls meta metadata".split()
)
_ENDS_OF_TEXTS = ("_name", "_names", "_path", "_paths", "_filename", "_filenames")


def part_of(kind: Kind) -> Kind:
    """One tensor of a structure of tensors. A batch may hold text as well, so this is MEDIUM at most."""
    return Kind(
        Tag.TENSOR,
        kind.place,
        device=kind.device,
        pinned=kind.pinned,
        certainty=min(kind.certainty, Confidence.MEDIUM),
        origin=kind.origin or Origin(Provenance.PART),
    )


def _held(kind: Kind) -> Kind:
    """What a batch or an output holds: what something unknown gives may hold lists and mappings again."""
    if kind.mixed and kind.tag is Tag.OUTPUT:
        return kind.at_most(Confidence.MEDIUM)
    return part_of(kind)


def named_part(kind: Kind, name: object) -> Kind:
    """What a batch holds under a name: a tensor, but for what is named as a text is."""
    is_text = name in _TEXTS or (isinstance(name, str) and name.endswith(_ENDS_OF_TEXTS))
    return UNKNOWN if is_text else _held(kind)


def iterate(kind: Kind) -> Kind:
    """What one turn of a loop over the value gives."""
    if kind.tag in (Tag.LOADER, Tag.SEQUENCE, Tag.GENERATOR, Tag.DATASET):
        return kind.element or (NEVER if _is_empty(kind) else UNKNOWN)
    if kind.tag is Tag.TENSOR:
        return kind.but(fresh=False, rank=fewer(kind.rank), optional=False)
    if kind.tag in (Tag.BATCH, Tag.OUTPUT):
        # Iterating a dict gives its keys, so what comes from the device is not worth a finding.
        part = _held(kind)
        return part if kind.place is Place.HOST else part.at_most(Confidence.LOW)
    if kind.tag in (Tag.MAPPING, Tag.STATE_DICT):
        return STRING if all(isinstance(key, str) for key, _ in kind.items) else UNKNOWN
    if kind.tag is Tag.SHAPE:
        return NUMBER
    if kind.tag is Tag.STRING:
        return STRING
    if kind.tag is Tag.ARRAY:
        return ARRAY.at_most(Confidence.MEDIUM)
    if kind.tag is Tag.MODULE:
        return _part_of_module(kind)
    if kind.tag is Tag.UNKNOWN and kind.place is not Place.UNKNOWN:
        return kind  # whatever it is, its parts are where it was moved
    return NEVER if kind.tag in _NOTHING else UNKNOWN


def _part_of_module(kind: Kind) -> Kind:
    """One of the modules or parameters that a container of them holds."""
    held = kind.element
    if held is None or not held.known or kind.place is Place.UNKNOWN:
        return held if held is not None and held.known else Kind(Tag.MODULE, kind.place, certainty=Confidence.MEDIUM)
    return held.but(place=kind.place, device=kind.device) if held.place in (Place.UNKNOWN, Place.MODULE) else held


def _is_empty(kind: Kind) -> bool:
    """A list or dict literal without elements."""
    return kind.tag is Tag.SEQUENCE and kind.qualified == "empty"


def unpack(kind: Kind, path: tuple[int | str, ...]) -> Kind:
    """The part of a value that a target of a destructuring gets."""
    for step in path:
        if step == "*":
            kind = sequence(_element(kind))
        else:
            kind = _unpacked(kind, int(step))
    return kind


def _unpacked(kind: Kind, index: int) -> Kind:
    found = kind.item(index)
    if found is not None:
        return found
    return _element(kind)


def _element(kind: Kind) -> Kind:
    if kind.tag in (Tag.BATCH, Tag.OUTPUT):
        return _held(kind)
    if kind.tag is Tag.MAPPING:
        return STRING
    return iterate(kind)


def index(kind: Kind, key: int | str | None, *, is_slice: bool = False, by: Kind = UNKNOWN) -> Kind:
    """`kind[key]`; `key` is None when it is not a literal, and `by` what it is then."""
    if kind.tag is Tag.TENSOR:
        if Tag.NEVER is by.tag:
            return NEVER
        if kind.certainty is Confidence.LOW and not isinstance(key, str):
            kind = kind.but(certainty=Confidence.MEDIUM)  # of what may be a key, nobody takes a letter
        return kind.but(fresh=by.is_tensor, rank=_indexed(kind.rank, key, by, is_slice=is_slice), optional=False)
    if kind.tag in (Tag.BATCH, Tag.OUTPUT):
        if is_slice:
            return kind
        found = kind.item(key) if key is not None else None
        made = found or named_part(kind, key)
        return made.but(rank=SCALAR) if kind.tag is Tag.OUTPUT and key == "loss" else made
    if kind.tag is Tag.MAPPING:
        found = kind.item(key) if key is not None else None
        # What is written out under other keys says nothing of one that is put in elsewhere.
        is_elsewhere = isinstance(key, str) and bool(kind.items)
        return found or (UNKNOWN if is_elsewhere else kind.element) or UNKNOWN
    if kind.tag is Tag.SEQUENCE:
        if is_slice:
            return sequence(kind.element)
        found = kind.item(key) if isinstance(key, int) else None
        return found or iterate(kind)
    if kind.tag is Tag.LOADER and not kind.qualified and not is_slice:
        return kind  # `dataloaders[phase]`: no loader has items, so what goes by such a name holds several
    if kind.tag is Tag.SHAPE:
        return SHAPE if is_slice else NUMBER
    if kind.tag is Tag.STATE_DICT:
        return kind.element or UNKNOWN
    if kind.tag is Tag.MODULE:
        return _part_of_module(kind)
    if kind.tag is Tag.DATASET and kind.element is not None and not is_slice:
        return kind.element
    if kind.tag in (Tag.STRING, Tag.ARRAY):
        return kind.but(device=None).at_most(Confidence.MEDIUM)
    if kind.tag is Tag.UNKNOWN and kind.place is not Place.UNKNOWN:
        return kind
    return NEVER if kind.tag in _NOTHING else UNKNOWN


def binary(left: Kind, op: ast.operator, right: Kind) -> Kind:
    """`left op right`."""
    if left.tag in _NOTHING or right.tag in _NOTHING:
        return NEVER
    if left.tag is Tag.STRING and isinstance(op, (ast.Mod, ast.Add, ast.Mult)):
        return STRING if left.device is None else STRING.but(device=left.device)  # `"cuda:" + str(rank)`
    if left.holds_tensors or right.holds_tensors:
        return _tensor_result(left, right).but(dtype=_arithmetic(left, op, right))
    if Tag.ARRAY in (left.tag, right.tag):
        return ARRAY
    if Tag.UNKNOWN in (left.tag, right.tag):
        return _of_unknown((left, right))
    tags = {left.tag, right.tag}
    if tags == {Tag.NUMBER}:
        return NUMBER
    if Tag.SHAPE in tags and tags <= {Tag.SHAPE, Tag.SEQUENCE}:
        return SHAPE
    if tags == {Tag.SEQUENCE} and isinstance(op, ast.Add):
        return sequence(join(kind.element for kind in (left, right) if kind.element is not None))
    if tags == {Tag.SEQUENCE, Tag.NUMBER} and isinstance(op, ast.Mult):
        held = left if left.tag is Tag.SEQUENCE else right
        return sequence(held.element)
    if tags == {Tag.MAPPING} and isinstance(op, ast.BitOr):
        return mapping(join(kind.element for kind in (left, right) if kind.element is not None))
    if left.tag is right.tag and left.tag is Tag.STRING:
        return STRING
    return UNKNOWN


def _of_unknown(kinds: tuple[Kind, ...]) -> Kind:
    """The result of an operator on values of which one is not known: a tensor where one was moved to the device, on the
    host where all of them are.
    """
    moved = [kind for kind in kinds if kind.tag is Tag.UNKNOWN and kind.on_accelerator]
    if moved:
        place, device = same_place(moved)
        return tensor(place, device=device, fresh=True, certainty=Confidence.MEDIUM, origin=moved[0].origin)
    left, right = kinds[0], kinds[-1]
    is_host = all(kind.tag is Tag.NUMBER or (kind.tag is Tag.UNKNOWN and kind.on_host) for kind in (left, right))
    return UNKNOWN.but(place=Place.HOST) if is_host else UNKNOWN


def _tensor_result(left: Kind, right: Kind) -> Kind:
    place, device = same_place((left, right))
    both = (left, right)
    rank = broadcast(rank_of(kind) for kind in both)
    grad = True if any(kind.requires_grad for kind in both) else None
    certainty = min(kind.certainty for kind in both if kind.holds_tensors)
    origin = next((kind.origin for kind in both if kind.holds_tensors and kind.place is place), None)
    return tensor(place, device=device, rank=rank, fresh=True, requires_grad=grad, certainty=certainty, origin=origin)


def rank_of(kind: Kind) -> int | None:
    """The rank of an operand: of a Python number it is that of a scalar."""
    return SCALAR if kind.tag is Tag.NUMBER else kind.rank if kind.tag is Tag.TENSOR else None


def _arithmetic(left: Kind, op: ast.operator, right: Kind) -> Dtype | None:
    """The type of `left op right`: a Python number leaves a floating tensor what it is."""
    held = [kind for kind in (left, right) if kind.tag is not Tag.NUMBER]
    found = dtypes.promoted(kind.dtype for kind in held)
    if isinstance(op, ast.Div) and found in (None, Dtype.BOOL, Dtype.INT):
        return Dtype.FLOATING
    if len(held) == 1 and found in (Dtype.BOOL, Dtype.INT) and not isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        return None
    return found


def _indexed(rank: int | None, key: object, by: Kind, *, is_slice: bool) -> int | None:
    """The rank of `x[key]`."""
    if is_slice:
        return rank
    if isinstance(key, int) or by.tag is Tag.NUMBER:
        return fewer(rank)
    if by.is_tensor and by.dtype is Dtype.INT:
        return placed(rank, by.rank)
    return SOME if by.is_tensor and by.dtype is Dtype.BOOL else None


def compare(left: Kind, ops: list[ast.cmpop], others: list[Kind]) -> Kind:
    """`left == right`: a tensor of booleans when either is a tensor, otherwise a Python bool."""
    kinds = [left, *others]
    if len(ops) == 1 and isinstance(ops[0], _COMPARING):
        if any(kind.tag is Tag.NEVER for kind in kinds):
            return NEVER
        if any(kind.holds_tensors for kind in kinds):
            return _tensor_result(left, others[0]).but(requires_grad=False, dtype=Dtype.BOOL)
        if any(kind.tag is Tag.ARRAY for kind in kinds):
            return ARRAY
        if any(kind.tag is Tag.UNKNOWN for kind in kinds):
            return _of_unknown((left, others[0]))
    return NUMBER


def unary(op: ast.unaryop, operand: Kind) -> Kind:
    """The result of an operator with one operand."""
    if isinstance(op, ast.Not):
        return NUMBER
    if operand.holds_tensors:
        return tensor(
            operand.place,
            device=operand.device,
            rank=operand.rank,
            dtype=operand.dtype,
            fresh=True,
            requires_grad=operand.requires_grad,
            certainty=operand.certainty,
            origin=operand.origin,
        )
    return NEVER if operand.tag in _NOTHING else operand


def constant(value: object) -> Kind:
    """A literal; the name of a device is told from other strings."""
    if value is None:
        return NONE
    if isinstance(value, (int, float, complex)):
        return NUMBER
    if isinstance(value, str):
        device = device_named(value) if len(value) < 16 else None
        return STRING if device is None else STRING.but(device=device)
    return STRING if isinstance(value, bytes) else UNKNOWN


def formatted(node: ast.JoinedStr) -> Kind:
    """`f"cuda:{rank}"` names a device."""
    first = node.values[0] if node.values else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value.endswith(":"):
        device = device_named(first.value)
        if device is not None:
            return STRING.but(device=device)
    return STRING


def has_parts(kind: Kind) -> bool:
    """Whether all items of a sequence are known by their places."""
    return kind.tag is Tag.SEQUENCE and bool(kind.items) and not kind.longer and not kind.bare
