"""`perflint rules`: the table of all rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflint.cli import console
from perflint.cli.app import CLEAN
from perflint.cli.explain import find_rule
from perflint.rule_api.page import fix_of

if TYPE_CHECKING:
    from perflint.rule_api.rule import Rule

#: Columns of the table; the summary comes last and is not padded.
HEADER = ("code", "name", "tier", "impact", "fix", "summary")


@click.command("rules")
@click.argument("codes", nargs=-1, metavar="[CODE]...")
@click.option("--output-format", type=click.Choice(("text", "json", "markdown")), default="text", help="Output format.")
@click.option(
    "--pages", type=click.Path(path_type=Path, file_okay=False), help="Write one page per rule to this folder."
)
def command(codes: tuple[str, ...], output_format: str, pages: Path | None) -> int:
    """List all rules, including those of plug-ins, or those named. `perflint explain CODE` prints the page of one."""
    from perflint.rule_api.registry import load_rules

    if pages is not None:
        from perflint.cli.pages import write_pages

        console.write(f"{len(write_pages(pages, load_rules()))} pages in {pages}\n")
        return CLEAN
    chosen = [find_rule(code) for code in codes] if codes else load_rules()
    rows = [row_of(rule) for rule in chosen]
    console.write(_PRINTERS[output_format](rows))
    return CLEAN


def row_of(rule: type[Rule]) -> tuple[str, ...]:
    """One rule under the columns of `HEADER`."""
    return (rule.code, rule.name, rule.tier.value, rule.impact.label, fix_of(rule), rule.summary())


def _text(rows: Sequence[Sequence[str]]) -> str:
    table = [HEADER, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADER) - 1)]
    return "".join(f"{_padded(row, widths)}  {row[-1]}\n" for row in table)


def _padded(row: Sequence[str], widths: Iterable[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths))


def _json(rows: Sequence[Sequence[str]]) -> str:
    return json.dumps([dict(zip(HEADER, row)) for row in rows], indent=2) + "\n"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    rule = "|".join(["---"] * len(HEADER))
    body = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
    return f"| {' | '.join(HEADER)} |\n|{rule}|\n" + "".join(f"| {line} |\n" for line in body)


_PRINTERS = {"text": _text, "json": _json, "markdown": _markdown}
