"""Errors a user can mend. Everything else is a bug and keeps its traceback."""

from __future__ import annotations


class PerflintError(Exception):
    """The user can mend this: one line, no traceback, exit code 2."""


class SettingsError(PerflintError):
    """A configuration file or an option is wrong; the message names file, key and the nearest valid one."""


class SourceError(PerflintError):
    """A file cannot be read or parsed. `line` counts from 1, None where there is no position."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class RuleError(PerflintError):
    """A rule or plug-in is broken: it cannot be loaded, or it breaks the contract of `perflint.rule_api.rule`."""
