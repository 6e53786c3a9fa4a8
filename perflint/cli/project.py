"""From arguments to what a run needs: settings, rules and files. Shared by the commands that analyse a project."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from perflint.errors import PerflintError, SettingsError
from perflint.finding import Confidence
from perflint.project.discovery import Discovery, common_folder, discover, display_path
from perflint.project.selection import Selection
from perflint.project.settings import Settings, level_of, limit_of, load_settings

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from perflint.engine import Options
    from perflint.engine.governing import Governed
    from perflint.rule_api.rule import Rule

C = TypeVar("C", bound=Callable[..., Any])

#: What standard input goes by where nobody names it.
_STDIN = "stdin.py"


class Chosen(NamedTuple):
    """Rules by code: all there are, those that run anywhere, and what holds for which files."""

    known: tuple[type[Rule], ...]
    running: tuple[type[Rule], ...]
    #: By folder, what holds where another configuration is nearer.
    nested: Mapping[Path, Governed]
    #: What holds everywhere else.
    governed: Governed


def complete_rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    # Imported late: hardly any run completes anything.
    from perflint.cli.completion import rules_like

    return rules_like(incomplete)


def complete_files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def selection_options(function: C) -> C:
    """The options that say which rules run: `select`, `ignore`, `extra`, `confidence`, `config`."""
    for option in reversed(
        (
            click.option(
                "--select",
                metavar="RULES",
                multiple=True,
                shell_complete=complete_rules,
                help="Run only these rules: codes, prefixes or names.",
            ),
            click.option(
                "--ignore",
                metavar="RULES",
                multiple=True,
                shell_complete=complete_rules,
                help="Do not run these rules: codes, prefixes or names.",
            ),
            click.option("--extra", is_flag=True, help="Run the extra rules, too."),
            click.option(
                "--confidence",
                type=click.Choice([level.label for level in Confidence], case_sensitive=False),
                help="Minimum confidence of reported findings.",
            ),
            click.option("--config", type=click.Path(path_type=Path), help="Use this configuration file."),
        )
    ):
        function = option(function)
    return function


def force_exclude_option(function: C) -> C:
    """The option `force_exclude`."""
    words = "Apply exclude patterns and .gitignore to files given by name, too (for pre-commit)."
    return click.option("--force-exclude", is_flag=True, help=words)(function)


def run_options(function: C) -> C:
    """The options that say how a run goes: `jobs`, `time_limit`, `no_cache`, `debug`."""
    for option in reversed(
        (
            click.option("--jobs", "-j", type=click.IntRange(1), metavar="N", help="Number of processes."),
            click.option(
                "--time-limit",
                type=float,
                metavar="SECONDS",
                help="Processor time limit per file; 0 means no limit.",
            ),
            click.option("--no-cache", is_flag=True, help="Do not read or write the cache."),
            click.option("--debug", is_flag=True, help="Show tracebacks."),
        )
    ):
        function = option(function)
    return function


def split(values: Sequence[str]) -> tuple[str, ...]:
    """`--select A,B --select C` as three selectors."""
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip())


def settings_for(
    paths: Sequence[str], config: Path | None, confidence: str | None, time_limit: float | None = None
) -> Settings:
    """The settings that hold for `paths`, with the command line's `confidence` and `time_limit` above the file's."""
    settings = load_settings(common_folder([Path(path).absolute() for path in paths]), config)
    if confidence is not None:
        level = level_of(Confidence, confidence, "--confidence")
        settings = dataclasses.replace(settings, confidence=level, decided=("confidence",))
    if time_limit is not None:
        settings = dataclasses.replace(settings, time_limit=limit_of(time_limit, "--time-limit"))
    return settings


def choose(
    discovery: Discovery, settings: Settings, select: Sequence[str], ignore: Sequence[str], *, extra: bool
) -> Chosen:
    """Load all rules and choose those that run on some reported file. Raises RuleError and SettingsError."""
    from perflint.engine.governing import Governed, governed
    from perflint.rule_api.registry import load_rules

    known = load_rules()
    selection = Selection(settings, split(select), split(ignore), extra)
    running = selection.resolve(known)
    nested = governed(discovery, selection, known)
    codes = {rule.code for rule in running}.union(*(one.codes for one in nested.values()))
    if not codes:
        raise SettingsError(
            "no rule to run: all selected rules are ignored or extra; extra rules need --extra, or their full code "
            "or name in --select"
        )
    base = Governed(settings, frozenset(rule.code for rule in running), everything=len(running) == len(known))
    return Chosen(known, tuple(rule for rule in known if rule.code in codes), nested, base)


def options_for(settings: Settings, chosen: Chosen, jobs: int | None = None) -> Options:
    """How a run of the chosen rules goes, in `jobs` processes where that is asked for; nothing shows its progress."""
    from perflint.engine import Options

    return Options(
        settings=settings,
        rules=[rule() for rule in chosen.running],
        jobs=jobs or settings.jobs or default_jobs(),
        codes=chosen.governed.codes,
        everything=chosen.governed.everything,
        nested=chosen.nested,
    )


def existing(path: str) -> str:
    """A path that something is asked about. Raises PerflintError where there is nothing of that name."""
    if not path or not os.path.lexists(path):
        raise PerflintError(f"no such file or directory: {path}" if path else "an empty path")
    return path


def named(paths: Sequence[str], stdin_filename: str | None) -> Sequence[str]:
    """What settings hold for: `paths`, or the file that standard input stands for."""
    return (stdin_filename or _STDIN,) if "-" in paths else paths


def find(
    paths: Sequence[str], stdin_filename: str | None, settings: Settings, *, force_exclude: bool = False
) -> tuple[Discovery, tuple[str, bytes] | None]:
    """The files, and standard input with the name it goes by where `paths` is `-`."""
    if "-" not in paths:
        if stdin_filename is not None:
            raise click.UsageError("--stdin-filename has no effect without the path '-'")
        return discover(paths, settings, force_exclude=force_exclude), None
    if len(paths) > 1:
        raise click.UsageError("'-' (standard input) cannot be mixed with other paths")
    name = stdin_filename or _STDIN
    return discover([], settings, stdin=name), (display_path(Path(name)), sys.stdin.buffer.read())


def default_jobs() -> int:
    """The processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
