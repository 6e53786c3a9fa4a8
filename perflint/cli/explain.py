"""`perflint explain RULE`: the rule's page with its example, bad and good."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflint.cli import console, project
from perflint.cli.app import CLEAN
from perflint.errors import PerflintError
from perflint.rule_api.page import in_order, page_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.abc import Traversable

    from perflint.rule_api.rule import Rule

#: Files that hold the good form of `example.py`: the first one that exists is shown.
_GOOD = {
    "instead.py": "Use instead:",
    "example.unsafe.py": "Use instead (`perflint fix --unsafe` makes this change; review it):",
    "example.fixed.py": "Use instead (`perflint fix` makes this change):",
}

#: As `--explain-heat` takes it.
_PLACE = re.compile(r".+(:\d+)+")


@click.command("explain")
@click.argument("rule", shell_complete=project.complete_rules)
def command(rule: str) -> int:
    """Print the page of RULE (a code or a name): why the code is slow, what to do, how safe the fix is."""
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
        raise PerflintError(
            f"{word!r} is a place, not a rule; to explain how often it runs: perflint check --explain-heat {word}"
        )
    hint = nearest(word, [identity for rule in rules for identity in (rule.code, rule.name)])
    raise PerflintError(f"no rule {word!r}{hint}")


def page(rule: type[Rule]) -> str:
    """The whole page as plain text, with the example and the measurements."""
    rating = f"{rule.tier.value}, {rule.impact.label} impact, {rule.confidence.label} confidence, since {rule.since}"
    parts = page_of(rule)
    measured = "\n\n".join(text for text in (parts.sections.get("Measured", ""), _measured(rule)) if text)
    sections = in_order({**parts.sections, "Example": example(rule, _indented), "Measured": measured})
    blocks = [f"{rule.code} {rule.name}\n{rating}", parts.summary or rule.page()]
    blocks += [f"{heading}\n\n{text}" for heading, text in sections]
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def _measured(rule: type[Rule]) -> str:
    from perflint.project.discovery import project_root
    from perflint.verify import evidence

    return _indented("\n".join(evidence.lines(rule.code, project_root([Path.cwd()]))))


def example(rule: type[Rule], as_code: Callable[[str], str]) -> str:
    """The section *Example*: the caption and code of `example.py`, and the code to use instead; empty without one."""
    from perflint.rule_api.registry import fixture_folder

    folder = fixture_folder(rule)
    bad = _read(folder, "example.py") if folder else None
    if folder is None or bad is None:
        return ""
    caption, code = _caption_and_code(bad)
    blocks = [caption, as_code(code)]
    for name, title in _GOOD.items():
        good = _read(folder, name)
        if good is not None:
            blocks += [title, as_code(_caption_and_code(good)[1])]
            break
    return "\n\n".join(block for block in blocks if block)


def _caption_and_code(text: str) -> tuple[str, str]:
    """The module docstring of a fixture, and the code below it without markers."""
    from perflint.testing import read_markers

    text = read_markers(text).text
    module = ast.parse(text)
    caption = ast.get_docstring(module)
    if caption is None:
        return "", text.strip("\n")
    end = module.body[0].end_lineno or 0
    return caption, "\n".join(text.splitlines()[end:]).strip("\n")


def _read(folder: Traversable, name: str) -> str | None:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.strip("\n").splitlines())
