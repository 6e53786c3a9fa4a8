"""TPL503: the same model built or loaded again on every turn of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule, callee_name, last, modules
from perflint.api.aliases import is_kept_object
from perflint.api.invariants import has_constant_inputs, has_same_inputs, is_of_new_object
from perflint.api.layers import LAYERS_WITH_WEIGHTS, builds_model
from perflint.api.loops import drains, is_timing, starts_afresh, trains_inside, tries_until
from perflint.api.words import short_call

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
            *LAYERS_WITH_WEIGHTS,
            *_BUILDERS,
            repeated=True,
        ),
    )

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        loops = ctx.loops(node)
        hot = ctx.heat(node) >= Heat.STEP
        if (not loops and not hot) or (callee_name(node) in LAYERS_WITH_WEIGHTS and not hot):
            return
        if ctx.guards(node) or is_kept_object(node, ctx) or not builds_model(node, ctx):
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
