"""Provenance of abstract values: which source tells their place and type, as data for rules, with a join."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Provenance(enum.IntEnum):
    """What tells where a value is. Of two sources the lower one is kept (`join_origins`)."""

    #: A batch that a data loader gives; `name` is the loader's class.
    LOADER = 1
    #: A batch of what only its name shows to be a loader.
    NAMED_LOADER = 2
    #: A list that a project's `collate_fn` makes.
    COLLATED = 3
    #: A parameter or buffer of a module.
    BUFFER = 4
    PARAMETER = 5
    #: The result of a module; of a function of a library, `name`.
    MODULE = 6
    FUNCTION = 7
    #: An annotation, and nothing else.
    ANNOTATION = 8
    #: A sample of a distribution; `name` is its class.
    DISTRIBUTION = 9
    #: What a model generates.
    GENERATED = 10
    #: A constructor that makes a tensor of numbers; `name` is its dotted name.
    CONSTRUCTOR = 11
    #: The same beside another tensor: `torch.zeros_like`.
    LIKE = 12
    TOKENIZER = 13
    #: A move between devices; `name` is the method.
    MOVE = 14
    #: One part of a batch.
    PART = 15
    #: What a framework passes to a hook or has put on the device; `name` is the hook.
    FRAMEWORK = 16
    PREPARED = 17
    #: How a function uses its parameter, and nothing else.
    USE = 18
    #: A method of it that only tensors have, and nothing else; `name` is the method.
    METHOD = 19
    #: Of a module: a wrapper around it moves what it is called with (`DataParallel`). Where it is used bare as well,
    #: having been moved to the device by itself, this is not kept.
    SCATTERED = 20


class Origin(NamedTuple):
    """A source, with the name of what it is: of the function, class, method or hook. Empty where several are."""

    source: Provenance
    name: str = ""


def is_from(origin: Origin | None, *sources: Provenance) -> bool:
    """Whether a value comes from one of these sources."""
    return origin is not None and origin.source in sources


def join_origins(left: Origin | None, right: Origin | None) -> Origin | None:
    """The origin of a value that is one of two: None, the bottom, adds nothing; of one source with two names the names
    are dropped; of two sources the lower one is kept.
    """
    if left is None or right is None:
        return left if right is None else right
    if left.source is not right.source:
        return min(left, right)
    return left if left.name == right.name else Origin(left.source)
