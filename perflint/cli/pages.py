"""A page of markdown for each rule, made from the rule and its example, and an index of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.cli.explain import example
from perflint.errors import PerflintError
from perflint.rule_api.page import file_of, fix_of, markdown

if TYPE_CHECKING:
    from perflint.rule_api.rule import Rule

INDEX = "README.md"


def pages(rules: Sequence[type[Rule]]) -> dict[str, str]:
    """Content by file name: the index, and `TPL101-blocking-transfer.md` for each rule."""
    listed = sorted(rules, key=lambda rule: rule.code)
    return {INDEX: _index(listed), **{file_of(rule): _page(rule) for rule in listed}}


def write_pages(folder: Path, rules: Sequence[type[Rule]]) -> list[Path]:
    """Write all pages, and delete those of rules that are gone. Returns what is there now. Raises PerflintError."""
    made = pages(rules)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.glob("*-*.md"):
            if stale.name not in made and _is_ours(stale):
                stale.unlink()
        for name, text in made.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise PerflintError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return [folder / name for name in made]


_MARK = "<!-- Made by `perflint rules --pages`; change the rule instead. -->"


def _is_ours(file: Path) -> bool:
    return file.read_text(encoding="utf-8", errors="replace").startswith(_MARK)


def _page(rule: type[Rule]) -> str:
    rating = (rule.tier.value, rule.impact.label, rule.confidence.label, rule.at_least.label, fix_of(rule), rule.since)
    blocks = [
        _MARK,
        f"# {rule.code} {rule.name}",
        f"| tier | impact | confidence | at least | fix | since |\n|---|---|---|---|---|---|\n| {' | '.join(rating)} |",
        markdown(rule, example(rule, _fenced)),
        f"## Suppression\n\n```python\n...  # perflint: ignore[{rule.code}] the reason\n```",
        f"[All rules]({INDEX})",
    ]
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def _fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def _index(rules: Sequence[type[Rule]]) -> str:
    rows = [
        f"| [{rule.code}]({file_of(rule)}) | {rule.name} | {rule.tier.value} | {rule.impact.label} | {fix_of(rule)} "
        f"| {rule.summary().replace('|', chr(92) + '|')} |"
        for rule in rules
    ]
    table = "\n".join(["| code | name | tier | impact | fix | summary |", "|---|---|---|---|---|---|", *rows])
    return f"{_MARK}\n\n# The rules\n\n{table}\n"
