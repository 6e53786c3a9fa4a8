"""The questions about a program that can be put again to another one, and what it answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from typing import Any

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.names.refs import Ref, Scope
from perflint.analysis.program import Program
from perflint.finding import Confidence, Hop

#: A name and its arguments, hashable.
Question = tuple[Any, ...]
PART, CODE = "part", "code"


class Digests:
    """Hashes of what summaries say, worked out when they are first asked for. What is not there has none.

    `texts` are hashes of the texts that the summaries were made from.
    """

    def __init__(self, program: Program, texts: Mapping[str, bytes]) -> None:
        self._summaries = program.summaries
        self._aside = program.unimportable.faults
        self._texts = texts
        self._flow = program.flow
        self._codes: dict[str, str | None] = {}
        self._known: dict[tuple[str, ...], str | None] = {}

    def text(self, path: str) -> str:
        """Of the text of a file and of what the program made of its tests, empty where the text is not known."""
        if path not in self._texts:
            return ""
        functions = self._summaries[path].functions if path in self._summaries else {}
        settled = [[item[:3] for item in facts.contexts] for facts in functions.values() if facts.questions]
        text = f"aside {self._texts[path].hex()}" if path in self._aside else self._texts[path].hex()
        return f"{text} {self._digest((path, 'settled', ''), settled)}" if settled else text

    def code(self, path: str) -> str | None:
        """Of what the text of a file says without its comments and empty lines."""
        if path not in self._codes:
            flow = self._flow(path)
            self._codes[path] = _code_of(flow.tree.source.lines) if flow is not None else None
        return self._codes[path]

    def of(self, path: str) -> str | None:
        """Of all that a file's summary says."""
        return self._digest((path,), self._summaries.get(path))

    def part(self, path: str, table: str, name: str) -> str | None:
        """Of one entry of a summary's table: a function, a class."""
        summary = self._summaries.get(path)
        return self._digest((path, table, name), getattr(summary, table).get(name) if summary is not None else None)

    def _digest(self, key: tuple[str, ...], value: object) -> str | None:
        if key not in self._known:
            self._known[key] = None if value is None else hashed((value,))
        return self._known[key]


def answer_to(program: Program, digests: Digests, question: Question) -> object:
    name, *arguments = question
    if name in RESOLVER:
        return getattr(program.resolver, name)(*arguments)
    if name == "is_subclass":
        return program.is_subclass(arguments[0], *arguments[1])
    if name in METHODS:
        return getattr(program, name)(*arguments)
    if name in WHOLE:
        found = getattr(program.whole, name)
        return found(*arguments) if arguments else found
    return _OTHERS[name](program, digests, *arguments)


def _heats(program: Program, _: Digests, path: str) -> object:
    """How often each line of a file runs, and with gradients or without; and by which names calls are looked at."""
    heatmap = program.heatmap
    found = []
    for qualname, facts in program.summaries[path].functions.items():
        scope = Scope(path, qualname)
        base = heatmap.reason(scope).heat
        contexts = heatmap.contexts(scope, facts, base) if facts.contexts else []
        guards = [item.detail for item in facts.contexts if item.kind == "guard"] if facts.questions else []
        found.append((int(base), [int(heat) for heat in contexts], heatmap.without_grad(scope), guards))
    is_aside = path in program.unimportable.faults
    return found, [sorted(names) for names in program.names_by_effect.values()], is_aside


def _compiled(program: Program, _: Digests, scope: Scope) -> Hop | None:
    return program.compiled.get(scope)


def _table(program: Program, _: Digests, entry: str) -> object:
    """All of a table, in its order, which whoever goes through it sees."""
    tables: dict[str, Callable[[], Mapping[Any, Any]]] = {
        "loop": lambda: program.roots.loops,
        "root": lambda: program.roots.functions,
        "compiled": lambda: program.compiled,
        "outgoing": lambda: program.graph.outgoing,
        "incoming": lambda: program.graph.incoming,
        "unresolved": lambda: program.graph.unresolved,
    }
    return list(tables[entry]().items())


def _plain(value: Any) -> Any:
    return tuple(_plain(item) for item in value) if isinstance(value, (list, tuple)) else value


def _scope(value: Sequence[Any]) -> Scope:
    path, function = value
    return Scope(path, function)


def _ref(value: Sequence[Any]) -> Ref:
    kind, path, name = value
    return Ref(kind, path, name)


def _edge(value: Sequence[Any]) -> Edge:
    caller, callee, context, line, confidence, index, callback, stands_in = value
    return Edge(_scope(caller), _scope(callee), context, line, Confidence(confidence), index, callback, stands_in)


def _place(value: Sequence[Any]) -> tuple[Scope, int]:
    scope, index = value
    return _scope(scope), index


#: What a resolver is asked, with how each argument is made again from JSON.
RESOLVER: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "refs": (_plain, _scope),
    "imported": (_plain, _plain),
    "attribute": (_ref, _plain),
    "mro": (_ref,),
    "method": (_ref, _plain),
    "base_names": (_ref,),
    "offered": (_plain,),
    "below": (_ref,),
}
METHODS: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "elements": (_plain, _scope, _plain),
    "is_subclass": (_ref, _plain),
    "is_loader": (_ref,),
    "is_module": (_ref,),
    "literals": (_plain, _scope),
    "never_runs": (_scope,),
    "own_collate": (_ref,),
    "is_step_of_engine": (_scope,),
    "callers": (_scope,),
    "argument": (_edge, _plain),
    "heat": (_scope,),
    "peak": (_scope,),
    "hottest_call": (_scope,),
    "heat_at": (_scope, _plain),
    "route": (_scope, _plain),
    "feasible": (_scope, _plain, _plain, _plain, _plain),
    "is_reached_in_training": (_scope, _plain, _plain, _plain),
    "is_float16": (_plain, _scope),
    "is_off_by_default": (_plain, _scope),
    "decided": (_plain, _scope),
    "role": (_scope, _plain),
    "is_run_by_framework": (_scope, _plain),
    "step_loop": (_scope, _plain),
    "grad_off": (_scope, _plain),
    "trains": (_scope,),
    "trains_through": (_edge,),
    "reaches": (_edge, _plain),
    "effects": (_scope,),
    "call_effects": (_scope, _plain),
    "queue_at_start": (_scope,),
    "queue_change": (_scope, _plain),
    "runs_several_times": (_scope,),
    "runs_for_each_parameter": (_scope,),
    "phase": (_scope, _plain),
    "is_in_training": (_scope,),
    "is_in_forward": (_scope,),
    "is_always_compiled": (_scope,),
    "is_only_promised": (_scope, _plain),
    "drives": (_plain,),
    "named": (_plain,),
    "may_be_own": (_plain,),
    "mentions": (_plain, _plain),
}
#: What `Whole` is asked; what has no arguments is an attribute.
WHOLE: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "has_training": (),
    "has_hot_loops": (),
    "has_step_loops": (),
    "switches_gradients": (),
    "compiles": (),
    "may_generate": (),
    "passes": (_plain,),
    "names_class": (_plain, _scope),
    "is_for_users": (_scope, _plain, _scope),
    "is_set_elsewhere": (_plain, _scope),
    "is_set_anywhere": (_plain,),
    "has_derived": (_plain,),
    "most_parameters": (_plain, _plain),
    "most_parameters_kept": (_plain,),
    "writes_to_module": (_plain, _plain),
    "writes_to_attribute": (_plain,),
    "has_class": (_plain,),
    "differentiates": (),
    "differentiates_inputs": (),
    "differentiates_in": (_scope,),
    "files_of_modules": (),
    "outlasting": (_plain,),
    "starts_anew": (_plain, _plain),
    "makes_on_card": (_plain,),
    "runs_on_host": (_plain,),
    "is_used_outside": (_plain, _plain),
    "is_hooked": (_plain,),
    "classes_called": (_plain,),
    "derived_from": (_plain, _plain),
    "data_asks": (),
    "data_sets": (),
    "makes_data_sets_in_memory": (),
    "loads_without_workers": (),
    "process_groups": (),
    "reduces_on_gpus": (),
    "pins_itself": (),
    "is_method_called_without_grad": (_plain,),
    "given": (_plain,),
    "option_defaults": (_plain, _plain),
    "turns_off": (_plain,),
    "is_installed": (_plain,),
    "setters_of": (_ref, _plain),
    "readers_of": (_ref, _plain),
    "setters_below": (_ref, _plain),
}
_OTHERS: dict[str, Callable[..., object]] = {
    "heats": _heats,
    "file": lambda _, digests, path: digests.of(path),
    CODE: lambda _, digests, path: digests.code(path),
    PART: lambda _, digests, path, table, name: digests.part(path, table, name),
    "is_there": lambda program, _, path: path in program.summaries,
    "paths": lambda program, _: tuple(program.summaries),
    "compiled": _compiled,
    "outgoing": lambda program, _, scope: program.graph.outgoing.get(scope),
    "incoming": lambda program, _, scope: program.graph.incoming.get(scope),
    "unresolved": lambda program, _, scope: program.graph.unresolved.get(scope),
    "loop": lambda program, _, place: program.roots.loops.get(place),
    "root": lambda program, _, scope: program.roots.functions.get(scope),
    "table": _table,
    "everything": lambda program, digests: (
        [(path, digests.of(path)) for path in program.summaries],
        sorted((name, value) for name, value in vars(program).items() if isinstance(value, (str, int, tuple))),
    ),
}
_ARGUMENTS: dict[str, tuple[Callable[[Any], Any], ...]] = {
    **RESOLVER,
    **METHODS,
    **WHOLE,
    "heats": (_plain,),
    "file": (_plain,),
    "is_there": (_plain,),
    "paths": (),
    "compiled": (_scope,),
    "outgoing": (_scope,),
    "incoming": (_scope,),
    "unresolved": (_scope,),
    "loop": (_place,),
    "root": (_scope,),
    "table": (_plain,),
    "everything": (),
}


def revived(question: Sequence[Any]) -> Question:
    """A question as it was asked, from JSON."""
    name, *arguments = question
    makers = _ARGUMENTS[name]
    if len(makers) != len(arguments):
        raise ValueError(f"not a question: {name}")
    return (name, *(make(item) for make, item in zip(makers, arguments)))


def hashed(answers: Iterable[object]) -> str:
    """Answers are plain data, tuples, lists, strings, numbers, enums and records of them: JSON says all there is to
    them, and is written by compiled code, as the `repr` of a record is not.
    """
    digest = hashlib.blake2b(digest_size=20)
    for answer in answers:
        digest.update(_JSON.encode(answer).encode("ascii"))
        digest.update(b"\0")
    return digest.hexdigest()


def _code_of(lines: Iterable[str]) -> str:
    """A hash sign in a line with quotes may be part of a text; a longer text that is taken for a remark tells nothing
    of the values of a program.
    """
    digest = hashlib.blake2b(digest_size=20)
    for line in lines:
        bare = line.partition("#")[0].rstrip() if "#" in line and not ("'" in line or '"' in line) else line.rstrip()
        if bare:
            digest.update(bare.encode("utf-8", "surrogatepass"))
            digest.update(b"\n")
    return digest.hexdigest()


def _spelled(answer: Any) -> Any:
    """A record as the list of the fields that it is compared by, an enum as its value."""
    if isinstance(answer, Enum):
        return answer.value
    return [getattr(answer, name) for name in _compared(type(answer))]


def _compared(record: type[Any]) -> tuple[str, ...]:
    known = _COMPARED.get(record)
    if known is None:
        known = _COMPARED[record] = tuple([item.name for item in fields(record) if item.compare])
    return known


#: By class of records, what `_compared` says.
_COMPARED: dict[type[Any], tuple[str, ...]] = {}


_JSON = json.JSONEncoder(default=_spelled)
