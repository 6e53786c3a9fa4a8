"""The command group, and what every command's end comes to: an exit code and at most one line of complaint."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from perflint import __version__
from perflint.cli.console import complain
from perflint.errors import PerflintError

#: Exit codes: nothing found; findings, or fixes left to make; the tool or its input was at fault; interrupted.
CLEAN, FOUND, FAULT, INTERRUPTED = 0, 1, 2, 130

#: Each command's module in this package holds it as `command`. Imported when the command is asked for.
COMMANDS = {
    "baseline": "perflint.cli.baseline",
    "check": "perflint.cli.check",
    "clean": "perflint.cli.clean",
    "completion": "perflint.cli.completion",
    "config": "perflint.cli.config",
    "explain": "perflint.cli.explain",
    "fix": "perflint.cli.fix",
    "observe": "perflint.cli.observe",
    "rules": "perflint.cli.rules",
    "server": "perflint.cli.server",
    "verify": "perflint.cli.verify",
}


class _LazyGroup(click.Group):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise click.UsageError(f"no command {name!r}{_instead_of(name)}", ctx)
        return super().resolve_command(ctx, args)


def _instead_of(name: str) -> str:
    """What may have been meant: a path, a command spelled nearly so, or else any."""
    from difflib import get_close_matches

    if Path(name).exists():
        return f"; to check that path: perflint check {name}"
    close = get_close_matches(name.lower(), COMMANDS, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(COMMANDS)}"


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="perflint %(version)s")
def group() -> None:
    """Find, explain and fix performance mistakes in PyTorch training code."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line; everything that goes wrong becomes one line on standard error and an exit code."""
    try:
        _stand_somewhere()
        outcome = group.main(list(arguments), prog_name="perflint", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return FAULT
    except PerflintError as error:
        complain(str(error))
        return FAULT
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        return INTERRUPTED
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else FAULT
    except Exception as error:  # noqa: BLE001 - the last resort: a user is not shown a traceback
        _confess(error, debug="--debug" in arguments)
        return FAULT
    return outcome if isinstance(outcome, int) else CLEAN


def _stand_somewhere() -> None:
    """Raises PerflintError where the working directory is gone: every path is told from it."""
    try:
        Path.cwd()
    except OSError as error:
        words = "deleted" if isinstance(error, FileNotFoundError) else f"unreadable ({error.strerror})"
        raise PerflintError(f"the working directory is {words}; change to one that exists, then try again") from error


def _confess(error: Exception, *, debug: bool) -> None:
    import traceback  # hardly any run needs it

    if debug:
        traceback.print_exc(file=sys.stderr)
    place = traceback.extract_tb(error.__traceback__)[-1]
    what = " ".join(f"{type(error).__name__}: {error}".split())
    hint = "" if debug else "; --debug shows the traceback"
    complain(f"internal error, which is a bug in perflint: {what} ({Path(place.filename).name}:{place.lineno}){hint}")
