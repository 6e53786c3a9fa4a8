"""What the rules about data loaders share: the arguments of a `DataLoader`, and what feeds it."""

from __future__ import annotations

import ast
import re
from pathlib import PurePath

from perflint.analysis.feasibility.options import is_configuration
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.derived_loaders import derived_options
from perflint.analysis.loading.spread_options import hides_options, spread_options
from perflint.analysis.names.refs import CLASS, EXTERNAL, INSTANCE, Ref, Scope
from perflint.analysis.naming.phases import EVALUATION_STEM, FOR_EVALUATION, OF_TRAINING
from perflint.analysis.naming.values import SETTINGS
from perflint.ir.calls import argument, callee_name, has_unpacking, is_constant, keyword
from perflint.ir.notation import last_name, value_of
from perflint.ir.summary import FunctionFacts
from perflint.torch_model import loaders
from perflint.torch_model.names import canonical

#: torch's own loader, and those of other libraries that take its options: that of torchdata can be saved in the middle,
#: those of graphs and of medical pictures only collate in another way.
DATA_LOADERS = (
    "torch.utils.data.DataLoader",
    "torchdata.StatefulDataLoader",
    "torch_geometric.loader.DataLoader",
    "torch_geometric.data.DataLoader",
    "monai.data.DataLoader",
    "dgl.dataloading.GraphDataLoader",
)
LOADER_NAMES = tuple(dict.fromkeys(name.rpartition(".")[2] for name in DATA_LOADERS))
#: Last names of the loaders that sample graphs.
SAMPLERS = frozenset(name.rpartition(".")[2] for name in loaders.SAMPLING_LOADERS)
_POSITIONS = {"dataset": 0, "batch_size": 1, "shuffle": 2, "num_workers": 5, "collate_fn": 6, "pin_memory": 7}
_DEVICE_WORDS = frozenset(
    "cuda to_device Accelerator accelerator Fabric LightningModule pl xpu local_rank get_device non_blocking".split()
)


def option(call: ast.Call, name: str, ctx: FileFacts) -> ast.expr | None:
    """The value of a `DataLoader` option, by keyword, position, or in a dict that is spread."""
    derived = ctx.once(derived_options, call)
    if derived is not None:
        return derived.get(name)
    found = argument(call, _POSITIONS.get(name, 99), name)
    if found is None and has_unpacking(call):
        return (spread_options(call, ctx) or {}).get(name)
    return found


def is_plain_loader(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call builds torch's own `DataLoader` with every argument in sight, outside tests."""
    return ctx.is_call_of(call, *DATA_LOADERS) and not hides_options(call, ctx)


def can_be_pinned(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call builds torch's own loader, or one of a derived class that hands `pin_memory` on by that name."""
    if is_plain_loader(call, ctx):
        return True
    if ctx.once(derived_options, call) is None:
        return False
    ref = ctx.project_target(call.func)
    made = None if ref is None else ctx.program.resolver.method(Ref(INSTANCE, ref.path, ref.name), "__init__")
    params = ctx.program.function(Scope(made.path, made.name)).params if made is not None else ()
    return any(param.name.lstrip("=") == "pin_memory" for param in params)


def is_derived_loader(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call builds a loader of a class that derives from torch's in the project, and that takes its data set
    and its workers from the call as torch's does: none unless told. One that goes through the batches in its own way
    may make them in a thread.
    """
    if has_unpacking(call):
        return False
    ref = ctx.project_target(call.func)
    if ref is None or ref.kind != CLASS or ref.name in SAMPLERS:
        return False
    resolver, instance = ctx.program.resolver, Ref(INSTANCE, ref.path, ref.name)
    if not any(canonical(base) in DATA_LOADERS for base in resolver.base_names(ref)):
        return False
    if resolver.method(instance, "__iter__") is not None:
        return False
    made = resolver.method(instance, "__init__")
    return made is None or _takes_workers(call, ctx.program.function(Scope(made.path, made.name)))


def _takes_workers(call: ast.Call, facts: FunctionFacts) -> bool:
    """Whether the number of workers is an option of the class's own `__init__`, 0 by default, or of torch's behind it,
    and what the call gives by position is not it.
    """
    ways = [param for param in facts.params if param.name.lstrip("=") == "num_workers"]
    given = [param.name for param in facts.params[1 : len(call.args) + 1]]
    if given[:1] and any(f"*{made.args[0]}" == given[0] for made in facts.calls if _is_init(made.func) and made.args):
        given = []  # `super().__init__(*args, **kwargs)`: torch's own places
    if len(call.args) >= _POSITIONS["num_workers"] or given[:1] not in ([], ["dataset"]) or "num_workers" in given:
        return False
    if ways:
        return ways[0].default is not None and ways[0].default[-1:] == (0,)
    if not any(param.name.startswith("**") for param in facts.params):
        return False
    handed = [name for made in facts.calls if _is_init(made.func) for name, _ in made.keywords]
    return bool(handed) and "num_workers" not in handed


def _is_init(func: object) -> bool:
    name = func.rpartition(".")[2] if isinstance(func, str) else func[2] if isinstance(func, tuple) else ""
    return name == "__init__"


def is_sampling_loader(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call builds a loader that samples graphs: the library's, or a class of that name in the project."""
    if hides_options(call, ctx):
        return False
    if ctx.is_call_of(call, *loaders.SAMPLING_LOADERS):
        return True
    ref = ctx.project_target(call.func)
    if ref is None or ref.name not in SAMPLERS:
        return False
    return ctx.program.is_loader(Ref(INSTANCE, ref.path, ref.name)) or keyword(call, "num_workers") is not None


def builds_data_loader(call: ast.Call, ctx: FileFacts) -> bool:
    """As `is_plain_loader`, but also by a name that may stand for another class, and by a class of that same name that
    derives from torch's in the project.
    """
    for ref in ctx.refs(call.func):
        if ref.kind == EXTERNAL and canonical(ref.name) in DATA_LOADERS:
            return True
        if ref.kind == CLASS and ref.name == "DataLoader" and ctx.program.is_loader(Ref(INSTANCE, ref.path, ref.name)):
            return True
    return False


def uses_accelerator(ctx: FileFacts) -> bool:
    """Whether the program moves anything to an accelerator at all."""
    return ctx.program.mentions(_DEVICE_WORDS)


def workers(call: ast.Call, ctx: FileFacts) -> str:
    """Whether there are any: "none" for 0 or unset, "some" for a positive literal, "variable" otherwise."""
    value = option(call, "num_workers", ctx)
    if value is None or is_constant(value, 0):
        return "none"
    return "some" if isinstance(value, ast.Constant) else "variable"


def is_one(count: ast.expr, ctx: FileFacts) -> bool:
    """Whether a number of workers is 1 by all that can be seen."""
    return counted(count, ctx) == {1}


def is_zero(count: ast.expr, ctx: FileFacts) -> bool:
    """Whether a variable number of workers is 0 by all that can be seen."""
    return counted(count, ctx) == {0}


def counted(count: ast.expr, ctx: FileFacts, depth: int = 3) -> set[object]:
    """What a number of workers is by all that can be seen: what is written or bound, or the default of an option of the
    command line or of a dataclass. None is for what is no literal. Of the least of several it is any of them but the
    number of processors.
    """
    if isinstance(count, ast.Call) and isinstance(count.func, ast.Name) and count.func.id == "int" and count.args:
        count = count.args[0]
    if isinstance(count, ast.Attribute) and _holds_options(count.value, ctx):
        defaults = set(ctx.program.whole.option_defaults(count.attr, ctx.path))
        if defaults:
            return defaults
    found: set[object] = set()
    for item in ctx.inference.origins(count):
        bounds = [bound for bound in _bounds(item, ctx) if not _counts_processors(bound)] if depth else []
        for bound in bounds:
            found |= counted(bound, ctx, depth - 1)
        if not bounds:
            found.add(item.value if isinstance(item, ast.Constant) else None)
    if None in found and not _is_set_by_others(count, ctx):
        # What is passed for a parameter, or its default where nobody passes anything.
        told = ctx.program.literals(value_of(count), ctx.scope(count))
        return {item[2] for item in told} if told else found
    return found


def _is_set_by_others(count: ast.expr, ctx: FileFacts) -> bool:
    """Whether a number is a setting of a package that others install: each of their configurations gives its own, and
    its default is no more than one of these.
    """
    is_setting = isinstance(count, ast.Attribute) and is_configuration(ctx.text(count.value))
    return is_setting and ctx.program.whole.is_installed(ctx.path)


def _bounds(value: ast.expr, ctx: FileFacts) -> list[ast.expr]:
    """`min(8, os.cpu_count() - 1)`, and the same of a list, without numbers that depend on the size of a batch: `size
    if size > 1 else 0` is 0 for batches of one sample alone.
    """
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "min"):
        return []
    listed = value.args[0] if len(value.args) == 1 else None
    bounds = listed.elts if isinstance(listed, (ast.List, ast.Tuple)) else value.args
    return [bound for bound in bounds if not (isinstance(bound, ast.IfExp) and _is_of_batch(bound, ctx))]


def _is_of_batch(bound: ast.IfExp, ctx: FileFacts) -> bool:
    """Whether a number is one that a test is about, or else a literal: `size if size > 1 else 0`."""
    return (
        isinstance(bound.orelse, ast.Constant)
        and isinstance(bound.test, ast.Compare)
        and ctx.text(bound.body) == ctx.text(bound.test.left)
    )


def _counts_processors(value: ast.expr) -> bool:
    """Whether a bound is the machine's, of which those that train have many."""
    names = (last_name(part.func) for part in ast.walk(value) if isinstance(part, ast.Call))
    return any(name in ("cpu_count", "sched_getaffinity", "process_cpu_count") for name in names)


#: What gives the options of a command line.
_PARSES = frozenset({"parse_args", "parse_known_args", "parse_intermixed_args", "parse_args_into_dataclasses"})


def _holds_options(settings: ast.expr, ctx: FileFacts) -> bool:
    """Whether the attributes of something may be options: by what it is, what gave it, or else what it is called."""
    if ctx.refs(settings) or SETTINGS.match(last_name(settings)):
        return True
    made = ctx.inference.origins(settings)
    return any(isinstance(origin, ast.Call) and callee_name(origin) in _PARSES for origin in made)


def purpose(call: ast.Call, ctx: FileFacts) -> str:
    """What the loader is for by the names around it: "train", "eval" or ""."""
    dataset = option(call, "dataset", ctx)
    function = ctx.tree.function_of(call)
    # The nearest name speaks first: `val_loader` in a function called `train` is for evaluation.
    for text in (
        _bound_name(call, ctx),
        ctx.text(dataset) if dataset is not None else "",
        *_chosen_by(call, ctx),
        function.name if function is not None else "",
    ):
        if any(FOR_EVALUATION.search(part) for part in re.split(r"[^A-Za-z_]+", text)):
            return "eval"
        if OF_TRAINING.search(text):
            return "train"
    in_evaluation = ctx.grad_off(call) or EVALUATION_STEM.match(PurePath(ctx.path).stem)
    return "eval" if in_evaluation else ""


def has_no_workers(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a loader has none, or has none where nobody sets the option that tells how many."""
    told, count = workers(node, ctx), option(node, "num_workers", ctx)
    return told == "none" or (told == "variable" and count is not None and is_zero(count, ctx))


def _chosen_by(call: ast.Call, ctx: FileFacts) -> list[str]:
    """The words that something is equal to where a loader is made: "train" under `if phase == "train"`."""
    return [
        side.value
        for test, holds in ctx.conditions(call)
        if holds and isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)
        for side in (test.left, test.comparators[0])
        if isinstance(side, ast.Constant) and isinstance(side.value, str)
    ]


def is_one_batch(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a pass is one batch, `batch_size=len(dataset)`."""
    size, dataset = option(call, "batch_size", ctx), option(call, "dataset", ctx)
    return (
        isinstance(size, ast.Call)
        and callee_name(size) == "len"
        and len(size.args) == 1
        and dataset is not None
        and ctx.text(size.args[0]) == ctx.text(dataset)
    )


def _bound_name(call: ast.Call, ctx: FileFacts) -> str:
    parent = ctx.tree.parent(call)
    if isinstance(parent, ast.Assign):
        return ctx.text(parent.targets[0])
    if isinstance(parent, ast.keyword):
        return parent.arg or ""
    return ""
