"""What the configurations of a project name: the words of its YAML, JSON and TOML files, scripts and papers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property

from perflint.system.patterns import pattern

#: By these a file is told that says what is run and made; a README has commands.
CONFIGURED = (
    ".yaml",
    ".yml",
    ".json",
    ".toml",
    ".cfg",
    ".ini",
    ".gin",
    ".conf",
    ".sh",
    ".md",
    ".rst",
    ".jsonnet",
    ".slurm",
)
#: Larger ones hold data, of which a file or two more says nothing new.
_LARGEST = 256 * 1024
_MOST = 4000
_WORD = pattern(rb"[A-Za-z_][\w./:]*")


class Configured:
    """Read when somebody asks, which few programs make necessary."""

    def __init__(self, files: Sequence[str] = ()) -> None:
        self._files = files[:_MOST]

    def __call__(self) -> frozenset[str]:
        return self._words

    @cached_property
    def _words(self) -> frozenset[str]:
        found: set[bytes] = set()
        for path, size, _ in self.state:
            if size <= _LARGEST:
                try:
                    with open(path, "rb") as file:  # noqa: PTH123 - thousands of small ones
                        found.update(_WORD.findall(file.read()))
                except OSError:
                    continue  # gone since it was found: it names nothing
        return frozenset([word.decode("ascii") for word in found])

    @cached_property
    def state(self) -> list[tuple[str, int, int]]:
        """The files with their sizes and times: while these are the same, so are the words."""
        states = []
        for path in self._files:
            try:
                found = os.stat(path)  # noqa: PTH116 - as above
            except OSError:
                continue
            states.append((path, found.st_size, found.st_mtime_ns))
        return states
