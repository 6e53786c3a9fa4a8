"""Which classes and functions of the program a text names that a configuration gives: `get_class(conf["model_class"])`.

A function that imports a module and looks something up in it by the dotted name that it is handed gives what the
configuration files of the tree set the setting to, or what is written out. `sys.modules[__name__]` and `globals()` are
asked for what their file imports as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Protocol

from perflint.analysis.names.imports import Imports
from perflint.analysis.names.refs import CLASS, FUNCTION, Ref, Refs, Scope, few
from perflint.analysis.names.written import Written
from perflint.ir.callees import last_name
from perflint.ir.summary import FunctionFacts, Summary, Value
from perflint.torch_model.packages import SET

#: Calls that import the module of a dotted name.
_IMPORTING = frozenset({"import_module", "__import__"})
#: Methods of configurations that give the value of a key.
_READING = frozenset({"get", "get_string", "get_str", "pop"})


class Resolving(Protocol):
    """What is asked of the resolver that this answers for."""

    summaries: Mapping[str, Summary]
    imports: Imports
    written: Written

    def refs(self, value: Value, scope: Scope) -> Refs: ...


class NamedClasses:
    """Answers for one resolver. `configured` gives the words of configurations."""

    def __init__(self, resolver: Resolving, configured: Callable[[], frozenset[str]]) -> None:
        self._resolver = resolver
        self._configured = configured
        #: By function, whether it gives what a dotted name says that it is handed first.
        self._looking_up: dict[Ref, bool] = {}

    def through(self, function: Ref, call: Value, caller: Scope) -> Refs:
        """What a function of the project gives that looks up what the dotted name says which this `call` hands it."""
        known = self._looking_up.get(function)
        if known is None:
            facts = self._resolver.summaries[function.path].functions[function.name]
            known = self._looking_up[function] = _looks_up(facts)
        if not known or not (call[2] or call[3]):
            return ()
        given = call[2][0] if call[2] else call[3][0][1]
        texts = dict.fromkeys(self._texts(given, caller))
        found = [ref for text in texts if "." in text for ref in self._resolver.imports.imported(text, caller.path)]
        return few([ref for ref in found if ref.path and ref.kind in (CLASS, FUNCTION)])

    def is_named(self, value: Value, scope: Scope) -> bool:
        """Whether a value is what such a function gives."""
        if type(value) is not tuple or value[0] != "call":
            return False
        makers = self._resolver.refs(value[1], scope)
        return len(makers) == 1 and makers[0].kind == FUNCTION and bool(self.through(makers[0], value, scope))

    def imported_into(self, path: str, key: Value) -> Refs:
        """The classes and functions that a file imports and a configuration names where `key` is read."""
        given = {text for where in _paths_of(key) for text in self._given(where)}
        named = sorted(given & self._resolver.summaries[path].imports.keys())
        found = [ref for name in named for ref in self._resolver.imports.bound(name, path)]
        return few([ref for ref in found if ref.path and ref.kind in (CLASS, FUNCTION)])

    def _texts(self, value: Value, scope: Scope) -> Iterator[str]:
        if type(value) is tuple and value[:2] == ("const", "str"):
            yield value[2]
            return
        if type(value) is str and "." not in value:
            made = self._resolver.written.definitions(value, scope)
        else:
            made = [(value, scope)]
        for item, _ in made:
            if type(item) is tuple and item[:2] == ("const", "str"):
                yield item[2]
            for path in _paths_of(item):
                yield from self._given(path)

    def _given(self, path: tuple[str, ...]) -> Iterator[str]:
        """What files set a setting to, told by the end of its path."""
        for where, text in self._set.get(path[-1], ()):
            if where[-len(path) :] == path or path[-len(where) :] == where:
                yield text

    @cached_property
    def _set(self) -> Mapping[str, list[tuple[tuple[str, ...], str]]]:
        """By the last names of settings, their paths and the names that files set them to."""
        found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for word in sorted(item for item in self._configured() if item.startswith(SET)):
            path, _, text = word.partition(" ")[2].partition("=")
            if text[:1] == '"' and text[1:-1].replace(".", "").isidentifier():
                parts = tuple(path.split("."))
                found.setdefault(parts[-1], []).append((parts, text[1:-1]))
        return found


def _looks_up(facts: FunctionFacts) -> bool:
    """Whether a function returns what it looks up by a computed name in a module that it imports by one."""
    if not facts.params or not any(last_name(call.func) in _IMPORTING for call in facts.calls):
        return False
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
        elif value[:2] == ("call", "getattr") and len(value[2]) > 1:
            return not (type(value[2][1]) is tuple and value[2][1][0] == "const")
    return False


def _paths_of(value: Value) -> Iterator[tuple[str, ...]]:
    """The path of the setting that is read: `("train", "model")` of `conf.get_string("train.model")`."""
    form = value[0] if type(value) is tuple else ""
    if type(value) is str and "." in value:
        yield (value.rpartition(".")[2],)
    elif form in ("item", "attr") and type(value[2]) is str:
        yield (value[2],)
    elif form == "call" and last_name(value[1]) in _READING and value[2]:
        key = value[2][0]
        if type(key) is tuple and key[:2] == ("const", "str") and key[2]:
            yield tuple(key[2].split("."))
