"""TPL308: an evaluation that records a graph nobody walks back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import Applicability, Context, Finding, Fix, Functions, Heat, Impact, Rule, Tag

from ._gradients import asks_for_gradients, is_model_call, last_name

_EVALUATION = re.compile(
    r"^_?(?:test|eval|evaluate|evaluation|validate|validation|valid|val|run_eval)(?:_|$)|_(?:test|eval|evaluate|validate)$"
)
#: Methods that frameworks call, with gradients switched off.
_HOOK = re.compile(r"_step$|^on_|_hook$|_epoch_end$|^test_")


class GradInEvaluation(Rule):
    """An evaluation with gradients on records a graph and keeps activations for a backward that never comes.

    Why it is slow
    With gradients on, each operation makes a graph node and keeps what its backward would need as long as the output
    lives: 19 MiB against none for a model of 8 MiB. The forward takes 1.6 to 2 times as long where overhead rules,
    1.1 times where arithmetic does (measured on a CPU with torch 2.13).

    What to write instead
    Put `@torch.no_grad()` on the evaluation function, or `with torch.no_grad():` around its loop. `inference_mode` is
    no faster, and what it makes cannot take part in a later backward.

    When to leave it
    Where the evaluation needs gradients itself: adversarial examples, saliency, guidance, fitting at test time.
    perflint is silent where the function names anything of that kind, where every known caller switches gradients
    off, and in the hooks of frameworks that do.

    Fix safety
    Safe where the model surely is a module, the function changes no attribute and returns numbers only; then the
    results are the same bits. Elsewhere what it returns may be wanted with its graph.
    """

    code, name = "TPL308", "grad-in-evaluation"
    impact = Impact.HIGH
    listens = (Functions("eval"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if not _EVALUATION.search(node.name) or _HOOK.search(node.name):
            return
        parts = [part for statement in node.body for part in ctx.walk(statement)]
        evaluated = {name for part in parts if (name := _evaluated(part))}
        if not evaluated or asks_for_gradients(node):
            return
        forward = _forward_with_gradients(parts, evaluated, ctx)
        if forward is None or ctx.program.trains(ctx.own_scope(node)):
            return
        yield self.finding(
            forward,
            ctx,
            f"`{ctx.text(forward.func)}` is run to evaluate, and records a graph that `{node.name}` never walks back.",
            advice=f"Put `@torch.no_grad()` on `{node.name}`.",
            fix=_switch_off(node, forward, parts, ctx),
        )


def _evaluated(part: ast.AST) -> str:
    """The last name of `model` for `model.eval()` and `model.train(False)`."""
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute) or part.args or part.keywords:
        return ""
    return last_name(part.func.value) if part.func.attr == "eval" else ""


def _forward_with_gradients(parts: list[ast.AST], evaluated: set[str], ctx: Context) -> ast.Call | None:
    """The first forward, in source order, of what was put into evaluation mode."""
    forwards = [
        part
        for part in parts
        if isinstance(part, ast.Call)
        and is_model_call(part, ctx)
        and _model_name(part) in evaluated
        and not ctx.grad_off(part)
        and (ctx.loops(part) or ctx.heat(part) >= Heat.EPOCH)
    ]
    return min(forwards, key=lambda call: (call.lineno, call.col_offset), default=None)


def _model_name(call: ast.Call) -> str:
    """`model` for `model(x)`, `model.encode(x)` and `self.model(x)`."""
    name = last_name(call.func)
    if isinstance(call.func, ast.Attribute) and name in ("forward", "encode", "encode_image", "encode_text"):
        return last_name(call.func.value)
    return name


def _switch_off(
    function: ast.FunctionDef | ast.AsyncFunctionDef, forward: ast.Call, parts: list[ast.AST], ctx: Context
) -> Fix | None:
    if isinstance(function, ast.AsyncFunctionDef):
        return None
    spelling, imports = ctx.edit.ensure_import("torch")
    reason = ""
    if ctx.kind(forward.func).tag is not Tag.MODULE:
        reason = f"`{ctx.text(forward.func)}` is not known to be a module"
    elif any(isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store) for part in parts):
        reason = f"`{function.name}` stores results, which may be wanted with their graph"
    elif any(isinstance(part, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)) for part in parts):
        reason = f"`{function.name}` hands out results as it goes, which may be wanted with their graph"
    elif not all(_is_number(part.value, ctx) for part in parts if isinstance(part, ast.Return)):
        reason = f"`{function.name}` may return tensors, which may be wanted with their graph"
    return Fix(
        "Switch gradients off",
        Applicability.UNSAFE if reason else Applicability.SAFE,
        (*imports, ctx.edit.decorate(function, f"@{spelling}.no_grad()")),
        reason=reason,
    )


def _is_number(value: ast.expr | None, ctx: Context) -> bool:
    if value is None:
        return True
    if isinstance(value, ast.Tuple):
        return all(_is_number(item, ctx) for item in value.elts)
    return ctx.kind(value).tag in (Tag.NUMBER, Tag.NONE, Tag.STRING)
