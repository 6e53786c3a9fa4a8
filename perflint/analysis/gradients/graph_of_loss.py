"""What a value was computed from with its graph: the expressions that a backward pass from it goes through."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.trained_after import values_of
from perflint.ir.calls import callee_name

#: What cuts a value from the graph it was computed in.
_CUTS = frozenset({"detach", "item", "numpy", "tolist", "detach_"})
_WITHOUT_GRAPH = frozenset({"data", "shape", "grad"})
_MOST_PARTS = 512


def graph_behind(value: ast.expr, ctx: FileFacts) -> Iterator[ast.expr]:
    """The expressions of the function, and of what surrounds it, that the graph of a value leads through."""
    waiting, seen = [value], set[int]()
    while waiting and len(seen) < _MOST_PARTS:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, ast.Call) and (callee_name(part) in _CUTS or ctx.grad_off(part)):
            continue
        if isinstance(part, ast.Attribute) and part.attr in _WITHOUT_GRAPH:
            continue
        yield part
        if isinstance(part, (ast.Name, ast.Attribute)):
            waiting += values_of(part, ctx)
        callee = part.func if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) else None
        waiting += [
            child for child in ast.iter_child_nodes(part) if isinstance(child, ast.expr) and child is not callee
        ]
        waiting += [item.value for item in ast.iter_child_nodes(part) if isinstance(item, ast.keyword)]


def goes_through(value: ast.expr, trained: set[str], ctx: FileFacts) -> bool:
    """Whether a value was computed by one of the modules, with its graph."""
    texts = (ctx.text(part.func) for part in graph_behind(value, ctx) if isinstance(part, ast.Call))
    return any(text == module or text.startswith(f"{module}.") for text in texts for module in trained)
