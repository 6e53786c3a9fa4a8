"""What a file defines at its top, with the identifiers that each definition uses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from perflint.analysis.names.refs import Scope
from perflint.ir.summary import MODULE, CallFacts, ClassFacts, FunctionFacts, Summary, Value
from perflint.torch_model import registries

#: A file and what is defined at its top: a function, a class, or a method as `Class.name`. "" for its statements.
Node: TypeAlias = "tuple[str, str]"

#: What a file does where it is run itself, and not where another imports it: `if __name__ == "__main__"`.
MAIN = "<main>"
#: Decorators that leave a function or class where it is.
_PLAIN_DECORATORS = frozenset({"dataclass", "dataclasses", "torch", "functools", "typing", "abc", "attr", "attrs"})
_SEPARATORS = str.maketrans(dict.fromkeys("[](){},.|:'\"=", " "))


def node_of(scope: Scope) -> Node:
    """The definition at the top of a file that a function stands in, or is."""
    return scope.path, top_of(scope.function)


def top_of(qualname: str) -> str:
    """The name of a definition at the top of a file, by that of what stands in it."""
    parts = qualname.partition(".<locals>")[0].split(".")
    if parts[0][:1] == "<":
        return ""
    return ".".join([part.partition("~")[0] for part in parts[:2]])


class Definitions(NamedTuple):
    """The words of the statements of a file that define nothing, and of each thing that it defines, and of what it does
    where it is run itself (`MAIN`).
    """

    statements: frozenset[str]
    imports: frozenset[str]
    words: Mapping[str, frozenset[str]]
    methods: Mapping[str, tuple[str, ...]]
    #: What a decorator may keep for others to find; and what a registry keeps under its own name.
    registered: tuple[str, ...]
    registered_by_name: tuple[str, ...]
    calls: Mapping[str, list[CallFacts]]


def definitions_of(summary: Summary) -> Definitions:
    words: dict[str, set[str]] = {}
    methods: dict[str, list[str]] = {}
    calls: dict[str, list[CallFacts]] = {}
    registered: dict[bool, list[str]] = {False: [], True: []}
    homes: dict[int, str] = {}
    guarded = {
        summary.statement_at(item.line) for item in summary.functions[MODULE].branches if is_main_guard(item.test)
    }
    for qualname, facts in summary.functions.items():
        name = top_of(qualname)
        for call in facts.calls:
            own = MAIN if qualname == MODULE and summary.statement_at(call.line) in guarded else name
            calls.setdefault(own, []).append(call)
        if name:
            words.setdefault(name, set()).update(facts.identifiers.split(), *_annotated(facts))
            owner, _, method = name.partition(".")
            if method:
                methods.setdefault(owner, []).append(method)
            else:
                homes[summary.statement_at(facts.line)] = name
                if "." not in qualname and (kept := _keeping(facts, summary)):
                    registered[all(map(_keeps_by_name, kept))].append(name)
    for qualname, cls in summary.classes.items():
        if "." not in qualname:
            name = qualname.partition("~")[0]
            homes[summary.statement_at(cls.line)] = name
            methods.setdefault(name, [])
            words.setdefault(name, set()).update(
                *[item.translate(_SEPARATORS).split() for item in cls.annotations.values()]
            )
            if kept := _keeping(cls, summary):
                registered[all(map(_keeps_by_name, kept))].append(name)
    plain: set[str] = set()
    imports: set[str] = set()
    for statement in summary.statements:
        used = statement.identifiers.split()
        home = homes.get(statement.line)
        if statement.imports:
            imports.update(used)
        elif statement.line in guarded:
            words.setdefault(MAIN, set()).update(used)
        elif home is None or "__name__" in used:
            plain.update(used)
        else:
            words[home].update(used)
    return Definitions(
        frozenset(plain),
        frozenset(imports),
        {name: frozenset(said) for name, said in words.items()},
        {name: tuple(dict.fromkeys(found)) for name, found in methods.items()},
        tuple(registered[False]),
        tuple(registered[True]),
        calls,
    )


def is_main_guard(test: Value) -> bool:
    return type(test) is tuple and test[0] == "compare" and "__name__" in test[2:]


def _annotated(facts: FunctionFacts) -> list[list[str]]:
    """The identifiers in the annotations of a function."""
    texts = {param.annotation for param in facts.params}
    texts.add(facts.returns_annotation)
    texts.update(facts.annotations.values())
    return [_words_of(text) for text in texts if text]


@lru_cache(1024)
def _words_of(annotation: str) -> list[str]:
    """Most functions have the same few annotations."""
    return annotation.translate(_SEPARATORS).split()


def _keeping(facts: FunctionFacts | ClassFacts, summary: Summary) -> list[Value]:
    """The decorators that may keep a function or class for others to find."""
    found = []
    for decorator in facts.decorators:
        named = decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator
        first = named.partition(".")[0] if isinstance(named, str) else ""
        if summary.imports.get(first, first).partition(".")[0] not in _PLAIN_DECORATORS:
            found.append(decorator)
    return found


def _keeps_by_name(decorator: Value) -> bool:
    """`@LOSSES.register_module()`: a registry that is given no other name has it under its own."""
    if isinstance(decorator, tuple) and decorator[0] == "call":
        _, decorator, args, keywords = decorator
        if args or keywords:
            return False
    return isinstance(decorator, str) and "." in decorator and decorator.rpartition(".")[2] in registries.REGISTERING


def finds_methods(summary: Summary, name: str) -> bool:
    """Whether a definition asks an object for a method by a name that it computes: `getattr(agent, mode)(batch)`."""
    values: list[Value] = []
    for qualname, facts in summary.functions.items():
        if top_of(qualname) == name:
            values += [(call.func, call.args, call.keywords) for call in facts.calls]
            values += [*facts.binds.values(), *facts.computed.values(), facts.returns]
            values += [(value,) for value, _ in facts.yields]
    for qualname, cls in summary.classes.items():
        if qualname.partition(".")[0] == name.partition(".")[0]:
            values += [*cls.attributes.values(), *cls.computed.values()]
    return any(map(_is_computed_getattr, values))


def _is_computed_getattr(value: Value) -> bool:
    """Whether a value asks for an attribute by a name that is not written down."""
    if not isinstance(value, tuple) or not value:
        return False
    # A list of arguments may begin with variables of these names.
    if value[:2] == ("call", "getattr") and len(value) == 4 and isinstance(value[2], tuple) and len(value[2]) > 1:
        name = value[2][1]
        return not (isinstance(name, tuple) and name[:2] == ("const", "str"))
    return any(map(_is_computed_getattr, value))
