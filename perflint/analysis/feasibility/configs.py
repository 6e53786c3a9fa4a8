"""What the settings of a configuration may be by default, by their paths: `cfg.MODEL.DEPTH`, `opt["train"]["warm"]`.

What the code gives them (`_C.MODEL.DEPTH = 50`), overlaid by what the YAML and JSON files of the tree and its commands
say: a value that one of them gives is as possible as the default. A path is told by its end, for a part of a
configuration goes about alone: `cfg = cfg.MODEL`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from perflint.analysis.feasibility.lattice import NO, TOP, Possible
from perflint.analysis.feasibility.options import Options, is_configuration
from perflint.analysis.names.refs import EXTERNAL_INSTANCE, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.computed import written
from perflint.ir.summary import MODULE, FunctionFacts, Value
from perflint.torch_model.packages import SET, UNTOLD

#: The names of settings, from the outermost.
Path: TypeAlias = "tuple[str, ...]"
Given: TypeAlias = "list[tuple[Value, Scope]]"
#: What makes a configuration whose settings are attributes, by the last name.
_MAKERS = frozenset(
    "CfgNode CN EasyDict edict ConfigDict FrozenConfigDict OmegaConf DictConfig Munch AttrDict SimpleNamespace "
    "Namespace AttributeDict DotMap Addict HParams Box ConfigBox AttrDefault".split()
)
_DICTS = _MAKERS | {"dict", "Dict", "OrderedDict", "create"}
#: By these keys a configuration says what it makes, and by these it gives what that is made with.
_CLASSES = frozenset(
    {"_target_", "class", "target", "class_path", "type", "name", "__target__", "class_name", "_name_"}
)
_ARGUMENTS = frozenset({"params", "init_args", "kwargs", "args", "cfg", "config", "options"})
_DEEPEST = 4


class _Set(NamedTuple):
    file: str
    path: Path
    value: Any


class Configs:
    """The settings of one program. `configured` gives the words of its configurations."""

    def __init__(self, resolver: Resolver, configured: Callable[[], frozenset[str]]) -> None:
        self._resolver = resolver
        self.options = Options(resolver, configured)
        self._configured = configured
        self._known: dict[Path, Given] = {}

    # By words alone, where no path is told.

    def by_words(self, name: str) -> Possible:
        """What the configuration files of the project make of an option: anything, where none has it off."""
        return TOP if self.options.configured(name) is not False else NO

    def unless_set(self, found: Possible, name: str) -> Possible:
        """A default, as far as no configuration file of the project changes it."""
        return found if self.options.configured(name) is None else found | self.by_words(name)

    def unless_filed(self, found: Possible, name: str) -> Possible:
        """The same of an option of which all is known that commands give it."""
        told = self.options.filed(name)
        return found if told is None else found | (TOP if told else NO)

    # What is read.

    def is_asked(self, base: str, args: tuple[Value, ...], scope: Scope) -> bool:
        """`self.train_cfg.get("fast", False)` of what is given from outside of the code."""
        key = args[0]
        is_text = type(key) is tuple and key[:2] == ("const", "str") and key[2]
        return bool(is_text) and is_configuration(base) and not self._resolver.refs(base, scope)

    def path(self, value: Value, scope: Scope) -> Path:
        """The path of what is read of a configuration; empty where it is of none."""
        parts = _parts(value)
        if parts is None:
            return ()
        for place in range(1, len(parts)):
            if is_configuration(parts[place - 1]) or self._is_config(".".join(parts[:place]), scope):
                return tuple(parts[place:])
        return ()

    def _is_config(self, base: str, scope: Scope) -> bool:
        refs = self._resolver.refs(base, scope)
        return any(ref.kind == EXTERNAL_INSTANCE and ref.name.rpartition(".")[2] in _MAKERS for ref in refs)

    def given(self, path: Path) -> Given:
        """The values that a setting may have by default, each with where it is written; None of a value for what is not
        told. None at all where nothing sets it.
        """
        known = self._known.get(path)
        if known is None:
            in_code = self._fitting(path, self._in_code.get(path[-1], ()), lambda item: item[0])
            in_files = self._fitting(path, self._in_files.get(path[-1], ()), lambda item: item.path)
            found: Given = [item[1:] for item in in_code]
            for item in in_files:
                found += [(value, Scope("", MODULE)) for value in self._read(item)]
            known = self._known[path] = list(dict.fromkeys(found))
        return known

    def is_filed(self, path: Path) -> bool:
        """Whether a file of the tree sets what stands there, and so says what it is for those that run the program."""
        return len(path) > 1 and any(_ends(item.path, path) for item in self._in_files.get(path[-1], ()))

    def named(self, name: str) -> Given:
        """What files of the tree set under a name, wherever it stands: what code takes by it may be given by that."""
        return [(value, Scope("", MODULE)) for item in self._in_files.get(name, ()) for value in self._read(item)]

    @staticmethod
    def _fitting(path: Path, items: Any, path_of: Callable[[Any], Path]) -> list[Any]:
        """Those that set a path: of one that says where it stands, those that stand there, if there are any."""
        same = [item for item in items if path_of(item) == path]
        if same and len(path) > 1:
            return same
        return [item for item in items if _ends(path_of(item), path) or _ends(path, path_of(item))]

    # What code sets.

    @cached_property
    def _in_code(self) -> Mapping[str, list[tuple[Path, Value, Scope]]]:
        """By last names, what is given to a setting of what is, or is called, a configuration."""
        found: dict[str, list[tuple[Path, Value, Scope]]] = {}
        for scope, facts in self._resolver.nesting.functions:
            if scope.path in self._resolver.tests:
                continue
            for name in {**facts.binds, **facts.computed}:
                if "." not in name or name.startswith("#"):
                    continue
                path = self.path(name, scope)
                if path:
                    values = written(facts.binds.get(name, ()), facts.computed.get(name, ()))
                    found.setdefault(path[-1], []).extend([(path, value, scope) for value in values])
            for name in facts.unclear:
                path = self.path(name, scope) if "." in name and not name.startswith("#") else ()
                if path:
                    found.setdefault(path[-1], []).append((path, None, scope))
            if scope.function == MODULE:
                for path, value in _written_out(scope.path, facts.binds):
                    found.setdefault(path[-1], []).append((path, value, scope))
        return found

    # What files set.

    @cached_property
    def _files(self) -> Mapping[str, list[_Set]]:
        """By file, all that it sets."""
        found: dict[str, list[_Set]] = {}
        for word in sorted(item for item in self._configured() if item.startswith(SET)):
            file, _, setting = word[len(SET) :].partition(" ")
            path, _, text = setting.partition("=")
            found.setdefault(file, []).append(_Set(file, tuple(path.split(".")), text))
        return found

    @cached_property
    def _in_files(self) -> Mapping[str, list[_Set]]:
        found: dict[str, list[_Set]] = {}
        for items in self._files.values():
            for item in items:
                found.setdefault(item.path[-1], []).append(item)
        return found

    def _read(self, item: _Set, depth: int = 0) -> list[Value]:
        """What a file sets something to. `${lr}` is what is set at another place."""
        text = item.value
        if text == UNTOLD or text.endswith("*"):
            return [None]
        read = json.loads(text)
        if isinstance(read, str) and "${" in read:
            other = read[2:-1]
            if depth == _DEEPEST or not read.startswith("${") or not other.replace(".", "").isidentifier():
                return [None]
            path = tuple(other.strip(".").split("."))
            same = self._fitting(path, self._in_files.get(path[-1], ()), lambda found: found.path)
            return [value for found in same if found != item for value in self._read(found, depth + 1)] or [None]
        return [None if read == "???" else _literal(read)]

    # What is made as files say.

    def make(self, facts: FunctionFacts) -> bool:
        """Whether a function is the constructor of a class that the files of the tree name to be made."""
        return facts.name == "__init__" and facts.in_class.rpartition(".")[2] in self._made

    def constructed(self, facts: FunctionFacts, name: str) -> tuple[list[Value], bool]:
        """What the files of the tree give a parameter of such a constructor, `_target_: a.Net` with `depth: 3` beside
        it or under `params`; and whether one leaves it out.
        """
        cls = facts.in_class.rpartition(".")[2] if self.make(facts) else ""
        values: list[Value] = []
        leaves_out = False
        for file, around in self._made.get(cls, ()):
            paths = [(*around, name), *((*around, inner, name) for inner in _ARGUMENTS)]
            # What another file, or a command, sets at the same place is as possible; the outermost place is any file's.
            given = [
                item for item in self._in_files.get(name, ()) if item.path in paths and (around or item.file == file)
            ]
            leaves_out = leaves_out or all(item.file != file for item in given)
            values += [value for item in given for value in self._read(item)]
        return list(dict.fromkeys(values)), leaves_out

    @cached_property
    def _made(self) -> Mapping[str, list[tuple[str, Path]]]:
        """By class, the places where files name it."""
        found: dict[str, list[tuple[str, Path]]] = {}
        for file, items in self._files.items():
            for item in items:
                name = _class_of(item) if item.path[-1] in _CLASSES else ""
                if name:
                    found.setdefault(name, []).append((file, item.path[:-1]))
        return found


def _written_out(file: str, binds: Mapping[str, tuple[Value, ...]]) -> Iterator[tuple[Path, Value]]:
    """The settings of dicts that a file keeps, where it holds a configuration: `model = dict(depth=4)`."""
    in_config = "conf" in file.rpartition(".")[0] or "cfg" in file
    for name, values in binds.items():
        for value in values if in_config or is_configuration(name) else ():
            yield from _entries((name,), value)


def _entries(path: Path, value: Value) -> Iterator[tuple[Path, Value]]:
    form = value[0] if type(value) is tuple else ""
    items: tuple[tuple[Any, Value], ...] = ()
    if form == "map":
        items = value[1]
    elif form == "call" and last_name(value[1]) in _DICTS:
        items = (
            *(item for given in value[2] if type(given) is tuple and given[0] == "map" for item in given[1]),
            *value[3],
        )
    for key, item in items:
        if type(key) is str and key:
            yield (*path, key), item
            yield from _entries((*path, key), item)


def _class_of(item: _Set) -> str:
    """The last part of the dotted name of a class, or a name like one."""
    text = item.value.strip('"')
    last = text.rpartition(".")[2]
    return last if last.isidentifier() and last[:1].isupper() else ""


def _literal(read: Any) -> Value:
    if isinstance(read, list):
        return ("seq", tuple(_literal(item) for item in read))
    return ("const", type(read).__name__, read)


def _ends(path: Path, end: Path) -> bool:
    return len(path) >= len(end) and path[len(path) - len(end) :] == end


def _parts(value: Value) -> list[str] | None:
    """The names of `self.opt.train`, the keys of `opt["train"]["warm"]`."""
    if type(value) is str:
        return value.split(".")
    form = value[0] if type(value) is tuple else ""
    if form in ("item", "attr") and type(value[2]) is str:
        inner = _parts(value[1])
        return [*inner, value[2]] if inner is not None else None
    return None
