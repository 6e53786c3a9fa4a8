"""TPL308: an evaluation that records a graph nobody walks back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from perflint.api import (
    Calls,
    Confidence,
    Context,
    Finding,
    Functions,
    Heat,
    Impact,
    Loops,
    Rule,
    Tag,
    callee_name,
)
from perflint.api.gradients import (
    asks_for_gradients,
    evaluated_by,
    evaluated_elsewhere,
    evaluating_forwards,
    evaluating_passes,
    evaluating_script,
    first_with_gradients,
    flagged_evaluation,
    goes_to_numpy,
    is_volatile,
    predicts,
    read_for_values,
    reads_by_data,
    reads_texts_alone,
    run_by_helper,
    stands_in_training,
    switches_itself,
    tells_of_modes,
    walks_back,
)
from perflint.api.names import EVALUATES, HOOK

from ._fixes.no_grad import switch_off

#: Calls that take the values out of a result.
_VALUE_READS = ("item", "tolist", "argmax", "multinomial", "topk", "max", "sample")
_AROUND = "Put `with torch.no_grad():` around this loop."


class GradInEvaluation(Rule):
    """An evaluation with gradients enabled records a graph and keeps activations for a backward pass that never runs.

    What it does

    Reports forward passes of evaluation code that run with gradients enabled and whose results reach no backward
    pass.

    Why is this slow?

    Each operation creates a graph node and keeps the tensors of its backward pass for as long as the output is alive.

    What to do

    Put `@torch.no_grad()` on the evaluation function, or `with torch.no_grad():` around its loop. `inference_mode` is
    no faster, and tensors created in it cannot take part in a later backward pass.

    Fix safety

    Safe if the callee is certainly a module, the function changes no attribute, returns only numbers, passes no
    tensor to a call that may keep it, makes no text from a tensor (`grad_fn=...` would disappear), and no file that
    it calls enables or queries gradients: same bits. Otherwise unsafe: a result may be needed with its graph, a
    module may keep what its forward makes, the program compiles, or a caller enables autocast. Attention, Transformer
    encoders and LSTMs of torch take another path in evaluation mode without gradients: results differ by rounding,
    and an encoder returns zeros for padded input.

    Not reported

    - Evaluations that need gradients: adversarial examples, saliency, guidance, forces and normals of a forward pass.
    - Functions whose callers all disable gradients, framework hooks that run without gradients, and results that are
      converted to numpy directly. `volatile=True` disables gradients only before PyTorch 0.4.

    Known limitations

    In a function that also trains, only loops and single forward passes after `model.eval()` are reported, loops after
    the training on the same model, and forward passes of a call whose constants rule the training out. In other
    functions and scripts, only passes over a loader after `model.eval()`, forward passes on every step whose results
    are read as values, methods such as `predict` that call `eval()` themselves, and functions whose callers or whose
    constructor call it, where none of them trains.

    Measured

    For a model of 8 MiB: 19 MiB of kept activations against none. The forward pass takes 1.6 to 2 times as long where
    overhead dominates, 1.1 times where arithmetic does (CPU, torch 2.13).

    References

    - `torch.no_grad`: https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    - Autograd mechanics, locally disabling gradient computation:
      https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disable-grad-doc
    """

    code, name = "TPL308", "grad-in-evaluation"
    impact = Impact.HIGH
    listens = (
        Functions(),
        Loops(),
        Calls("eval"),
        Calls("run_with_cache", "model", "forward", *_VALUE_READS, at_least=Heat.STEP),
    )

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if ctx.mentions("Variable") and is_volatile(ctx):
            return
        if isinstance(node, ast.Call):
            asked, reads = callee_name(node) == "eval", callee_name(node) in _VALUE_READS
            look = self._script if asked else self._read if reads else self._without_training
            yield from look(node, ctx)
            return
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            for read in reads_by_data(node, ctx):
                yield from self._read(read, ctx)
            return
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        said = list(self._in_function(node, ctx))
        yield from said or self._flagged(node, ctx)

    def _in_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, ctx: Context) -> Iterator[Finding]:
        if not tells_of_modes(node, ctx):
            models, least = evaluated_elsewhere(node, ctx)
            if models:
                yield from self._function(node, ctx, least, models)
            return
        if HOOK.search(node.name):
            return
        if EVALUATES.search(node.name):
            yield from self._function(node, ctx, Heat.EPOCH)
            return
        said = list(self._function(node, ctx, Heat.STEP)) if predicts(node) else []
        yield from said
        if not said:
            yield from self._loops(node, ctx)
            passes = list(self._passes(ctx.body(node), ctx))
            if passes and not ctx.program.trains(ctx.own_scope(node)):
                yield from passes

    def _tell(self, forward: ast.Call, ctx: Context, what: str, advice: str, **more: Any) -> Finding:
        return self.finding(forward, ctx, f"`{ctx.text(forward.func)}` {what}", advice=advice, **more)

    def _flagged(self, node: ast.FunctionDef | ast.AsyncFunctionDef, ctx: Context) -> Iterator[Finding]:
        """A function that trains or not, as a flag says, where a call says that it does not."""
        if found := flagged_evaluation(node, ctx):
            what = (
                f"records an autograd graph also where `{node.name}` evaluates: {found.call.path}:{found.call.line} "
                "rules out its backward pass."
            )
            yield self._tell(
                found.forward, ctx, what, "Put `with torch.no_grad():` around that call.", related=(found.call,)
            )

    def _script(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        """A script without functions, at the first model that it puts into evaluation mode."""
        if parts := evaluating_script(node, ctx):
            yield from self._passes(parts, ctx)
            yield from self._loops(ctx.tree.module, ctx)

    def _read(self, node: ast.expr, ctx: Context) -> Iterator[Finding]:
        """Forwards behind a read of values, whose results are never used for more than that."""
        for forward in read_for_values(node, ctx):
            what = "records an autograd graph, but only the values of its result are read."
            sure = Confidence.HIGH if ctx.kind(forward.func).tag is Tag.MODULE else Confidence.MEDIUM
            advice = "Run it under `with torch.no_grad():`."
            yield self._tell(forward, ctx, what, advice, impact=Impact.MEDIUM, confidence=sure)

    def _passes(self, parts: list[ast.AST], ctx: Context) -> Iterator[Finding]:
        """A pass over batches in code that does not train."""
        for forward in evaluating_passes(parts, ctx):
            if not switches_itself(forward, ctx, wholly=True):
                what = "runs in evaluation mode and records an autograd graph that no backward pass uses."
                yield self._tell(forward, ctx, what, _AROUND)

    def _without_training(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        """Forwards on text after text in a program that has no backward at all."""
        if reads_texts_alone(node, ctx):
            what = (
                f"{ctx.heat(node).phrase} and records an autograd graph; nothing in this program runs a backward pass."
            )
            advice = "Put `with torch.no_grad():` around the call and the code that reads its result."
            yield self._tell(node, ctx, what, advice, confidence=Confidence.MEDIUM)

    def _loops(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module, ctx: Context) -> Iterator[Finding]:
        """Loops that evaluate in a function or script that trains."""
        for forward in evaluating_forwards(node, ctx):
            inside = stands_in_training(forward, ctx)
            seldom = any(ctx.heat(loop) is Heat.PERIODIC for loop in ctx.loops(forward))
            what = "runs for evaluation and records an autograd graph that no backward pass uses."
            advice = "Run it under `with torch.no_grad():`." if inside else _AROUND
            yield self._tell(forward, ctx, what, advice, impact=Impact.MEDIUM if seldom else None)

    def _function(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        ctx: Context,
        at_least: Heat,
        switched: set[str] | None = None,
    ) -> Iterator[Finding]:
        """A function that evaluates what it, or who calls it, puts into evaluation mode."""
        parts = ctx.body(node)
        models = switched or {name for part in parts for name in evaluated_by(part)}
        if not models or asks_for_gradients(node) or walks_back(node, ctx):
            return
        forward = first_with_gradients(parts, models, ctx, at_least)
        advice = f"Put `@torch.no_grad()` on `{node.name}`."
        rest = f"records an autograd graph; `{node.name}` runs no backward pass."
        if forward is None:
            if call := run_by_helper(parts, models, ctx):  # `self._eval_step(batch)` in the loop of an evaluation
                yield self._tell(call, ctx, f"evaluates a model and {rest}", advice, confidence=Confidence.MEDIUM)
        elif not goes_to_numpy(forward, parts, ctx):
            fix = switch_off(node, forward, parts, ctx)
            yield self._tell(forward, ctx, f"runs for evaluation and {rest}", advice, fix=fix)
