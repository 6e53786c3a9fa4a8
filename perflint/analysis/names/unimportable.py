"""Which files of a program cannot be imported, and why: what their first lines import of the project is not there.

Nothing in such a file runs, as published: it is taken for an outline, as a test is. Whatever may be there for all that
can be seen counts as there: what is compiled, generated or ignored, what lies in folders that were not walked, and
names that a module may be given in any other way than by binding them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from posixpath import basename, dirname, join, normpath, relpath
from typing import NamedTuple

from perflint.analysis.names.module_names import ModuleTable
from perflint.ir.summary import MODULE, FunctionFacts, Summary
from perflint.syntax.beside import Beside

#: A module that uses one of these may have any name.
_DYNAMIC = frozenset("globals locals vars exec execfile setattr __getattr__ __dict__ import_module __import__".split())
#: Modules of such names are written when a project is built.
_BUILT = ("_pb2", "_pb2_grpc", "version")
#: What builds modules of C, C++ or Rust.
_COMPILED = frozenset("ext_modules cffi_modules rust_extensions".split())
_SEARCH = frozenset("insert append extend".split())


class _Import(NamedTuple):
    """What importing something comes to. `lacking` is what is not there, in words; `files` are those that are run.
    Neither, where nobody can tell.
    """

    lacking: str = ""
    files: tuple[str, ...] = ()


_UNKNOWN = _Import()


class Unimportable:
    """Answers for the files of one program. `faults` are the files that cannot be imported, each with what it lacks;
    `whole` are the summaries of those that were set aside.
    """

    def __init__(
        self,
        summaries: dict[str, Summary],
        modules: ModuleTable,
        beside: Beside,
        configured: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._summaries = summaries
        self._modules = modules
        self._beside = beside
        self._configured = configured
        self._having: dict[tuple[str, str], bool] = {}
        self._words: dict[str, set[str]] = {}
        self.faults: dict[str, str] = {}
        self.whole: dict[str, Summary] = {}
        if beside.walked:
            self._find()

    def set_aside(self) -> None:
        """Have nothing but an outline left of the files that cannot be imported."""
        for path in self.faults:
            self.whole[path] = self._summaries[path]
            self._summaries[path] = _outline(self._summaries[path])

    def _find(self) -> None:
        importers: dict[str, list[str]] = {}
        for path, summary in self._summaries.items():
            if path.endswith(".ipynb") or summary.holds_tests:
                continue
            for module, names in summary.needs:
                if self._modules.is_library(module):
                    continue
                found = self._relative(module, names, path) if module[0] == "." else self._absolute(module, names, path)
                if found.lacking:
                    self.faults.setdefault(path, found.lacking)
                for file in found.files:
                    importers.setdefault(file, []).append(path)
        waiting = list(self.faults)
        while waiting:
            broken = waiting.pop()
            for path in importers.get(broken, ()):
                if path not in self.faults:
                    self.faults[path] = f"{broken} cannot be imported"
                    waiting.append(path)

    # Where things lie.

    @cached_property
    def _paths(self) -> dict[str, str]:
        """By where a module lies, without its suffix, its file as it is shown."""
        places = ((self._modules.place(path), path) for path in self._summaries)
        return {place[: -len(".py")]: path for place, path in places if place.endswith(".py")}

    @cached_property
    def _folders(self) -> frozenset[str]:
        """The folders that files lie below."""
        found: set[str] = set()
        for place in self._paths:
            folder = dirname(place)
            while folder not in found and folder:
                found.add(folder)
                folder = dirname(folder)
        return frozenset(found)

    @cached_property
    def _unread(self) -> frozenset[str]:
        """What is there, and nothing is known of."""
        there = {self._place(path) for path in self._beside.there} - self._folders
        unread = [
            self._place(path) for path in self._beside.files if path not in self._summaries or not path.endswith(".py")
        ]
        return frozenset(there).union([place.rpartition(".")[0] for place in unread])

    def _place(self, shown: str) -> str:
        return normpath(join(self._modules.base, shown))

    @cached_property
    def _walked(self) -> frozenset[str]:
        return frozenset(map(self._place, self._beside.walked))

    def _is_walked(self, folder: str) -> bool:
        while folder not in self._walked:
            if folder == dirname(folder):
                return False
            folder = dirname(folder)
        return True

    def _is_there(self, place: str) -> bool:
        return place in self._paths or place in self._folders or place in self._unread

    def _may_be_made(self, place: str) -> bool:
        """Whether a module may come from elsewhere, or is left out of what is published."""
        name = basename(place)
        return (
            name.lower().endswith(_BUILT)
            or self._compiles
            or any(fnmatchcase(one, pattern) for pattern in self._beside.ignored for one in (name, f"{name}.py"))
            or self._is_told(name)
        )

    def _is_told(self, name: str) -> bool:
        """Whether the project's papers and scripts name a module, as what they say to fetch and put there."""
        return any(
            name in word and name in word.replace("/", ".").replace(":", ".").split(".") for word in self._configured()
        )

    @cached_property
    def _compiles(self) -> bool:
        """Whether the project says how to compile modules of its own."""
        return any(
            key in _COMPILED
            for path, summary in self._summaries.items()
            if basename(path) in ("setup.py", "build.py")
            for facts in summary.functions.values()
            for call in facts.calls
            for key, _ in call.keywords
        )

    # What imports come to.

    def _relative(self, module: str, names: tuple[str, ...], path: str) -> _Import:
        rest = module.lstrip(".")
        folder = dirname(self._modules.place(path))
        inits = [join(folder, "__init__")]
        for _ in range(len(module) - len(rest) - 1):
            folder = dirname(folder)
            inits.append(join(folder, "__init__"))
        found = self._below(folder, tuple(rest.split(".")) if rest else (), names)
        own = [self._paths[init] for init in inits if init in self._paths]
        return found._replace(files=tuple([file for file in (*own, *found.files) if file != path]))

    def _absolute(self, module: str, names: tuple[str, ...], path: str) -> _Import:
        """Only where the project's own is meant for certain is anything said, and only if it is nowhere."""
        parts = tuple(module.split("."))
        folder = dirname(self._modules.place(path))
        own = self._own_root(folder, parts[0])
        if own is None or parts[0] in sys.stdlib_module_names:
            return _UNKNOWN
        found = self._below(own, parts, names)
        if not found.lacking:
            is_telling = len(parts) > 1 or bool(names) or own == folder
            return (self._outside_of_packages(module, found, own, path) or found) if is_telling else _UNKNOWN
        words = self._words_of(path)
        if {"sys", "path"} <= words and words & _SEARCH:
            return _UNKNOWN
        if own != folder or join(folder, "__init__") in self._paths:
            others = [(other.split("."), given) for other, given in self._summaries[path].needs if other != module]
            meant = [(other, given) for other, given in others if other[0] == parts[0] and (other[1:] or given)]
            if not any(self._below(own, tuple(other), given).files for other, given in meant):
                return _UNKNOWN
        roots = [one for one in self._folders if self._is_there(join(one, parts[0])) and self._is_walked(one)]
        return found if all(self._below(root, parts, names).lacking for root in roots) else _UNKNOWN

    def _outside_of_packages(self, module: str, found: _Import, own: str, path: str) -> _Import | None:
        """What a module lacks that a program takes from its own folder, and that imports of packages around it: of
        these it is no part by that name. What nobody runs by itself may find another module of the name elsewhere.
        """
        folder, top = dirname(self._modules.place(path)), module.partition(".")[0]
        is_run = "__name__" in self._words_of(path) or join(folder, "__init__") not in self._paths
        if own != folder or not is_run or [one for one in self._folders if self._is_there(join(one, top))] != [own]:
            return None
        for file in found.files:
            around = relpath(self._modules.place(file), own).count("/")
            for needed, _ in self._summaries[file].needs:
                if len(needed) - len(needed.lstrip(".")) > around:
                    return _Import(f"{file} imports of a package around it, and is in none as `{module}`")
        return None

    def _own_root(self, folder: str, top: str) -> str | None:
        """The nearest folder at or above one that has a module or a package of a name. Not a module that imports its
        own name: `loggers/wandb.py` and all beside it mean the library.
        """
        while folder not in (join(folder, top), dirname(folder)):
            place = join(folder, top)
            if join(place, "__init__") in self._paths or (place in self._paths and not self._imports_itself(place)):
                if not self._modules.means_library(top, folder):
                    return folder
            if place in self._unread or folder in self._walked:
                return None
            folder = dirname(folder)
        return None

    def _imports_itself(self, place: str) -> bool:
        """Whether a module imports what is called as it is."""
        needs = self._summaries[self._paths[place]].needs
        return any(module.partition(".")[0] == basename(place) for module, _ in needs)

    def _below(self, root: str, parts: tuple[str, ...], names: tuple[str, ...]) -> _Import:
        """What importing a module that lies below a folder comes to."""
        where = root
        files: list[str] = []
        for index, part in enumerate(parts):
            place = join(where, part)
            init = join(place, "__init__")
            if place in self._unread or init in self._unread:
                return _UNKNOWN
            if init not in self._paths and place in self._paths:
                file = self._paths[place]
                if index + 1 == len(parts):
                    return self._taken(file, "", names, (*files, file))
                return _UNKNOWN if "__path__" in self._words_of(file) else _Import(f"{file} is no package")
            if place not in self._folders:
                return self._absent(where, part, parts[index:])
            where = place
            files += [self._paths[init]] if init in self._paths else []
        if join(where, "__init__") in self._unread:
            return _UNKNOWN
        return self._taken(self._paths.get(join(where, "__init__"), ""), where, names, tuple(files))

    def _absent(self, where: str, part: str, rest: tuple[str, ...]) -> _Import:
        if join(where, "__init__") not in self._paths:
            return _UNKNOWN  # a package without one may have parts elsewhere
        place = where
        for name in rest:
            place = join(place, name)
            if self._may_be_made(place):
                return _UNKNOWN
        shown = dirname(self._paths[join(where, "__init__")]) or "the folder"
        return _Import(f"{shown} has no module `{part}`") if self._is_walked(where) else _UNKNOWN

    def _taken(self, file: str, folder: str, names: tuple[str, ...], files: tuple[str, ...]) -> _Import:
        """What taking names of a module comes to, of a package with modules below it."""
        for name in names:
            if name == "*" or (file and self._may_have(file, name)):
                continue
            place = join(folder, name)
            if folder and self._is_there(place):
                below = (self._paths.get(place), self._paths.get(join(place, "__init__")))
                files += tuple([one for one in below if one is not None])
                continue
            if folder:
                found = self._absent(folder, name, (name,))
                if not file or not found.lacking:
                    return found
            return _UNKNOWN if self._is_set_elsewhere(name) else _Import(f"{file} has no `{name}`")
        return _Import(files=files)

    # What modules have.

    def _may_have(self, path: str, name: str) -> bool:
        """Whether a module may have a name."""
        known = self._having.get((path, name))
        if known is None:
            self._having[path, name] = True  # for who asks in a circle
            known = self._having[path, name] = self._asked(path, name)
        return known

    def _asked(self, path: str, name: str) -> bool:
        summary = self._summaries[path]
        if summary.holds_tests or name.startswith("__") or name in summary.imports:
            return True
        if name in summary.classes or name in summary.functions or "__getattr__" in summary.functions:
            return True
        words = self._words_of(path)
        if name in words or name in summary.functions[MODULE].binds:
            return True
        if words & _DYNAMIC or {"sys", "modules"} <= words:
            return True
        return any(self._may_give(star, name, path) for star in summary.stars)

    def _may_give(self, star: str, name: str, path: str) -> bool:
        """Whether `from star import *` may bind a name."""
        if star[0] == ".":
            given = self._relative(star, (name,), path)
            return not given.lacking
        files = self._modules.candidates(star, path)
        return not files or any(self._may_have(file, name) for file in files)

    def _words_of(self, path: str) -> set[str]:
        words = self._words.get(path)
        if words is None:
            words = self._words[path] = self._summaries[path].words()
        return words

    def _is_set_elsewhere(self, name: str) -> bool:
        """Whether any function sets an attribute of that name on something that may be a module."""
        ending = f".{name}"
        return any(
            bound.endswith(ending) and not bound.startswith("self.")
            for summary in self._summaries.values()
            for facts in summary.functions.values()
            for bound in facts.binds
        )


def _outline(summary: Summary) -> Summary:
    """What a file defines and imports, and nothing of what it does or mentions."""
    functions = {}
    for name, facts in summary.functions.items():
        functions[name] = FunctionFacts(
            facts.qualname,
            facts.line,
            facts.end_line,
            facts.owner,
            facts.in_class,
            facts.params,
            facts.decorators,
            returns_annotation=facts.returns_annotation,
        )
    statements = tuple([replace(statement, identifiers="") for statement in summary.statements])
    return replace(summary, functions=functions, statements=statements, texts="", holds_tests=True)
