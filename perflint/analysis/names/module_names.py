"""Module names: which file an import means. Works on paths alone, so that nothing has to be installed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from functools import lru_cache

_SOURCE_FOLDERS = ("src", "lib", "python")
#: Of these there is one in every program: a package that has a part of the same name (`rlkit.torch`) means it as well.
_LIBRARIES = frozenset("torch numpy torchvision torchaudio".split())


class ModuleTable:
    """Maps dotted module names to the paths of a project's files and back.

    `base` is the absolute folder that the paths are relative to: in a package, its name is a part of theirs.
    """

    def __init__(self, paths: Iterable[str], base: str = "") -> None:
        self.base = base
        #: Where each file lies, without `..`, and back.
        self._place = {path: posixpath.normpath(posixpath.join(base, path)) for path in paths}
        self._paths = {place: path for path, place in self._place.items()}
        self._top = _common_folder(self._paths)
        #: The folder that holds all files may be a part of their names: `sys.path.append("../..")` says so to Python.
        self._outermost = posixpath.dirname(self._top)
        self._by_name: dict[str, list[str]] = {}
        self._name_of: dict[str, str] = {}
        #: By the importer's folder and the module's name.
        #: By folder, and for each file of it, what module names mean there.
        self._found: dict[str, dict[str, tuple[str, ...]]] = {}
        self._found_in: dict[str, dict[str, tuple[str, ...]]] = {}
        for path in sorted(self._place):
            names = self._names(self._place[path])
            self._name_of[path] = names[0]
            for name in names:
                self._by_name.setdefault(name, []).append(path)
        #: What the first part of a module's name can be, wherever it is imported.
        below = len(self._top.rstrip("/")) + 1 if self._top else 0
        self._firsts = {part.partition(".")[0] for place in self._paths for part in place[below:].split("/")}
        self._firsts.add(posixpath.basename(self._top))
        self._firsts.update(name.partition(".")[0] for name in self._name_of.values())

    def name_of(self, path: str) -> str:
        """The dotted name of the module at `path`, as its own package spells it."""
        return self._name_of[path]

    def place(self, path: str) -> str:
        """Where a file lies, without `..`."""
        return self._place[path]

    def is_library(self, target: str) -> bool:
        """Whether an import is plainly of no file of the project: most are, and need no second thought."""
        return target.partition(".")[0] not in self._firsts and target[:1] != "."

    def means_library(self, first: str, folder: str) -> bool:
        """Whether a package that has a part of a library's name means the library by it."""
        return first in _LIBRARIES and self._is_package(folder)

    def find(self, dotted: str, importer: str) -> str | None:
        """The file that an absolute module name most likely means in `importer`."""
        found = self.candidates(dotted, importer)
        return found[0] if found else None

    def candidates(self, dotted: str, importer: str) -> tuple[str, ...]:
        """The files that an absolute module name may mean in `importer`, the likeliest first.

        A script's own folder is an import root, and so may be every folder above it. In a package the folder that
        holds it goes first: its modules are imported through the package, except by scripts that are run in its folder.
        Then what goes by that name anywhere, the nearest first.
        """
        if importer in self._found_in:
            found = self._found_in[importer]
        else:
            folder = posixpath.dirname(self._place[importer])
            found = self._found_in[importer] = self._found.setdefault(folder, {})
        if dotted not in found:
            found[dotted] = self._candidates(dotted, posixpath.dirname(self._place[importer]))
        return found[dotted]

    def _candidates(self, dotted: str, folder: str) -> tuple[str, ...]:
        tail = dotted.replace(".", "/")
        found: dict[str, None] = {}
        first = dotted.partition(".")[0]
        for root in self._roots(folder):
            if self.means_library(first, root):
                continue
            prefix = f"{root}/" if root not in ("", "/") else root
            for place in (f"{prefix}{tail}.py", f"{prefix}{tail}/__init__.py"):
                if place in self._paths:
                    found[self._paths[place]] = None
        named = self._by_name.get(dotted, ())
        if len(named) > 1:
            named = sorted(named, key=lambda path: (-_shared(posixpath.dirname(self._place[path]), folder), path))
        found.update(dict.fromkeys(named))
        return tuple(found)

    def _roots(self, folder: str) -> list[str]:
        """The folders of the project that what is imported in `folder` may lie below, the likeliest first."""
        above = [folder]
        while above[-1] not in (self._outermost, "", "/"):
            above.append(posixpath.dirname(above[-1]))
        outside = next((one for one in above if not self._is_package(one)), None)
        if outside is None or outside == folder:
            return above
        return [outside, *(one for one in above if one != outside)]

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
        return posixpath.join(folder, "__init__.py") in self._paths

    def _names(self, place: str) -> list[str]:
        """What a module is called: by its package, from the top of the project, and from a folder of sources."""
        parts = [part for part in place.split("/") if part not in ("", "..")]
        parts[-1] = re.sub(r"\.(py|pyi|ipynb)$", "", parts[-1])
        folders, stem = parts[:-1], parts[-1]
        top = len([part for part in self._top.split("/") if part not in ("", "..")])
        own = [] if stem == "__init__" else [stem]
        start, folder = len(folders), posixpath.dirname(place)
        while start > 0 and self._is_package(folder):
            start, folder = start - 1, posixpath.dirname(folder)
        names = [".".join(folders[start:] + own) or stem, ".".join(folders[top:] + own)]
        names += [
            ".".join(folders[index + 1 :] + own)
            for index, name in enumerate(folders)
            if name in _SOURCE_FOLDERS and index >= top
        ]
        return [name for name in dict.fromkeys(names) if name]


def _common_folder(places: Iterable[str]) -> str:
    """The folder that all of `places` lie in, "" where they share none."""
    folders = {posixpath.dirname(place) for place in places}
    try:
        return posixpath.commonpath(folders) if folders else ""
    except ValueError:  # some are absolute, as on another drive, and some are not
        return ""


def _shared(one: str, other: str) -> int:
    """How many folders two paths have in common, from the top."""
    return next(
        (index for index, (left, right) in enumerate(zip(one.split("/"), other.split("/"))) if left != right),
        min(one.count("/"), other.count("/")) + 1,
    )


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
        elif is_dotted(head) and head != "None":
            direct.append(head)
    return tuple(dict.fromkeys(direct)), tuple(dict.fromkeys(inner))


def is_dotted(text: str) -> bool:
    """Whether a text is a name, with attributes or without."""
    return re.fullmatch(r"[A-Za-z_][\w.]*", text) is not None


def element_names(annotation: str, index: object) -> tuple[str, ...]:
    """The dotted names that what stands at `index` of an annotated value may be: of a tuple, those of its place."""
    head, _, rest = annotation.strip().strip("'\"").partition("[")
    if type(index) is int and head.rpartition(".")[2] in ("tuple", "Tuple"):
        places = _split(rest[: rest.rfind("]")], ",")
        if "..." not in places and -len(places) <= index < len(places):
            return annotated_names(places[index])[0]
    return annotated_names(annotation)[1]


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
