"""One evaluation of a function's body."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from perflint.analysis.values.kind import Kind
from perflint.syntax.tree import FunctionNode


@dataclass(slots=True, eq=False)
class Frame:
    """One evaluation of a function's body for given arguments."""

    function: FunctionNode | ast.Lambda
    params: dict[str, Kind]
    memo: dict[int, Kind] = field(default_factory=dict)
