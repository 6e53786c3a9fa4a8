"""Ranks and types of what library calls give, from their arguments: rules over the tables of `torch_model.results`."""

from __future__ import annotations

from collections.abc import Sequence

from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.dtypes import Dtype
from perflint.analysis.values.kind import UNKNOWN, Kind, Place, Tag, sequence, tensor
from perflint.analysis.values.operations import rank_of
from perflint.analysis.values.ranks import SCALAR, SOME, broadcast, fewer, more
from perflint.analysis.values.transfers import named_by
from perflint.torch_model import results, tensors
from perflint.torch_model.names import last

_STACKING = frozenset({"stack"})
_JOINING = frozenset({"cat", "concat", "concatenate"})


def given_dtype(arguments: Arguments) -> Dtype | None:
    """The type that `dtype=` says."""
    given = arguments.at(-1, "dtype")
    return None if given is None else named_by(given)


def of_constructor(name: str, arguments: Arguments) -> int | None:
    """The rank of a new tensor."""
    short = last(name)
    if short in results.CONSTRUCTED_RANK:
        return results.CONSTRUCTED_RANK[short]
    first = arguments.at(0, "size")
    if short in results.SIZED:
        return _sized(arguments)
    if first is None or not arguments.exact:
        return None
    if short in ("full", "randint", "normal"):
        return None
    return _of_data(first)


def of_new(name: str, arguments: Arguments) -> int | None:
    """The rank of what a tensor makes of sizes, or of data: `x.new_zeros(n, 3)`, `x.new_tensor(rows)`."""
    if name in ("new_zeros", "new_ones", "new_empty"):
        return _sized(arguments)
    first = arguments.at(0) if name == "new_tensor" and arguments.exact else None
    return None if first is None else _of_data(first)


def _of_data(kind: Kind) -> int | None:
    """The rank of a tensor of Python data."""
    if kind.tag in (Tag.NUMBER, Tag.TENSOR):
        return rank_of(kind)
    if kind.tag is Tag.SEQUENCE:
        # All rows are alike: one of which everything is known tells of the others.
        rows = [row for _, row in kind.items] or [kind.element or UNKNOWN]
        held = next((rank for rank in map(_of_data, rows) if rank is not None), None)
        return None if held is None else more(held)
    return None


def _sized(arguments: Arguments) -> int | None:
    given = list(arguments.positional)
    if not given or not arguments.exact:
        return None
    kinds = [thunk() for thunk in given]
    if all(kind.tag is Tag.NUMBER for kind in kinds):
        return len(kinds)
    return _length(kinds[0]) if len(kinds) == 1 else None


def dtype_of_constructor(name: str, arguments: Arguments) -> Dtype | None:
    """The type of a new tensor: as `dtype=` says, or by the function and the literals that it is given."""
    if arguments.has("dtype"):
        return given_dtype(arguments)
    short = last(name)
    if short in results.INTEGER_CONSTRUCTORS:
        return Dtype.INT
    if short in results.FLOATING_CONSTRUCTORS and arguments.exact:
        return Dtype.FLOATING
    if short in ("tensor", "as_tensor", "asarray", "scalar_tensor"):
        first = arguments.at(0)
        if first is not None and first.tag in (Tag.TENSOR, Tag.ARRAY):
            return first.dtype
        return _of_literal(arguments.constant(0))
    return _of_literal(arguments.constant(1)) if short == "full" else None


def _of_literal(value: object) -> Dtype | None:
    if isinstance(value, bool):
        return Dtype.BOOL
    if isinstance(value, int):
        return Dtype.INT
    return Dtype.FLOATING if isinstance(value, float) else None


def of_function(name: str, arguments: Arguments, given: Sequence[Kind]) -> int | None:
    """The rank of what a function gives; `given` are its tensors, those in a list one by one."""
    short = last(name)
    if name in tensors.LOSS_FUNCTIONS:
        return SCALAR if arguments.constant(-1, "reduction", "mean") != "none" and arguments.exact else None
    if short in tensors.REDUCTIONS:
        first = given[0] if given else None
        return _reduced(first.rank if first is not None else None, arguments, after=1)
    ranks = [kind.rank for kind in given if kind.is_tensor]
    if short in _STACKING:
        return more(ranks[0]) if ranks else SOME
    if short in _JOINING:
        return ranks[0] if ranks and ranks[0] != SCALAR else None
    if short in results.ELEMENTWISE:
        return broadcast(rank_of(kind) for kind in given if kind.tag is not Tag.STRING)
    first_rank = ranks[0] if ranks else None
    return of_method(short, first_rank, arguments, after=1)


def of_method(name: str, rank: int | None, arguments: Arguments, *, after: int = 0) -> int | None:
    """The rank of what a method gives of a tensor of this rank; its own arguments come `after` the tensor."""
    plain = name.rstrip("_")
    if plain in tensors.REDUCTIONS:
        return _reduced(rank, arguments, after=after)
    if plain in results.FIXED_RANK:
        return results.FIXED_RANK[plain]
    if name in results.SAME_RANK or plain in results.SAME_RANK:
        return rank
    if plain in results.ELEMENTWISE:
        return broadcast([rank, *(rank_of(kind) for kind in arguments.kinds())])
    if plain == "unsqueeze":
        return more(rank)
    if plain in ("select", "unbind"):
        return fewer(rank)
    if plain == "flatten":
        return 1 if len(arguments) == after and not arguments.keywords else SOME
    if plain in ("view", "reshape", "expand", "repeat"):
        sizes = [thunk() for thunk in list(arguments.positional)[after:]]
        length = _length(sizes[0]) if len(sizes) == 1 else None
        if length is not None:
            return length
        return len(sizes) if sizes and arguments.exact and all(size.tag is Tag.NUMBER for size in sizes) else None
    return SCALAR if rank == SCALAR and plain not in ("repeat_interleave", "tile", "grad") else None


def _reduced(rank: int | None, arguments: Arguments, *, after: int) -> int | None:
    """The rank of a reduction: over all dimensions, or over the one that is given."""
    if not arguments.exact:
        return None
    over = arguments.at(after, "dim") if len(arguments) > after or arguments.has("dim") else None
    if over is None and not arguments.has("axis"):
        return SCALAR if len(arguments) <= after else None
    if arguments.has("keepdim") or len(arguments) > after + 1:
        return rank if arguments.constant(after + 1, "keepdim") is True else None
    return fewer(rank) if over is not None and over.tag is Tag.NUMBER else None


def several(name: str, made: Kind) -> Kind:
    """What an operation gives that gives several tensors, where each of them is like `made`."""
    plain = last(name)
    if plain in results.WITH_INDICES:
        return values_and_indices(made)
    if plain == "pad_packed_sequence":
        return sequence(items=(made, tensor(Place.HOST, rank=1, dtype=Dtype.INT)))  # the lengths stay on the host
    return sequence(made)


def of_grid(arguments: Arguments) -> int | None:
    """The rank of each part of a grid: one dimension for each tensor that it is made of, alone or in one list."""
    kinds = [thunk() for thunk in arguments.positional]
    if not arguments.exact or not kinds:
        return None
    return _length(kinds[0]) if kinds[0].tag is Tag.SEQUENCE else len(kinds)


def positions(name: str, made: Kind, arguments: Arguments) -> Kind:
    """What a method gives that may give several tensors, as its arguments say."""
    if name in ("unique", "unique_consecutive"):
        return unique(made, arguments)
    several_of_it = name == "nonzero" and arguments.is_true("as_tuple")
    return sequence(made.but(rank=1)) if several_of_it else made


def unique(made: Kind, arguments: Arguments) -> Kind:
    """What `unique` gives: the values, and as far as asked where each came to lie, and how often it was there."""
    parts = [part for part in ("return_inverse", "return_counts") if not _is_false(part, arguments)]
    if not parts:
        return made
    counted = made.but(dtype=Dtype.INT, requires_grad=False)
    if any(arguments.constant(-1, part) is not True for part in parts):
        return sequence(made.but(rank=None, dtype=None))
    rest = [counted.but(rank=1 if part == "return_counts" else None) for part in parts]
    return sequence(items=(made, *rest))


def _is_false(name: str, arguments: Arguments) -> bool:
    return not arguments.has(name) or arguments.constant(-1, name) is False


def values_and_indices(made: Kind) -> Kind:
    """What `max(dim)` gives: values, and where they are."""
    return sequence(items=(made, made.but(dtype=Dtype.INT)), qualified="values indices")


def _length(kind: Kind) -> int | None:
    """How many items a sequence has, where all of them are known."""
    return len(kind.items) if kind.tag is Tag.SEQUENCE and kind.items and not kind.longer else None
