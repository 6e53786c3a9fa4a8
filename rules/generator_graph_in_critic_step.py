"""TPL315: a discriminator's step that runs the backward pass of the generator, too."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Context, Finding, Fix, Heat, Impact, Rule, callee_name, walk
from perflint.api.gradients import is_model_call

#: Values that are followed from a loss back to the forwards that it is computed from.
_MOST_VALUES = 64
_BACKWARD = frozenset({"backward", "manual_backward"})


class GeneratorGraphInCriticStep(Rule):
    """The loss of a discriminator reaches the generator's graph, whose gradients its optimizer does not use.

    What it does

    Reports a discriminator's forward of a generator's output that is not detached, where the optimizer that steps
    after the backward pass holds no parameter of the generator.

    Why is this slow?

    The backward pass goes through the discriminator and on through the whole generator. The gradients it leaves in the
    generator are set to zero before the generator's own step. The generator's activations stay in memory until then.

    What to do

    Pass `fake.detach()` to the discriminator in its own step, or compute `fake` under `torch.no_grad()` there.

    Fix safety

    Unsafe: gradients that this step left in the generator, and that were not set to zero, are gone.

    Not reported

    - Steps after which an optimizer of both, or one whose parameters are not plain to see, steps.
    - Inputs that are detached, or computed without gradients.
    - Inputs of `torch.autograd.grad`, and forwards that the generator's own loss uses as well.

    References

    - `torch.Tensor.detach`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
    - DCGAN tutorial: https://docs.pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html
    """

    code, name = "TPL315", "generator-graph-in-critic-step"
    impact = Impact.HIGH
    numerics = "same bits for the discriminator"
    listens = (Calls(*sorted(_BACKWARD)),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        trained = _trained_after(node, ctx)
        if not trained:
            return
        for forward, given in _forwards_behind(node, trained, ctx):
            maker = _maker(given, ctx)
            if maker is None or ctx.grad_off(maker) or ctx.text(maker.func) in trained:
                continue
            if _is_differentiated(given, node, ctx) or _is_walked_again(forward, node, ctx):
                continue
            name = ctx.text(given)
            yield self.finding(
                given,
                ctx,
                f"This loss runs its backward pass through `{ctx.text(maker.func)}`, whose gradients this step does "
                f"not use; it {ctx.heat(node).phrase}.",
                advice=f"Pass `{name}.detach()` to `{ctx.text(forward.func)}`.",
                fix=Fix(
                    f"Detach `{name}`",
                    Applicability.UNSAFE,
                    (ctx.edit.replace(given, f"{ctx.tree.text(given)}.detach()"),),
                    reason="this step would no longer leave gradients in the generator",
                ),
                related=(ctx.hop(maker, "the graph begins here"), ctx.hop(node, "the backward pass")),
            )


def _trained_after(node: ast.Call, ctx: Context) -> set[str]:
    """The modules whose parameters are stepped after a backward pass and before the next one, by their texts; empty
    where an optimizer's parameters are not plain to see.
    """
    function = ctx.tree.function_of(node) or ctx.tree.module
    calls, places = ctx.once(_calls_in_order, function)
    trained: set[str] = set()
    # In a lambda or a default nobody knows when it runs.
    for call in itertools.islice(calls, places.get(id(node), len(calls)) + 1, None):
        name = callee_name(call)
        if name in _BACKWARD:
            break
        if name == "step" and isinstance(call.func, ast.Attribute):
            optimizer = call.args[0] if call.args else call.func.value  # `scaler.step(optimizer)`
            held = _parameters_of(optimizer, ctx)
            if not held:
                return set()
            trained |= held
    return trained


def _calls_in_order(function: ast.AST, ctx: Context) -> tuple[list[ast.Call], dict[int, int]]:
    """The calls of a function in the order of the source, and the place of each among them by its id."""
    calls = [part for part in ctx.walk(function) if isinstance(part, ast.Call)]
    calls.sort(key=lambda part: (part.lineno, part.col_offset))
    return calls, {id(call): place for place, call in enumerate(calls)}


def _parameters_of(optimizer: ast.expr, ctx: Context) -> set[str]:
    """`self.critic` of what `Adam(self.critic.parameters())` gives."""
    found: set[str] = set()
    for origin in ctx.inference.origins(optimizer):
        if not isinstance(origin, ast.Call) or not origin.args:
            return set()
        owners = _owners(origin.args[0], ctx)
        if not owners:
            return set()
        found |= owners
    return found


def _owners(value: ast.expr, ctx: Context) -> set[str]:
    if isinstance(value, ast.Call) and callee_name(value) == "parameters" and isinstance(value.func, ast.Attribute):
        return {ctx.text(value.func.value)}
    return set()


def _forwards_behind(node: ast.Call, trained: set[str], ctx: Context) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The forwards of trained modules that a loss is computed from, each with a plain argument that it is given."""
    for part in _computed_from(node, ctx):
        if isinstance(part, ast.Call) and ctx.text(part.func) in trained:
            yield from ((part, item) for item in part.args if isinstance(item, (ast.Name, ast.Call)))


def _computed_from(node: ast.Call, ctx: Context) -> Iterator[ast.AST]:
    """All expressions that the loss of a backward pass is computed from in its function."""
    waiting: list[ast.expr] = [*node.args]
    if isinstance(node.func, ast.Attribute):
        waiting.append(node.func.value)
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_VALUES:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        for part in walk(value):
            yield part
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                made = ctx.inference.flow.definitions(part)
                waiting += [item.value for item in made if item.value is not None]


def _is_walked_again(forward: ast.Call, node: ast.Call, ctx: Context) -> bool:
    """Whether another backward pass of the function goes through the same forward."""
    function = ctx.tree.function_of(node) or ctx.tree.module
    others = (part for part in ctx.walk(function) if isinstance(part, ast.Call) and callee_name(part) in _BACKWARD)
    return any(part is forward for other in others if other is not node for part in _computed_from(other, ctx))


def _is_differentiated(given: ast.expr, node: ast.Call, ctx: Context) -> bool:
    """Whether `torch.autograd.grad` takes gradients by what is given, so that it has to keep its graph."""
    function = ctx.tree.function_of(node) or ctx.tree.module
    calls = (part for part in ctx.walk(function) if ctx.is_call_of(part, "torch.autograd.grad"))
    wanted = ctx.text(given)
    return any(wanted == ctx.text(item) for call in calls for item in walk(call) if isinstance(item, ast.expr))


def _maker(given: ast.expr, ctx: Context) -> ast.Call | None:
    """The one forward whose result is given, as it came."""
    if isinstance(given, ast.Call):
        return given if is_model_call(given, ctx) else None
    made = ctx.inference.flow.definitions(given) if isinstance(given, ast.Name) else ()
    if len(made) != 1 or made[0].path or not isinstance(made[0].value, ast.Call):
        return None
    return made[0].value if is_model_call(made[0].value, ctx) else None
