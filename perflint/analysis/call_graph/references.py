"""What the identifiers used in a file refer to, among the top-level definitions of a program."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cached_property

from perflint.analysis.call_graph.texts import Texts
from perflint.analysis.names.module_names import ModuleTable
from perflint.ir.summary import MODULE, Summary

#: What lists all that a file or a module has, and what gives one of it by a text.
_LISTING = frozenset({"getmembers", "__subclasses__"})
_LOOKING_UP = frozenset({"globals", "locals"})
#: The same, as builtins only: a module has an `eval` as well.
_CALLED = frozenset({"eval", "exec"})
#: What gives the attributes of what it is called with: a module, or the options of a command line.
_ATTRIBUTES = frozenset({"vars", "dir"})
#: How a folder is put on the path.
_PUTTING = frozenset({"append", "insert"})
_EACH = frozenset({"items", "keys", "values"})
#: Code without any of these finds nothing by names that it computes, unless it runs texts.
_TELLING = _LISTING | _LOOKING_UP | _ATTRIBUTES | {"getattr", "__dict__"}
#: How many files an import is followed through.
_DEEPEST = 8
_UNKNOWN = ("", "")


class References:
    """The files of one program, but its tests."""

    def __init__(
        self, summaries: Mapping[str, Summary], modules: ModuleTable, configured: Callable[[], frozenset[str]]
    ) -> None:
        self._modules = modules
        self.summaries = {path: summary for path, summary in summaries.items() if not summary.holds_tests}
        self._texts = Texts(self.summaries, configured)
        #: By file, its top-level functions and classes.
        self.own = {path: _top_level(summary) for path, summary in self.summaries.items()}
        self._defining: dict[str, list[str]] = {}
        for path, names in self.own.items():
            for name in names:
                self._defining.setdefault(name, []).append(path)
        self._stem = {path: _stem(path) for path in self.summaries}
        self._imported: dict[str, dict[str, tuple[str, str]]] = {}
        self._imported_files: dict[str, frozenset[str]] = {}
        self._within: dict[str, frozenset[str]] = {}
        self._whole_imports: dict[str, frozenset[str]] = {}
        self._listing: dict[str, frozenset[str]] = {}
        self._in_folder: dict[str, frozenset[str]] = {}

    def imported_files(self, path: str) -> frozenset[str]:
        """The files that a file imports, or imports something of, anywhere in it."""
        known = self._imported_files.get(path)
        if known is None:
            found = {file for file, _ in self._imports(path).values() if file}
            for star in self.summaries[path].stars:
                found.update(self.files(star, path))
            known = self._imported_files[path] = frozenset(found - {path})
        return known

    def all_named(self, path: str, words: frozenset[str], calls: Iterable[str]) -> set[tuple[str, str]]:
        """The definitions that identifiers of a file may be of, when all of them stand together. What the file defines
        itself, or imports by its name, is of another one only where it is called as such, `zoo.main()` beside `main`,
        or where branches import several by that name.
        """
        dotted = {func.rpartition(".")[2] for func in calls if "." in func}
        found: set[tuple[str, str]] = set()
        imports = self._imports(path)
        for word in imports.keys() & words:
            file, name = imports[word]
            if name:
                found.update(self._followed(file, name))
        whole, stem, defining, own = self._whole(path), self._stem, self._defining, self.own[path]
        several = self.summaries[path].also
        for word in defining.keys() & words:
            is_one = (word in own or imports.get(word, _UNKNOWN)[0]) and word not in several
            is_other = not is_one or word in dotted
            for file in defining[word]:
                if file == path or (is_other and (stem[file] in words or file in whole)):
                    found.add((file, word))
        return found

    def named(self, path: str, word: str, words: Container[str] = ()) -> Iterator[tuple[str, str]]:
        """The definitions that an identifier of a file may be of: its own, one that it imports, or one of a module
        that it imports whole, or that is spelled among `words`: an import inside of a function, `zoo.nets.Net`.
        """
        known = self._imports(path).get(word)
        if known is not None and known[1]:
            yield from self._followed(*known)
        for file in self._defining.get(word, ()):
            if file == path or self._stem[file] in words or file in self._whole(path):
                yield file, word

    def anywhere(self, files: Container[str]) -> dict[str, list[tuple[str, str]]]:
        """By name, all definitions in some files."""
        found = {
            word: [(file, word) for file in defining if file in files] for word, defining in self._defining.items()
        }
        return {word: named for word, named in found.items() if named}

    def all_of(self, path: str) -> Iterator[tuple[str, str]]:
        """What a file defines, what it imports by name, and what modules define that it imports whole."""
        yield from self.names_of(path)
        for file in self._whole(path):
            yield from ((file, name) for name in self.own[file])

    def names_of(self, path: str) -> Iterator[tuple[str, str]]:
        """What a file defines, and what it imports by name."""
        yield from ((path, name) for name in self.own[path])
        for file, name in self._imports(path).values():
            if file and name:
                yield from self._followed(file, name)

    def starred(self, path: str) -> Iterator[tuple[str, str]]:
        """What a file brings in by stars."""
        for star in self.summaries[path].stars:
            for file in self.files(star, path):
                yield from self.all_of(file)

    def files(self, target: str, path: str) -> list[str]:
        """The file that an import of a module means, if any."""
        found = self._find(self._modules.absolute(target, path), path)
        return [found] if found else []

    def found_by_text(self, path: str, told: frozenset[str], calls: set[str]) -> Iterator[tuple[str, str]]:
        """What code with these identifiers may find by names that it computes: what it lists, and what texts name of
        the places that it looks in.
        """
        if _TELLING.isdisjoint(told) and _CALLED.isdisjoint(calls):
            return
        looks_up = not _LOOKING_UP.isdisjoint(told)
        if not _LISTING.isdisjoint(told) or (looks_up and not _EACH.isdisjoint(told)):
            yield from self.all_of(path)
        elif looks_up or not _CALLED.isdisjoint(calls) or {"getattr", "modules"} <= told:
            yield from self.named_by_text(self.all_of(path))  # `getattr(sys.modules[__name__], name)`
        lists = not (_LISTING | {"__dict__"}).isdisjoint(told)
        listed = frozenset() if _ATTRIBUTES.isdisjoint(told) else self._listed(path)
        if lists or listed or "getattr" in told:
            for word in told:
                file, name = self._imports(path).get(word, ("", ""))
                if file and not name and (lists or word in listed):
                    yield from self.all_of(file)
                elif file and not name and "getattr" in told:
                    yield from self.named_by_text(self.all_of(file))

    def named_by_text(self, definitions: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Those that a text of the program names."""
        return (item for item in definitions if self._texts.name(item[1]))

    def importable(self, path: str) -> frozenset[str]:
        """The files that a file may import by a name that it computes: those beside it and in the folders that it puts
        on the path, or of the packages that its texts begin with, or any where there are none.
        """
        on_path = self._on_path(path)
        if on_path:
            return frozenset([file for file in self.summaries if file.rpartition("/")[0] in on_path])
        folders = [f".{folder}." for folder in self._texts.folders(path)]
        found = {
            file
            for file in self.summaries
            if folders and any(folder in f".{self._modules.name_of(file)}." for folder in folders)
        }
        return frozenset(found or self.summaries)

    def _listed(self, path: str) -> frozenset[str]:
        """The names in a file whose attributes it asks for: `vars(models)[name]`."""
        known = self._listing.get(path)
        if known is None:
            found: set[str] = set()
            for facts in self.summaries[path].functions.values():
                held = (facts.binds, facts.computed, facts.returns, facts.yields)
                waiting: list[object] = [*held, *(loop.iterable for loop in facts.loops)]
                waiting += [(call.func, call.args, call.keywords) for call in facts.calls]
                found.update(_asked_of(waiting))
            waiting = [(cls.attributes, cls.computed) for cls in self.summaries[path].classes.values()]
            known = self._listing[path] = frozenset(found.union(_asked_of(waiting)))
        return known

    def _on_path(self, path: str) -> set[str]:
        """The folders of the project that a file puts on the path that modules are looked for on, and its own: of
        `sys.path.append(os.path.join(HERE, "models"))` one text says which. None where it puts none there.
        """
        summary = self.summaries[path]
        words = {word for statement in summary.statements for word in statement.identifiers.split()}
        if not {"sys", "path"} <= words or _PUTTING.isdisjoint(words):
            return set()
        own = path.rpartition("/")[0]
        named = {f"{around}{text}" for text in summary.texts.split() for around in ("", f"{own}/" if own else "")}
        found = named & self._folders
        return {*found, own} if found else set()

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset([path.rpartition("/")[0] for path in self.summaries])

    # Imports.

    def _imports(self, path: str) -> dict[str, tuple[str, str]]:
        """By bound name, the file and the name in it, "" for the file itself; no file where it is a library's."""
        known = self._imported.get(path)
        if known is None:
            known = self._imported[path] = {}
            for bound, target in self.summaries[path].imports.items():
                if not self._modules.is_library(target):
                    known[bound] = self._target(self._modules.absolute(target, path), path)
        return known

    def _target(self, dotted: str, path: str) -> tuple[str, str]:
        file = self._find(dotted, path)
        if file:
            return file, ""
        module, _, name = dotted.rpartition(".")
        return (self._find(module, path) if module else ""), name

    def _find(self, dotted: str, path: str) -> str:
        return next((file for file in self._modules.candidates(dotted, path) if file in self.summaries), "")

    def _followed(self, path: str, name: str, depth: int = 0) -> Iterator[tuple[str, str]]:
        """Where a name of a file is defined: there, or where the file has it from."""
        if not path or depth > _DEEPEST:
            return
        if name in self.own[path]:
            yield path, name
            return
        file, inner = self._imports(path).get(name, ("", ""))
        if file and inner:
            yield from self._followed(file, inner, depth + 1)
        for star in self.summaries[path].stars:
            for other in self.files(star, path):
                yield from self._followed(other, name, depth + 1)

    def _whole(self, path: str) -> frozenset[str]:
        """The files whose definitions are attributes of a module that a file imports, or that a star brings in; and
        those of the modules that such a one has from others in the same way.
        """
        known = self._within.get(path)
        if known is None:
            found: set[str] = set()
            seen = {path}
            waiting = [path]
            while waiting:
                for file in self._brought(waiting.pop()):
                    found.add(file)
                    if file.endswith("__init__.py"):
                        found |= self._below(file.removesuffix("__init__.py"))
                    if file not in seen:
                        seen.add(file)
                        waiting.append(file)
            known = self._within[path] = frozenset(found - {path})
        return known

    def _brought(self, path: str) -> frozenset[str]:
        """The modules that a file imports whole, or by a star."""
        known = self._whole_imports.get(path)
        if known is None:
            starred = [file for star in self.summaries[path].stars for file in self.files(star, path)]
            whole = [file for file, name in self._imports(path).values() if file and not name]
            known = self._whole_imports[path] = frozenset([*whole, *starred])
        return known

    def _below(self, folder: str) -> frozenset[str]:
        known = self._in_folder.get(folder)
        if known is None:
            found = [other for other in self.summaries if other.startswith(folder)]
            known = self._in_folder[folder] = frozenset(found)
        return known


def _stem(path: str) -> str:
    """The last part of a module's name."""
    parts = path.rpartition(".")[0].split("/")
    return parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]


def _top_level(summary: Summary) -> frozenset[str]:
    names = {name for name in summary.classes if "." not in name}
    names |= {name for name in summary.functions if "." not in name and name != MODULE and name[0] != "<"}
    return frozenset(name.partition("~")[0] for name in names)


def _asked_of(values: list[object]) -> Iterator[str]:
    """The first names of what `vars` and `dir` are called with anywhere in some values."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if value is None or value.__class__ is str:
            continue  # most are: to ask whether one is a mapping takes longer
        if isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, tuple):
            if len(value) == 4 and value[0] == "call" and value[1] in _ATTRIBUTES and value[2]:
                asked = value[2][0]
                if isinstance(asked, str):
                    yield asked.partition(".")[0]
            waiting += value
