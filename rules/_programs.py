"""What rules ask about the whole program, beyond its names: which keywords its calls pass, which values they name."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from perflint.api import CallFacts, Context, Program


def calls_of(program: Program) -> Iterator[CallFacts]:
    """The calls of the program that a summary keeps: all but those that carry nothing into its code."""
    for summary in program.summaries.values():
        for facts in summary.functions.values():
            yield from facts.calls


def program_passes(program: Program, names: Iterable[str]) -> bool:
    """Whether any call of the program passes one of these keywords, other than as False or None."""
    wanted = frozenset(names)
    return any(key in wanted and not _is_off(value) for call in calls_of(program) for key, value in call.keywords)


def _is_off(value: object) -> bool:
    return isinstance(value, tuple) and value[0] == "const" and (value[1] == "NoneType" or value[2:] == (False,))


def file_passes(ctx: Context, names: Iterable[str]) -> bool:
    """Whether any call of the file passes one of these keywords, other than as False or None."""
    wanted = frozenset(names)
    return any(
        isinstance(node, ast.keyword)
        and node.arg in wanted
        and not (isinstance(node.value, ast.Constant) and node.value.value in (None, False))
        for node in ast.walk(ctx.tree.module)
    )
