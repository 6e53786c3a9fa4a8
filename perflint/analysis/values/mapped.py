"""Functions that are mapped: what `map(f, xs, ys)` and `zip(*rows)` give, and what a function is given by whoever maps
it over lists: `multi_apply(self.target_of_one, scores, boxes)`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import UNKNOWN, Kind, Tag, sequence
from perflint.analysis.values.written_calls import WrittenCalls
from perflint.ir.notation import last_name
from perflint.syntax.tree import FUNCTIONS, FunctionNode

#: So many calls of a function that maps are looked at.
_MOST = 32


def transposed(rows: Kind) -> Kind | None:
    """`zip(*rows)` of rows that are known part by part: one sequence for each part."""
    row = rows.element
    if rows.tag is not Tag.SEQUENCE or row is None or row.tag is not Tag.SEQUENCE or not row.items:
        return None
    return _parts(row, sequence)


def each(kind: Kind, made: Callable[[Kind], Kind]) -> Kind | None:
    """What a function makes of each part of a sequence that is known part by part."""
    return _parts(kind, made) if kind.tag is Tag.SEQUENCE and kind.items else None


def _parts(kind: Kind, made: Callable[[Kind], Kind]) -> Kind:
    found = sequence(items=[made(part) for _, part in kind.items])
    # Of what may have more parts than are known, nothing is said of those.
    return found.but(longer=True, element=made(kind.element or UNKNOWN)) if kind.longer else found


class Mapping:
    """What the functions of one file are given where calls of it hand them to what maps them."""

    def __init__(self, inference: Evaluating) -> None:
        self._inference = inference
        self._calls = WrittenCalls(inference)

    def given(self, edge: Edge, name: str, place: int) -> list[Kind]:
        """What a function is given for the parameter at a place by `map`, which a call of this file is: `map(name, xs)`
        or, where functions are handed over to be mapped, `map(func, *args)` for each call that hands it over.
        """
        call = self._calls.of(edge) if edge.index >= 0 and place >= 0 else None
        if call is None or last_name(call.func) != "map" or len(call.args) < 2:
            return [UNKNOWN]
        if last_name(call.args[0]) == name:
            return [self._item(call, place)]
        node = self._inference.classes.function_node(edge.caller.function)
        if not isinstance(node, FUNCTIONS) or not _hands_on(node, call):
            return [UNKNOWN]
        found: list[Kind] = []
        for handing in self._inference.program.callers(edge.caller)[:_MOST]:
            other = self._inference.at(handing.caller.path)
            found += other.parameters.mapping.handed(handing, name, place) if other is not None else [UNKNOWN]
        return found or [UNKNOWN]

    def handed(self, edge: Edge, name: str, place: int) -> list[Kind]:
        """The same of a call of this file that hands functions to what maps them; nothing where it hands another."""
        call = self._calls.of(edge) if edge.index >= 0 else None
        if call is None or not call.args:
            return [UNKNOWN]
        return [self._item(call, place)] if last_name(call.args[0]) == name else []

    def _item(self, call: ast.Call, place: int) -> Kind:
        if place + 1 >= len(call.args) or any(isinstance(item, ast.Starred) for item in call.args):
            return UNKNOWN
        return self._inference.iterate(self._inference.eval(call.args[place + 1], None))


def _hands_on(node: FunctionNode, call: ast.Call) -> bool:
    """Whether a call of `map` goes through all that its function is given: `def apply_to_each(func, *args)`."""
    rest, spread = node.args.vararg, call.args[1]
    if rest is None or len(node.args.args) != 1 or not isinstance(spread, ast.Starred):
        return False
    return isinstance(spread.value, ast.Name) and spread.value.id == rest.arg
