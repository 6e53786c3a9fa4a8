"""Every line of a project's files that may require torch, in the format of each of them."""

from __future__ import annotations

import ast
import configparser
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from perflint.project.requirements.reading import text_of
from perflint.project.requirements.wanted import CONDA, PIP, POETRY, Line, Pythons, pep440
from perflint.system.patterns import pattern

#: Requirements of one kind in one folder that are read at most.
_MANY = 20
#: Files that include one another.
_DEEP = 8

_INCLUDE = pattern(r"(?:-r|-c|--requirements?|--constraints?)[ =]*(?P<file>[^\s#=].*)$")
_COMMENT = pattern(r"(?:^|\s)#.*$")
_ITEM = pattern(r"(?P<indent>\s*)-\s+(?P<item>\S.*)$")
_BOUND = pattern(r"([<>=!~]=?)\s*([\d.]+(?:\.\*)?)")
_KEY = pattern(r"(?P<key>[\w-]+)\s*:\s*(?:#.*)?$")


class Requirements(NamedTuple):
    """The lines that may require torch, and the interpreters that the project is for."""

    lines: list[Line]
    pythons: Pythons


def requirement_lines(folder: Path) -> Requirements:
    """What the files of the project at `folder` require. A file that cannot be read or parsed says nothing."""
    reader = _Reader(folder)
    reader.read()
    return Requirements(reader.lines, Pythons(reader.pythons))


class _Reader:
    """Gathers from all files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[Line] = []
        self.pythons: list[str] = []
        self._listed: set[Path] = set()

    def read(self) -> None:
        self._pyproject(self.folder / "pyproject.toml")
        self._pipfile(self.folder / "Pipfile")
        self._pixi_file(self.folder / "pixi.toml")
        self._setup_cfg(self.folder / "setup.cfg")
        self._setup_py(self.folder / "setup.py")
        for file in self._found("*requirements*.txt", "*requirements*.in", "requirements/*.txt", "requirements/*.in"):
            self._listing(file)
        for file in self._found("*environment*.y*ml", "env*.y*ml", "conda*.y*ml"):
            self._environment(file)

    def _found(self, *globs: str) -> Iterator[Path]:
        for one in globs:
            try:
                yield from sorted(self.folder.glob(one))[:_MANY]
            except OSError:
                continue

    def _add(self, text: object, file: Path, number: int | None = None, style: str = PIP) -> None:
        if isinstance(text, str) and "torch" in text.lower():
            self.lines.append(Line(text, style, file, number or _line_of(text, text_of(file))))

    def _add_all(self, texts: object, file: Path) -> None:
        for text in texts if isinstance(texts, list) else []:
            self._add(text, file)

    def _add_groups(self, groups: object, file: Path) -> None:
        for texts in groups.values() if isinstance(groups, dict) else []:
            self._add_all(texts, file)

    # TOML.

    def _pyproject(self, file: Path) -> None:
        table = _toml(file)
        project, tool = _table(table, "project"), _table(table, "tool")
        self._python(project.get("requires-python"))
        self._add_all(project.get("dependencies"), file)
        self._add_groups(project.get("optional-dependencies"), file)
        self._add_groups(table.get("dependency-groups"), file)
        # Not uv's `dependency-metadata`: it says what other people's packages require.
        uv = _table(tool, "uv")
        for key in ("dev-dependencies", "constraint-dependencies", "override-dependencies"):
            self._add_all(uv.get(key), file)
        self._add_groups(_table(tool, "pdm").get("dev-dependencies"), file)
        for environment in _table(_table(tool, "hatch"), "envs").values():
            for key in ("dependencies", "extra-dependencies"):
                self._add_all(_table(environment).get(key), file)
        self._poetry(_table(tool, "poetry"), file)
        self._pixi(_table(tool, "pixi"), file)
        self._dynamic(_table(_table(_table(tool, "setuptools"), "dynamic"), "dependencies").get("file"))
        for group in _table(_table(_table(tool, "setuptools"), "dynamic"), "optional-dependencies").values():
            self._dynamic(_table(group).get("file"))

    def _dynamic(self, files: object) -> None:
        """Requirements files that a build reads, by whatever name."""
        for name in [files] if isinstance(files, str) else files if isinstance(files, list) else []:
            if isinstance(name, str):
                self._listing(self.folder / name.strip())

    def _poetry(self, poetry: Mapping[str, Any], file: Path) -> None:
        self._python(_table(poetry, "dependencies").get("python"))
        groups = [_table(poetry, "dependencies"), _table(poetry, "dev-dependencies")]
        groups += [_table(group, "dependencies") for group in _table(poetry, "group").values()]
        for group in groups:
            self._by_name(group, file, POETRY)

    def _by_name(self, packages: Mapping[str, Any], file: Path, style: str) -> None:
        """`torch = "^2.2"`, `torch = {version = "...", markers = "...", url = "..."}`, or several of these."""
        for name, value in packages.items():
            if _canonical(name) != "torch":
                continue
            number = _line_of_key(name, text_of(file))
            for one in value if isinstance(value, list) else [value]:
                given = {"version": one} if isinstance(one, str) else _table(one)
                address = given.get("url") or given.get("path") or given.get("file")
                if address:
                    self._add(f"torch @ {address}", file, number)
                elif isinstance(given.get("version"), str):
                    self._add(f"torch {given['version']}{_marker(given)}", file, number, style)

    def _pipfile(self, file: Path) -> None:
        table = _toml(file)
        python = _table(table, "requires").get("python_version")
        self._python(f"=={python}.*" if isinstance(python, str) else None)
        for key, packages in table.items():
            if key not in ("source", "requires", "scripts", "pipenv"):
                self._by_name(_table(packages), file, POETRY)

    def _pixi_file(self, file: Path) -> None:
        self._pixi(_toml(file), file)

    def _pixi(self, table: Mapping[str, Any], file: Path) -> None:
        self._by_name(_table(table, "pypi-dependencies"), file, POETRY)
        for name, value in _table(table, "dependencies").items():
            version = value if isinstance(value, str) else _table(value).get("version")
            if isinstance(version, str):
                spec = f"{name} {version}" if version[:1].isdigit() else f"{name}{version}"
                self._add(spec, file, _line_of_key(name, text_of(file)), CONDA)
        for key in ("feature", "target"):
            for inner in _table(table, key).values():
                self._pixi(_table(inner), file)

    def _python(self, text: object) -> None:
        if isinstance(text, str) and text not in self.pythons:
            self.pythons.append(text)

    # What setuptools reads.

    def _setup_cfg(self, file: Path) -> None:
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string(text_of(file))
        except configparser.Error:
            return
        self._python(parser.get("options", "python_requires", fallback=None))
        texts = [parser.get("options", "install_requires", fallback="")]
        if parser.has_section("options.extras_require"):
            texts += [value for _, value in parser.items("options.extras_require")]
        for text in texts:
            if text.strip().startswith("file:"):
                self._dynamic([name.strip() for name in text.strip().removeprefix("file:").split(",")])
                continue
            for line in text.splitlines():
                self._add(_COMMENT.sub("", line).strip(), file)

    def _setup_py(self, file: Path) -> None:
        """Every text that is a whole requirement of torch, in `setup(...)` or in a list that goes there."""
        text = text_of(file)
        if "torch" not in text:
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        passed_over = _no_requirements(module)
        for node in ast.walk(module):
            if isinstance(node, ast.keyword) and node.arg == "python_requires" and isinstance(node.value, ast.Constant):
                self._python(node.value.value)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed_over:
                for number, line in enumerate(node.value.splitlines()):
                    self._add(_COMMENT.sub("", line).strip(), file, node.lineno + number)

    # Lists of requirements.

    def _listing(self, file: Path, depth: int = _DEEP) -> None:
        """A requirements file of pip, with all that it includes."""
        if file in self._listed or depth == 0:
            return
        self._listed.add(file)
        started, joined = 0, ""
        for number, line in enumerate(text_of(file).splitlines(), 1):
            started = started if joined else number
            if line.endswith("\\") and not line.lstrip().startswith("#"):
                joined += line[:-1]
                continue
            self._pip_line(joined + line, file, started, depth)
            joined = ""
        self._pip_line(joined, file, started, depth)

    def _pip_line(self, line: str, file: Path, number: int, depth: int = _DEEP) -> None:
        line = _COMMENT.sub("", line).strip()
        included = _INCLUDE.match(line)
        if included:
            name = included["file"].strip().strip("\"'")
            if "://" not in name and "\0" not in name:
                self._listing(file.parent / name, depth - 1)
        elif line and not line.startswith("-"):
            self._add(line, file, number)

    def _environment(self, file: Path) -> None:
        """An environment of conda: the items below `dependencies:`, and those of pip below `- pip:`."""
        inside, pip = False, -1
        for number, written in enumerate(text_of(file).splitlines(), 1):
            line = _COMMENT.sub("", written).rstrip()
            key, item = _KEY.match(line), _ITEM.match(line)
            if key is not None or (line and not line[0].isspace() and item is None):
                inside, pip = key is not None and key["key"] == "dependencies", -1
            if not inside or item is None:
                continue
            text, indent = item["item"].strip().strip("\"'"), len(item["indent"])
            if text == "pip:":
                pip = indent
            elif 0 <= pip < indent:
                self._pip_line(text, file, number)
            else:
                pip = -1
                self._add(text, file, number, CONDA)


def _toml(file: Path) -> dict[str, Any]:
    """A file as a table, an empty one where it is none. Its faults are told where it is read for its settings."""
    text = text_of(file)
    if not text:
        return {}
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        found: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
    return found


def _table(value: object, key: str | None = None) -> dict[str, Any]:
    """A table, or the one below a key of it; an empty one where it is none."""
    found = value if key is None else value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _marker(given: Mapping[str, Any]) -> str:
    """Where an entry of Poetry holds, as a marker: by `markers`, by `python` and by `platform`."""
    parts = [f"({given['markers']})"] if isinstance(given.get("markers"), str) else []
    if isinstance(given.get("python"), str):
        bounds = _BOUND.finditer(pep440(given["python"]))
        parts += [f"python_version {bound[1]} '{bound[2]}'" for bound in bounds]
    if isinstance(given.get("platform"), str):
        parts.append(f"sys_platform == '{given['platform']}'")
    return f"; {' and '.join(parts)}" if parts else ""


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _no_requirements(module: ast.Module) -> set[int]:
    """The texts (by identity) that are parts of others, documentation, or what a build needs but no program."""
    found: set[int] = set()
    for node in ast.walk(module):
        if isinstance(node, (ast.JoinedStr, ast.Expr)) and not (
            isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
        ):
            found |= {id(part) for part in ast.walk(node)}
        elif isinstance(node, ast.keyword) and node.arg in ("setup_requires", "description", "long_description"):
            found |= {id(part) for part in ast.walk(node.value)}
        elif isinstance(node, ast.Compare):
            found |= {id(part) for part in ast.walk(node)}
    return found


def _line_of(text: str, source: str) -> int:
    """The first line (from 1) that holds a text, 1 where it is spread over several."""
    for number, line in enumerate(source.splitlines(), 1):
        if text in line:
            return number
    return 1


def _line_of_key(name: str, source: str) -> int:
    """The first line (from 1) that gives a key of TOML, or the table of that name."""
    given = re.compile(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=|\s*\[.*\b{re.escape(name)}[\"']?\s*\]")
    for number, line in enumerate(source.splitlines(), 1):
        if given.match(line):
            return number
    return 1
