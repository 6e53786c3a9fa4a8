"""TPL314: forwards whose results are only ever detached, with a graph recorded for nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Confidence,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Rule,
    Tag,
    callee_name,
    is_test,
    tensors,
)

from ._forwards import FORWARD_METHODS
from ._gradients import is_model_call, name_of_whole
from ._loops import names_in

#: End a graph: what comes out has no gradient.
_DETACHERS = frozenset({"detach", "detach_"})
#: Read values or make some through which no gradient flows.
_READERS = frozenset("item tolist argmax argmin size dim numel argsort isnan isinf isfinite long int bool".split())
_READ_ATTRIBUTES = frozenset("shape dtype device ndim requires_grad is_cuda".split())
#: Functions of torch through which no gradient flows.
_READING = frozenset("argmax argmin isnan isinf isfinite is_tensor numel".split())
_BUILTINS = frozenset({"isinstance", "len", "hasattr", "type"})
#: Layers of torch with parameters.
_PARAMETERS = re.compile(
    r"Module$|Linear|Bilinear|Conv|Embedding|Transformer|LSTM|GRU|RNN|Sequential|Multihead|ModuleList"
)
_OFF = re.compile(r"no_?grad|inference_?mode|eval_mode", re.IGNORECASE)
#: Functions that another rule looks at as a whole: grad-in-evaluation.
_EVALUATION = re.compile(r"^_?(?:test|eval|evaluate|validate|val)(?:_|$)|_(?:test|eval|evaluate|validate)$")
#: Methods of tensors through which gradients flow.
_CARRIERS = (
    tensors.VIEW_METHODS | tensors.CAST_METHODS | tensors.FRESH_METHODS | tensors.TUPLE_METHODS | {"to", "cpu", "cuda"}
)
_DEPTH = 6


class TeacherForwardWithGrad(Rule):
    """A forward records a graph, and its result is only ever detached.

    Why it is slow
    With gradients on, a forward makes a graph node for each operation and keeps the activations that its backward would
    need. `detach()` throws all of that away. Measured on a CPU with torch 2.13: 1.15 times the time for
    a batch of 16 x 64, no difference in time for 512 x 1,024, but 43 MiB at the peak against 16 MiB.

    What to write instead
    `with torch.no_grad():` around the forward of the teacher, the target network or the frozen encoder.

    When to leave it
    Where the result is used once more with its graph (the generator's step of a GAN), where the parameters take no
    gradients, where hooks take activations out of the forward, where the result is drawn, and where the callee, all
    callers or the process as a whole switch gradients off: perflint is silent there, and where it does not see every
    use.

    Fix safety
    Unsafe: what the forward leaves behind besides its result (an auxiliary loss on the module) has no graph then.
    """

    code, name = "TPL314", "teacher-forward-with-grad"
    impact = Impact.MEDIUM
    listens = (Calls("detach", "detach_"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or is_test(ctx.path) or ctx.grad_off(node) or _draws(node, ctx):
            return
        for forward in _forwards_behind(node.func.value, ctx, _DEPTH):
            often = ctx.heat(forward) >= Heat.EPOCH or bool(ctx.loops(forward))
            if not often and ctx.kind(forward.func).tag is not Tag.MODULE:
                continue  # a model that was handed in, run once: who knows how it was set up
            if _learns(forward, ctx) and not _has_no_graph(forward, ctx) and _Followed(ctx).ends(forward, _DEPTH):
                yield self._told(forward, ctx, often=often)

    def _told(self, node: ast.Call, ctx: Context, *, often: bool) -> Finding:
        model = ctx.text(node.func)
        return self.finding(
            node,
            ctx,
            f"`{model}` records a graph and keeps its activations, and the result is only ever detached.",
            advice=f"Run `{model}` under `with torch.no_grad():`.",
            fix=_switch_off(node, ctx),
            impact=None if often else Impact.LOW,
            confidence=None if ctx.kind(node.func).tag is Tag.MODULE else Confidence.MEDIUM,
        )


def _forwards_behind(value: ast.expr, ctx: Context, depth: int) -> Iterator[ast.Call]:
    """The forwards that a value is made from: by attributes, items, methods, arithmetic and names."""
    if depth == 0:
        return
    if isinstance(value, ast.Call):
        if is_model_call(value, ctx):
            yield value
        elif isinstance(value.func, ast.Attribute):
            yield from _forwards_behind(value.func.value, ctx, depth)
    elif isinstance(value, (ast.Attribute, ast.Subscript)):
        yield from _forwards_behind(value.value, ctx, depth)
    elif isinstance(value, ast.BinOp):
        yield from _forwards_behind(value.left, ctx, depth - 1)
        yield from _forwards_behind(value.right, ctx, depth - 1)
    elif isinstance(value, ast.Name):
        made = ctx.inference.flow.definitions(value)
        if len(made) == 1 and isinstance(made[0].node, ast.Assign) and made[0].value is not None:
            yield from _forwards_behind(made[0].value, ctx, depth - 1)


def _learns(node: ast.Call, ctx: Context) -> bool:
    """Whether what runs may hold parameters: no layer of torch that has none."""
    qualified = ctx.kind(node.func).qualified
    return not qualified.startswith("torch.nn.") or bool(_PARAMETERS.match(qualified.rpartition(".")[2]))


def _has_no_graph(node: ast.Call, ctx: Context) -> bool:
    """Whether no graph is recorded here, or one that hooks may want."""
    if ctx.grad_off(node) or _switches_itself(node, ctx) or _is_frozen(_model(node), ctx):
        return True
    if ctx.mentions("register_forward_hook", "register_module_forward_hook", "inference_mode", "set_grad_enabled"):
        return True
    around, function = ctx.tree.class_of(node), ctx.tree.function_of(node)
    if around is not None and any(name_of_whole(base) == "Function" for base in around.bases):
        return True  # `torch.autograd.Function` runs with gradients off
    if _switches_process(ctx):
        return True
    if function is None:
        return False
    evaluates = bool(_EVALUATION.search(function.name))
    return evaluates or any(_OFF.search(ctx.text(decorator)) for decorator in function.decorator_list)


def _switches_process(ctx: Context) -> bool:
    """Whether another file switches gradients off for whatever it calls: `torch.set_grad_enabled(False)`."""
    off = ("const", "bool", False)
    return ctx.program.mentions(("set_grad_enabled",)) and any(
        isinstance(call.func, str) and call.func.endswith("set_grad_enabled") and call.args == (off,)
        for summary in ctx.program.summaries.values()
        for facts in summary.functions.values()
        for call in facts.calls
    )


def _draws(node: ast.Call, ctx: Context) -> bool:
    """Whether a forward is for a picture: drawing takes far longer, and is not done on every step."""
    function = ctx.tree.function_of(node)
    return function is not None and any(
        isinstance(part, ast.Call) and (ctx.target(part.func) or "").startswith("matplotlib.")
        for part in ast.walk(function)
    )


def _model(node: ast.Call) -> str:
    """`teacher` for `teacher(x)`, `self.teacher(x)` and `teacher.encode(x)`."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in FORWARD_METHODS:
        return name_of_whole(node.func.value)
    return name_of_whole(node.func)


def _switches_itself(node: ast.Call, ctx: Context) -> bool:
    """Whether a method of the project with this name, or the forward of this class, gives a result without a graph."""
    kind = ctx.kind(node.func)
    method = callee_name(node) if callee_name(node) in FORWARD_METHODS else "forward"
    for path, summary in ctx.program.summaries.items():
        if method == "forward" and path != kind.path:
            continue
        for name, facts in summary.functions.items():
            own = name == f"{kind.qualified}.forward" if method == "forward" else facts.name == method
            if own and (
                any(_OFF.search(str(decorator)) for decorator in facts.decorators)
                or any(context.kind == "no_grad" for context in facts.contexts)
                or any("detach" in str(value) for value in facts.returns)
            ):
                return True
    return False


def _is_frozen(model: str, ctx: Context) -> bool:
    """Whether this file takes the gradients away from the parameters of what has this name."""
    if not ctx.mentions("requires_grad", "requires_grad_", "freeze"):
        return False
    for part in ast.walk(ctx.tree.module):
        if isinstance(part, ast.For) and any(_sets_requires_grad(inner) for inner in ast.walk(part)):
            if model in set(names_in(part.iter)):
                return True
        if isinstance(part, ast.Call) and callee_name(part) in ("requires_grad_", "freeze", "freeze_params"):
            if model in set(names_in(part)):
                return True
    return False


def _sets_requires_grad(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return callee_name(node) == "requires_grad_"
    return isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Store)


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
    spelling, imports = ctx.edit.ensure_import("torch", at=statement)
    return Fix(
        "Switch gradients off for the forward",
        Applicability.UNSAFE,
        (
            *imports,
            ctx.edit.insert_before(statement, f"with {spelling}.no_grad():"),
            ctx.edit.replace(statement, f"    {ctx.tree.text(statement)}"),
        ),
        reason="what the forward leaves behind besides its result may be wanted with its graph",
    )


class _Followed:
    """Follows a forward's result to all places where it is read."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    def ends(self, value: ast.expr, depth: int) -> bool:
        """Whether every way of a value ends where no gradient flows on."""
        if depth == 0:
            return False
        parent = self.ctx.tree.parent(value)
        match parent:
            case ast.Attribute():
                return self._ends_at_attribute(parent, depth)
            case ast.Subscript() if parent.value is value:
                return self.ends(parent, depth)
            case ast.Compare():
                return True
            case ast.BinOp() | ast.UnaryOp() | ast.IfExp():
                return self.ends(parent, depth)
            case ast.Call() | ast.keyword():
                return self._ends_at_call(parent, depth)
            case ast.Assign() if len(parent.targets) == 1:
                return self._ends_at_target(parent.targets[0], depth)
            case _:
                return False

    def _ends_at_attribute(self, node: ast.Attribute, depth: int) -> bool:
        if node.attr in _READ_ATTRIBUTES:
            return True
        call = self.ctx.tree.parent(node)
        if not isinstance(call, ast.Call) or call.func is not node:
            return self.ends(node, depth)
        if node.attr in _DETACHERS or node.attr in _READERS:
            return True
        return node.attr in _CARRIERS and self.ends(call, depth)

    def _ends_at_call(self, node: ast.Call | ast.keyword, depth: int) -> bool:
        call = self.ctx.tree.parent(node) if isinstance(node, ast.keyword) else node
        assert isinstance(call, ast.Call)
        if self.ctx.grad_off(call):
            return True
        if callee_name(call) in _BUILTINS:
            return True
        target = self.ctx.target(call.func) or ""
        if not target.startswith("torch."):
            return False
        if target.rpartition(".")[2] in _READING:
            return True
        computes = target in tensors.FUNCTIONS | tensors.TUPLE_FUNCTIONS or target.startswith("torch.nn.functional.")
        return computes and self.ends(call, depth)

    def _ends_at_target(self, target: ast.expr, depth: int) -> bool:
        names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        flow, found = self.ctx.inference.flow, False
        for name in names:
            if not isinstance(name, ast.Name):
                return False
            made = flow.definition_at(name)
            uses = flow.uses_of(made) if made is not None else []
            for use in uses:
                found = True
                if self.ctx.grad_off(use):
                    continue
                if not self.ends(use, depth - 1):
                    return False
        return found
