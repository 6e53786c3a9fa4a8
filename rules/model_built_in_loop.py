"""TPL503: the same model built or loaded again on every turn of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    FUNCTION,
    INSTANCE,
    Calls,
    Confidence,
    Context,
    Finding,
    Heat,
    Impact,
    Rule,
    Scope,
    Tag,
    callee_name,
    last,
    last_of,
    modules,
)
from perflint.api.aliases import is_kept_object
from perflint.api.invariants import has_constant_inputs, has_same_inputs, is_of_new_object
from perflint.api.loops import drains, is_timing, starts_afresh, trains_inside, tries_until
from perflint.api.words import short_call

#: Modules of torch.nn whose weights are filled at construction.
_LAYERS = (
    "Linear",
    "Bilinear",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose2d",
    "Embedding",
    "LSTM",
    "GRU",
    "MultiheadAttention",
    "TransformerEncoderLayer",
    "TransformerEncoder",
    "TransformerDecoderLayer",
)
_BUILDERS = (
    "build_model",
    "make_model",
    "get_model",
    "load_model",
    "create_model",
    "init_model",
    "build_network",
    "load_network",
)

#: What only asks what something is, or takes it off what holds it.
_ASKING = frozenset(
    "isinstance issubclass type hasattr getattr len bool super is_parallel is_dist_avail_and_initialized".split()
)


class ModelBuiltInLoop(Rule):
    """The same model is built, or read from disk, again on every iteration of a loop.

    What it does

    Reports module constructors and `from_pretrained` in a loop, with arguments that do not change.

    Why is this slow?

    Building a module fills its weights with random numbers, which are overwritten if weights are loaded next.
    `from_pretrained` also reads the checkpoint.

    What to do

    Build it once before the loop. If the loop changes the weights, keep a copy of the state dict and load it at the
    start of each iteration with `strict=True`: with `strict=False`, missing keys silently keep the weights of the
    previous iteration. If weights are loaded anyway, build under `torch.device("meta")` and load with `assign=True`.
    A checkpoint opens faster with `torch.load(..., mmap=True)`.

    Fix safety

    No fix: random numbers would be drawn in another order, and state would carry over between iterations.

    Not reported

    - Folds, seeds, trials, ensembles and hyperparameter searches, which need a new model each time.
    - A different model in each iteration.
    - Loops that train what they build, or that empty a list, as checkpoint hooks do.
    - Layers built in `__init__`, lazy construction, and retries after an error.

    Measured

    `nn.Linear(2048, 2048)` takes 29 ms to build, as long as 42 of its forward passes; `torch.nn.utils.skip_init` 0.25
    ms, `device="meta"` 0.09 ms (CPU).

    References

    - `torch.nn.utils.skip_init`: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.skip_init.html
    - `torch.load`: https://docs.pytorch.org/docs/stable/generated/torch.load.html
    """

    code, name = "TPL503", "model-built-in-loop"
    impact = Impact.HIGH
    listens = (
        Calls(
            *modules.FACTORY_METHODS,
            *(last(name) for name in modules.MODULE_FACTORIES),
            *_LAYERS,
            *_BUILDERS,
            repeated=True,
        ),
    )

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        loops = ctx.loops(node)
        hot = ctx.heat(node) >= Heat.STEP
        if (not loops and not hot) or (callee_name(node) in _LAYERS and not hot):
            return
        if ctx.guards(node) or is_kept_object(node, ctx) or not _builds(node, ctx):
            return
        if loops:
            if not has_same_inputs(node, loops[0], ctx) or starts_afresh(loops[0]) or tries_until(loops[0]):
                return
            if is_timing(loops[0]) or (not hot and (trains_inside(loops[0], ctx) or drains(loops[0]))):
                return
            often = ctx.heat(node).phrase if hot else "runs in every iteration"
        else:
            if not has_constant_inputs(node, ctx) or is_of_new_object(node, ctx):
                return
            often = ctx.heat(node).phrase
        reads = callee_name(node) in modules.FACTORY_METHODS - {"from_config"} or callee_name(node).startswith("load")
        yield self.finding(
            node,
            ctx,
            f"`{short_call(node, ctx)}` {often} with the same arguments and {'reads' if reads else 'builds'} the "
            "same model each time.",
            advice=(
                "Build it once before the loop. If an iteration changes its weights, load a kept state dict "
                "with `strict=True`."
            ),
            confidence=None if loops else Confidence.MEDIUM,
        )


def _builds(node: ast.Call, ctx: Context) -> bool:
    """Whether the call makes a module that costs: a checkpoint's, a factory's, or a layer with weights."""
    target = ctx.target(node.func)
    if target is not None:
        if modules.is_torch_module(target):
            return last(target) in _LAYERS
        return modules.makes_module(target)
    project = ctx.project_target(node.func)
    if project is None:
        return False
    if project.kind == FUNCTION and _only_hands_over(Scope(project.path, project.name), ctx):
        return False
    return project.kind != INSTANCE and ctx.kind(node).tag is Tag.MODULE and callee_name(node) not in _LAYERS


def _only_hands_over(scope: Scope, ctx: Context) -> bool:
    """Whether a function calls nothing that could build: `get_model` gives back the one that is there, unwrapped."""
    return all(last_of(call.func) in _ASKING for call in ctx.program.function(scope).calls)
