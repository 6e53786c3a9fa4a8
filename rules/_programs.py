"""What rules ask about the whole program, beyond its names: which keywords its calls pass, which values they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perflint.api import CallFacts, Program


def calls_of(program: Program, path: str | None = None) -> Iterator[CallFacts]:
    """Every call of the program, or of one file."""
    for name in program.summaries if path is None else (path,):
        for facts in program.summaries[name].functions.values():
            yield from facts.calls


def passes_any(program: Program, names: Iterable[str], path: str | None = None) -> bool:
    """Whether any call passes one of these keywords, other than as False or None."""
    wanted = frozenset(names)
    return any(key in wanted and not _is_off(value) for call in calls_of(program, path) for key, value in call.keywords)


def _is_off(value: object) -> bool:
    return isinstance(value, tuple) and value[0] == "const" and (value[1] == "NoneType" or value[2:] == (False,))
