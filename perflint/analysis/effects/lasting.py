"""Whether anything outlives a run of some code: what each function in reach does by its text, put together.

Only what is known to be harmless is. A function that cannot be found, an attribute that may hold anything and a library
that is not listed all count as what may keep something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from perflint.analysis.names.refs import CLASS, EXTERNAL, EXTERNAL_INSTANCE, FUNCTION, INSTANCE, MODULE_REF, Ref, Scope
from perflint.ir.effects import ASKS, CALLS, FILLS, GIVES, KEEPS
from perflint.ir.summary import FunctionFacts
from perflint.torch_model import tensors
from perflint.torch_model.names import canonical

if TYPE_CHECKING:
    from perflint.analysis.program import Program

__all__ = ["HOOKS", "UNSEEN", "Lasting"]

#: What `fault` says beside the words of `ir.effects`: a call that leads nowhere, and what hangs on other code.
UNSEEN, HOOKS = "unseen", "hooks"

#: Names of what has other code run in a forward, or keeps what a forward computes.
_HOOKS = (
    "register_forward_hook register_forward_pre_hook register_module_forward_hook register_module_forward_pre_hook "
    "weight_norm spectral_norm remove_weight_norm cached MethodType"
).split()
#: Libraries whose functions and modules keep nothing of what they compute, once hooks are ruled out.
_LIBRARIES = frozenset(
    "torch torchvision timm math cmath numpy einops itertools operator typing abc dataclasses enum copy time warnings "
    "functools contextlib random collections string re string textwrap numbers".split()
)
_KEEPING = ("functools.cache", "functools.lru_cache", "functools.cached_property", "torch.save")
_BUILTINS = frozenset(
    "abs all any bool bytes callable chr dict divmod enumerate filter float format frozenset getattr hasattr hash id "
    "int isinstance issubclass iter len list map max min next object ord pow print range repr reversed round set slice "
    "sorted str sum super tuple type zip property staticmethod classmethod NotImplementedError ValueError TypeError "
    "RuntimeError AssertionError KeyError IndexError AttributeError ImportError StopIteration Exception".split()
)
#: Methods that write into nothing, of tensors, texts and containers.
_READING = (
    tensors.VIEW_METHODS
    | tensors.TUPLE_METHODS
    | tensors.CAST_METHODS
    | tensors.FRESH_METHODS
    | tensors.NUMBER_METHODS
    | frozenset(
        "to cpu cuda item tolist size get items keys values join format split strip startswith endswith lower upper "
        "replace index count copy parameters named_parameters modules named_modules children named_children buffers "
        "named_buffers state_dict new_zeros new_ones new_full new_empty new_tensor numpy masked_fill dim type_as "
        "nonzero unique any all sum mean is_floating_point is_complex warning info debug warn eval half isnan".split()
    )
) - {"add", "put", "set", "update"}
_CONTAINERS = ("ModuleList", "Sequential", "ModuleDict", "ParameterList", "ParameterDict")
#: What a module is run by; its other methods run when these call them.
_RUNS = frozenset("forward train eval __call__ __getattr__ __getitem__ __iter__ __enter__ __exit__".split())
_HANDS_OUT = frozenset({"__getitem__", "__getitems__", "__iter__", "__next__", "__call__"})
#: Classes whose values are data, not what is computed of it.
_OF_DATA = ("Dataset", "IterableDataset", "Sampler", "BatchSampler", "DataLoader")
#: Special methods that run by a call, which is looked up, or that only make, show or save an object.
_CALLED = frozenset(
    "__init__ __new__ __post_init__ __call__ __enter__ __exit__ __len__ __repr__ __str__ __del__ __hash__ __reduce__ "
    "__init_subclass__ __getstate__ __setstate__ __class_getitem__ __bool__ __iter__ __next__".split()
)
_NOT_RUN = frozenset({"__init_subclass__", "__repr__", "__str__", "__setstate__", "__getstate__", "__reduce__"})


class Lasting:
    """Answers for one program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def fault(self, started: Iterable[tuple[str, str, str]]) -> str:
        """One of `ir.effects`, `UNSEEN`, `HOOKS`, or nothing, of what is reached from classes and functions."""
        if self._program.mentions(_HOOKS):
            return HOOKS
        if self._is_patched():
            return UNSEEN
        operators = [Ref(FUNCTION, scope.path, scope.function) for scope in self._operators()]
        return _Reach(self._program).fault([*map(Ref._make, started), *operators, *self._made])

    @cached_property
    def _made(self) -> list[Ref]:
        """The modules that are made by other code than modules: any of them may be put into any other."""
        program = self._program
        found: dict[Ref, None] = {}
        for scope, facts in program.resolver.nesting.functions:
            around = program.resolver.nesting.enclosing_class(scope)
            if around.name and program.is_module(around):
                continue
            refs = (ref for call in facts.calls for ref in program.refs(call.func, scope))
            found.update((ref, None) for ref in refs if ref.kind == CLASS and ref.path and program.is_module(ref))
        return list(found)

    def _operators(self) -> Iterator[Scope]:
        """What `log << value` and `table[key] = value` may run: nobody can tell for whose values."""
        program = self._program
        for path, summary in program.summaries.items():
            for name, cls in summary.classes.items():
                ref = Ref(CLASS, path, name)
                if not program.is_subclass(ref, *_OF_DATA):
                    yield from (Scope(path, f"{name}.{method}") for method in cls.methods if _is_operator(method))

    def data_asks(self) -> bool:
        """Whether any function that hands out data, by a class that is no module or by being named as the one that
        makes batches, or one that it calls, asks for gradients.
        """
        program = self._program
        waiting = [
            Scope(path, f"{name}.{method}")
            for path, summary in program.summaries.items()
            for name, cls in summary.classes.items()
            if not program.is_module(Ref(CLASS, path, name))
            for method in cls.methods
            if method in _HANDS_OUT
        ]
        for scope, facts in program.resolver.nesting.functions:
            made = [value for call in facts.calls for key, value in call.keywords if key in ("collate_fn", "transform")]
            refs = [ref for value in made for ref in program.refs(value, scope) if ref.path and ref.kind == FUNCTION]
            waiting += [Scope(ref.path, ref.name) for ref in refs]
        seen = set(waiting)
        while waiting:
            scope = waiting.pop()
            if ASKS in program.function(scope).effects:
                return True
            called = {edge.callee for edge in program.graph.outgoing.get(scope, ())} - seen
            seen |= called
            waiting += called
        return False

    def _is_patched(self) -> bool:
        """Whether a forward may be another one than that of the class."""
        return self._program.whole.is_attribute("forward") or self._program.whole.is_attribute("__call__")


class _Reach:
    """Functions in reach, found from one start to the next."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.seen: set[Scope] = set()
        self.classes: set[Ref] = set()
        self.waiting: list[Scope] = []
        self.unseen = False

    def fault(self, started: list[Ref]) -> str:
        for ref in started:
            self._start(ref)
        said: set[str] = set()
        while self.waiting and not self.unseen:
            scope = self.waiting.pop()
            facts = self.program.function(scope)
            said.update(word for word in facts.effects if not word.startswith(CALLS))
            if not said.isdisjoint({KEEPS, ASKS}):
                break
            self._follow(scope, facts)
        if self.unseen:
            return UNSEEN
        # What a call gave is written into: it is somebody else's only where something hands out what it has.
        return KEEPS if {FILLS, GIVES} <= said else next(iter(sorted(said & {KEEPS, ASKS})), "")

    def _start(self, ref: Ref) -> None:
        if ref.kind == FUNCTION and ref.path:
            self._add(Scope(ref.path, ref.name))
        elif ref.kind in (CLASS, INSTANCE) and ref.path:
            self._add_class(Ref(CLASS, ref.path, ref.name))
        elif ref.kind in (EXTERNAL, EXTERNAL_INSTANCE):
            self.unseen = self.unseen or not _is_harmless(ref.name)
        elif ref.kind != MODULE_REF:
            self.unseen = True

    def _add(self, scope: Scope) -> None:
        if scope not in self.seen and scope.function in self.program.summaries[scope.path].functions:
            self.seen.add(scope)
            self.waiting.append(scope)

    def _add_class(self, cls: Ref) -> None:
        """All that runs when an object of a class is made, called or asked for a part, and the parts that it has."""
        if cls in self.classes:
            return
        self.classes.add(cls)
        resolver = self.program.resolver
        for one in resolver.mro(cls):
            if one.kind != CLASS:
                self.unseen = self.unseen or not (_is_harmless(one.name) or one.name.startswith("builtins."))
                continue
            self.classes.add(one)
            summary = self.program.summaries[one.path]
            for method in summary.classes[one.name].methods:
                self._add_method(Scope(one.path, f"{one.name}.{method}"), method, is_module=self.program.is_module(cls))
        for below in resolver.hierarchy.below(cls):
            self._add_class(below)

    def _add_method(self, scope: Scope, method: str, *, is_module: bool) -> None:
        facts = self.program.summaries[scope.path].functions.get(scope.function)
        if facts is None:
            return
        special = method.startswith("__") and method not in _NOT_RUN and method != "__init__"
        if special or method in _RUNS or any(map(_is_property, facts.decorators)):
            self._add(scope)
        elif not is_module and method == "__init__":
            self._add(scope)
        elif method == "__init__":
            # A module is made before: what counts is of which parts.
            for call in facts.calls:
                self._note_parts(call.func, scope)

    def _note_parts(self, func: object, scope: Scope) -> None:
        """The classes of the project that a constructor makes parts of, itself or by functions that it calls."""
        waiting, seen = [(func, scope)], set()
        while waiting:
            value, where = waiting.pop()
            for ref in self.program.refs(value, where):
                if ref in seen:
                    continue
                seen.add(ref)
                if ref.kind == CLASS and ref.path:
                    self._add_class(ref)
                elif ref.kind == FUNCTION and ref.path:
                    inside = Scope(ref.path, ref.name)
                    waiting += [(call.func, inside) for call in self.program.function(inside).calls]

    # What a function calls.

    def _follow(self, scope: Scope, facts: FunctionFacts) -> None:
        for decorator in facts.decorators:
            self._decorated(decorator, scope)
        for word in facts.effects:
            if word.startswith(CALLS):
                self._called(word.removeprefix(CALLS), scope)
        # Functions and lambdas that stand in it, and properties and callbacks that the call graph knows of.
        for qualname, inner in self.program.summaries[scope.path].functions.items():
            if inner.owner == scope.function:
                self._add(Scope(scope.path, qualname))
        for edge in self.program.graph.outgoing.get(scope, ()):
            self._add(edge.callee)

    def _decorated(self, decorator: object, scope: Scope) -> None:
        func = decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator
        if isinstance(func, str) and (func in _BUILTINS or func.rpartition(".")[2] in ("setter", "getter", "override")):
            return
        refs = self.program.refs(func, Scope(scope.path, scope.function.rpartition(".")[0]))
        if not refs:
            self.unseen = True
        for ref in refs:
            self._start(ref)

    def _called(self, path: str, scope: Scope) -> None:
        elements = path.endswith("[]")
        path = path.rstrip("[]")
        name = path.rpartition(".")[2]
        if path in _BUILTINS:
            return
        refs = self.program.refs(path, scope) if path and not path.startswith((".", "?")) else ()
        if elements and refs:
            # What is in a container of modules, the constructors of classes in reach have made.
            refs = tuple(ref for ref in refs if ref.name.rpartition(".")[2] not in _CONTAINERS)
        elif not refs:
            named = self.program.named(name)
            for found in named:
                self._add(found)
            self.unseen = self.unseen or (name not in _READING if "." in path else not named)
        for ref in refs:
            self._start(ref)


def _is_property(decorator: object) -> bool:
    return isinstance(decorator, str) and decorator.rpartition(".")[2] in ("property", "setter", "cached_property")


def _is_operator(method: str) -> bool:
    return method.startswith("__") and method.endswith("__") and method not in _CALLED


def _is_harmless(name: str) -> bool:
    name = canonical(name.removeprefix("builtins."))
    if name in _KEEPING:
        return False
    first = name.partition(".")[0]
    if first == "collections" and name.count(".") > 1:
        return False  # `deque.append`
    return first in _LIBRARIES or name in _BUILTINS
