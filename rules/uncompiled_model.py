"""TPL405: a training loop in a program that compiles nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Impact, Loops, Rule, Scope, Tier, callee_name, walk
from perflint.api.loops import names_in
from perflint.api.phases import BACKWARD, is_about_agents, is_training_loop, trains_one_layer

#: What a loop over optimizers calls, and nothing else.
_OF_OPTIMIZERS = frozenset(
    "step zero_grad update unscale_ items values keys range enumerate zip isinstance len".split()
)
#: How far a loss is looked for.
_STEPS_DOWN = 2
#: `True`, as summaries have it.
_ON = ("const", "bool", True)


class UncompiledModel(Rule):
    """The model of a training loop is never compiled, although `torch.compile` may make its steps faster.

    What it does

    Reports a training loop whose model no part of the program compiles.

    Why is this slow?

    In eager mode each small operation launches its own kernel and passes its result through memory. `torch.compile`
    fuses them. The gain depends on the model. Compilation takes 2 to 30 seconds, so it pays only for long runs.

    What to do

    Compile the whole model once, before the loop: `model.compile()`, or `model = torch.compile(model)` before it is
    passed to `DistributedDataParallel`. Measure some hundred steps with and without, after warm-up, and keep the
    faster form.

    Fix safety

    No fix: keys of the state dict may change, and the gain must be measured.

    Not reported

    - Programs that compile anything, under any option.
    - Agents whose networks have no convolutions.
    - Epochs of a single step, optimization of a few tensors, copies of the model made in each iteration, single
      layers.
    - Double backward.

    Known limitations

    The source does not prove a gain, so this rule is off by default. Tiny models, data-dependent control flow,
    changing shapes, hooks that come and go, unsupported devices, short runs and debugging gain nothing. If memory is
    short, `mode="reduce-overhead"` does not help: CUDA graphs keep more memory.

    Measured

    Compiled against eager: six MLP blocks 1.2 times faster, a pointwise chain on a million numbers 3.2 times faster,
    on ten thousand numbers 1.3 times slower, a single `nn.Linear(32)` 4.6 times slower (CPU, torch 2.13).

    References

    - `torch.compile`: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
    """

    code, name = "TPL405", "uncompiled-model"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Loops(*BACKWARD),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if ctx.program.whole.compiles or not is_training_loop(node, ctx) or _only_steps(node, ctx):
            return
        if _is_of_no_model(node, ctx) or trains_one_layer(node, ctx):
            return
        if _is_full_batch(node, ctx) or (is_about_agents(node, ctx) and not ctx.mentions("Conv1d", "Conv2d", "Conv3d")):
            return
        yield self.finding(
            node,
            ctx,
            "This loop trains a model that is never compiled. `torch.compile` may make its steps faster.",
            advice="Call `model.compile()` before the loop, and time some hundred steps with and without it.",
        )


def _only_steps(node: ast.AST, ctx: Context) -> bool:
    """Whether a loop does nothing but steps of optimizers: `for name in names: self.optims[name].step()`. A `step` of
    the project's own may do all there is.
    """
    body = [part for statement in getattr(node, "body", []) for part in walk(statement)]
    calls = [part for part in body if isinstance(part, ast.Call)]
    return bool(calls) and all(
        callee_name(call) in _OF_OPTIMIZERS and ctx.project_target(call.func) is None for call in calls
    )


def _is_of_no_model(node: ast.AST, ctx: Context) -> bool:
    """Whether what is optimized are some tensors, `Adam([delta], lr=0.1)`, or a copy of a model that each turn makes,
    or the backward is walked back again, which compiled code does not allow.
    """
    around = ctx.tree.function_of(node) or ctx.tree.module
    made = ctx.once(_optimizers_in, around)
    if made and all(part.args and _is_some_tensors(part.args[0]) for part in made):
        return True
    if any(_is_of_a_copy(part, node) for part in ctx.once(_optimizers_in, node)):
        return True
    return ctx.once(_is_walked_twice, around)


def _is_walked_twice(function: ast.AST, ctx: Context) -> bool:
    body = function.body  # type: ignore[attr-defined]
    return any(
        ("create_graph", _ON) in call.keywords
        for scope in _run_by(ctx.scope(body[0]), ctx)
        for call in ctx.program.function(scope).calls
    )


def _optimizers_in(region: ast.AST, ctx: Context) -> list[ast.Call]:
    return [part for part in walk(region) if isinstance(part, ast.Call) and _makes_optimizer(part, ctx)]


def _run_by(function: Scope, ctx: Context) -> Iterator[Scope]:
    """A function, what it calls, and what that calls: where the loss is made and walked back."""
    scopes = {function}
    for _ in range(_STEPS_DOWN):
        yield from scopes
        scopes = {edge.callee for scope in scopes for edge in ctx.program.graph.outgoing.get(scope, ())}
    yield from scopes


def _makes_optimizer(call: ast.Call, ctx: Context) -> bool:
    target = ctx.target(call.func) or ""
    return target.startswith("torch.optim.") and ".lr_scheduler." not in target and callee_name(call)[:1].isupper()


def _is_of_a_copy(made: ast.Call, loop: ast.AST) -> bool:
    """Whether an optimizer is for what the turn made: not the model of all turns, with another rate for each epoch."""
    bound = {part.id for part in walk(loop) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return bool(made.args) and not bound.isdisjoint(names_in(made.args[0]))


def _is_some_tensors(given: ast.expr) -> bool:
    return isinstance(given, ast.List) and all(isinstance(item, (ast.Name, ast.Attribute)) for item in given.elts)


def _is_full_batch(node: ast.AST, ctx: Context) -> bool:
    """Whether each epoch is a single step on all data there is: a few hundred of them do not pay for compiling."""
    if not isinstance(node, ast.For) or not re.search(r"range\(.*epochs\b", ctx.text(node.iter)):
        return False
    return not any(
        isinstance(part, (ast.For, ast.While)) or (isinstance(part, ast.Call) and callee_name(part) == "next")
        for statement in node.body
        for part in walk(statement)
    )
