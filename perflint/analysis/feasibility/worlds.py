"""Which runs a value is told of: `ANY`; those `BY_DEFAULT`, where no user has changed an option; those `OFFERED`, where
a command line or a variable of the environment may have, and no edit of the code or of a configuration; or any of one
mode.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from perflint.analysis.call_graph.edges import Edge


class World(Enum):
    """Which runs a value is told of."""

    ANY = "any"
    BY_DEFAULT = "by default"
    OFFERED = "offered"
    #: Any run, while its modules are in training mode.
    TRAINING = "training"
    #: Any run, while they are in evaluation mode.
    EVALUATING = "evaluating"

    __hash__ = object.__hash__


#: Runs in which what only an edit of the code, or another configuration file, would change is as it is.
KEEPING = frozenset({World.BY_DEFAULT, World.OFFERED})


class Frame(NamedTuple):
    """The call through which a function runs, and the one through which its caller does; None where that is any."""

    edge: Edge
    outer: Frame | None = None


#: How many calls of a route are told apart.
LONGEST = 4


def frame_of(edges: list[Edge]) -> Frame | None:
    """The frame of a function that runs through these calls, its own first."""
    found = None
    for edge in reversed(edges[:LONGEST]):
        found = Frame(edge, found)
    return found
