"""One evaluation of a function's body."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from perflint.analysis.values.kind import Kind
from perflint.syntax.tree import FunctionNode


@dataclass(slots=True, eq=False)
class Frame:
    """One evaluation of a function's body for given arguments."""

    function: FunctionNode | ast.Lambda
    params: Mapping[str, Kind]
    memo: dict[int, Kind] = field(default_factory=dict)


class OnDemand(Mapping[str, Kind]):
    """What is given for parameters, each worked out whenever it is asked for: the queries behind it remember it, and
    most questions about one call are of one parameter.
    """

    def __init__(self, items: Mapping[str, ast.arg], make: Callable[[ast.arg], Kind]) -> None:
        self._items = items
        self._make = make

    def __getitem__(self, name: str) -> Kind:
        return self._make(self._items[name])

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)
