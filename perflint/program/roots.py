"""Roots of heat: the loops and functions that make code hot. A loop is not hot for being a loop."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from perflint.facts import guards
from perflint.facts.summary import CallFacts, FunctionFacts, LoopFacts, Value
from perflint.finding import Confidence, Heat
from perflint.program.callgraph import CallGraph
from perflint.program.refs import BATCH, CLASS, EXTERNAL, EXTERNAL_INSTANCE, INSTANCE, Ref, Resolver, Scope, given
from perflint.pytorch import frameworks, loaders
from perflint.pytorch.hooks import Hook, Role
from perflint.pytorch.names import canonical


class LoopHeat(NamedTuple):
    """What a loop's body is at least: its heat, what it is for ("train", "batches", "decode", "texts", "epoch")."""

    heat: Heat
    role: str
    confidence: Confidence


class FunctionRoot(NamedTuple):
    """A function a framework calls often, with the words that say so."""

    heat: Heat
    role: str
    text: str
    confidence: Confidence


_LOADER_NAME = re.compile(
    r"(?:^|_)(?:data_?loader|dataloader|loader|train_?dl|val(?:id)?_?dl|test_?dl|train_?iter|data_?iter|dl)s?(?:_\w+)?$"
    r"|(?:train|val|valid|test|eval|data)_?(?:loader|iterator|batches)$|^(?:train|val|valid|test|eval)_?gen(?:erator)?$",
    re.IGNORECASE,
)
_NO_LOADER = re.compile(
    r"(?:module|class|template|plugin|image|img|file|config|model|weight|yaml|checkpoint|lazy)_?loaders?$|loader_(?:names?|types?|cls|kwargs|args)",
    re.IGNORECASE,
)
_LOADERS_NAME = re.compile(r"loaders$|dls$", re.IGNORECASE)
_ITERATOR_NAME = re.compile(
    r"(?:data|loader|train|batch|val|eval|dl)\w*_?iter(?:ator)?$|^(?:it|iterator|train_gen|data_gen\w*)$", re.IGNORECASE
)
_OPTIMIZER_NAME = re.compile(r"optim|(?:^|_|\.)opt(?:_\w+)?$|(?:^|_)(?:adam|sgd|muon|optim)\w*$", re.IGNORECASE)
_SAMPLER_NAME = re.compile(r"scheduler|sampler|solver", re.IGNORECASE)
_EPOCH_NAME = re.compile(
    r"^_?(?:epoch|ep|fold|seed|trial|run|round|restart|cv|stage|phase|experiment|task)(?:s|_?\w{0,5})?$", re.IGNORECASE
)
_DECODE_LIMIT = re.compile(
    r"max_(?:new_)?(?:tokens?|length|len|gen\w*|decod\w*|steps?_gen)|num_(?:new_)?tokens|gen(?:eration)?_len\w*",
    re.IGNORECASE,
)
_STEP_NAME = re.compile(
    r"^(?:global_|train(?:ing)?_|cur(?:rent)?_)?(?:step|iteration|iter|update)(?:_?(?:idx|i|num|no))?$", re.IGNORECASE
)
_BACKWARD_CALLERS = frozenset({"accelerator", "fabric", "model_engine", "engine", "scaler", "amp", "optimizer", "self"})
#: Position of the wrapped iterable by the wrapper's last name: `tqdm` may come from anywhere.
_WRAPPER_POSITION = {
    **{name.rpartition(".")[2]: wrapper.argument for name, wrapper in loaders.WRAPPERS.items()},
    **dict.fromkeys(loaders.WRAPPER_METHODS, 0),
    **dict.fromkeys(frameworks.PREPARE_METHODS, 0),
}
_HOOKS = frameworks.FORWARD_HOOKS | frameworks.BACKWARD_HOOKS | frameworks.OPTIMIZER_HOOKS
_IGNITE_ENGINES = {name.rpartition(".")[2] for name in frameworks.IGNITE_ENGINES}
_HANDLE = re.compile(r"handle|hook", re.IGNORECASE)
_NOT_BATCHES = frozenset(
    "range keys values items split splitlines parameters named_parameters modules children listdir glob walk finditer "
    "open reversed map filter".split()
)
_SAMPLING = frozenset({"multinomial", "argmax", "cat", "topk", "sample", "gumbel_softmax", "concat"})
#: Calls that make what a training run begins with.
_MAKERS = frozenset("from_pretrained from_config Adam AdamW SGD RMSprop Adagrad Adadelta configure_optimizers".split())
#: What turns a text into tokens, and what runs on them: both on each turn make a loop over texts a loop of steps.
_TOKENIZERS = frozenset("tokenizer processor encode_plus batch_encode_plus".split())
_RUNNERS = frozenset("model net network lm generate".split())
_TELLING = _SAMPLING | _TOKENIZERS | _RUNNERS
_TELLING |= frozenset("backward manual_backward step optimizer_step step_optimizer next __next__".split())


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


def looks_like_loader(dotted: str) -> bool:
    """The field's own convention: `train_loader`, `self.val_dataloader`, `dl`."""
    last = dotted.rpartition(".")[2]
    return bool(_LOADER_NAME.search(last)) and not _NO_LOADER.search(last)


def is_backward(func: Value, args: tuple[Value, ...]) -> bool:
    """`loss.backward()`, `scaler.scale(loss).backward()`, `accelerator.backward(loss)`, `manual_backward(loss)`."""
    name, base = _callee(func)
    if name == "manual_backward":
        return True
    if name != "backward":
        return False
    if base in ("super", "ctx"):
        return False
    return not (base == "self" and not args) or base.rpartition(".")[2] in _BACKWARD_CALLERS


def is_optimizer_step(func: Value, args: tuple[Value, ...], resolver: Resolver, scope: Scope) -> bool:
    """`optimizer.step()`, `scaler.step(optimizer)`, `model_engine.step()`, `xm.optimizer_step(optimizer)`."""
    name, base = _callee(func)
    if name in ("optimizer_step", "step_optimizer"):
        return True
    if name != "step":
        return False
    last = base.rpartition(".")[2]
    if _OPTIMIZER_NAME.search(last):
        return True
    if last in ("scaler", "grad_scaler", "gradscaler") or last.endswith("scaler"):
        return bool(args)
    if last in ("model_engine", "engine") and not args:
        return True
    refs = resolver.refs(base, scope) if base and isinstance(func, str) else ()
    return any(
        ref.kind == EXTERNAL_INSTANCE and ref.name.startswith("torch.optim.") and "lr_scheduler" not in ref.name
        for ref in refs
    )


def _callee(func: Value) -> tuple[str, str]:
    """The last name of a callee and its receiver as text ("" where the receiver is not plain)."""
    if isinstance(func, str):
        base, _, name = func.rpartition(".")
        return name, base
    if isinstance(func, tuple) and func[0] == "attr":
        inner = func[1]
        if isinstance(inner, tuple) and inner[0] == "item" and isinstance(inner[1], str):
            return func[2], inner[1]
        if isinstance(inner, tuple) and inner[0] == "call" and isinstance(inner[1], str):
            return func[2], inner[1]
        return func[2], ""
    return "", ""


class RootFinder:
    """Finds the hot loops and hot functions of a linked program."""

    def __init__(self, resolver: Resolver, graph: CallGraph) -> None:
        self.resolver = resolver
        self.graph = graph
        self._taking: set[Scope] = set()
        self._calls: dict[Scope, list[CallFacts]] = {}
        self.loops: dict[tuple[Scope, int], LoopHeat] = {}
        self.functions: dict[Scope, FunctionRoot] = {}

    def find(self) -> None:
        training = self._training_functions()
        self._taking = self._batch_taking_functions()
        for path, summary in self.resolver.summaries.items():
            for qualname, facts in summary.functions.items():
                self._framework_function(Scope(path, qualname), facts)
                if facts.loops:
                    self._classify_loops(Scope(path, qualname), facts, training)
        self._registered_functions()
        self._epoch_loops()

    # Loops.

    def _training_functions(self) -> set[Scope]:
        """Functions that run a backward or an optimizer step outside any loop of their own."""
        return self._holding(lambda call, scope: self.is_training_call(call.func, call.args, scope), _is_whole_run)

    def _batch_taking_functions(self) -> set[Scope]:
        """Functions that take the next batch from an iterator that outlives them, outside any loop of their own."""
        return self._holding(lambda call, scope: self._advances(call, scope) and not _is_fresh(call), lambda _: False)

    def _holding(
        self, wanted: Callable[[CallFacts, Scope], bool], stops: Callable[[FunctionFacts], bool]
    ) -> set[Scope]:
        """Functions that make a wanted call outside their loops, themselves or through what they surely call.

        What `stops` is neither found nor followed to its callers.
        """
        found: set[Scope] = set()
        waiting: list[Scope] = []
        for path, summary in self.resolver.summaries.items():
            for qualname, facts in summary.functions.items():
                scope = Scope(path, qualname)
                for call in self._telling(scope, facts):
                    if innermost_loop(facts, call.context) is None and wanted(call, scope):
                        if not stops(facts):
                            found.add(scope)
                            waiting.append(scope)
                        break
        while waiting:
            callee = waiting.pop()
            for edge in self.graph.incoming.get(callee, ()):
                facts = self._facts(edge.caller)
                # A custom autograd function's `backward` or a wrapper of an optimizer is no training step.
                if (
                    edge.caller not in found
                    and edge.confidence == Confidence.HIGH
                    and innermost_loop(facts, edge.context) is None
                    and not stops(facts)
                ):
                    found.add(edge.caller)
                    waiting.append(edge.caller)
        return found

    def _telling(self, scope: Scope, facts: FunctionFacts) -> list[CallFacts]:
        """The calls of a function that may say what its loops are for: few of many, by their last names."""
        found = self._calls.get(scope)
        if found is None:
            found = self._calls[scope] = [call for call in facts.calls if _callee(call.func)[0] in _TELLING]
        return found

    def is_training_call(self, func: Value, args: tuple[Value, ...], scope: Scope) -> bool:
        return is_backward(func, args) or is_optimizer_step(func, args, self.resolver, scope)

    def _classify_loops(self, scope: Scope, facts: FunctionFacts, training: set[Scope]) -> None:
        backward: set[int] = set()
        steps: set[int] = set()
        advances: set[int] = set()
        samples: set[int] = set()
        denoises: set[int] = set()
        tokenizes: set[int] = set()
        runs: set[int] = set()
        accumulates = {
            outer
            for index, context in enumerate(facts.contexts)
            if context.detail == guards.ACCUMULATION
            for outer in loops_around(facts, index)[:1]
        }
        for call in self._telling(scope, facts):
            inner = innermost_loop(facts, call.context)
            if inner is None:
                continue
            if is_backward(call.func, call.args):
                backward.add(inner)
            elif is_optimizer_step(call.func, call.args, self.resolver, scope):
                steps.add(inner)
            if self._advances(call, scope):
                advances.add(inner)
            name = _callee(call.func)[0]
            if name in _TOKENIZERS:
                tokenizes.add(inner)
            elif name in _RUNNERS:
                runs.add(inner)
            if name in _SAMPLING:
                samples.add(inner)
            elif _is_denoising(call):
                denoises.add(inner)
        for edge in self.graph.outgoing.get(scope, ()):
            inner = innermost_loop(facts, edge.context)
            if inner is not None and edge.confidence == Confidence.HIGH:
                if edge.callee in training:
                    steps.add(inner)
                if edge.callee in self._taking:
                    advances.add(inner)
        for index, loop in enumerate(facts.loops):
            found = self._loop_heat(scope, facts, index, loop, backward, steps, advances, samples, accumulates)
            if found is None and index in denoises:
                found = LoopHeat(Heat.STEP, "decode", Confidence.MEDIUM)
            if found is None and index in tokenizes and index in runs and self._is_over_texts(loop, scope):
                found = LoopHeat(Heat.STEP, "texts", Confidence.MEDIUM)
            if found is not None:
                self.loops[scope, index] = found

    def _loop_heat(
        self, scope: Scope, facts: FunctionFacts, index: int, loop: LoopFacts,
        backward: set[int], steps: set[int], advances: set[int], samples: set[int], accumulates: set[int],
    ) -> LoopHeat | None:  # fmt: skip
        confidence = self._loader_confidence(loop, scope)
        trains = index in backward or index in steps
        outer = loops_around(facts, loop.context)
        if confidence is not None:
            heat = Heat.MICROBATCH if index in accumulates else Heat.STEP
            return LoopHeat(heat, "train" if trains else "batches", confidence)
        if index in advances:
            # `for micro in range(accumulation): batch = next(it)` inside a loop that takes the steps.
            part_of_step = any(item in steps or item in advances for item in outer)
            heat = Heat.MICROBATCH if index in accumulates or (part_of_step and index not in steps) else Heat.STEP
            confidence = Confidence.HIGH
            return LoopHeat(heat, "train" if trains else "batches", confidence)
        if trains and _is_literal(loop.iterable):
            return LoopHeat(Heat.EPOCH, "epoch", Confidence.HIGH)
        if trains:
            root = self.functions.get(scope)
            inner_of_step = (root is not None and root.heat >= Heat.STEP) or any(
                item in steps or item in advances or self._loader_confidence(facts.loops[item], scope) is not None
                for item in outer
            )
            heat = Heat.MICROBATCH if inner_of_step and index not in steps else Heat.STEP
            if index in accumulates:
                heat = Heat.MICROBATCH
            # `for _ in range(n): model(x).sum().backward()` without any optimizer may be a benchmark.
            sure = bool(steps) or inner_of_step or not _is_range(loop.iterable)
            return LoopHeat(heat, "train", Confidence.HIGH if sure else Confidence.MEDIUM)
        if index in samples and loop.kind != "comprehension" and self._is_decoding(loop):
            return LoopHeat(Heat.STEP, "decode", Confidence.MEDIUM)
        if loop.targets and _EPOCH_NAME.match(loop.targets[0]):
            return LoopHeat(Heat.EPOCH, "epoch", Confidence.HIGH)
        return None

    def _loader_confidence(self, loop: LoopFacts, scope: Scope) -> Confidence | None:
        if loop.iterable is None:
            return None
        if any(ref.kind == BATCH for ref in self.resolver.elements(loop.iterable, scope)):
            return Confidence.HIGH
        name = self._unwrapped(loop.iterable, scope)
        if name is None or not looks_like_loader(name) or _LOADERS_NAME.search(name.rpartition(".")[2]):
            return None
        refs = self.resolver.refs(name, scope)
        if not refs:
            return (
                Confidence.HIGH
                if re.search(r"data_?loader|train_?loader|val\w*_?loader|test_?loader", name, re.IGNORECASE)
                else Confidence.MEDIUM
            )
        # Something else is known to be behind the name: a list of configurations is no loader.
        return Confidence.MEDIUM if all(ref.kind == EXTERNAL_INSTANCE for ref in refs) else None

    def _unwrapped(self, value: Value, scope: Scope) -> str | None:
        """The plain name inside `enumerate(tqdm(loader))`, through local names bound to such wrappers."""
        for _ in range(8):
            if isinstance(value, str):
                if looks_like_loader(value):
                    return value
                definitions = self.resolver.definitions(value, scope)
                if len(definitions) != 1 or definitions[0][1] != scope:
                    return value
                value = definitions[0][0]
                if not isinstance(value, tuple) or value[0] != "call":
                    return None
            elif isinstance(value, tuple) and value[0] == "call":
                name = (
                    value[1] if isinstance(value[1], str) else value[1][2] if value[1] and value[1][0] == "attr" else ""
                )
                last = name.rpartition(".")[2]
                position, passed = _WRAPPER_POSITION.get(last), given(value)
                if position is not None and len(passed) > position:
                    if last in ("zip", "zip_longest"):
                        names = [item for item in passed if isinstance(item, str) and looks_like_loader(item)]
                        return names[0] if names else None
                    value = passed[position]
                else:
                    # `self.train_dataloader()`, `get_loader(...)`: the name of a factory is a convention as well.
                    return name if looks_like_loader(name) else None
            elif isinstance(value, tuple) and value[0] == "item":
                return (
                    f"{value[1]}_loader"
                    if isinstance(value[1], str) and _LOADERS_NAME.search(value[1])
                    else value[2]
                    if isinstance(value[2], str)
                    else None
                )
            else:
                return None
        return None

    def _advances(self, call: CallFacts, scope: Scope) -> bool:
        """Whether a call takes the next batch: `next(it)`, `it.__next__()`."""
        func = call.func
        if func == "next":
            return bool(call.args) and self._takes_batch(call.args[0], scope)
        return (
            isinstance(func, str) and func.endswith(".__next__") and self._takes_batch(func[: -len(".__next__")], scope)
        )

    def _takes_batch(self, value: Value, scope: Scope) -> bool:
        if any(ref.kind == BATCH for ref in self.resolver.elements(value, scope)):
            return True
        if isinstance(value, str):
            if _ITERATOR_NAME.search(value.rpartition(".")[2]):
                definitions = self.resolver.definitions(value, scope)
                return not definitions or any(_may_give_batches(inner) for inner, _ in definitions)
            name = self._unwrapped(value, scope)
            return name is not None and looks_like_loader(name)
        if isinstance(value, tuple) and value[0] == "call" and value[1] == "iter" and value[2]:
            name = self._unwrapped(value[2][0], scope)
            return name is not None and looks_like_loader(name)
        return False

    def _is_over_texts(self, loop: LoopFacts, scope: Scope) -> bool:
        """Whether a loop goes over data that it is given, not over a handful written down beside it."""
        if loop.kind == "while" or _is_literal(loop.iterable):
            return False
        if _is_range(loop.iterable) and tuple(loop.targets) in ((), ("_",)):
            return False  # `for _ in range(warm_up)`
        if isinstance(loop.iterable, str):
            return not any(_is_literal(value) for value, _ in self.resolver.definitions(loop.iterable, scope))
        return not (loop.targets and _EPOCH_NAME.match(loop.targets[0]))

    def _is_decoding(self, loop: LoopFacts) -> bool:
        if loop.kind == "while":
            return bool(_DECODE_LIMIT.search(loop.text))
        value = loop.iterable
        return isinstance(value, tuple) and value[0] == "call" and bool(_DECODE_LIMIT.search(loop.text))

    def _epoch_loops(self) -> None:
        """Loops around hot loops are `epoch`: directly, or through the functions they call."""
        holders: set[Scope] = set()
        waiting: list[Scope] = []
        for (scope, index), heat in list(self.loops.items()):
            if heat.role in ("train", "batches"):
                facts = self._facts(scope)
                for outer in loops_around(facts, facts.loops[index].context):
                    self.loops.setdefault((scope, outer), LoopHeat(Heat.EPOCH, "epoch", Confidence.HIGH))
                if scope not in holders:
                    holders.add(scope)
                    waiting.append(scope)
        while waiting:
            callee = waiting.pop()
            for edge in self.graph.incoming.get(callee, ()):
                if edge.confidence != Confidence.HIGH:
                    continue
                facts = self._facts(edge.caller)
                for outer in loops_around(facts, edge.context):
                    self.loops.setdefault((edge.caller, outer), LoopHeat(Heat.EPOCH, "epoch", Confidence.HIGH))
                if edge.caller not in holders:
                    holders.add(edge.caller)
                    waiting.append(edge.caller)

    # Functions.

    def _framework_function(self, scope: Scope, facts: FunctionFacts) -> None:
        if not facts.in_class:
            return
        name = facts.name
        owner = facts.in_class.rpartition(".")[2]
        bases = [
            base.name for base in self.resolver.mro(Ref(CLASS, scope.path, facts.in_class)) if base.kind == EXTERNAL
        ]
        for base in bases:
            hook = frameworks.hooks_of(base).get(name)
            if hook is not None:
                if hook.heat > Heat.ONCE:
                    text = f"{owner}.{name} (a {base.rpartition('.')[2]}'s {name})"
                    self.functions[scope] = FunctionRoot(hook.heat, _role(hook), text, Confidence.HIGH)
                return
        if name == "forward" and any(canonical(base) in frameworks.MODULE_BASES for base in bases):
            # Nothing of the project may call it (a library of models), yet its users do, every step.
            self.functions[scope] = FunctionRoot(
                Heat.STEP, "forward", f"{owner}.forward (an nn.Module's forward)", Confidence.MEDIUM
            )
        elif name in ("forward", "backward") and any(canonical(base) == frameworks.AUTOGRAD_FUNCTION for base in bases):
            self.functions[scope] = FunctionRoot(
                Heat.STEP, "autograd", f"{owner}.{name} (an autograd function's {name})", Confidence.MEDIUM
            )

    def _registered_functions(self) -> None:
        """Hooks, collate functions, event handlers and step functions handed to PyTorch and ignite."""
        for path, summary in self.resolver.summaries.items():
            for qualname, facts in summary.functions.items():
                scope = Scope(path, qualname)
                for call in facts.calls:
                    self._registered(call, scope)
                self._decorated_handler(scope, facts)

    def _registered(self, call: CallFacts, scope: Scope) -> None:
        last, _ = _callee(call.func)
        if last in _HOOKS and not self._is_temporary(call, scope):
            text = f"{last}(...): runs in every forward or backward"
            self._mark(call.args[:1], scope, FunctionRoot(Heat.STEP, "hook", text, Confidence.HIGH))
        elif last == "add_event_handler" and len(call.args) > 1:
            self._mark(call.args[1:2], scope, _ignite_root(call.args[0]))
        elif last in _IGNITE_ENGINES and call.args:
            root = FunctionRoot(Heat.STEP, "train", f"{last}(...) calls it with every batch", Confidence.HIGH)
            self._mark(call.args[:1], scope, root)
        for key, value in call.keywords:
            if key in frameworks.COLLATE_KEYWORDS:
                root = FunctionRoot(Heat.SAMPLE, "data", f"{key} of a DataLoader", Confidence.HIGH)
                self._mark((value,), scope, root)

    def _is_temporary(self, call: CallFacts, scope: Scope) -> bool:
        """Whether a hook is taken off again by itself or by who put it on: it runs for one look, not for training."""
        hooks = [Scope(ref.path, ref.name) for ref in self.resolver.refs(call.args[0], scope)] if call.args else []
        inner = [edge.callee for hook in hooks for edge in self.graph.outgoing.get(hook, ())]
        return any(self._removes_handle(item) for item in (scope, *hooks, *inner))

    def _removes_handle(self, scope: Scope) -> bool:
        functions = self.resolver.summaries[scope.path].functions if scope.path else {}
        calls = functions[scope.function].calls if scope.function in functions else ()
        return any(_callee(call.func)[0] == "remove" and _HANDLE.search(_callee(call.func)[1]) for call in calls)

    def _decorated_handler(self, scope: Scope, facts: FunctionFacts) -> None:
        for decorator in facts.decorators:
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
                target: Ref | None = ref if ref.kind == "function" else None
                if ref.kind == INSTANCE:
                    target = self.resolver.method(ref, "__call__")
                elif ref.kind == CLASS:
                    target = None
                if target is not None:
                    self.functions.setdefault(Scope(target.path, target.name), root)

    def _facts(self, scope: Scope) -> FunctionFacts:
        return self.resolver.summaries[scope.path].functions[scope.function]


def _role(hook: Hook) -> str:
    """What the hook is for; evaluation that runs with gradients on is told from one that has them off."""
    if hook.role in (Role.EVAL, Role.INFER):
        return "infer" if hook.grad else "eval"
    return str(hook.role.value)


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


def innermost_loop(facts: FunctionFacts, context: int) -> int | None:
    """The index of the innermost loop around a context, None outside loops."""
    while context >= 0:
        item = facts.contexts[context]
        if item.kind == "loop":
            return int(item.detail)
        context = item.parent
    return None


def loops_around(facts: FunctionFacts, context: int) -> list[int]:
    """Indices of all loops around a context, innermost first."""
    found = []
    while context >= 0:
        item = facts.contexts[context]
        if item.kind == "loop":
            found.append(int(item.detail))
        context = item.parent
    return found


def _is_denoising(call: CallFacts) -> bool:
    """`scheduler.step(noise, t, sample)`: one step of a sampler of a diffusion model. One of learning rates takes at
    most a metric.
    """
    last, receiver = _callee(call.func)
    return last == "step" and len(call.args) >= 3 and bool(_SAMPLER_NAME.search(receiver))


def _is_whole_run(facts: FunctionFacts) -> bool:
    """Whether a function makes the model or the optimizer that it trains: a loop around it tries models, not steps."""
    return any(_callee(call.func)[0] in _MAKERS for call in facts.calls)


def _is_fresh(call: CallFacts) -> bool:
    """`next(iter(loader))`: a look at one batch, not a step through them."""
    first = call.args[0] if call.args else None
    return isinstance(first, tuple) and first[0] == "call" and first[1] == "iter"


def _may_give_batches(value: Value) -> bool:
    """Whether what an iterator is made from may be a loader, by all that is plain to see."""
    if isinstance(value, tuple) and value[0] == "call":
        name = _callee(value[1])[0]
        if name == "iter" and value[2]:
            return _may_give_batches(value[2][0])
        return name not in _NOT_BATCHES
    return not (isinstance(value, tuple) and value[0] in ("seq", "map", "const", "each", "item"))


def _is_range(value: Value) -> bool:
    return isinstance(value, tuple) and value[0] == "call" and value[1] in ("range", "trange")


def _is_literal(value: Value) -> bool:
    """`for flag in (False, True)`: the turns of such a loop are configurations, not steps."""
    return isinstance(value, tuple) and value[0] in ("seq", "map")
