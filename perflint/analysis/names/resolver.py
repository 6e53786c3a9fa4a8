"""`Resolver`: what names and values refer to, across files: functions, classes, instances, library things.

`Resolver.refs(value, scope)` is flow-insensitive and lazy; what is not plain to see is the empty tuple. It answers
"which code runs" for calls and "is this a loader" for loops. Exact kinds of expressions are the business of `kinds`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from perflint.analysis.names.attributes import Attributes
from perflint.analysis.names.containers import Homes
from perflint.analysis.names.contents import Contents
from perflint.analysis.names.hierarchy import Hierarchy
from perflint.analysis.names.imports import Imports
from perflint.analysis.names.iteration import Iteration
from perflint.analysis.names.loaded_modules import LoadedModules
from perflint.analysis.names.module_names import ModuleTable, annotated_names
from perflint.analysis.names.namespaces import is_namespace
from perflint.analysis.names.nesting import Nesting
from perflint.analysis.names.refs import (
    BATCH,
    CLASS,
    EXTERNAL,
    EXTERNAL_INSTANCE,
    FUNCTION,
    INSTANCE,
    MadeRefs,
    ParamRefs,
    ParamValues,
    Ref,
    Refs,
    Scope,
    defined,
    few,
    instance_of,
    is_of_itself,
    together,
    wraps,
)
from perflint.analysis.names.results import Results
from perflint.analysis.names.used_as import optimizers_of
from perflint.analysis.names.written import Written
from perflint.ir.summary import MODULE, FunctionFacts, Summary, Value, record
from perflint.torch_model import loaders, wrappers

#: Each level takes several frames of the interpreter, which allows a thousand.
_DEEPEST = 50
#: Answers of so many parts are not gone through again and again.
_MANY = 8

#: Of values that are no names. All others, literals and displays, are nothing that runs.
_FORMS = frozenset({"call", "attr", "item", "either", "lambda"})
_WRAPPED_ATTRIBUTES = wrappers.WRAPPED_ATTRIBUTES
_BUILTINS = frozenset(dir(builtins))
GLOBALS = ("call", "globals", (), ())
#: Annotations of these name no class of an object: `Callable` and `Any` say nothing of what is handed over.
_VAGUE = ("builtins.", "typing.", "typing_extensions.", "collections.abc.", "types.")


class Resolver:
    """Evaluates values of linked summaries. `param_refs` says what callers pass, once the call graph is known."""

    def __init__(
        self, summaries: Mapping[str, Summary], modules: ModuleTable, is_loader: Callable[[Resolver, Ref], bool],
        configured: Callable[[], frozenset[str]] = frozenset,
    ) -> None:  # fmt: skip
        self.summaries = summaries
        #: The files that hold tests.
        self.tests = frozenset(path for path, summary in summaries.items() if summary.holds_tests)
        self.modules = modules
        self._is_loader = is_loader
        self.param_refs: ParamRefs | None = None
        self.param_values: ParamValues | None = None
        self.made_refs: MadeRefs | None = None
        #: By scope, what is known of values: for good, and until more is known of calls; None marks what is being
        #: evaluated.
        self._memo: dict[Scope, tuple[dict[Value, Refs], dict[Value, Refs | None]]] = {}
        #: Each answer once: many values are the same things.
        self._answers: dict[Refs, Refs] = {}
        #: The ids of those among them that need not be shortened: some are of hundreds of classes.
        self._few: set[int] = set()
        self._depth = 0
        #: How often a value that is being evaluated was asked for again: what was concluded meanwhile may lack a part.
        self.cuts = 0
        #: How often something was asked that may be answered otherwise once more is known of calls and registries: what
        #: is concluded without is known for good.
        self.leans = 0
        self._provisional: list[tuple[dict[Any, Any], object]] = []
        self.nesting = Nesting(summaries)
        self.hierarchy = Hierarchy(summaries, self.refs)
        self.written = Written(summaries, modules, self.nesting, self.hierarchy, self.refs)
        homes = Homes(summaries, modules, self.nesting, self.hierarchy, self.refs)
        self.contents = Contents(self, self.hierarchy, homes, self.nesting.functions)
        self.iteration = Iteration(self, self.hierarchy, self.written)
        self.attributes = Attributes(self)
        self._loaders: dict[Ref, bool] = {}
        self._with_loader: dict[int, tuple[Refs, bool]] = {}
        self._optimizers: dict[Scope, frozenset[str]] = {}
        self.imports = Imports(self, modules)
        self.results = Results(self, configured)
        self.loaded_modules = LoadedModules(self)

    def facts(self, scope: Scope) -> FunctionFacts:
        """The facts of a function, or of a module's own body."""
        return self.summaries[scope.path].functions[scope.function]

    def optimizers(self, scope: Scope) -> frozenset[str]:
        """What a function uses as optimizers, by name."""
        known = self._optimizers.get(scope)
        if known is None:
            facts = self.summaries[scope.path].functions.get(scope.function)
            known = self._optimizers[scope] = optimizers_of(facts) if facts is not None else frozenset()
        return known

    def is_loader(self, ref: Ref) -> bool:
        known = self._loaders.get(ref)
        if known is None:
            known = self._loaders[ref] = self._is_loader(self, ref)
        return known

    def has_loader(self, refs: Refs) -> bool:
        """Whether any of several is a loader: of what a factory gives, which may be hundreds of classes."""
        if len(refs) < _MANY:
            return any(map(self.is_loader, refs))
        known = self._with_loader.get(id(refs))
        if known is None:
            known = self._with_loader[id(refs)] = refs, any(map(self.is_loader, refs))  # held: it keeps its place
        return known[1]

    def forget(self) -> None:
        """Drop what was concluded before `param_refs` was known, unless it does not lean on that."""
        self._drop()
        self.contents.forget()

    def forget_in(self, scopes: Iterable[Scope]) -> None:
        """Drop what was concluded of values in some functions, where it may lean on who calls them."""
        for scope in self._memo.keys() & set(scopes):
            self._memo[scope][1].clear()

    def find_registries(self) -> None:
        """Find what registries hold before anything else is asked: what is concluded meanwhile does not know it."""
        self.contents.find_registries()
        self._drop()

    def _drop(self) -> None:
        for _, memo in self._memo.values():
            memo.clear()
        self.iteration.memo.clear()
        self.attributes.forget()
        self.imports.forget()

    def abandon(self) -> None:
        """Nothing is being worked out any more."""
        self.forget()
        self._answers.clear()
        self._few.clear()
        self._provisional.clear()
        self._depth = self.iteration.depth = 0

    # Values.

    def refs(self, value: Value, scope: Scope) -> Refs:
        """What a value written in `scope` may be; empty where that is not plain to see."""
        if value is None or (type(value) is tuple and value[0] not in _FORMS):
            return ()
        if scope in self._memo:
            kept, memo = self._memo[scope]
            if value in kept:
                return kept[value]
            if value in memo:
                known = memo[value]
                if known is None:
                    self.cut()
                    return ()
                self.leans += 1
                return known
        else:
            kept, memo = self._memo[scope] = {}, {}
        if (
            type(value) is str
            and scope.function != MODULE
            and value[:5] != "self."
            and self.nesting.is_global(value, scope)
        ):
            return self.refs(value, self.nesting.module(scope.path))
        if self._depth > _DEEPEST:
            self.leans += 1
            return ()
        memo[value] = None
        cuts, leans = self.cuts, self.leans
        self._depth += 1
        if type(value) is not str:
            found = self._evaluate(value, scope)
            if len(found) > 1 and id(found) not in self._few:
                found = few(found)
                found = self._answers.setdefault(found, found)
                self._few.add(id(found))
        elif "." in value:
            found = self._path(value, scope)
        else:
            found = self._look_up(value, scope)
        self._depth -= 1
        if found and id(found) not in self._few:
            found = self._answers.setdefault(found, found)
        if cuts != self.cuts or self._provisional:
            memo[value] = found
            self._note_circle(memo, value, found, cuts)
        elif leans == self.leans:
            del memo[value]
            kept[value] = found
        else:
            memo[value] = found
        return found

    def any_of(self, values: Sequence[Value], scope: Scope) -> Refs:
        """What any of the values written in `scope` may be."""
        if len(values) == 1:
            return self.refs(values[0], scope)
        return together([self.refs(value, scope) for value in values])

    def cut(self) -> None:
        """Note that an answer was refused because it is being worked out: what is concluded now is not final."""
        self.cuts += 1
        self.leans += 1

    @property
    def has_provisional(self) -> bool:
        """Whether something that a circle cut short waits for the first question to be done."""
        return bool(self._provisional)

    def once(self, found: Refs) -> Refs:
        """The answer that stands for all that are equal to it."""
        return self._answers.setdefault(found, found)

    def keep(self, memo: dict[Any, Any], key: object, found: Refs, cuts: int) -> None:
        """Remember an answer. One that a circle cut short since `cuts` holds only until the first question is done."""
        memo[key] = self._answers.setdefault(found, found)
        if cuts != self.cuts or self._provisional:
            self._note_circle(memo, key, found, cuts)

    def _note_circle(self, memo: dict[Any, Any], key: object, found: Refs, cuts: int) -> None:
        if self._depth or self.iteration.depth:
            if not found and cuts != self.cuts:
                self._provisional.append((memo, key))
        elif self._provisional:
            for other, name in self._provisional:
                if other.get(name) == () and not (other is memo and name == key):
                    del other[name]
            self._provisional.clear()

    def _evaluate(self, value: Value, scope: Scope) -> Refs:
        form = value[0]
        if form == "call":
            return self.results.of_call(value, scope)
        if form == "attr":
            return self._attribute_of(value, scope)
        if form == "item":
            if value[1] == GLOBALS:
                return self.offered(scope.path)
            found = self.elements(value[1], scope, value[2]) or self._generic(value[1], scope)
            return found or self._by_method(value[1], scope)
        if form == "either":
            return self.any_of(value[1], scope)
        if form == "lambda" and value[1] in self.summaries[scope.path].functions:
            return (Ref(FUNCTION, scope.path, value[1]),)
        return ()

    def _by_method(self, base: Value, scope: Scope) -> Refs:
        """What `base[key]` gives where a class of the project says so."""
        receiver = base if isinstance(base, str) else ""
        for ref in self.refs(base, scope):
            method = self.method(ref, "__getitem__") if ref.kind == INSTANCE else None
            if method is not None:
                return self.contents.replaced(self.results.returned(method), receiver, scope)
        return ()

    def _generic(self, base: Value, scope: Scope) -> Refs:
        """`DataLoader[Sample]` is the class, for all that running it is concerned."""
        return tuple(
            ref
            for ref in self.refs(base, scope)
            if ref.kind == CLASS or (ref.kind == EXTERNAL and ref.name.rpartition(".")[2][:1].isupper())
        )

    def _path(self, dotted: str, scope: Scope) -> Refs:
        """What a name with attributes may be."""
        first, *rest = dotted.split(".")
        if scope in self.nesting.dotted:
            # `args.loader = DataLoader(...)` binds a dotted name of its own.
            binds = self.nesting.function(scope).binds
            for size in range(len(rest), 0, -1):
                values = binds.get(".".join([first, *rest[:size]]))
                if values:
                    return self._attributes(self.any_of(values, scope), rest[size:])
        refs = self.name(first, scope)
        for place, name in enumerate(rest):
            held = self.elements(".".join([first, *rest[:place]]), scope, name) if is_namespace(refs) else ()
            refs = held or self._attribute_of_any(refs, name)
        return refs

    def _attributes(self, refs: Refs, names: list[str]) -> Refs:
        for name in names:
            refs = self.attribute(refs[0], name) if len(refs) == 1 else self._attribute_of_any(refs, name)
        return refs

    def _attribute_of_any(self, refs: Refs, name: str) -> Refs:
        if len(refs) == 1:
            return self.attribute(refs[0], name)
        return together([self.attribute(ref, name) for ref in refs])

    def _attribute_of(self, value: Value, scope: Scope) -> Refs:
        base, name = value[1], value[2]
        if isinstance(base, tuple) and base[0] == "call" and base[1] == "super":
            for cls in self.mro(self.nesting.enclosing_class(scope))[1:]:
                found = self.attributes.written_in(cls, name)
                if found:
                    return found
            return ()
        return self._attribute_of_any(self.refs(base, scope), name)

    def offered(self, path: str) -> Refs:
        """The classes that a module offers to who looks one up by text."""
        return self.imports.classes(path)

    def elements(self, value: Value, scope: Scope, index: object = None) -> Refs:
        """What iterating `value` gives, or indexing it with `index`."""
        return self.iteration.elements(value, scope, index)

    # Names.

    def name(self, name: str, scope: Scope) -> Refs:
        """What a plain name refers to."""
        kept, memo = self._memo.setdefault(scope, ({}, {}))
        known = kept.get(name)
        if known is not None:
            return known
        known = memo.get(name)
        if known is not None:
            self.leans += 1
            return known
        cuts, leans = self.cuts, self.leans
        known = self._look_up(name, scope)
        if leans == self.leans and not self._provisional:
            memo.pop(name, None)
            kept[name] = known = self._answers.setdefault(known, known)
        else:
            self.keep(memo, name, known, cuts)
        return known

    def _look_up(self, name: str, scope: Scope) -> Refs:
        nesting = self.nesting
        if scope.function == MODULE:
            return self._global(name, scope, nesting.function(scope))
        holders = nesting.holders[scope.path]
        for where, facts in nesting.scopes(scope):
            function = where.function
            if function == MODULE:
                return self.name(name, where)
            if name in holders.get(function, ()):
                return defined(self.summaries[scope.path], scope.path, f"{function}.<locals>.{name}")
            if name in facts.annotations:
                annotated = self.annotated(facts.annotations[name], where)
                if annotated:
                    return annotated
            index = nesting.positions(facts).get(name)
            if name in facts.binds:
                found = self._bound(name, facts.binds[name], where)
                if len(found) > 1:
                    found = self._asked_for(name, facts, where, found)
                if found or index is None or not all(wraps(value, name) for value in facts.binds[name]):
                    return found
            # `model = DataParallel(model)` is what callers pass.
            if index is not None:
                return self._param(facts, index, where)
        return ()

    def _bound(self, name: str, values: tuple[Value, ...], scope: Scope) -> Refs:
        """What a name is bound to; of `model = model(width)` what it stood for before, and what calling that gives."""
        again = [value for value in values if is_of_itself(value, name)]
        if not again or len(again) == len(values):
            return self.any_of(values, scope)
        found = self.any_of(tuple([value for value in values if value not in again]), scope)
        made = [self.results.result(callee, value, scope) for value in again for callee in found]
        return together([found, *made])

    def _asked_for(self, name: str, facts: FunctionFacts, scope: Scope, found: Refs) -> Refs:
        """Of the classes that a name may be, those below the one that `issubclass(cls, Base)` asks for."""
        for call in facts.calls:
            if call.func == "issubclass" and len(call.args) == 2 and call.args[0] == name:
                wanted = {ref for ref in self.refs(call.args[1], scope) if ref.kind == CLASS}
                if wanted:
                    found = tuple([ref for ref in found if ref.kind != CLASS or wanted.intersection(self.mro(ref))])
        return found

    def _global(self, name: str, module: Scope, facts: FunctionFacts) -> Refs:
        """What a name at module level refers to, imports and builtins included."""
        path = module.path
        summary = self.summaries[path]
        found = defined(summary, path, name)
        if found:
            return found
        if name in facts.annotations:
            annotated = self.annotated(facts.annotations[name], module)
            if annotated:
                return annotated
        if name in facts.binds:
            return self._bound(name, facts.binds[name], module)
        if name in summary.imports:
            return self.imports.bound(name, path)
        for star in summary.stars:
            inner = self.modules.find(self.modules.absolute(star, path), path)
            if inner and inner != path:
                found = self.imports.exported(inner, name)
                if found:
                    return found
        return (Ref(EXTERNAL, "", f"builtins.{name}"),) if name in _BUILTINS else ()

    def _param(self, facts: FunctionFacts, index: int, scope: Scope) -> Refs:
        param = facts.params[index]
        if index == 0 and facts.in_class:
            decorators = [item for item in facts.decorators if isinstance(item, str)]
            if "staticmethod" not in decorators:
                kind = CLASS if "classmethod" in decorators else INSTANCE
                return (record(Ref, (kind, scope.path, facts.in_class)),)
        annotated = self.annotated(param.annotation, scope) if param.annotation else ()
        name = param.name.lstrip("=")
        if annotated and any(ref.kind == INSTANCE for ref in annotated):
            return annotated
        self.leans += 1
        if self.param_refs is not None and not name.startswith("*"):
            found = self.param_refs(scope, name)
            # `dataset: Dataset` says less than the project's own class that callers pass.
            if found and (not annotated or any(ref.kind == INSTANCE for ref in found)):
                return found
        if annotated:
            return annotated
        if self.param_refs is None:
            # A default is what it is where nobody passes anything, which is not known yet.
            return self._tested(name, facts, scope)
        found = self.refs(param.default, Scope(scope.path, facts.owner or MODULE))
        return found or self._tested(name, facts, scope)

    def _tested(self, name: str, facts: FunctionFacts, scope: Scope) -> Refs:
        """Instances of the project's classes that a function asks whether a parameter is of, where nothing else tells:
        `if not isinstance(loss, Loss): raise TypeError`, `if isinstance(loss, Loss): self.run = loss.run`.
        """
        asked = [call.args[1] for call in facts.calls if call.func == "isinstance" and call.args[:1] == (name,)]
        found = (ref for value in asked for ref in self.refs(value, scope) if ref.kind == CLASS and ref.path)
        return tuple(dict.fromkeys(instance_of(ref) for ref in found))

    def annotated(self, annotation: str, scope: Scope) -> Refs:
        """Instances of the classes an annotation names."""
        owner = self.nesting.module(scope.path)
        return tuple(
            instance_of(ref)
            for name in annotated_names(annotation)[0]
            for ref in self.refs(name, owner)
            if ref.kind == CLASS or (ref.kind == EXTERNAL and not ref.name.startswith(_VAGUE))
        )

    def imported(self, target: str, importer: str) -> Refs:
        """What `import target` or `from module import name` (given as `module.name`) binds in `importer`."""
        return self.imports.imported(target, importer)

    # Attributes and classes.

    def attribute(self, ref: Ref, name: str) -> Refs:
        """What `name` of a thing may be; of a library's thing, a name below its own."""
        return self.attributes.of(ref, name)

    def method(self, instance: Ref, name: str) -> Ref | None:
        """The project's own definition of a method, through base classes."""
        return self.hierarchy.method(instance, name)

    def mro(self, cls: Ref) -> tuple[Ref, ...]:
        """The class and its bases, depth first, library bases as `EXTERNAL`."""
        return self.hierarchy.mro(cls)

    def below(self, cls: Ref) -> Refs:
        """The project's classes that derive from a class, in any number of steps."""
        return tuple(self.hierarchy.below(cls))

    def base_names(self, cls: Ref) -> tuple[str, ...]:
        """Dotted names of all library bases; for project classes their own last names too."""
        return tuple(ref.name for ref in self.mro(cls))


def is_loader(resolver: Resolver, ref: Ref) -> bool:
    """Whether a ref is a `DataLoader` or something that yields batches as one does."""
    if ref.kind == BATCH:
        return False
    if ref.kind == EXTERNAL_INSTANCE:
        return loaders.is_loader(ref.name)
    if ref.kind == INSTANCE:
        bases = resolver.mro(Ref(CLASS, ref.path, ref.name))
        return any(base.kind == EXTERNAL and loaders.is_loader(base.name) for base in bases)
    return False
