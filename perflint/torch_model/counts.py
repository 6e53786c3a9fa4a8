"""Arguments that PyTorch needs as Python numbers: a tensor there is read on the host (`__index__`, `__float__`).

Each was tried with torch 2.13 by counting `aten::_local_scalar_dense`. Positions count without the tensor that the
operation is about; a function takes that first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from perflint.torch_model.names import words


class Counts(NamedTuple):
    """The positions from `first` on, up to `last` where there is an end, and keywords that take numbers."""

    first: int
    last: int
    keywords: frozenset[str] = frozenset()


_ALL = 1_000
#: Constructors of `torch`, whose positions count from their first argument.
CONSTRUCTORS: Mapping[str, Counts] = {
    **dict.fromkeys("zeros ones empty rand randn".split(), Counts(0, _ALL, words("size"))),
    **dict.fromkeys("arange range linspace logspace eye".split(), Counts(0, 3, words("start end step steps n m base"))),
    "randint": Counts(0, 3, words("low high size")),
    "full": Counts(0, 2, words("size fill_value")),
    "randperm": Counts(0, 1, words("n")),
    **dict.fromkeys(
        "hann_window hamming_window blackman_window bartlett_window kaiser_window".split(),
        Counts(0, 1, words("window_length")),
    ),
}
#: Methods of tensors, and functions of `torch` and `torch.nn.functional` of the same name that take the tensor first.
OPERATIONS: Mapping[str, Counts] = {
    **dict.fromkeys("view reshape expand repeat tile new_zeros new_ones new_empty".split(), Counts(0, _ALL)),
    "new_full": Counts(0, 2, words("size fill_value")),
    "topk": Counts(0, 1, words("k")),
    "kthvalue": Counts(0, 1, words("k")),
    "split": Counts(0, 1, words("split_size split_size_or_sections")),
    "split_with_sizes": Counts(0, 1, words("split_sizes")),
    "chunk": Counts(0, 1, words("chunks")),
    "narrow": Counts(1, 3, words("start length")),
    "select": Counts(1, 2, words("index")),
    "roll": Counts(0, 1, words("shifts")),
    "unfold": Counts(1, 3, words("size step")),
    "tril": Counts(0, 1, words("diagonal")),
    "triu": Counts(0, 1, words("diagonal")),
    "unflatten": Counts(1, 2, words("sizes")),
    "multinomial": Counts(0, 1, words("num_samples")),
    "bincount": Counts(1, 2, words("minlength")),
    "normal_": Counts(0, 2, words("mean std")),
    "uniform_": Counts(0, 2, words("from to")),
    "add": Counts(9, 9, words("alpha")),
    "add_": Counts(9, 9, words("alpha")),
    "sub": Counts(9, 9, words("alpha")),
    "addcmul": Counts(9, 9, words("value")),
    "addcdiv": Counts(9, 9, words("value")),
    "addcmul_": Counts(9, 9, words("value")),
    "addcdiv_": Counts(9, 9, words("value")),
    "one_hot": Counts(0, 1, words("num_classes")),
    "pad": Counts(0, 1, words("pad")),
    "interpolate": Counts(0, 1, words("size")),
    "dropout": Counts(0, 1, words("p")),
}
NAMES = frozenset({*CONSTRUCTORS, *OPERATIONS})
#: Functions that make host numbers of a list, at a place or under a name: each device number in it is read.
LISTED: Mapping[str, tuple[int, str]] = {"pack_padded_sequence": (1, "lengths")}
#: Constructors that copy each number of a list to where the tensor is made: each device number in it is read.
OF_LISTS = words("tensor as_tensor asarray")
