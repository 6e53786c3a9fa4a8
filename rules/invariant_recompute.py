"""TPL506: work in a loop whose inputs never change there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    INSTANCE,
    Confidence,
    Context,
    Finding,
    Heat,
    Impact,
    Loops,
    Rule,
    Scope,
    Tag,
    callee_name,
    is_constant,
    last,
    last_name,
    tensors,
    walk,
)
from perflint.api.gradients import CHANGES, DRAWS, arguments, is_forward, is_given_counts
from perflint.api.invariants import is_fixed, is_touched, objects_in, writes_data
from perflint.api.loops import (
    is_between_clocks,
    is_for_one_turn,
    is_forever,
    is_timing,
    names_in,
    starts_afresh,
    trains_inside,
)
from perflint.api.names import DRAWS_SAMPLES
from perflint.api.words import short_call

_MODELS = (
    "model",
    "teacher",
    "encoder",
    "net",
    "network",
    "text_encoder",
    "base_model",
    "ref_model",
    "reference_model",
)
_MAKERS = ("meshgrid", "linspace", "arange", "outer", "logspace", "tril_indices", "triu_indices")
#: What a forward does that only gives a parameter another shape.
_SHAPING = tensors.VIEW_METHODS | tensors.CAST_METHODS | {"repeat", "size", "to", "clone"}
#: The tables and decompositions of torch that are worth keeping.
_KEPT = frozenset(name for name in tensors.COSTLY_FUNCTIONS if last(name) in ("meshgrid", "eigh", "svd", "pinv"))
_COUNTING = ("range", "trange")


class InvariantRecompute(Rule):
    """A forward pass of an unchanged model, or another expensive pure call, repeats in a loop with the same inputs.

    What it does

    Reports forward passes without gradients, grids and position tables, and decompositions in a loop that changes
    none of their inputs.

    Why is this slow?

    The result is the same in every iteration. A search loop that compares each candidate with the unchanged original
    spends half of its forward passes on the original.

    What to do

    Compute it once before the loop and keep the result; on the host, if the loop needs the device memory.

    Fix safety

    No fix: the source does not prove that a call is pure.

    Not reported

    - Models that the loop trains or changes, and inputs that the loop sets.
    - Calls with dropout or sampling, and models that receive only a count and draw the rest.
    - Warm-up and timing loops, loops over seeds and trials.
    - Cheap calls, attribute reads, and functions of weights that are being trained.

    References

    - `torch.no_grad`: https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    """

    code, name = "TPL506", "invariant-recompute"
    impact = Impact.MEDIUM
    listens = (Loops(*_MODELS, *_MAKERS, "eigh", "svd", "inv", "pinv"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        if is_forever(node) or starts_afresh(node):
            return
        if _only_repeats(node):
            return
        # Most calls train, and most others depend on what the loop sets, which costs less to see than what they call.
        calls = [
            call
            for call in _calls(node, ctx)
            if _may_be_worth_it(call, ctx)
            and _is_unchanging(call, node, ctx)
            and not _is_cheap(call, ctx)
            and not is_for_one_turn(call, node, ctx)
        ]
        calls = [
            call
            for call in calls
            if not (
                is_given_counts(ctx.text(call.func), arguments(call), ctx)
                or _draws_anew(call, node, ctx)
                or _takes_samples(call, node, ctx)
                or _is_summed_up(call, node, ctx)
                or _hands_on_a_parameter(call, ctx)
            )
        ]
        if not calls or trains_inside(node, ctx) or is_timing(node) or is_between_clocks(node, ctx):
            return
        for call in calls:
            certain = is_forward(call, ctx)
            yield self.finding(
                call,
                ctx,
                f"`{short_call(call, ctx)}` is computed in every iteration of this loop, but its inputs never change.",
                advice="Compute it once before the loop and reuse the result.",
                confidence=None if certain else Confidence.MEDIUM,
                related=(ctx.hop(node, "the loop"),),
            )


def _calls(loop: ast.For | ast.AsyncFor | ast.While, ctx: Context) -> Iterator[ast.Call]:
    """Calls of the loop's own body whose result is bound or used; those of inner loops are judged there."""
    for statement in loop.body:
        for part in ctx.walk(statement):
            if isinstance(part, ast.Call) and ctx.loops(part)[:1] == [loop] and arguments(part):
                parent = ctx.tree.parent(part)
                if not isinstance(parent, (ast.Expr, ast.Return)) and not _is_thrown_away(parent):
                    yield part


def _only_repeats(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """`for _ in range(3): y = run(x)`: done again for its own sake, to warm up or to be timed by hand."""
    if isinstance(loop, ast.While) or len(loop.body) != 1:
        return False
    statement, turns = loop.body[0], loop.iter
    return (
        isinstance(turns, ast.Call)
        and callee_name(turns) == "range"
        and all(isinstance(item, ast.Constant) for item in turns.args)
        and isinstance(statement, ast.Assign)
        and all(isinstance(target, (ast.Name, ast.Tuple)) for target in statement.targets)
    )


def _draws_anew(call: ast.Call, loop: ast.AST, ctx: Context) -> bool:
    """Whether the model was last switched to training before the loop: dropout draws anew in each forward."""
    names = {name for item in [call.func, *arguments(call)] for name in names_in(item)}
    function = ctx.tree.function_of(loop) or ctx.tree.module
    switches = [
        part
        for part in walk(function)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in ("train", "eval")
        and isinstance(part.func.value, ast.Name)
        and part.func.value.id in names
        and part.lineno < getattr(loop, "lineno", 0)
    ]
    last = max(switches, key=lambda part: part.lineno, default=None)
    return last is not None and callee_name(last) == "train" and not any(is_constant(arg, False) for arg in last.args)  # noqa: FBT003


def _takes_samples(call: ast.Call, loop: ast.stmt, ctx: Context) -> bool:
    """Whether a loop runs a model as often as samples are wanted, `for _ in range(n_samples)`: it draws in its forward,
    or nobody would.
    """
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or callee_name(loop.iter) not in _COUNTING:
        return False
    if not any(DRAWS_SAMPLES.search(name) for item in loop.iter.args for name in names_in(item)):
        return False
    return is_forward(call, ctx) or _runs_a_model(call, ctx)


def _is_summed_up(call: ast.Call, loop: ast.AST, ctx: Context) -> bool:
    """Whether the loop adds up what the model gives, `loss = model(x); total += loss.item()`, and nothing else that
    changes: nobody adds the same number again and again, so the model draws something.
    """
    statement = ctx.tree.statement_of(call)
    name = ""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
    added = [
        names_in(part.value)
        for part in walk(loop)
        if isinstance(part, ast.AugAssign) and (part is statement or name in names_in(part.value))
    ]
    if not added:
        return False
    changing = {part.id for part in walk(loop) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return any((changing - {name}).isdisjoint(names) for names in added)


def _hands_on_a_parameter(call: ast.Call, ctx: Context) -> bool:
    """Whether the forward that is called only gives a parameter another shape: there is nothing to save."""
    for ref in ctx.refs(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else ():
        if ref.kind != INSTANCE or ref.path not in ctx.program.summaries:
            return False
        facts = ctx.program.summaries[ref.path].functions.get(f"{ref.name}.forward")
        return facts is not None and all(last_name(item.func) in _SHAPING for item in facts.calls)
    return False


def _is_thrown_away(parent: ast.AST | None) -> bool:
    return isinstance(parent, ast.Assign) and all(getattr(target, "id", "") == "_" for target in parent.targets)


def _may_be_worth_it(call: ast.Call, ctx: Context) -> bool:
    """Whether a call runs without gradients, or is worth keeping whatever it is: all others are cheap."""
    return ctx.grad_off(call) or ctx.target(call.func) in _KEPT or _runs_a_model(call, ctx)


def _is_cheap(call: ast.Call, ctx: Context) -> bool:
    """Whether the call is none of those worth keeping: a forward without gradients, a table, a decomposition."""
    if is_forward(call, ctx):
        return not ctx.grad_off(call)
    target = ctx.target(call.func)
    if target is not None:
        return ctx.heat(call) < Heat.STEP or target not in _KEPT
    return not _runs_a_model(call, ctx)


def _runs_a_model(call: ast.Call, ctx: Context) -> bool:
    """Whether a function of the project runs a model that it is given, without gradients and without chance."""
    ref = ctx.project_target(call.func)
    if ref is None or ref.kind != "function":
        return False
    scope = Scope(ref.path, ref.name)
    facts = ctx.program.function(scope)
    if facts.is_generator or not facts.returns:
        return False
    names = {param.name for param in facts.params}
    runs = False
    for item in facts.calls:
        dotted = item.func if isinstance(item.func, str) else ""
        if dotted.rpartition(".")[2] in DRAWS | CHANGES:
            return False
        if dotted in names and _is_given_module(dotted, call, facts.params, ctx):
            runs = runs or ctx.program.grad_off(scope, item.context)
    return runs and not ctx.program.trains(scope)


def _is_given_module(name: str, call: ast.Call, params: tuple[object, ...], ctx: Context) -> bool:
    """Whether the argument passed for a parameter is a module."""
    ordered = [getattr(param, "name", "") for param in params]
    position = ordered.index(name)
    given = next((item.value for item in call.keywords if item.arg == name), None)
    if given is None and position < len(call.args):
        given = call.args[position]
    if given is None or isinstance(given, ast.Starred):
        return False
    kind = ctx.kind(given)
    return kind.tag is Tag.MODULE or (not kind.known and ctx.text(given).rpartition(".")[2].endswith("model"))


def _is_unchanging(call: ast.Call, loop: ast.stmt, ctx: Context) -> bool:
    """Whether nothing the call depends on is set, changed or handed to others in the loop."""
    given = arguments(call)
    if not all(is_fixed(item, loop, ctx) for item in given):
        return False
    if is_forward(call, ctx):
        given = [*given, call.func]
        if not is_fixed(call.func, loop, ctx):
            return False
    if any(writes_data(part) for part in walk(loop)):
        return False
    return not is_touched({name for item in given for name in objects_in(item)}, call, loop, ctx)
