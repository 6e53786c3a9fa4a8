"""TPL505: the same forward run twice in one function."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator

from perflint.api import Confidence, Context, Finding, Functions, Impact, Rule, Scope, callee_name, walk
from perflint.api.gradients import (
    FORWARD_METHODS,
    Behind,
    arguments,
    forward_behind,
    is_changed,
    is_forward,
    is_given_counts,
    is_method_of_values,
    is_pure,
    runs_every_turn,
)
from perflint.api.invariants import writes_data
from perflint.api.loops import is_for_one_turn, is_forever, is_timing, names_in, starts_afresh, trains_inside

_SWITCHES = frozenset(
    "train load_state_dict step update fuse quantize disable_adapter enable_adapter set_adapter merge_adapter apply "
    "register_forward_hook add_hook reset_hooks remove unload prune half float requires_grad_ backward dropout "
    "enable_dropout seed manual_seed disable_adapters enable_adapters copy_ mul_ add_ data".split()
)
_DEEP = 4
_LOOPS = frozenset({ast.For, ast.AsyncFor, ast.While})
_NESTING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


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
        if not _may_evaluate(node, ctx):
            return
        body = ctx.body(node)
        calls = [part for part in body if part.__class__ is ast.Call and _may_run(part)]
        twice = _written_twice(calls, node, ctx)
        looped = []
        if any(part.__class__ in _LOOPS for part in body):
            looped = [call for call in calls if ctx.loops(call) and not _is_thrown_away(call, ctx)]
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
            meant = _meant(second, ctx)
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


def _may_evaluate(function: ast.FunctionDef | ast.AsyncFunctionDef, ctx: Context) -> bool:
    """Whether anything runs without gradients or in evaluation mode in a function, or in one that it calls: told by
    summaries, so that nothing of most functions is looked at.
    """
    if ctx.program.mentions(("run_with_cache",)) or any(isinstance(item, _NESTING) for item in function.body):
        return True
    scope = ctx.own_scope(function)
    words = ctx.program.function(scope).identifiers  # empty in nested functions
    if not words or "eval" in words or _switches_off(scope, ctx):
        return True
    return any(_switches_off(edge.callee, ctx) for edge in ctx.program.graph.outgoing.get(scope, ()))


def _switches_off(scope: Scope, ctx: Context) -> bool:
    """Whether gradients are off in a function or in some of it."""
    contexts = ctx.program.function(scope).contexts
    return any(item.kind == "no_grad" for item in contexts) or ctx.program.grad_off(scope)


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
    calls = [call for call in calls if not _is_thrown_away(call, ctx)]
    # Nearly all are trained on, which costs less to see than what they are given.
    if not any(_only_evaluates(call, function, ctx) or forward_behind(call, ctx) for call in calls):
        return []
    return _repeated(calls, [_meant(call, ctx) for call in calls]) if len(calls) > 1 else []


def _repeated(calls: list[ast.Call], words: list[str]) -> list[ast.Call]:
    """The calls of which others have the same word."""
    times = Counter(words)
    return [call for call, word in zip(calls, words) if times[word] > 1]


def _shape(call: ast.Call, ctx: Context) -> str:
    """What is the same of two calls that mean the same, whatever the names stand for that they are given."""
    parts = ["" if isinstance(item, ast.Name) else ctx.text(item) for item in arguments(call)]
    return f"{ctx.text(call.func)}({', '.join(parts)})"


def _meant(call: ast.Call, ctx: Context) -> str:
    """A call as text, with the names of its arguments read as what they were made by: `model(tokenize(text))`."""
    parts = [ctx.text(_made_by(item, ctx) or item) for item in call.args]
    parts += [f"{item.arg}={ctx.text(_made_by(item.value, ctx) or item.value)}" for item in call.keywords]
    return f"{ctx.text(call.func)}({', '.join(parts)})"


def _made_by(node: ast.expr, ctx: Context) -> ast.Call | None:
    """The call that a name was set to, where it gives the same for the same arguments."""
    found = ctx.inference.flow.definitions(node) if isinstance(node, ast.Name) else ()
    if len(found) != 1 or found[0].path or not isinstance(found[0].node, ast.Assign):
        return None
    value = found[0].value
    return value if isinstance(value, ast.Call) and is_pure(value, ctx) else None


def _is_thrown_away(call: ast.Call, ctx: Context) -> bool:
    """Whether nobody uses the result: a warm-up."""
    parent = ctx.tree.parent(call)
    if isinstance(parent, ast.Assign):
        return all(isinstance(target, ast.Name) and target.id == "_" for target in parent.targets)
    return isinstance(parent, ast.Expr)


def _is_same(first: ast.Call, second: ast.Call, behind: Behind | None, function: ast.stmt, ctx: Context) -> bool:
    """Whether both give the same: same text and meaning, on one way through the code, and nothing switched between."""
    if _meant(first, ctx) != _meant(second, ctx):
        return False
    if behind is None and not all(_only_evaluates(run, function, ctx) for run in (first, second)):
        return False
    if not _comes_before(first, second, ctx) or _withs(first, ctx) != _withs(second, ctx):
        return False
    pairs = zip([first.func, *arguments(first)], [second.func, *arguments(second)])
    if not all(_means_the_same(one, other, ctx, _DEEP) for one, other in pairs):
        return False
    model, given = (ctx.text(second.func), arguments(second)) if behind is None else (behind.func, behind.arguments)
    return not (_is_switched(first, second, behind, function, ctx) or is_given_counts(model, given, ctx))


def _only_evaluates(call: ast.Call, function: ast.stmt, ctx: Context) -> bool:
    """Whether the result is looked at and not trained on: gradients off, an analysis call, or evaluation mode."""
    if ctx.grad_off(call) or callee_name(call) == "run_with_cache":
        return True
    model = ctx.text(call.func)
    evaluates = any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr == "eval"
        and ctx.text(part.func.value) == model
        for statement in ctx.tree.naming(("eval",), function, called=("eval",))
        for part in ctx.tree.own(statement)
    )
    return evaluates and not ctx.program.trains(ctx.scope(call))


def _comes_before(first: ast.Call, second: ast.Call, ctx: Context) -> bool:
    """Whether the first has always run when the second does: before it, or in a loop before it that always turns."""
    graph, loop = ctx.control_flow(second), next(iter(ctx.loops(first)), None)
    if graph.dominates(first, second):
        return True
    if loop is None or loop in ctx.loops(second) or not _always_turns(loop) or not graph.dominates(loop, second):
        return False
    return not any(loop in ctx.loops(test) for test, _ in ctx.conditions(first))


def _always_turns(loop: ast.stmt) -> bool:
    """Whether a loop is over what is written there, so that its body has run when it is over."""
    return isinstance(loop, ast.For) and isinstance(loop.iter, (ast.List, ast.Tuple)) and bool(loop.iter.elts)


def _withs(node: ast.AST, ctx: Context) -> list[str]:
    """The context managers around a call but those that only switch gradients or precision."""
    found = []
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            texts = [ctx.text(item.context_expr) for item in outer.items]
            found += [text for text in texts if "no_grad" not in text and "inference_mode" not in text]
    return found


def _means_the_same(one: ast.expr, other: ast.expr, ctx: Context, depth: int) -> bool:
    """Whether two expressions have the same value, seen through names set twice to the same."""
    if ctx.text(one) != ctx.text(other):
        left, right = _made_by(one, ctx), _made_by(other, ctx)
        if left is None or right is None or depth == 0 or ctx.text(left) != ctx.text(right):
            return False
        return _means_the_same(left, right, ctx, depth - 1)
    mine = [part for part in walk(one) if isinstance(part, ast.Name)]
    theirs = [part for part in walk(other) if isinstance(part, ast.Name)]
    for part in walk(one):
        if isinstance(part, ast.Call) and not is_pure(part, ctx):
            return False
    return all(_name_means_the_same(left, right, ctx, depth) for left, right in zip(mine, theirs))


def _name_means_the_same(left: ast.Name, right: ast.Name, ctx: Context, depth: int) -> bool:
    flow = ctx.inference.flow
    first, second = flow.definitions(left), flow.definitions(right)
    if {id(item) for item in first} == {id(item) for item in second}:
        return True
    if depth == 0 or len(first) != 1 or len(second) != 1:
        return False
    one, other = first[0], second[0]
    if not (isinstance(one.node, ast.Assign) and isinstance(other.node, ast.Assign)) or one.path or other.path:
        return False
    if one.value is None or other.value is None or ctx.text(one.value) != ctx.text(other.value):
        return False
    return _means_the_same(one.value, other.value, ctx, depth - 1)


def _is_switched(first: ast.Call, second: ast.Call, behind: Behind | None, function: ast.stmt, ctx: Context) -> bool:
    """Whether anything between the two may change the module or its input."""
    start, end = (first.end_lineno or 0, first.end_col_offset or 0), (second.lineno, second.col_offset)
    own = set(names_in(first.func if behind is None or behind.model is None else behind.model))
    given = {part.id for item in arguments(first) for part in walk(item) if isinstance(part, ast.Name)}
    for part in walk(function):
        if not isinstance(part, (ast.expr, ast.stmt)) or not start <= (part.lineno, part.col_offset) < end:
            continue
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _SWITCHES:
            return True
        if writes_data(part):
            return True
        if isinstance(part, ast.Call) and not is_forward(part, ctx) and own & set(_passed(part)):
            return True
        if isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, ast.Store):
            if set(names_in(part)) & given or _is_part_of_model(part, first, behind, ctx):
                return True
        if isinstance(part, ast.AugAssign) and set(names_in(part.target)) & given:
            return True
    return False


def _is_part_of_model(stored: ast.expr, run: ast.Call, behind: Behind | None, ctx: Context) -> bool:
    """Whether what is stored to is the model, a part of it, or what holds it: `holder.model` is not `holder.other`."""
    if behind is not None:
        return is_changed(run, behind, [stored], ctx)
    while isinstance(stored, ast.Subscript):
        stored = stored.value
    func = run.func
    model = func.value if isinstance(func, ast.Attribute) and func.attr in FORWARD_METHODS else func
    one, other = f"{ctx.text(stored)}.", f"{ctx.text(model)}."
    return one.startswith(other) or (other.startswith(one) and one != "self.")


def _passed(call: ast.Call) -> Iterator[str]:
    """Names a call is given; a method's receiver is none."""
    for item in arguments(call):
        if isinstance(item, (ast.Name, ast.Attribute)):
            yield from names_in(item)
