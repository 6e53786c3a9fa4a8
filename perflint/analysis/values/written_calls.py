"""The calls of a file as they are written, by the edges of the call graph that stand for them."""

from __future__ import annotations

import ast

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.values import operations
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.kind import UNKNOWN, Kind
from perflint.analysis.values.spread_arguments import written_out
from perflint.ir.callees import last_name as last_of
from perflint.ir.notation import last_name
from perflint.syntax.tree import start_of


class WrittenCalls:
    """The nodes of calls, which summaries know by their places alone."""

    def __init__(self, inference: Evaluating) -> None:
        self._inference = inference
        self._known: dict[tuple[int, int, str], ast.Call | None] = {}

    def of(self, edge: Edge) -> ast.Call | None:
        """The call of this file that an edge stands for."""
        facts = (
            self._inference.program.summaries[self._inference.path].functions[edge.caller.function].calls[edge.index]
        )
        return self._at(facts.line, facts.column, last_of(facts.func))

    def argument(self, call: ast.Call, name: str, place: int) -> ast.expr | None:
        """What a call passes by a name or at a place; a starred expression where that hides it."""
        args, keywords = written_out(call, self._inference.flow, self._inference.tree)
        for keyword in keywords:
            if keyword.arg == name:
                return keyword.value
        if place < 0:
            return None
        spread = next((item for item in args[: place + 1] if isinstance(item, ast.Starred)), None)
        return spread or (args[place] if place < len(args) else None)

    def given(self, call: ast.Call, node: ast.expr, place: int, frame: Frame | None) -> Kind | None:
        """What an argument of a call gives at a place: of `step(*batch)` the part that comes there; None where the
        parts are known, and are fewer.
        """
        kind = self._inference.eval(node, frame)
        if not isinstance(node, ast.Starred):
            return kind
        args, _ = written_out(call, self._inference.flow, self._inference.tree)
        first = args.index(node)
        if operations.has_parts(kind) and kind.item(place - first) is None:
            return None if node is args[-1] else UNKNOWN
        return operations.unpack(kind, (place - first,))

    def _at(self, line: int, column: int, name: str) -> ast.Call | None:
        """The call of this file at a position, linked. Of those that begin together (`a.b().c()`), that of `name`."""
        key = line, column, name
        if key not in self._known:  # it is asked for once for each parameter
            self._known[key] = self._looked_up(*key)
        return self._known[key]

    def _looked_up(self, line: int, column: int, name: str) -> ast.Call | None:
        tree = self._inference.tree
        found = _calls_at(line, column, tree.around((line, column)))
        if not found:
            # In formatted strings, places may be told wrongly.
            tops = [top for top in tree.module.body if start_of(top)[0] <= line <= (top.end_lineno or line)]
            found = [call for top in tops for call in _calls_at(line, column, tree.walk(top))]
        return next((call for call in found if last_name(call.func) == name), None)


def _calls_at(line: int, column: int, nodes: list[ast.AST]) -> list[ast.Call]:
    return [node for node in nodes if isinstance(node, ast.Call) and (node.lineno, node.col_offset) == (line, column)]
