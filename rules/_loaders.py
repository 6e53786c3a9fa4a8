"""What the rules about data loaders share: the arguments of a `DataLoader`, and what feeds it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

from perflint.api import (
    CLASS,
    EXTERNAL,
    INSTANCE,
    Context,
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
#: What a command line's options are kept in.
_ARGUMENTS = re.compile(r"(?:^|[._])(?:args?|opts?|options|flags|hparams)$", re.IGNORECASE)
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


def is_zero(count: ast.expr, ctx: Context) -> bool:
    """Whether a variable number of workers is 0 by all that can be seen: what it is bound to, or the default of the
    command line's option.
    """
    if isinstance(count, ast.Attribute) and _ARGUMENTS.search(ctx.text(count.value)):
        defaults = set(_option_defaults(count.attr, ctx))
        if defaults:
            return defaults == {0}
    origins = ctx.inference.origins(count)
    return bool(origins) and all(is_constant(origin, 0) for origin in origins)


def _option_defaults(name: str, ctx: Context) -> Iterator[object]:
    """What the options called `name` in this file's or any other parser of the program are unless told otherwise."""
    for path in (ctx.path, *ctx.program.summaries):
        found = False
        for facts in ctx.program.summaries[path].functions.values():
            for call in facts.calls:
                if not (isinstance(call.func, str) and call.func.endswith("add_argument")):
                    continue
                names = [item[2] for item in call.args if isinstance(item, tuple) and item[0] == "const"]
                if any(isinstance(item, str) and item.lstrip("-").replace("-", "_") == name for item in names):
                    given = dict(call.keywords).get("default")
                    yield given[2] if isinstance(given, tuple) and given[0] == "const" else None
                    found = True
        if found and path == ctx.path:
            return


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
