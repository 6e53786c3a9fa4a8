"""What one sample costs: whether a data set looks it up, or reads, decodes, augments or tokenizes it each time."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.few_items import may_have_few_items
from perflint.analysis.loading.glanced import is_glanced_at
from perflint.analysis.loading.handed_samples import asked_data_sets
from perflint.analysis.loading.loaders import option
from perflint.analysis.loading.transformed_pictures import transforms_pictures
from perflint.analysis.names.refs import CLASS, EXTERNAL, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.naming.data import COSTLY, IN_MEMORY, LABELS, TEXT_ENCODER, TOKENIZES
from perflint.analysis.own_attributes import is_own
from perflint.analysis.values.kind import Tag
from perflint.finding import Confidence
from perflint.ir import guards
from perflint.ir.calls import has_unpacking, is_constant, keyword
from perflint.ir.summary import CallFacts, FunctionFacts
from perflint.syntax.walk import walk
from perflint.torch_model import loaders

#: What giving one sample costs: a look-up; reading, decoding, augmenting or tokenizing; nothing known, as samples
#: stream in; nothing known at all.
Work: TypeAlias = Literal["memory", "work", "iterable", "unknown"]
_SPLITS = frozenset(name.rpartition(".")[2] for name in loaders.PASSING_ON)
#: Run when a sample is asked for, and no sooner.
_LAZY = frozenset({"with_transform", "set_transform"})
#: Guards of what happens to few samples, or to each of them once.
_SELDOM = frozenset({guards.PERIODIC, guards.FIRST, guards.LAZY, guards.RARE, guards.LEAVES, guards.TURN})
#: Calls that are followed from `__getitem__`.
_DEPTH = 2
#: A `__getitem__` of no more calls and no loop looks a sample up.
_FEW_CALLS = 3
#: So many classes of data sets are looked at, where nothing tells which of them a loader is given.
_MOST_CLASSES = 32


def dataset_work(call: ast.Call, ctx: FileFacts) -> Work:
    """What giving one sample of a loader's data set costs."""
    dataset = option(call, "dataset", ctx)
    return "unknown" if dataset is None else _work_of(dataset, ctx)


def work_of_item(dataset: ast.expr, ctx: FileFacts) -> Work:
    """What `dataset[i]` costs."""
    return _work_of(dataset, ctx) if _refs_of_one(dataset, ctx) else "unknown"


def needs_workers(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether making a batch is known to be work: for its samples, in the collate function, or while they stream in.
    Not where a glance at the loader is all, or a pass is over as soon as it has begun.
    """
    if is_glanced_at(call, ctx):
        return False
    work = dataset_work(call, ctx)
    if work == "iterable":
        return False
    works = work == "work" or _collates(call, ctx) or (work == "unknown" and _comes_lazily(call, ctx))
    return works and not may_have_few_items(call, ctx)


def datasets_of(dataset: ast.expr, ctx: FileFacts) -> list[ast.expr]:
    """Where a data set comes from: through names, and through what hands on the samples of another one."""
    found: list[ast.expr] = []
    for origin in ctx.inference.origins(dataset):
        if (
            isinstance(origin, ast.Call)
            and origin.args
            and (ctx.target(origin.func) or "").rpartition(".")[2] in _SPLITS
        ):
            inner = origin.args[0]
            listed = ctx.kind(inner).tag is Tag.SEQUENCE and not isinstance(inner, _DISPLAYS)
            for item in (origin,) if listed else _written_in(inner):
                found += (item,) if listed else datasets_of(item, ctx)
        else:
            found.append(origin)
    return found


#: Lists whose items are written out.
_DISPLAYS = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)


def _written_in(datasets: ast.expr) -> list[ast.expr]:
    """The data sets of a list of them, or the one that is given."""
    if isinstance(datasets, (ast.List, ast.Tuple)):
        return datasets.elts
    return [datasets.elt if isinstance(datasets, (ast.ListComp, ast.GeneratorExp)) else datasets]


def _refs_of(dataset: ast.expr, ctx: FileFacts) -> list[Ref]:
    """The classes and functions behind a data set, seen through names and subsets."""
    return [ref for origin in datasets_of(dataset, ctx) for ref in _refs_of_one(origin, ctx)]


def _refs_of_one(dataset: ast.expr, ctx: FileFacts) -> tuple[Ref, ...]:
    """What a data set may be: by its kind where that is known, which sees through tuples and containers."""
    kind = ctx.kind(dataset)
    if kind.tag is Tag.DATASET and kind.path:
        return (Ref(INSTANCE, kind.path, kind.qualified),)
    return ctx.refs(dataset)


def _work_of(dataset: ast.expr, ctx: FileFacts) -> Work:
    """What all data sets that it may be have in common; where none of them tells, what its own name is bound to."""
    if transforms_pictures(dataset, ctx):
        return "work"
    origins = datasets_of(dataset, ctx)
    found = {_work_of_one(origin, ctx) for origin in origins}
    if not found or (found == {"unknown"} and not any(_refs_of_one(origin, ctx) for origin in origins)):
        return _work_of_refs(dataset, ctx) if _refs_of_one(dataset, ctx) else _work_of_any(origins, ctx)
    return found.pop() if len(found) == 1 else "unknown"


def _work_of_any(origins: list[ast.expr], ctx: FileFacts) -> Work:
    """What all data sets of the program have in common, for one of them that is chosen by its name, say: nothing tells
    which.
    """
    if not all(isinstance(origin, (ast.Call, ast.Name, ast.Attribute, ast.Subscript)) for origin in origins):
        return "unknown"
    if any(ctx.kind(origin).known for origin in origins):
        return "unknown"
    all_of_them = ctx.program.whole.data_sets
    if len(all_of_them) > _MOST_CLASSES or ctx.program.whole.makes_data_sets_in_memory:
        return "unknown"
    found = {_project_work(Ref(INSTANCE, path, name), frozenset(), ctx) for path, name in all_of_them}
    return "work" if found == {"work"} else "unknown"


def _work_of_one(dataset: ast.expr, ctx: FileFacts) -> Work:
    if ctx.kind(dataset).is_tensor or (isinstance(dataset, ast.Call) and ctx.target(dataset.func) == "range"):
        return "memory"  # its items are numbers
    if isinstance(dataset, (ast.List, ast.ListComp)):
        return "memory"
    return _work_of_refs(dataset, ctx)


def _work_of_refs(dataset: ast.expr, ctx: FileFacts) -> Work:
    found = {_work_of_ref(ref, _left_out(dataset, ref, ctx), ctx) for ref in _refs_of_one(dataset, ctx)}
    return found.pop() if len(found) == 1 else "unknown"


def _left_out(dataset: ast.expr, ref: Ref, ctx: FileFacts) -> frozenset[str]:
    """The parameters that are None in the constructor of a dataset: by its call, or by all calls of the program where
    it was made elsewhere.
    """
    made = _method(ref, "__init__", ctx) if ref.kind == INSTANCE else None
    if made is None:
        return frozenset()
    if isinstance(dataset, ast.Call):
        if has_unpacking(dataset):
            return frozenset()
        calls = [(len(dataset.args), frozenset(item.arg for item in dataset.keywords))]
    else:
        # What is unpacked may hold anything: then no call says that it is given.
        calls = [(len(call.args), frozenset(key for key, _ in call.keywords)) for call in _calls_of(made, ctx)]
    if not calls:
        return frozenset()
    return frozenset(
        param.name.lstrip("=")
        for place, param in enumerate(ctx.program.function(made).params)
        if param.default is not None
        and param.default[:2] == ("const", "NoneType")
        and all(param.name.startswith("=") or place > count for count, _ in calls)
        and not any(param.name.lstrip("=") in names for _, names in calls)
    )


def _calls_of(made: Scope, ctx: FileFacts) -> Iterator[CallFacts]:
    for edge in ctx.program.callers(made):
        if not edge.callback and edge.index >= 0:
            yield ctx.program.function(edge.caller).calls[edge.index]


def _work_of_ref(ref: Ref, left_out: frozenset[str], ctx: FileFacts) -> Work:
    if ref.kind == INSTANCE:
        return _project_work(ref, left_out, ctx)
    if ref.name in loaders.IN_MEMORY_DATASETS:
        return "memory"
    return "work" if ref.name in loaders.DECODING_DATASETS else "unknown"


def _project_work(ref: Ref, left_out: frozenset[str], ctx: FileFacts, around: frozenset[Ref] = frozenset()) -> Work:
    """What an item of a class of the project costs; one that changes the items of others costs what those do."""
    scope = _method(ref, "__getitem__", ctx)
    if scope is None:
        bases = _bases(ref, ctx)
        if any(base in loaders.DECODING_DATASETS for base in bases):
            return "work"
        if any(base in loaders.IN_MEMORY_DATASETS for base in bases):
            return "memory"
        return "iterable" if _method(ref, "__iter__", ctx) is not None else "unknown"
    if _goes_on(scope, ctx):
        return "iterable"
    if any(IN_MEMORY.search(base.rpartition(".")[2]) for base in _bases(ref, ctx)):
        return "memory"  # what is left for each sample is small beside handing it over
    absent = {f"self.{name}" for name in left_out}

    def costs(call: CallFacts, scope: Scope, ctx: FileFacts) -> bool:
        return absent.isdisjoint((_dotted(call.func), *map(_dotted, call.args))) and _is_costly_or_tokenizes(
            call, scope, ctx
        )

    if _works(scope, ctx, _DEPTH, costs):
        return "work"
    around |= {ref}
    inner = [asked for asked in asked_data_sets(scope, ctx) if asked not in around]
    within = {_project_work(asked, frozenset(), ctx, around) for asked in inner if len(around) <= _DEPTH}
    if within and within != {"memory"}:
        return within.pop() if len(within) == 1 else "unknown"
    facts = ctx.program.function(scope)
    return "memory" if len(facts.calls) <= _FEW_CALLS and not facts.loops else "unknown"


def _goes_on(scope: Scope, ctx: FileFacts) -> bool:
    """Whether a `__getitem__` computes an attribute anew from what it was: `self.part += 1` at the end of
    a part, which tells where to look. Then samples have to be asked for in their order, and a worker is asked for some
    of them only.
    """
    found = definition_of(scope, ctx)
    if found is None:
        return False
    node, ctx = found
    places = {
        ctx.text(inner)
        for part in walk(node)
        if isinstance(part, ast.Subscript)
        for inner in walk(part.slice)
        if is_own(inner)
    }
    return bool(places) and any(_steps_on(part, places, ctx) for part in walk(node))


def _steps_on(node: ast.AST, places: set[str], ctx: FileFacts) -> bool:
    """Whether a statement computes one of the `places`, by which data are looked up, from what it was."""
    if isinstance(node, ast.AugAssign):
        return ctx.text(node.target) in places
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.BinOp):
        return False
    stepped = ctx.text(node.targets[0])
    return stepped in places and any(
        isinstance(part, ast.expr) and ctx.text(part) == stepped for part in walk(node.value)
    )


def _works(scope: Scope, ctx: FileFacts, depth: int, costs: Callable[[CallFacts, Scope, FileFacts], bool]) -> bool:
    """Whether a function, or one that it surely calls, does something costly each time."""
    program, facts = ctx.program, ctx.program.function(scope)
    if any(costs(call, scope, ctx) and not _is_seldom(facts, call.context) for call in facts.calls):
        return True
    return depth > 0 and any(
        edge.confidence == Confidence.HIGH
        and not edge.callback
        and not _is_seldom(facts, edge.context)
        and _works(edge.callee, ctx, depth - 1, costs)
        for edge in program.graph.outgoing.get(scope, ())
        if edge.callee != scope
    )


def samples_run(call: ast.Call, ctx: FileFacts, does: Callable[[CallFacts, Scope, FileFacts], bool]) -> bool:
    """Whether each data set that a loader may have makes its samples by a call that `does`."""
    dataset = option(call, "dataset", ctx)
    refs = _refs_of(dataset, ctx) if dataset is not None else []
    made = [_method(ref, "__getitem__", ctx) if ref.kind == INSTANCE else None for ref in refs]
    return bool(made) and all(scope is not None and _works(scope, ctx, _DEPTH, does) for scope in made)


def _is_costly(call: CallFacts, scope: Scope, ctx: FileFacts) -> bool:
    name = _dotted(call.func).rpartition(".")[2]
    if COSTLY.fullmatch(name.lstrip("_")):
        return not LABELS.search(name)
    refs = ctx.program.refs(call.func, scope) if isinstance(call.func, str) else ()
    return any(ref.kind == EXTERNAL and ref.name in loaders.FILE_READERS for ref in refs)


def _is_costly_or_tokenizes(call: CallFacts, scope: Scope, ctx: FileFacts) -> bool:
    base, _, name = _dotted(call.func).rpartition(".")
    if name in ("encode", "encode_as_ids", "EncodeAsIds"):
        return TEXT_ENCODER.search(base.rpartition(".")[2]) is not None
    return TOKENIZES.fullmatch(name.lstrip("_")) is not None or _is_costly(call, scope, ctx)


def _is_seldom(facts: FunctionFacts, context: int) -> bool:
    while context >= 0:
        item = facts.contexts[context]
        if item.kind == "guard" and item.detail in _SELDOM:
            return True
        context = item.parent
    return False


def _collates(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the collate function is known to decode or augment."""
    scope = collate_scope(call, ctx)
    return scope is not None and _works(scope, ctx, 1, _is_costly)


def collate_scope(call: ast.Call, ctx: FileFacts) -> Scope | None:
    """The project's function that makes batches of samples, where there is one."""
    collate = option(call, "collate_fn", ctx)
    if collate is None:
        made = ctx.project_target(call.func)
        return ctx.program.own_collate(made) if made is not None and made.kind == CLASS else None
    for ref in ctx.refs(collate):
        if ref.kind == FUNCTION:
            return Scope(ref.path, ref.name)
        if ref.kind == INSTANCE:
            method = _method(ref, "__call__", ctx)
            if method is not None:
                return method
    return None


def _bases(instance: Ref, ctx: FileFacts) -> tuple[str, ...]:
    """The names of the class of an instance of the project and of its bases, a library's in full."""
    return ctx.program.resolver.base_names(Ref(CLASS, instance.path, instance.name))


def _method(instance: Ref, name: str, ctx: FileFacts) -> Scope | None:
    """The project's method that an instance has, its own or of a base of its class."""
    method = ctx.program.resolver.method(instance, name)
    return None if method is None else Scope(method.path, method.name)


def _comes_lazily(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether rows are transformed as they are asked for, or come from a stream that the same function opens."""
    dataset, facts = option(call, "dataset", ctx), ctx.facts(call)
    name = ctx.text(dataset) if isinstance(dataset, (ast.Name, ast.Attribute)) else ""
    if any(_dotted(value[1]).rpartition(".")[2] in _LAZY for value in facts.binds.get(name, ()) if _is_made(value)):
        return True
    for made in facts.calls:
        base, _, last = _dotted(made.func).rpartition(".")
        if last == "set_transform" and base == name:
            return True
        streams = dict(made.keywords).get("streaming") if last == "load_dataset" else None
        if streams is not None and streams[2:] != (False,):
            return True
    return False


def _is_made(value: object) -> bool:
    return isinstance(value, tuple) and value[:1] == ("call",)


def _dotted(func: object) -> str:
    if isinstance(func, str):
        return func
    if isinstance(func, tuple) and func[0] == "attr":
        return f"{_dotted(func[1])}.{func[2]}"
    return ""


def moves_to_device(dataset: ast.expr | None, ctx: FileFacts) -> bool:
    """Whether the dataset hands out device tensors already: nothing to pin then."""
    if dataset is None:
        return False
    for ref in ctx.refs(dataset):
        if ref.kind == INSTANCE:
            method = _method(ref, "__getitem__", ctx)
            if method is not None:
                facts = ctx.program.function(method)
                if any(_dotted(call.func).rpartition(".")[2] in ("cuda", "to") for call in facts.calls):
                    return True
    return False


def works_on_device(dataset: ast.expr, ctx: FileFacts) -> bool:
    """Whether a dataset is told a device, or moves samples to one: workers that are forked cannot use CUDA."""
    if moves_to_device(dataset, ctx):
        return True
    made = (keyword(item, "device") for item in datasets_of(dataset, ctx) if isinstance(item, ast.Call))
    return any(device is not None and not _is_of_host(device, ctx) for device in made)


def _is_of_host(device: ast.expr, ctx: FileFacts) -> bool:
    """`"cpu"` and `torch.device("cpu")`."""
    if isinstance(device, ast.Call) and ctx.is_call_of(device, "torch.device") and device.args:
        device = device.args[0]
    return is_constant(device, "cpu")


def hands_samples_on(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the collate function makes no tensors: it gives the samples back as they are, or makes arrays."""
    collate = option(call, "collate_fn", ctx)
    if collate is None:
        return False
    if isinstance(collate, ast.Lambda):
        return isinstance(collate.body, ast.Name)
    if "numpy" in ctx.text(collate) or ctx.target(collate) in ("list", "builtins.list"):
        return True
    scope = collate_scope(call, ctx)
    if scope is None:
        return False
    facts = ctx.program.function(scope)
    names = {param.name.lstrip("=*") for param in facts.params}
    return bool(facts.returns) and all(value in names for value in facts.returns)


def makes_own_batches(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the collate function makes objects of the project's own that nobody can pin: `pin_memory` goes into
    tensors, mappings and sequences, and asks what else there is for a method of that name.
    """
    scope = collate_scope(call, ctx)
    if scope is None:
        return False
    facts = ctx.program.function(scope)
    if facts.returns and all(_cannot_be_pinned(value, scope, ctx) for value in facts.returns):
        return True
    return any(_gives_own_batch(("call", *call[:3]), scope, ctx) for call in facts.calls)


def _gives_own_batch(value: object, scope: Scope, ctx: FileFacts) -> bool:
    """`batch[0] = padded(batch[0])`: a part of the batch, most of it, that moves itself and cannot be pinned."""
    moves = ("to", "cuda")
    method = ctx.program.resolver.method
    return _cannot_be_pinned(value, scope, ctx) and any(
        method(ref, name) is not None for ref in ctx.program.resolver.refs(value, scope) for name in moves
    )


def _cannot_be_pinned(value: object, scope: Scope, ctx: FileFacts) -> bool:
    refs = ctx.program.resolver.refs(value, scope)
    return bool(refs) and all(ref.kind == INSTANCE and not _may_be_pinned(ref, ctx) for ref in refs)


def _may_be_pinned(batch: Ref, ctx: FileFacts) -> bool:
    """Whether the class of a batch has `pin_memory`, or may get it from a library, a decorator or `__getattr__`."""
    resolver = ctx.program.resolver
    if resolver.method(batch, "pin_memory") is not None or resolver.method(batch, "__getattr__") is not None:
        return True
    bases = resolver.mro(Ref(CLASS, batch.path, batch.name))
    return any(
        _gives_pinning(base, ctx) if base.kind == CLASS else base.name not in ("object", "builtins.object")
        for base in bases
    )


def _gives_pinning(cls: Ref, ctx: FileFacts) -> bool:
    facts = ctx.program.summaries[cls.path].classes[cls.name]
    return "pin_memory" in facts.attributes or any(_callee(item) != "dataclass" for item in facts.decorators)


def _callee(decorator: object) -> str:
    called = decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator
    return _dotted(called).rpartition(".")[2]


def is_small(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a pass over the data set is known to be short."""
    return _is_one_of(loaders.SMALL_DATASETS, call, ctx)


def is_tiny(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a pass over the data set is known to take a few seconds."""
    return _is_one_of(loaders.TINY_DATASETS, call, ctx)


def _is_one_of(names: frozenset[str], call: ast.Call, ctx: FileFacts) -> bool:
    dataset = option(call, "dataset", ctx)
    if dataset is None:
        return False
    refs = _refs_of(dataset, ctx) or list(ctx.refs(dataset))
    return bool(refs) and all(_is_named(ref, names, ctx) for ref in refs)


def _is_named(ref: Ref, names: frozenset[str], ctx: FileFacts) -> bool:
    if ref.kind != INSTANCE:
        return ref.name in names
    return any(base in names for base in _bases(ref, ctx))


def is_of_notebook(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the data set's class stands in the notebook itself, where workers that are spawned do not find it."""
    dataset = option(call, "dataset", ctx)
    if dataset is None or not ctx.path.endswith(".ipynb"):
        return False
    return any(ref.kind == INSTANCE and ref.path == ctx.path for ref in _refs_of(dataset, ctx))


def is_moved(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the data that a loader samples from is moved to the device where the loader is made: a worker that is
    forked could not read it there.
    """
    data = call.args[0] if call.args else None
    if not isinstance(data, ast.Name):
        return False
    values = (value for value in ctx.facts(call).binds.get(data.id, ()) if _is_made(value))
    return any(_dotted(value[1]) in (f"{data.id}.to", f"{data.id}.cuda") for value in values)
