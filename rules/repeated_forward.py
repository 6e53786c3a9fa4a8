"""TPL505: the same forward run twice in one function."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Functions, Impact, Rule, arguments_of, callee_name
from perflint.api.gradients import (
    Behind,
    forward_behind,
    is_forward,
    is_given_counts,
    is_method_of_values,
    may_evaluate,
    only_evaluates,
    runs_every_turn,
)
from perflint.api.invariants import (
    comes_before,
    is_switched_between,
    is_thrown_away,
    managers_around,
    meaning_of,
    means_the_same,
)
from perflint.api.loops import is_for_one_turn, is_forever, is_timing, starts_afresh, trains_inside

_DEEP = 4
_LOOPS = frozenset({ast.For, ast.AsyncFor, ast.While})


class RepeatedForward(Rule):
    """The same module runs twice on the same input in one function or its helper, with gradients off.

    What it does

    Reports a second forward pass of a module on an unchanged input, under `no_grad` and in evaluation mode.

    Why is this slow?

    The forward pass is the most expensive operation of evaluation code. The second pass gives the same result.

    What to do

    Keep the first result and use it twice. If different layers are needed, take all of them from one run, with a
    filter of the needed names: a helper that runs the model and returns one layer runs it once per layer of the
    caller's loop.

    Fix safety

    No fix: the source does not prove that a module returns the same result twice.

    Not reported

    - Results that may differ: dropout on, batch statistics that are updated, augmentation, contrastive views, the
      second pass of sharpness-aware optimizers, adapters, hooks or weights changed in between.
    - Code that measures time.
    - Functions that do not disable gradients or set evaluation mode.
    - Helpers whose forward pass depends on parameters or attributes that perflint cannot determine.

    References

    - `torch.no_grad`: https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    """

    code, name = "TPL505", "repeated-forward"
    impact = Impact.HIGH
    listens = (Functions("no_grad", "inference_mode", "run_with_cache", "eval"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if not may_evaluate(node, ctx):
            return
        body = ctx.body(node)
        calls = [part for part in body if part.__class__ is ast.Call and _may_run(part)]
        twice = _written_twice(calls, node, ctx)
        looped = []
        if any(part.__class__ in _LOOPS for part in body):
            looped = [call for call in calls if ctx.loops(call) and not is_thrown_away(call, ctx)]
        found = [finding for call in looped for finding in self._on_every_turn(call, ctx)]
        found += self._once_more(twice, node, ctx)
        if found and not is_timing(node):
            yield from found

    def _once_more(self, twice: list[ast.Call], function: ast.stmt, ctx: Context) -> Iterator[Finding]:
        runs = [(run, forward_behind(run, ctx)) for run in twice]
        runs = [(run, behind) for run, behind in runs if behind is not None or _is_costly(run, ctx)]
        runs.sort(key=lambda item: (item[0].lineno, item[0].col_offset))
        told: set[str] = set()
        for (first, _), (second, behind) in itertools.combinations(runs, 2):
            meant = meaning_of(second, ctx)
            if meant in told or not _is_same(first, second, behind, function, ctx):
                continue
            told.add(meant)
            again = "again" if behind is None else f"again, in `{behind.func}`"
            yield self.finding(
                second,
                ctx,
                (
                    f"`{ctx.text(second)}` runs the same forward pass {again}: line {first.lineno} already has the "
                    "result."
                ),
                advice=f"Reuse the result of line {first.lineno}.",
                confidence=None if behind is None and ctx.grad_off(second) else Confidence.MEDIUM,
                related=(ctx.hop(first, "first run here"), *(() if behind is None else (behind.place,))),
            )

    def _on_every_turn(self, call: ast.Call, ctx: Context) -> Iterator[Finding]:
        """A function that runs the same forward on every turn, and does something else with its result each time."""
        loop = ctx.loops(call)[0]
        if is_forever(loop) or starts_afresh(loop):
            return
        behind = forward_behind(call, ctx)
        if behind is None or not runs_every_turn(call, behind, loop, ctx) or trains_inside(loop, ctx):
            return
        if is_for_one_turn(call, loop, ctx) or is_given_counts(behind.func, behind.arguments, ctx):
            return
        yield self.finding(
            call,
            ctx,
            f"`{ctx.text(call)}` runs the forward pass of `{behind.func}` in every iteration with unchanged inputs.",
            advice=f"Run `{behind.func}` once before the loop, and read what each iteration needs from its result.",
            confidence=Confidence.MEDIUM,
            related=(ctx.hop(loop, "the loop"), behind.place),
        )


def _is_costly(run: ast.Call, ctx: Context) -> bool:
    """Whether a module is run that does more than look rows up in a table."""
    return is_forward(run, ctx) and ctx.target(run.func) != "torch.nn.Embedding"


def _may_run(call: ast.Call) -> bool:
    """Whether the text alone leaves it open that a model is run."""
    func = call.func
    if not isinstance(func, (ast.Name, ast.Attribute)) or not (call.args or call.keywords):
        return False
    return not is_method_of_values(func)


def _written_twice(calls: list[ast.Call], function: ast.stmt, ctx: Context) -> list[ast.Call]:
    """The calls that stand in the function once more, as text: no other is asked what it calls."""
    names = [callee_name(call) for call in calls]
    calls = _repeated(calls, names)
    calls = _repeated(calls, [_shape(call, ctx) for call in calls])
    calls = [call for call in calls if not is_thrown_away(call, ctx)]
    # Nearly all are trained on, which costs less to see than what they are given.
    if not any(only_evaluates(call, function, ctx) or forward_behind(call, ctx) for call in calls):
        return []
    return _repeated(calls, [meaning_of(call, ctx) for call in calls]) if len(calls) > 1 else []


def _repeated(calls: list[ast.Call], words: list[str]) -> list[ast.Call]:
    """The calls of which others have the same word."""
    times = Counter(words)
    return [call for call, word in zip(calls, words) if times[word] > 1]


def _shape(call: ast.Call, ctx: Context) -> str:
    """What is the same of two calls that mean the same, whatever the names stand for that they are given."""
    parts = ["" if isinstance(item, ast.Name) else ctx.text(item) for item in arguments_of(call)]
    return f"{ctx.text(call.func)}({', '.join(parts)})"


def _is_same(first: ast.Call, second: ast.Call, behind: Behind | None, function: ast.stmt, ctx: Context) -> bool:
    """Whether both give the same: same text and meaning, on one way through the code, and nothing switched between."""
    if meaning_of(first, ctx) != meaning_of(second, ctx):
        return False
    if behind is None and not all(only_evaluates(run, function, ctx) for run in (first, second)):
        return False
    if not comes_before(first, second, ctx) or managers_around(first, ctx) != managers_around(second, ctx):
        return False
    pairs = zip([first.func, *arguments_of(first)], [second.func, *arguments_of(second)])
    if not all(means_the_same(one, other, ctx, _DEEP) for one, other in pairs):
        return False
    model, given = (ctx.text(second.func), arguments_of(second)) if behind is None else (behind.func, behind.arguments)
    return not (is_switched_between(first, second, behind, function, ctx) or is_given_counts(model, given, ctx))
