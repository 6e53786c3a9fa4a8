"""What the rules about data loaders share: the arguments of a `DataLoader`, and what feeds it."""

from __future__ import annotations

import ast
import re
from pathlib import PurePath

from perflint.api import (
    CLASS,
    EXTERNAL,
    INSTANCE,
    Context,
    FunctionFacts,
    Ref,
    argument,
    canonical,
    has_unpacking,
    is_constant,
    is_test,
    keyword,
    loaders,
)

#: torch's own loader, and the one of torchdata that takes the same arguments and can be saved in the middle.
DATA_LOADERS = ("torch.utils.data.DataLoader", "torchdata.StatefulDataLoader")
LOADER_NAMES = tuple(name.rpartition(".")[2] for name in DATA_LOADERS)
#: Last names of the loaders that sample graphs.
SAMPLERS = frozenset(name.rpartition(".")[2] for name in loaders.SAMPLING_LOADERS)
_POSITIONS = {"dataset": 0, "batch_size": 1, "shuffle": 2, "num_workers": 5, "collate_fn": 6, "pin_memory": 7}
_EVALUATION = re.compile(
    r"(?:^|_)(?:val|valid|validation|test|eval\w*|dev|infer\w*|pred\w*|calib\w*|viz|vis|debug|toy)(?:_|$)",
    re.IGNORECASE,
)
_DEVICE_WORDS = frozenset(
    "cuda to_device Accelerator accelerator Fabric LightningModule pl xpu local_rank get_device".split()
)


def option(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a `DataLoader` option, by keyword or position."""
    return argument(call, _POSITIONS.get(name, 99), name)


def is_plain_loader(call: ast.Call, ctx: Context) -> bool:
    """Whether a call builds torch's own `DataLoader` with every argument in sight, outside tests."""
    return not has_unpacking(call) and not is_test(ctx.path) and ctx.is_call_of(call, *DATA_LOADERS)


def is_sampling_loader(call: ast.Call, ctx: Context) -> bool:
    """Whether a call builds a loader that samples graphs: the library's, or a class of that name in the project."""
    if has_unpacking(call) or is_test(ctx.path):
        return False
    if ctx.is_call_of(call, *loaders.SAMPLING_LOADERS):
        return True
    ref = ctx.project_target(call.func)
    if ref is None or ref.name not in SAMPLERS:
        return False
    return ctx.program.is_loader(Ref(INSTANCE, ref.path, ref.name)) or keyword(call, "num_workers") is not None


def builds_data_loader(call: ast.Call, ctx: Context) -> bool:
    """As `is_plain_loader`, but also by a name that may stand for another class, and by a class of that same name that
    derives from torch's in the project.
    """
    if is_test(ctx.path):
        return False
    for ref in ctx.refs(call.func):
        if ref.kind == EXTERNAL and canonical(ref.name) in DATA_LOADERS:
            return True
        if ref.kind == CLASS and ref.name == "DataLoader" and ctx.program.is_loader(Ref(INSTANCE, ref.path, ref.name)):
            return True
    return False


def uses_accelerator(ctx: Context) -> bool:
    """Whether the program moves anything to an accelerator at all."""
    return ctx.program.mentions(_DEVICE_WORDS)


def workers(call: ast.Call) -> str:
    """Whether there are any: "none" for 0 or unset, "some" for a positive literal, "variable" otherwise."""
    value = option(call, "num_workers")
    if value is None or is_constant(value, 0):
        return "none"
    return "some" if isinstance(value, ast.Constant) else "variable"


def purpose(call: ast.Call, ctx: Context) -> str:
    """What the loader is for by the names around it: "train", "eval" or ""."""
    dataset = option(call, "dataset")
    function = ctx.tree.function_of(call)
    # The nearest name speaks first: `val_loader` in a function called `train` is for evaluation.
    for text in (
        _bound_name(call, ctx),
        ctx.text(dataset) if dataset is not None else "",
        function.name if function is not None else "",
    ):
        if any(_EVALUATION.search(part) for part in re.split(r"[^A-Za-z_]+", text)):
            return "eval"
        if re.search(r"train", text, re.IGNORECASE):
            return "train"
    in_evaluation = ctx.grad_off(call) or re.match(r"eval", PurePath(ctx.path).stem, re.IGNORECASE)
    return "eval" if in_evaluation else ""


def _bound_name(call: ast.Call, ctx: Context) -> str:
    parent = ctx.tree.parent(call)
    if isinstance(parent, ast.Assign):
        return ctx.text(parent.targets[0])
    if isinstance(parent, ast.keyword):
        return parent.arg or ""
    return ""


def dataset_work(call: ast.Call, ctx: Context) -> str:
    """What giving one item costs: "memory" (a look-up), "decode" (reads, decodes, augments), "iterable", "unknown"."""
    dataset = option(call, "dataset")
    if dataset is None:
        return "unknown"
    if ctx.kind(dataset).is_tensor or (isinstance(dataset, ast.Call) and ctx.target(dataset.func) == "range"):
        return "memory"  # its items are numbers
    names: set[str] = set()
    for ref in ctx.refs(dataset):
        if ref.kind == INSTANCE:
            return _project_work(ref, ctx)
        names.add(ref.name)
    if any(name in loaders.IN_MEMORY_DATASETS for name in names):
        return "memory"
    return "decode" if any(name in loaders.DECODING_DATASETS for name in names) else "unknown"


def _project_work(ref: Ref, ctx: Context) -> str:
    resolver = ctx.program.resolver
    method = resolver.method(ref, "__getitem__")
    if method is None:
        bases = resolver.base_names(ref)
        if any(base in loaders.DECODING_DATASETS for base in bases):
            return "decode"
        if any(base in loaders.IN_MEMORY_DATASETS for base in bases):
            return "memory"
        return "iterable" if resolver.method(ref, "__iter__") is not None else "unknown"
    return _work_of(ctx.program.summaries[method.path].functions[method.name])


_COSTLY = re.compile(
    r"open|read|load|decode|imread|tokeniz|encode|transform|augment|resample|spectrogram|mfcc|fromfile|memmap|parse|"
    r"rotate|resize|crop|flip|normalize|process|collate|generate|simulate|render",
    re.IGNORECASE,
)


def _work_of(facts: FunctionFacts) -> str:
    """Judged by what `__getitem__` calls: nothing to speak of means that the data lies in memory."""
    costly = [call for call in facts.calls if isinstance(call.func, (str, tuple)) and _COSTLY.search(_name(call.func))]
    if costly:
        return "decode"
    return "memory" if len(facts.calls) <= 3 and not facts.loops else "unknown"


def _name(func: object) -> str:
    if isinstance(func, str):
        return func.removeprefix("self.")
    if isinstance(func, tuple) and func[0] == "attr":
        return str(func[2])
    return ""


def moves_to_device(ref_dataset: ast.expr | None, ctx: Context) -> bool:
    """Whether the dataset hands out device tensors already: nothing to pin then."""
    if ref_dataset is None:
        return False
    for ref in ctx.refs(ref_dataset):
        if ref.kind == INSTANCE:
            method = ctx.program.resolver.method(ref, "__getitem__")
            if method is not None:
                facts = ctx.program.summaries[method.path].functions[method.name]
                if any(
                    _name(call.func).endswith((".cuda", ".to")) or _name(call.func) in ("cuda", "to")
                    for call in facts.calls
                ):
                    return True
    return False
