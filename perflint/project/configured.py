"""What the configurations of a project name and set: the words of its YAML, JSON and TOML files, scripts and papers.

Beside the words there is `fast=on` or `fast=off` for each key that is set, and for each flag of a script that stands in
no command of its own; and, of what goes by a name like a class, `SlowAgent@17` for the file that names it, by its
place: one file names what goes together; `@package:lib` stands for a project in a folder that can be installed. What a
setting is set to, `configured_values` tells, and what is run, `commands`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property

from perflint.project.commands import commands, written
from perflint.project.configured_values import setting, values
from perflint.system.patterns import pattern
from perflint.torch_model.packages import INSTALLED

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
    ".sbatch",
    ".mk",
    "Makefile",
    "makefile",
)
#: These say how a project is installed and checked, and nothing of what it is run with.
_PACKAGING = frozenset({"pyproject.toml", "setup.cfg", "tox.ini", "perflint.toml"})
_INSTALLING = ("pyproject.toml", "setup.cfg")
#: What is installed with them: `[project]`, `[build-system]`, `[tool.poetry]`, `[options]` of setup.cfg.
_INSTALLED = pattern(rb"(?m)^\s*\[(?:project|build-system|tool\.poetry|tool\.flit\.\w+|options|metadata)\]")
#: Larger ones hold data, of which a file or two more says nothing new.
_LARGEST = 256 * 1024
_MOST = 4000
_WORD = pattern(rb"[A-Za-z_][\w./:]*")
_CLASS = pattern(rb"\b[A-Z]\w*[a-z]\w*[A-Z]\w*\b|\b[A-Z]{2,}\w*[a-z]\w*\b")
_SCRIPTS = (".sh", ".slurm", ".sbatch", ".mk", "akefile")
_FLAG = pattern(rb"""--([A-Za-z][\w-]*)(?:[ \t=]+["']?([\w.~]+))?""")
_PAPERS = (".md", ".rst")
#: Files that may hold commands.
_RUNNING = (*_SCRIPTS, *_PAPERS, ".yml", ".yaml")
_SET = pattern(rb"""["']?([A-Za-z_]\w*)["']?[ \t]*[:=][ \t]*["']?([^\s,#}"']*)""")
_OFF = frozenset({b"false", b"off", b"no", b"0", b"0.0", b"null", b"none", b"~"})


class Configured:
    """Read when somebody asks, which few programs make necessary. No words are for a tree without configurations."""

    def __init__(self, files: Sequence[str] = ()) -> None:
        self._files = files[:_MOST]

    def __call__(self) -> frozenset[str]:
        return self._words

    @cached_property
    def _words(self) -> frozenset[str]:
        found: set[bytes] = set()
        is_bare = all(os.path.basename(path) in _PACKAGING for path, _, _ in self.state)  # noqa: PTH119 - thousands
        for place, (path, size, _) in enumerate(self.state):
            if size <= _LARGEST:
                try:
                    with open(path, "rb") as file:  # noqa: PTH123 - thousands of small ones
                        text = file.read()
                except OSError:
                    continue  # gone since it was found: it names nothing
                if path.endswith(_INSTALLING) and _INSTALLED.search(text):
                    found.add(f"{INSTALLED}{_folder(path)}".encode("utf-8", "replace"))
                if is_bare:
                    continue
                found.update(_WORD.findall(text))
                found.update(values(path, text, place))
                rest = text
                if path.endswith(_RUNNING) and (b".py" in text or b" -m " in text):
                    run, left = commands(text.decode("utf-8", "replace"))
                    found.update(map(written, run))
                    found.update([setting(*item, place) for one in run for item in one.settings.items()])
                    rest = left.encode("utf-8", "replace")
                found.update(_settings(path, rest))
                if not path.endswith(_PAPERS):
                    found.update([b"%b@%d" % (name, place) for name in _CLASS.findall(text)])
        return frozenset([word.decode("ascii", "replace") for word in found])

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


def _folder(path: str) -> str:
    """The folder of a file as the files of the program are shown; none for the working directory and those above it."""
    try:
        shown = os.path.relpath(os.path.dirname(path) or ".").replace(os.sep, "/")  # noqa: PTH120
    except ValueError:  # another drive
        return path.rpartition("/")[0]
    return "" if set(shown.split("/")) <= {".", ".."} else shown


def _settings(path: str, text: bytes) -> Iterator[bytes]:
    if path.endswith(_SCRIPTS):
        for flag, value in _FLAG.findall(text):
            yield flag.replace(b"-", b"_") + (b"=off" if value.lower() in _OFF else b"=on")
    elif not path.endswith(_PAPERS):
        for key, value in _SET.findall(text):
            yield key + (b"=off" if value.lower() in _OFF else b"=on")
