"""Why a line is hot, or why not, in words: what `perflint check --explain-heat FILE:LINE` prints."""

from __future__ import annotations

from perflint.facts.summary import MODULE, FunctionFacts
from perflint.program.program import Program
from perflint.program.refs import Scope


def place_of(program: Program, path: str, line: int, column: int | None = None) -> tuple[Scope, int]:
    """The function a line stands in and its innermost context there. `column` counts from 0.

    Without a column it is about the statement on the line: a comprehension or lambda that begins on it is left out.
    """
    summary = program.summaries[path]
    found = MODULE
    facts = summary.functions[MODULE]
    for qualname, item in summary.functions.items():
        if qualname == MODULE or not item.line <= line <= item.end_line:
            continue
        if qualname.startswith("<lambda:") and not _after_lambda(item, line, column):
            continue
        if (item.line, -item.end_line) >= (facts.line, -facts.end_line):
            found, facts = qualname, item
    return Scope(path, found), facts.context_at(line, 0 if column is None else column)


def _after_lambda(facts: FunctionFacts, line: int, column: int | None) -> bool:
    begins = int(facts.qualname.rstrip(">").rpartition(":")[2])
    return line > facts.line or (column is not None and column > begins)
