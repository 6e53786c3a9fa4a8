"""Calls between functions of the project, resolved."""

from __future__ import annotations

from typing import NamedTuple

from perflint.analysis.names.refs import Scope
from perflint.finding import Confidence


class Edge(NamedTuple):
    """`caller` runs `callee` at `line`, in context `context` of the caller. `index` is the call's place in its facts,
    -1 for a property that is read.

    A `callback` is handed to the call, which then runs it with arguments nobody sees. One that `stands_in` for a method
    that only says it is missing runs for some of the objects that the call is of: it says when, not with what.
    """

    caller: Scope
    callee: Scope
    context: int
    line: int
    confidence: Confidence
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody asks an edge for
    callback: bool = False
    stands_in: bool = False
