"""Which files of the program a module may be that is loaded by a path or a name that the program puts together:
`import_module(f"models.{name}")`, `spec_from_file_location("model", options.path)`.

What a text may be is read from what is written: literals, templates of which some parts are open, and what any class
sets an attribute of that name to, as configurations do. A text of which all is open names nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from string import Formatter
from typing import Protocol

from perflint.analysis.names.nesting import Nesting
from perflint.analysis.names.refs import MODULE_REF, ParamValues, Ref, Refs, Scope, argument
from perflint.ir.summary import FunctionFacts, Summary, Value, record

#: Calls that load the module of a dotted name, or of the path that is the argument at a place or of a name.
BY_NAME = frozenset({"importlib.import_module", "builtins.__import__"})
_BY_PATH = {
    "importlib.util.spec_from_file_location": (1, "location"),
    "importlib.machinery.SourceFileLoader": (1, "path"),
    "imp.load_source": (1, "pathname"),
}
#: Calls that give the module of what loads it.
_OF_LOADER = frozenset({"importlib.util.module_from_spec"})
_JOINING = frozenset({"os.path.join", "path.join", "join", "osp.join"})
#: Texts that name more files say nothing of which of them is meant.
_MOST = 40
_DEEPEST = 8
#: A part of a text that is not known.
_OPEN = "*"


class Resolving(Protocol):
    """What is asked of the resolver that this answers for."""

    summaries: Mapping[str, Summary]
    nesting: Nesting
    leans: int
    param_values: ParamValues | None
    tests: frozenset[str]

    def refs(self, value: Value, scope: Scope) -> Refs: ...


class LoadedModules:
    """Answers for one resolver."""

    def __init__(self, resolver: Resolving) -> None:
        self._resolver = resolver
        self._set: dict[str, list[tuple[Value, Scope]]] | None = None
        self._by_text: dict[tuple[str, bool], Refs] = {}
        #: By function, the parameter whose path or name it loads and gives, "" where it does nothing of the kind.
        self._loaded: dict[Ref, tuple[str, bool]] = {}

    def loaded(self, name: str, call: Value, scope: Scope) -> Refs | None:
        """What a library's function gives that loads modules, None where `name` is no such function."""
        if name in _OF_LOADER:
            return self._resolver.refs(call[2][0], scope) if call[2] else ()
        if name not in BY_NAME and name not in _BY_PATH:
            return None
        return self.named(_source(name, call), scope, by_path=name in _BY_PATH)

    def through(self, function: Ref, call: Value, caller: Scope) -> Refs:
        """What a function of the project gives that loads the module of the path or name that this `call` hands it."""
        known = self._loaded.get(function)
        if known is None:
            facts = self._resolver.summaries[function.path].functions[function.name]
            known = self._loaded[function] = self._parameter(facts, Scope(function.path, function.name))
        parameter, by_path = known
        if not parameter:
            return ()
        facts = self._resolver.summaries[function.path].functions[function.name]
        is_method = bool(facts.in_class) and "staticmethod" not in facts.decorators
        place = self._resolver.nesting.positions(facts)[parameter] - is_method
        return self.named(argument(call, parameter, place), caller, by_path=by_path)

    def named(self, value: Value, scope: Scope, *, by_path: bool) -> Refs:
        """The files that a text may name."""
        found: dict[Ref, None] = {}
        for text in dict.fromkeys(self._texts(value, scope, _DEEPEST)):
            key = text, by_path
            if key not in self._by_text:
                self._by_text[key] = self._files(text, by_path=by_path)
            found.update(dict.fromkeys(self._by_text[key]))
        return tuple(found) if len(found) <= _MOST else ()

    def _files(self, text: str, *, by_path: bool) -> Refs:
        named = _dotted(text).lstrip(".") if by_path else text
        if not named.strip(f"{_OPEN}.") or (_OPEN in named and "." not in named.strip(_OPEN)):
            return ()  # all of it is open, or all but a part of a word
        return tuple(
            record(Ref, (MODULE_REF, path, ""))
            for path in self._resolver.summaries
            if path not in self._resolver.tests and fnmatchcase(f".{_dotted(path)}", f"*.{named}")
        )

    # Texts.

    def _texts(self, value: Value, scope: Scope, depth: int) -> Iterator[str]:
        """What a text may be, with `_OPEN` for each part that is not known."""
        if value is None or depth <= 0:
            return
        if type(value) is str:
            for held, where in self._held(value, scope):
                yield from self._texts(held, where, depth - 1)
        elif value[0] == "const":
            if value[1] == "str" and value[2]:
                yield value[2]
        elif value[0] == "either":
            for part in value[1]:
                yield from self._texts(part, scope, depth)
        elif value[0] == "attr":
            for held, where in self._attributes().get(value[2], ()):
                yield from self._texts(held, where, depth - 1)
        elif value[0] == "call":
            yield from self._composed(value, scope, depth)

    def _composed(self, call: Value, scope: Scope, depth: int) -> Iterator[str]:
        func, args = call[1], call[2]
        if isinstance(func, tuple) and func[0] == "attr" and func[2] == "format" and func[1][0] == "const":
            yield _template(func[1][2] or "")
        elif isinstance(func, str) and func in _JOINING and args:
            parts = [next(self._texts(part, scope, depth - 1), _OPEN) if _is_plain(part) else _OPEN for part in args]
            yield "/".join(parts)

    def _held(self, dotted: str, scope: Scope) -> Iterator[tuple[Value, Scope]]:
        """What a name is bound to: in the function, by callers, or, of an attribute, in whatever file sets one."""
        base, _, last = dotted.rpartition(".")
        for where, facts in self._resolver.nesting.scopes(scope):
            if dotted in facts.binds:
                for value in facts.binds[dotted]:
                    yield value, where
                return
            if not base and dotted in self._resolver.nesting.positions(facts):
                self._resolver.leans += 1
                if self._resolver.param_values is not None:
                    yield from self._resolver.param_values(where, dotted)
                return
        if base:
            yield from self._attributes().get(last, ())

    def _attributes(self) -> Mapping[str, list[tuple[Value, Scope]]]:
        """What any class sets attributes to that may be texts, by their names."""
        if self._set is None:
            self._set = {}
            for path, summary in self._resolver.summaries.items():
                for cls in summary.classes.values():
                    for name, values in cls.attributes.items():
                        held = [(value, Scope(path, where)) for value, where in values if _may_be_text(value)]
                        if held:
                            self._set.setdefault(name, []).extend(held)
        return self._set

    # Functions that load what they are handed.

    def _parameter(self, facts: FunctionFacts, scope: Scope) -> tuple[str, bool]:
        names = self._resolver.nesting.positions(facts)
        waiting, seen = list(facts.returns), set[Value]()
        while waiting:
            value = waiting.pop()
            if value is None or value in seen:
                continue
            seen.add(value)
            if type(value) is str:
                waiting += facts.binds.get(value, ())
            elif value[0] == "either":
                waiting += value[1]
            elif value[0] == "call":
                for ref in self._resolver.refs(value[1], scope):
                    source = _source(ref.name, value)
                    if isinstance(source, str) and source in names and source not in facts.binds:
                        return source, ref.name in _BY_PATH
                    if ref.name in _OF_LOADER:
                        waiting += value[2][:1]
        return "", False


def _source(name: str, call: Value) -> Value:
    """The path or the name of the module that a call loads."""
    if name in BY_NAME:
        return argument(call, "name", 0)
    where = _BY_PATH.get(name)
    return None if where is None else argument(call, where[1], where[0])


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def _template(text: str) -> str:
    """`models/{}.py` with its fields open; nothing where it is no text to be formatted."""
    try:
        return "".join(told + ("" if field is None else _OPEN) for told, field, _, _ in Formatter().parse(text))
    except ValueError:
        return ""


def _is_plain(value: Value) -> bool:
    return isinstance(value, tuple) and value[0] == "const"


def _may_be_text(value: Value) -> bool:
    return isinstance(value, tuple) and (value[:2] == ("const", "str") or value[0] in ("call", "either"))
