"""Which functions run several times in one step: in an inner loop, by several calls, or in each layer of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.finding import Heat
from perflint.ir.summary import FunctionFacts

if TYPE_CHECKING:
    from perflint.analysis.program import Program

#: What runs a module.
_FORWARDS = frozenset({"forward", "__call__"})


class Repetition:
    """Answers for one program, along the calls that make a function hot: those of the route that is printed."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[Scope, bool] = {}

    def runs_several_times(self, scope: Scope) -> bool:
        """Whether a function runs more than once in a step that runs it."""
        found = self._known.get(scope)
        if found is None:
            found = self._known[scope] = self._search(scope)
        return found

    def _search(self, scope: Scope) -> bool:
        seen: set[Scope] = set()
        while scope not in seen:
            seen.add(scope)
            if self._is_of_many_instances(scope):
                return True
            edge = self._program.hottest_call(scope)
            if edge is None or edge.index < 0 or not self._is_hot(edge):
                return False
            same = [item for item in self._program.callers(scope) if item.caller == edge.caller and self._is_hot(item)]
            if self._is_called_twice(same) or self._is_in_inner_loop(edge):
                return True
            if self._program.heat(edge.caller) < Heat.STEP:
                return False
            scope = edge.caller
        return False

    def _is_hot(self, edge: Edge) -> bool:
        return self._program.heat_at(edge.caller, edge.context) >= Heat.STEP

    def _is_called_twice(self, calls: list[Edge]) -> bool:
        """Whether two of the calls that one function makes run whenever it does, or stand in one of its loops over
        steps: a training and its evaluation are two loops.
        """
        sure: dict[int, set[int]] = {}
        for edge in calls:
            facts = self._program.function(edge.caller)
            call = facts.calls[edge.index]
            if self._program.heat(edge.caller) < Heat.STEP:
                sure.setdefault(self._loop_of_steps(edge, facts), set()).add(edge.index)
            elif facts.is_sure(call.line, call.column):
                sure.setdefault(-1, set()).add(edge.index)
        return any(len(together) > 1 for together in sure.values())

    def _loop_of_steps(self, edge: Edge, facts: FunctionFacts) -> int:
        """The loop of a function around a call whose iterations are steps; -1 where it has none."""
        loops = self._program.roots.loops
        roots = ((index, loops.get((edge.caller, index))) for index in facts.loops_around(edge.context))
        return next((index for index, loop in roots if loop is not None and loop.heat >= Heat.STEP), -1)

    def _is_in_inner_loop(self, edge: Edge) -> bool:
        """Whether a loop around a call runs more than one iteration in each step."""
        program, caller = self._program, edge.caller
        facts = program.function(caller)
        for index in facts.loops_around(edge.context):
            loop = program.roots.loops.get((caller, index))
            if loop is not None and loop.heat >= Heat.STEP:
                return False
            if program.heat_at(caller, facts.loops[index].context) >= Heat.STEP:
                return True
        return False

    def _is_of_many_instances(self, scope: Scope) -> bool:
        """Whether a forward belongs to a class of which a model has several: made in a loop or by several calls in a
        module's methods, or in a comprehension anywhere; or to a part of such a class.
        """
        facts = self._program.function(scope)
        if facts.name not in _FORWARDS or not facts.in_class:
            return False
        made = Scope(scope.path, f"{facts.in_class}.__init__")
        seen, stack = {made}, [made]
        while stack:
            callee = stack.pop()
            if callee.function not in self._program.summaries[callee.path].functions:
                continue
            counts: dict[Scope, set[int]] = {}
            for edge in self._program.callers(callee):
                outer = self._program.function(edge.caller)
                loop = outer.innermost_loop(edge.context)
                builds = self._builds_module(outer, edge.caller.path)
                if loop is not None and (builds or outer.loops[loop].kind == "comprehension"):
                    return True
                if builds:
                    counts.setdefault(edge.caller, set()).add(edge.index)
                    if edge.caller not in seen:
                        seen.add(edge.caller)
                        stack.append(edge.caller)
            if any(len(indices) > 1 for indices in counts.values()):
                return True
        return False

    def _builds_module(self, facts: FunctionFacts, path: str) -> bool:
        """Whether a function is a method of a module's instance: what it makes is a part of that."""
        if not facts.in_class or not {"classmethod", "staticmethod"}.isdisjoint(
            item for item in facts.decorators if isinstance(item, str)
        ):
            return False
        return self._program.is_module(Ref(CLASS, path, facts.in_class))
