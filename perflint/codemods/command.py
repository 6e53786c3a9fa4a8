"""A rule's fix as a libcst codemod: the edits that `perflint fix` makes of one file, under the same conditions.

The whole project around the file is analysed, as `perflint fix` does; one process surveys each file once. The tree that
libcst hands in says what the file holds, so a change that another codemod made in memory is seen.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import libcst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from perflint.errors import PerflintError
from perflint.finding import Applicability
from perflint.project.discovery import discover
from perflint.project.settings import load_settings

if TYPE_CHECKING:
    from perflint.engine import Memory
    from perflint.rule_api.rule import Rule

#: What standard input goes by: libcst gives it no name.
_STDIN = "stdin.py"


class FixCommand(CodemodCommand):
    """Makes the fixes of one rule. Subclasses name it in `rule`."""

    DESCRIPTION: str = "Makes the fixes of one perflint rule."
    rule: ClassVar[type[Rule]]

    def __init__(self, context: CodemodContext, unsafe: bool = False) -> None:  # noqa: FBT001, FBT002 - libcst's own way
        super().__init__(context)
        self.unsafe = unsafe

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        arg_parser.add_argument("--unsafe", action="store_true", help="Include unsafe fixes; review the diff.")

    def transform_module_impl(self, tree: libcst.Module) -> libcst.Module:
        """Raises SkipFile where the file cannot be analysed, with the reason."""
        try:
            text = self._fixed(Path(self.context.filename or _STDIN), tree.bytes)
        except PerflintError as error:
            raise SkipFile(str(error)) from error
        return tree if text is None else libcst.parse_module(text, config=tree.config_for_parsing)

    def _fixed(self, file: Path, content: bytes) -> bytes | None:
        """The new content, None where nothing is to be fixed."""
        from perflint.cli.fixing import encoded, fix_report, not_fixed
        from perflint.engine import Options, check

        settings = load_settings(file.absolute().parent)
        discovery = discover([], settings, stdin=str(file))
        options = Options(
            settings=settings, rules=[self.rule()], stdin=(discovery.reported[0].display, content), memory=_memory()
        )
        report = check(discovery, options)
        for problem in report.errors:
            raise PerflintError(problem.message)
        weakest = Applicability.UNSAFE if self.unsafe else Applicability.SAFE
        # Only this rule's fixes are made, and what they may bring up is asked of this rule, too.
        result = fix_report(discovery, dataclasses.replace(options, cache=False), report, weakest)
        for item in result.outcome.dropped:
            self.warn(not_fixed(item))
        return next(iter(encoded(result).values()), None)


@cache
def _memory() -> Memory:
    """What this process knows of the files around, for all the modules that it is given."""
    from perflint.engine import Memory

    return Memory()


def command_of(rule: type[Rule], module: str) -> type[FixCommand]:
    """The command of one rule, a class named `Fix` of the module `module`."""
    fields: dict[str, Any] = {
        "__module__": module,
        "__doc__": f"Makes the fixes of {rule.code} {rule.name}.",
        "DESCRIPTION": f"{rule.code} {rule.name}: {rule.summary()}",
        "rule": rule,
    }
    bases: Sequence[type] = (FixCommand,)
    return type("Fix", tuple(bases), fields)
