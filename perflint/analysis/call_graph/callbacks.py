"""Functions that others call often: what a framework's class calls, what is registered with one, and steps of loops
that are not in sight.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from perflint.analysis.call_graph.call_graph import CallGraph
from perflint.analysis.call_graph.loader_factories import handed_to_factories
from perflint.analysis.call_graph.sample_hooks import own_collate, own_loaders, sample_hooks
from perflint.analysis.evidence import (
    ITERATOR_NAME,
    ITERATORS_OVER_ANYTHING,
    is_removal_of_handle,
    is_whole_run,
    looks_once,
    says_tensor,
)
from perflint.analysis.names.refs import CLASS, EXTERNAL, EXTERNAL_INSTANCE, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.analysis.names.used_as import opens_stream
from perflint.finding import Confidence, Heat
from perflint.ir.callees import last_name
from perflint.ir.summary import MODULE, CallFacts, FunctionFacts, Value
from perflint.torch_model import frameworks, loaders, modules
from perflint.torch_model.called_frameworks import COMMANDS, HANDLING, SERVERS, TAKERS, Taker
from perflint.torch_model.hooks import Hook, Role
from perflint.torch_model.names import canonical

_HOOKS = frameworks.FORWARD_HOOKS | frameworks.BACKWARD_HOOKS | frameworks.OPTIMIZER_HOOKS
_IGNITE_ENGINES = {name.rpartition(".")[2] for name in frameworks.IGNITE_ENGINES}
#: How it is told that an engine of ignite runs a function.
STEP_OF_ENGINE = "(...) calls it with every batch"
_OWN_STEP = "training_step"
#: The role of what autograd runs.
AUTOGRAD = "autograd"
_LOADERS = {name.rpartition(".")[2] for name in loaders.LOADERS if name.endswith("DataLoader")}
REGISTERING = _HOOKS | _IGNITE_ENGINES | _LOADERS | {*frameworks.STEP_TAKERS, *TAKERS, "add_event_handler"}
#: Said of what users of a class call, where no call of the program shows it.
BY_CONTRACT = "called by whoever trains with it"
#: Said instead where the program trains, and is not seen to do so with what it builds of the class.
NO_TRAINING = "no training of it is in sight"
#: The same where a simulation, a server or an agent calls it.
FOR_EACH = "called for each step or request"


class FunctionRoot(NamedTuple):
    """How often a function is called that others call, what for, and the words that say so."""

    heat: Heat
    role: str
    text: str
    confidence: Confidence
    #: Whether nothing but the name of the function says so.
    by_name: bool = False
    #: Whether it is only said where no call of the program shows more.
    last_resort: bool = False


_COLLATE = FunctionRoot(Heat.SAMPLE, "data", "collate_fn of a DataLoader", Confidence.HIGH)


class _Owner(NamedTuple):
    """What frameworks call of a class: its hooks, each with the base that has it, and `forward` of a module."""

    hooks: Mapping[str, tuple[str, Hook]]
    is_module: bool
    is_autograd: bool


class CallbackFinder:
    """Finds the functions of a linked program that others call often. `functions` are those found so far."""

    def __init__(self, resolver: Resolver, graph: CallGraph) -> None:
        self.resolver = resolver
        self.graph = graph
        self.functions: dict[Scope, FunctionRoot] = {}
        #: By file and name of a class.
        self._owners: dict[tuple[str, str], _Owner] = {}

    def note_method(self, scope: Scope, facts: FunctionFacts) -> None:
        """Note a method that the class of a framework calls, told by its name."""
        name = facts.name
        owner = self._owner(scope.path, facts.in_class)
        called = facts.in_class.rpartition(".")[2]
        if name in owner.hooks:
            base, hook = owner.hooks[name]
            is_so = not hook.given_tensors or any(says_tensor(param.annotation) for param in facts.params)
            if hook.heat > Heat.ONCE and is_so:
                owned = base.rpartition(".")[2]
                what = f"{'an' if owned[:1] in 'AEIOU' else 'a'} {owned}'s {name}"
                said = f", {FOR_EACH if hook.role is Role.INFER else BY_CONTRACT}" if hook.contract else ""
                text = f"{called}.{name} ({what}{said})"
                sure = Confidence.MEDIUM if hook.contract else Confidence.HIGH
                self.functions[scope] = FunctionRoot(hook.heat, _role(hook), text, sure, last_resort=hook.contract)
        elif name in ("forward", "__call__") and owner.is_module:
            # Nothing of the project may call it (a library of models), yet its users do, every step.
            role, said = "forward", BY_CONTRACT
            if self._is_trained_otherwise(scope.path, facts.in_class, owner):
                role, said = "infer", FOR_EACH
            text = f"{called}.{name} (an nn.Module's {name}, {said})"
            self.functions[scope] = FunctionRoot(Heat.STEP, role, text, Confidence.MEDIUM, last_resort=True)
        elif owner.is_autograd and name in ("forward", "backward"):
            text = f"{called}.{name} (an autograd function's {name})"
            self.functions[scope] = FunctionRoot(Heat.STEP, AUTOGRAD, text, Confidence.MEDIUM)

    def _is_trained_otherwise(self, path: str, cls: str, owner: _Owner) -> bool:
        """Whether a framework trains a module by a step of its own, which calls its `forward` or does not."""
        return _OWN_STEP in owner.hooks and self.resolver.method(Ref(CLASS, path, cls), _OWN_STEP) is not None

    def hook_of(self, scope: Scope, facts: FunctionFacts) -> tuple[str, Hook] | None:
        """The method of a framework's class that a method is, as `LightningModule.setup`, and how often that runs."""
        found = self._owner(scope.path, facts.in_class).hooks.get(facts.name) if facts.in_class else None
        return None if found is None else (f"{found[0].rpartition('.')[2]}.{facts.name}", found[1])

    def _owner(self, path: str, cls: str) -> _Owner:
        known = self._owners.get((path, cls))
        if known is None:
            bases = [base.name for base in self.resolver.mro(Ref(CLASS, path, cls)) if base.kind == EXTERNAL]
            hooks = {name: (base, hook) for base in reversed(bases) for name, hook in frameworks.hooks_of(base).items()}
            public = {canonical(base) for base in bases}
            is_module = any(map(modules.is_module_class, bases))
            known = self._owners[path, cls] = _Owner(hooks, is_module, frameworks.AUTOGRAD_FUNCTION in public)
        return known

    def note_registered(self, telling: Mapping[Scope, list[CallFacts]]) -> None:
        """Note hooks, collate functions, event handlers and step functions handed to PyTorch and ignite. The calls of
        each function that may hand them are among the `telling` ones.
        """
        self._owners.clear()
        for scope in self.graph.replacing_forwards:
            text = f"{scope.function} (put in the place of a module's forward)"
            root = FunctionRoot(Heat.STEP, "forward", text, Confidence.MEDIUM, last_resort=True)
            self.functions.setdefault(scope, root)
        for scope, facts in self.resolver.nesting.functions:
            calls = telling.get(scope)
            if calls is not None:
                for call in calls:
                    self._registered(call, scope)
            self._decorated_handler(scope, facts)
            if calls is not None:
                self._takes_next_batch(calls, scope, facts)
        text = "handed to a data set, which calls it for each sample"
        root = FunctionRoot(Heat.SAMPLE, "data", text, Confidence.HIGH)
        for scope in sample_hooks(self.resolver):
            self.functions.setdefault(scope, root)
        for dataset, maker in handed_to_factories(self.resolver, self.graph, _LOADERS):
            self._note_data_set(dataset, maker)
        for cls in own_loaders(self.resolver):
            for scope in own_collate(cls, self.resolver):
                self.functions.setdefault(scope, _COLLATE)

    def _takes_next_batch(self, telling: list[CallFacts], scope: Scope, facts: FunctionFacts) -> None:
        """`def forward_step(data_iterator, model): batch = next(data_iterator)`: each call takes one more batch, and is
        one step of a loop that may be a library's.
        """
        calls = [call for call in telling if call.func == "next" and call.args]
        if not calls or facts.is_generator or looks_once(facts.name) or opens_stream(scope, facts, self.resolver):
            return
        names = {param.name.lstrip("=") for param in facts.params} - ITERATORS_OVER_ANYTHING
        for call in calls:
            given = call.args[0]
            if not isinstance(given, str) or given not in names or not ITERATOR_NAME.search(given):
                continue
            if facts.innermost_loop(call.context) is None:
                text = f"{facts.name} (takes the next batch of `{given}`)"
                self.functions.setdefault(scope, FunctionRoot(Heat.STEP, "batches", text, Confidence.MEDIUM))

    def _registered(self, call: CallFacts, scope: Scope) -> None:
        last = last_name(call.func)
        if last in _HOOKS and not self._is_temporary(call, scope):
            text = f"{last}(...): runs in every forward or backward"
            self._mark(call.args[:1], scope, FunctionRoot(Heat.STEP, "hook", text, Confidence.HIGH))
        elif last == "add_event_handler" and len(call.args) > 1:
            self._mark(call.args[1:2], scope, _ignite_root(call.args[0]))
        elif last in _IGNITE_ENGINES and call.args:
            root = FunctionRoot(Heat.STEP, "train", f"{last}{STEP_OF_ENGINE}", Confidence.HIGH)
            self._mark(call.args[:1], scope, root)
        elif last in _LOADERS:
            self._note_loader(call, scope)
        elif last in frameworks.STEP_TAKERS:
            self._note_step_taker(call, last, scope)
        elif last in TAKERS:
            self._note_event_handler(call, TAKERS[last], scope)
        for key, value in call.keywords:
            if key in frameworks.COLLATE_KEYWORDS and not self._is_called_apart(call, key, scope):
                root = FunctionRoot(Heat.SAMPLE, "data", f"{key} of a DataLoader", Confidence.HIGH)
                self._mark((value,), scope, root)

    def _note_loader(self, call: CallFacts, scope: Scope) -> None:
        """`DataLoader(rows, sampler=order)`: it indexes its data set for each sample, whatever that derives from."""
        given = dict(call.keywords)
        self._note_data_set(call.args[0] if call.args else given.get("dataset"), scope)
        root = FunctionRoot(Heat.EPOCH, "data", "the sampler of a DataLoader", Confidence.HIGH)
        for key in ("sampler", "batch_sampler"):
            for ref in self.resolver.refs(given.get(key), scope):
                method = self.resolver.method(ref, "__iter__") if ref.kind == INSTANCE else None
                if method is not None:
                    self.functions.setdefault(Scope(method.path, method.name), root)

    def _note_data_set(self, dataset: Value, scope: Scope) -> None:
        root = FunctionRoot(Heat.SAMPLE, "data", "the data set of a DataLoader", Confidence.HIGH)
        for ref in self.resolver.refs(dataset, scope):
            if ref.kind == INSTANCE:
                method = self.resolver.method(ref, "__getitem__")
                if method is not None:
                    self.functions.setdefault(Scope(method.path, method.name), root)

    def _note_step_taker(self, call: CallFacts, last: str, scope: Scope) -> None:
        place, key = frameworks.STEP_TAKERS[last]
        refs = self.resolver.refs(call.func, scope)
        if any(ref.kind == EXTERNAL and ref.name.partition(".")[0] in frameworks.STEP_TAKER_ROOTS for ref in refs):
            step = call.args[place] if len(call.args) > place else dict(call.keywords).get(key)
            root = FunctionRoot(Heat.STEP, "train", f"{last}(...) calls it on every step", Confidence.HIGH)
            self._mark((step,), scope, root)

    def _note_event_handler(self, call: CallFacts, taker: Taker, scope: Scope) -> None:
        """`rospy.Subscriber(topic, Image, self.on_image)`, `self.create_timer(0.1, self.tick)` of a node."""
        names = [ref.name for ref in self.resolver.refs(call.func, scope) if ref.kind in (EXTERNAL, EXTERNAL_INSTANCE)]
        if isinstance(call.func, str) and call.func.startswith("self."):
            names += self.resolver.base_names(self.resolver.nesting.enclosing_class(scope))
        kind = call.args[taker.kind] if 0 <= taker.kind < len(call.args) else None
        if any(ref.name.partition(".")[0] in COMMANDS for ref in self.resolver.refs(kind, scope)):
            return
        if any(name.partition(".")[0] == taker.library for name in names):
            given = call.args[taker.place] if len(call.args) > taker.place else dict(call.keywords).get(taker.keyword)
            self._mark((given,), scope, _event_root(f"handed to `{last_name(call.func)}`"))

    def _is_called_apart(self, call: CallFacts, key: str, scope: Scope) -> bool:
        """Whether a function of the project calls the collate function it is given itself, for no loader's sake."""
        refs = self.resolver.refs(call.func, scope)
        return bool(refs) and all(ref.kind == FUNCTION and ref.path and self._applies(ref, key) for ref in refs)

    def _applies(self, function: Ref, parameter: str) -> bool:
        functions = self.resolver.summaries[function.path].functions
        calls = functions[function.name].calls if function.name in functions else ()
        handed_on = any(key in {parameter, ""} for call in calls for key, _ in call.keywords)
        return not handed_on and any(call.func == parameter for call in calls)

    def _is_temporary(self, call: CallFacts, scope: Scope) -> bool:
        """Whether a hook is taken off again by itself or by who put it on: it runs for one look, not for training."""
        hooks = [Scope(ref.path, ref.name) for ref in self.resolver.refs(call.args[0], scope)] if call.args else []
        inner = [edge.callee for hook in hooks for edge in self.graph.outgoing.get(hook, ())]
        return any(self._removes_handle(item) for item in (scope, *hooks, *inner))

    def _removes_handle(self, scope: Scope) -> bool:
        functions = self.resolver.summaries[scope.path].functions if scope.path else {}
        calls = functions[scope.function].calls if scope.function in functions else ()
        return any(is_removal_of_handle(call) for call in calls)

    def _decorated_handler(self, scope: Scope, facts: FunctionFacts) -> None:
        for decorator in facts.decorators:
            func = decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator
            if last_name(func) in HANDLING and not is_whole_run(facts):
                owner = Scope(scope.path, facts.owner or MODULE)
                if any(ref.name.partition(".")[0] in SERVERS for ref in self.resolver.refs(func, owner)):
                    self.functions.setdefault(scope, _event_root(f"{facts.name}, a handler of requests"))
            if (
                isinstance(decorator, tuple)
                and decorator[0] == "call"
                and str(decorator[1]).endswith(".on")
                and decorator[2]
            ):
                root = _ignite_root(decorator[2][0])
                if root is not None:
                    self.functions.setdefault(scope, root)

    def _mark(self, values: tuple[Value, ...], scope: Scope, root: FunctionRoot | None) -> None:
        if root is None or root.heat == Heat.ONCE:
            return
        for value in values:
            for ref in self.resolver.refs(value, scope):
                target = self.resolver.method(ref, "__call__") if ref.kind == INSTANCE else None
                if ref.kind == FUNCTION:
                    target = ref
                if target is not None:
                    self.functions.setdefault(Scope(target.path, target.name), root)


def _role(hook: Hook) -> str:
    """What the hook is for; evaluation that runs with gradients on is told from one that has them off."""
    if hook.role in (Role.EVAL, Role.INFER):
        return "infer" if hook.grad else "eval"
    return str(hook.role.value)


def _event_root(text: str) -> FunctionRoot:
    return FunctionRoot(Heat.STEP, "infer", f"{text} ({FOR_EACH})", Confidence.MEDIUM, last_resort=True)


def _ignite_root(event: Value) -> FunctionRoot | None:
    """The heat of a handler of `Events.ITERATION_COMPLETED` and its kin; `Events.X(every=100)` is periodic."""
    periodic = False
    if isinstance(event, tuple) and event[0] == "call":
        periodic = any(key in ("every", "once", "event_filter") for key, _ in event[3])
        event = event[1]
    if not isinstance(event, str):
        return None
    heat = frameworks.IGNITE_EVENTS.get(event.rpartition(".")[2])
    if heat is None:
        return None
    return FunctionRoot(
        min(heat, Heat.PERIODIC) if periodic else heat, "handler", f"handler of {event}", Confidence.HIGH
    )
