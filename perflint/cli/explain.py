"""`perflint explain RULE`: the rule's page, and its example before and after the fix."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflint.cli import console, project
from perflint.cli.app import CLEAN
from perflint.errors import PerflintError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.abc import Traversable

    from perflint.rule_api.rule import Rule

_LABELS = {"fixed": "After `perflint fix`", "unsafe": "After `perflint fix --unsafe` (needs a person's look)"}

#: As `--explain-heat` takes it.
_PLACE = re.compile(r".+(:\d+)+")


@click.command("explain")
@click.argument("rule", shell_complete=project.complete_rules)
def command(rule: str) -> int:
    """Print the page of RULE (a code or a name): what costs, what to write instead, when to leave it, fix safety."""
    console.write(page(find_rule(rule)))
    return CLEAN


def find_rule(word: str) -> type[Rule]:
    """The rule with that code or name. Raises PerflintError naming the nearest one."""
    from perflint.project.settings import nearest
    from perflint.rule_api.registry import load_rules

    rules = load_rules()
    for rule in rules:
        if word.upper() == rule.code or word.lower() == rule.name:
            return rule
    if _PLACE.fullmatch(word):
        raise PerflintError(f"{word!r} is a place, no rule; how often it runs: perflint check --explain-heat {word}")
    hint = nearest(word, [identity for rule in rules for identity in (rule.code, rule.name)])
    raise PerflintError(f"no rule {word!r}{hint}")


def page(rule: type[Rule]) -> str:
    """All there is to say about `rule`, as plain text."""
    rating = f"{rule.tier.value}, {rule.impact.label} impact, {rule.confidence.label} confidence, since {rule.since}"
    blocks = [f"{rule.code} {rule.name}\n{rating}", rule.page(), *_examples(rule), f"Measured\n\n{_measured(rule)}"]
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def _measured(rule: type[Rule]) -> str:
    from perflint.project.discovery import project_root
    from perflint.verify import evidence

    return _indented("\n".join(evidence.lines(rule.code, project_root([Path.cwd()]))))


def _examples(rule: type[Rule]) -> Iterator[str]:
    for title, _, text in shown_examples(rule):
        yield f"{title}\n\n{_indented(text)}"


def shown_examples(rule: type[Rule]) -> Iterator[tuple[str, str, str]]:
    """Title, language and text: the example, and the difference each kind of fix makes to it."""
    from perflint.rule_api.registry import fixture_folder
    from perflint.testing import read_markers

    folder = fixture_folder(rule)
    texts = {name: _read(folder, f"example{name}.py") for name in ("", ".fixed", ".unsafe")} if folder else {}
    if not texts or texts[""] is None:
        return
    before = read_markers(texts[""]).text
    yield "Example", "python", before
    for kind, label in _LABELS.items():
        after = texts[f".{kind}"]
        if after is not None:
            yield label, "diff", _difference(before, read_markers(after).text)


def _read(folder: Traversable, name: str) -> str | None:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _difference(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=2)
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.strip("\n").splitlines())
