"""Loops of a library that train nothing and that nobody but its users runs: what they hand to objects of the library
says nothing of what users hand to these themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflint.analysis.call_graph.callbacks import FunctionRoot
from perflint.analysis.names.refs import Scope
from perflint.ir.summary import MODULE

if TYPE_CHECKING:
    from perflint.analysis.program import Program


class LeftToUsers:
    """Those of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[Scope, bool] = {}

    def holds(self, scope: Scope, context: int, callee: Scope) -> bool:
        """Whether a call stands in such a loop, or is run by it, and users may call the `callee` as well: an object, or
        the forward of one.
        """
        roots = self._program.roots
        if not roots.library.is_library or callee.function.rpartition(".")[2] not in ("forward", "__call__"):
            return False
        if not roots.library.is_open(callee):
            return False
        origin = self._program.origin(scope, context)
        if origin is None or isinstance(origin, FunctionRoot) or roots.loops[origin].role == "train":
            return False
        if origin[0] not in self._known:
            self._known[origin[0]] = self._is_left(origin[0])
        return self._known[origin[0]]

    def _is_left(self, scope: Scope) -> bool:
        """Whether nothing but functions that users may call leads to a function."""
        seen, waiting = {scope}, [scope]
        while waiting:
            scope = waiting.pop()
            if scope.function == MODULE or not self._program.roots.library.is_open(scope):
                return False
            callers = {edge.caller for edge in self._program.callers(scope)} - seen
            seen |= callers
            waiting += callers
        return True
