"""TPL314: forwards whose results are only ever detached, with a graph recorded for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from perflint.api import (
    EXTERNAL_INSTANCE,
    INSTANCE,
    Applicability,
    Calls,
    Confidence,
    Context,
    Effect,
    Finding,
    Fix,
    Heat,
    Impact,
    Phase,
    Ref,
    Rule,
    Scope,
    Tag,
    last,
    last_of,
    tensors,
    walk,
)
from perflint.api.gradients import (
    Followed,
    forwards_behind,
    has_no_graph,
    learns,
    may_differentiate,
    may_hold_parameters,
)

#: Layers whose forward is one operation.
_LAYERS = frozenset(
    f"torch.nn.{name}" for name in "Linear Embedding Identity Dropout LayerNorm Softmax Sigmoid ReLU GELU Tanh".split()
)
#: Calls of constructors that add no parameters, and names by which they may be added unseen.
_SETTING_UP = frozenset("super __init__ register_buffer".split())
_HIDING = frozenset("setattr add_module register_module register_parameter Parameter UninitializedParameter".split())
_LIBRARIES_OF_NUMBERS = ("math.", "numpy.", "scipy.", "librosa.")
_DEPTH = 12
#: Calls on the way to a forward that are looked at.
_CALLERS = 3
#: Methods of one name, of which each may be meant where it is called.
_NAMESAKES = 3


class TeacherForwardWithGrad(Rule):
    """A forward pass records an autograd graph, but its result is only ever detached.

    What it does

    Reports forward passes on the hot path, with gradients enabled, of which every result is detached.

    Why is this slow?

    With gradients enabled, a forward pass creates a graph node per operation and keeps the activations for the
    backward pass. `detach()` discards all of that.

    What to do

    Put `with torch.no_grad():` around the forward pass of the teacher, target network or frozen encoder.

    Fix safety

    Unsafe: other effects of the forward pass (an auxiliary loss that the module keeps) lose their graph.

    Not reported

    - Results that are used once with their graph (the generator's step of a GAN).
    - Parameters without gradients, single layers, and results that are plotted.
    - Forward passes whose activations hooks collect.
    - Code where the callee, all callers or the process disable gradients.
    - Results with a use that perflint cannot see, and methods that run a backward pass themselves.

    Measured

    1.15 times the time for a batch of 16 x 64, no difference for 512 x 1,024, but a peak of 43 MiB against 16 MiB
    (CPU, torch 2.13).

    References

    - `torch.no_grad`: https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    - `torch.Tensor.detach`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
    """

    code, name = "TPL314", "teacher-forward-with-grad"
    impact = Impact.MEDIUM
    listens = (Calls("detach", "detach_"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or ctx.grad_off(node) or _draws(node, ctx):
            return
        for forward in set(forwards_behind(node.func.value, ctx, _DEPTH, computed=True)):
            often = ctx.heat(forward) >= Heat.EPOCH or bool(ctx.loops(forward))
            if not often and ctx.kind(forward.func).tag is not Tag.MODULE:
                continue  # a model that was handed in, run once: who knows how it was set up
            if not often and ctx.tree.function_of(forward) is None:
                continue  # tried out in a script or a cell
            if ctx.phase(forward).phase is Phase.EVALUATE or not learns(forward, ctx) or has_no_graph(forward, ctx):
                continue
            if _is_small(forward, ctx) or _trains(forward, ctx):
                continue
            if _may_run_without_grad(ctx.scope(forward), ctx) or may_differentiate(forward, ctx, losses=True):
                continue
            followed = Followed(ctx)
            if followed.ends(forward, _DEPTH) and followed.detached:
                yield self._told(forward, ctx, often=often)

    def _told(self, node: ast.Call, ctx: Context, *, often: bool) -> Finding:
        model = ctx.text(node.func)
        return self.finding(
            node,
            ctx,
            f"`{model}` records an autograd graph and keeps its activations, but the result is only ever detached.",
            advice=f"Run `{model}` under `with torch.no_grad():`.",
            fix=_switch_off(node, ctx),
            impact=None if often else Impact.LOW,
            confidence=None if ctx.kind(node.func).tag is Tag.MODULE else Confidence.MEDIUM,
        )


def _trains(forward: ast.Call, ctx: Context) -> bool:
    """Whether what is called walks a graph back itself, or a method of this name does, whoever it is of."""
    if ctx.effects(forward).does(Effect.BACKWARD):
        return True
    return isinstance(forward.func, ast.Attribute) and any(
        ctx.program.trains(scope) for scope in ctx.program.named(forward.func.attr)
    )


def _is_small(forward: ast.Call, ctx: Context) -> bool:
    """Whether what is called is a single layer of torch, or a module that holds nothing: its graph is one node or two,
    and gone with its result.
    """
    refs = ctx.refs(forward.func) if isinstance(forward.func, (ast.Name, ast.Attribute)) else ()
    return bool(refs) and all(ref.name in _LAYERS if not ref.path else _holds_nothing(ref, ctx) for ref in refs)


def _holds_nothing(ref: Ref, ctx: Context) -> bool:
    """Whether objects of a class of the project hold no parameters, nor modules that do: buffers are no parameters."""
    summary = ctx.program.summaries.get(ref.path)
    facts = summary.classes.get(ref.name) if summary is not None and ref.kind == INSTANCE else None
    if summary is None or facts is None or [last_of(base) for base in facts.bases] != ["Module"]:
        return False
    if "forward" not in facts.methods or ctx.program.whole.has_derived(last(ref.name)):
        return False  # what is derived from it holds more
    own = [summary.functions[f"{ref.name}.{method}"] for method in facts.methods]
    run = {call.func for method in own for call in method.calls if type(call.func) is str}
    for name, values in facts.attributes.items():
        for value, place in values:
            if type(value) is tuple and not _is_no_module(value, Scope(ref.path, place), ctx):
                return False
            if type(value) is str and f"self.{name}" in run:
                return False  # a module that it is given
    made = summary.functions.get(f"{ref.name}.__init__")
    if made is None:
        return True
    scope = Scope(ref.path, made.qualname)
    return not _HIDING & set(made.identifiers.split()) and all(
        last_of(call.func) in _SETTING_UP or _is_no_module(("call", *call[:3]), scope, ctx) for call in made.calls
    )


def _is_no_module(value: tuple[Any, ...], scope: Scope, ctx: Context) -> bool:
    """Whether a value holds no parameters: a constant, a number, a tensor, a layer that has none."""
    if value[0] == "const":
        return True
    refs = ctx.program.refs(value, scope) if value[0] == "call" else ()
    return bool(refs) and all(ref.kind == EXTERNAL_INSTANCE and _is_number_or_layer(ref.name) for ref in refs)


def _is_number_or_layer(name: str) -> bool:
    if name.startswith("torch.nn."):
        return not may_hold_parameters(name)
    if name in ("torch.from_numpy", "torch.as_tensor"):
        return True
    return name in tensors.CONSTRUCTORS | tensors.FUNCTIONS or name.startswith(_LIBRARIES_OF_NUMBERS)


def _may_run_without_grad(scope: Scope, ctx: Context, depth: int = _CALLERS) -> bool:
    """Whether something that leads to a function is called, as a method of what cannot be told, with gradients off:
    `self.algorithm.act(seen)`.
    """
    callers = ctx.program.callers(scope)
    if callers:
        return depth > 0 and all(
            ctx.program.grad_off(edge.caller, ctx.program.function(edge.caller).calls[edge.index].context)
            or _may_run_without_grad(edge.caller, ctx, depth - 1)
            for edge in callers
        )
    name = last(scope.function)
    if name == "forward" or len(ctx.program.named(name)) > _NAMESAKES:
        return False  # the name tells nothing
    return ctx.program.whole.is_method_called_without_grad(name)


def _draws(node: ast.Call, ctx: Context) -> bool:
    """Whether a forward is for a picture: drawing takes far longer, and is not done on every step."""
    around: ast.AST | None = ctx.tree.function_of(node)
    if around is None:  # a script may train in one loop and draw in another
        around = next(iter(ctx.loops(node)), None)
    return around is not None and any(
        isinstance(part, ast.Call) and (ctx.target(part.func) or "").startswith("matplotlib.") for part in walk(around)
    )


def _switch_off(node: ast.Call, ctx: Context) -> Fix | None:
    """A block around the statement, where it holds nothing but the forward and what is read of it."""
    statement = ctx.tree.parent(node)
    value: ast.AST = node
    while isinstance(statement, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(statement, ast.Call) and statement.func is not value:
            return None
        value, statement = statement, ctx.tree.parent(statement)
    if not isinstance(statement, (ast.Assign, ast.Return)) or statement.lineno != statement.end_lineno:
        return None
    if any(isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom)) for part in walk(statement)):
        return None  # whoever runs meanwhile would have no gradients either
    spelling, imports = ctx.edit.ensure_import("torch", at=statement)
    return Fix(
        "Disable gradients for the forward pass",
        Applicability.UNSAFE,
        (
            *imports,
            ctx.edit.insert_before(statement, f"with {spelling}.no_grad():"),
            ctx.edit.replace(statement, f"{ctx.edit.indent_unit}{ctx.tree.text(statement)}"),
        ),
        reason="other effects of the forward pass may be needed with their graph",
    )
