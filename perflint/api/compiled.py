"""Code that is compiled or traced."""

from __future__ import annotations

from perflint.analysis.call_graph.compiled_code import compiled_at, is_compile_call

__all__ = [
    "compiled_at",
    "is_compile_call",
]
