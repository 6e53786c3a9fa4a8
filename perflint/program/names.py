"""Module names: which file an import means. Works on paths alone, so that nothing has to be installed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePosixPath

_SOURCE_FOLDERS = ("src", "lib", "python")


class ModuleTable:
    """Maps dotted module names to the paths of a project's files and back."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = set(paths)
        self._by_name: dict[str, str] = {}
        self._name_of: dict[str, str] = {}
        #: By the importer's folder and the module's name.
        self._found: dict[str, dict[str, str | None]] = {}
        #: What the first part of a module's name can be, wherever it is imported.
        self._firsts = {part.partition(".")[0] for path in self._paths for part in path.split("/")}
        for path in sorted(self._paths):
            names = self._names(path)
            self._name_of[path] = names[0]
            for name in names:
                self._by_name.setdefault(name, path)

    def name_of(self, path: str) -> str:
        """The dotted name of the module at `path`, as its own package spells it."""
        return self._name_of[path]

    def is_library(self, target: str) -> bool:
        """Whether an import is plainly of no file of the project: most are, and need no second thought."""
        return target.partition(".")[0] not in self._firsts and target[:1] != "."

    def find(self, dotted: str, importer: str) -> str | None:
        """The file an absolute module name means in `importer`: a sibling script first, then the project."""
        folder = importer.rpartition("/")[0]
        found = self._found.get(folder)
        if found is None:
            found = self._found[folder] = {}
        if dotted not in found:
            found[dotted] = self._find(dotted, folder)
        return found[dotted]

    def _find(self, dotted: str, folder: str) -> str | None:
        tail = dotted.replace(".", "/")
        prefix = f"{folder}/" if folder else ""
        named = self._by_name.get(dotted)
        for candidate in (f"{prefix}{tail}.py", f"{prefix}{tail}/__init__.py"):
            # A package's own modules are imported through the package, except by scripts run in its folder.
            if candidate in self._paths and (named is None or not self._is_package(folder)):
                return candidate
        return named

    def absolute(self, target: str, importer: str) -> str:
        """`..models.Net` as written in `importer`, without its leading dots."""
        if not target.startswith("."):
            return target
        rest = target.lstrip(".")
        level = len(target) - len(rest)
        package = self._name_of[importer].split(".")
        if not importer.endswith("__init__.py"):
            package = package[:-1]
        package = package[: len(package) - (level - 1)] if level > 1 else package
        return ".".join([*package, rest] if rest else package)

    def _is_package(self, folder: str) -> bool:
        return f"{folder}/__init__.py".removeprefix("./") in self._paths

    def _names(self, path: str) -> list[str]:
        parts = list(PurePosixPath(path).parts)
        parts[-1] = re.sub(r"\.(py|pyi|ipynb)$", "", parts[-1])
        folders, stem = parts[:-1], parts[-1]
        start = len(folders)
        while start > 0 and self._is_package("/".join(folders[:start])):
            start -= 1
        packaged = folders[start:] + ([] if stem == "__init__" else [stem])
        rooted = folders + ([] if stem == "__init__" else [stem])
        names = [".".join(packaged) or stem, ".".join(part for part in rooted if part != "..")]
        for index, folder in enumerate(folders):
            if folder in _SOURCE_FOLDERS:
                names.append(".".join(rooted[index + 1 :]))
        return [name for name in dict.fromkeys(names) if name]


_WRAPPERS = {"Optional", "Union", "Annotated", "Final", "ClassVar", "Required", "NotRequired", "Type", "InitVar"}
_CONTAINERS = {
    "list", "List", "Sequence", "Iterable", "Iterator", "tuple", "Tuple", "set", "Collection", "Generator",
    "MutableSequence", "deque", "ModuleList", "AsyncIterator",
}  # fmt: skip
_MAPPINGS = {"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "ModuleDict"}


@lru_cache(maxsize=8192)
def annotated_names(annotation: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The dotted names an annotation may stand for, and those its elements may be.

    `Optional[Net]` -> (("Net",), ()); `list[Net]` -> ((), ("Net",)); `DataLoader[Batch]` -> (("DataLoader",), ()).
    """
    direct: list[str] = []
    inner: list[str] = []
    for part in _split(annotation.strip().strip("'\""), "|"):
        head, _, rest = part.partition("[")
        head = head.strip().strip("'\"")
        last = head.rpartition(".")[2]
        arguments = _split(rest[: rest.rfind("]")], ",") if rest else []
        if last in _WRAPPERS:
            for argument in arguments:
                nested, elements = annotated_names(argument)
                direct += nested
                inner += elements
        elif last in _CONTAINERS:
            for argument in arguments[:4]:
                inner += annotated_names(argument)[0]
        elif last in _MAPPINGS:
            if len(arguments) == 2:
                inner += annotated_names(arguments[1])[0]
        elif re.fullmatch(r"[A-Za-z_][\w.]*", head) and head != "None":
            direct.append(head)
    return tuple(dict.fromkeys(direct)), tuple(dict.fromkeys(inner))


def _split(text: str, separator: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        if letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif letter == separator and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]
