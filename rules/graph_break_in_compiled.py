"""TPL404: what cuts the graph of compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Confidence,
    Context,
    Finding,
    Heat,
    Impact,
    Nodes,
    Rule,
    callee_name,
    compiling,
    last,
    last_name,
)
from perflint.api.compiled import compiled_at
from perflint.api.names import ONE_TIME, TELLS
from perflint.api.words import short_call

_HELPERS = ("log_once", "log_rank_zero", "log0", "log_info", "log_metrics", "warn_once", "warning_once", "print_once")
_NAMES = (
    *(last(name) for name in compiling.BREAKING_FUNCTIONS),
    *compiling.LOG_METHODS,
    *compiling.BREAKING_METHODS,
    *_HELPERS,
    "info_once",
)
#: Settings that let the tracer keep what otherwise breaks.
_KEPT = {
    compiling.Break.READ: ("capture_scalar_outputs",),
    compiling.Break.LOG: ("ignore_logging_functions", "reorderable_logging_functions", "ignore_logger_methods"),
    compiling.Break.PRINT: ("reorderable_logging_functions", "ignore_logging_functions"),
    compiling.Break.WARN: ("reorderable_logging_functions", "ignore_logging_functions"),
}


class GraphBreakInCompiled(Rule):
    """A call in compiled code that causes a graph break, or keeps the function from being compiled.

    What it does

    Reports calls in functions under `torch.compile` that it cannot trace: `.item()` and `.tolist()` of a tensor,
    `print`, logging, `warnings.warn`, `time.time` and similar, Python's `random`, `gc.collect`, and f-strings of
    tensor values.

    Why is this slow?

    `torch.compile` ends the graph at the call, runs the call in Python, and starts another graph. Nothing is fused
    across the break, values pass through memory, and guards are checked twice. An f-string of a tensor's value is
    worse: if the string is used, the whole frame runs eagerly.

    What to do

    Move the call out of the compiled function: return what is to be logged, and log it in the training loop. For
    messages in eager runs only, write `if not torch.compiler.is_compiling():`. Draw random numbers with torch, and
    time around the compiled call. `fullgraph=True` raises at the first break.

    Fix safety

    No fix: only the author knows where to read the value instead.

    Not reported

    - Code that runs once, on an error path or under a debug option: the tracer follows the branch that is taken.
    - Calls that cause no break: `.cpu()`, registering and removing hooks, `assert` on a tensor, `try`, f-strings of a
      shape.
    - Projects that set `capture_scalar_outputs`, or list the function in
      `torch._dynamo.config.reorderable_logging_functions`.
    - Code behind `torch.compiler.is_compiling()`, and functions under `torch.compiler.disable`.

    Measured

    The breaks are those that `torch._dynamo.explain` counts on torch 2.13. `print` breaks even for a shape, logging
    even below the effective level.

    References

    - Working with graph breaks:
      https://docs.pytorch.org/docs/stable/compile/programming_model.graph_breaks_index.html
    - `torch.compile`: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
    """

    code, name = "TPL404", "graph-break-in-compiled"
    impact = Impact.MEDIUM
    listens = (Calls(*_NAMES), Nodes(ast.FormattedValue, mentioning=("Module", "compile")))
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        place = compiled_at(node, ctx)
        if place is None or _is_exceptional(node, ctx):
            return
        if isinstance(node, ast.FormattedValue):
            if _formats_tensor(node, ctx):
                yield self.finding(
                    node,
                    ctx,
                    f"The value of `{ctx.text(node.value)}` is formatted in compiled code, so this whole function "
                    "runs eagerly.",
                    advice="Format it outside of the compiled function, or format its shape.",
                    confidence=Confidence.MEDIUM,
                    related=(place,),
                )
            return
        assert isinstance(node, ast.Call)
        why = _break(node, ctx)
        if why is None or ctx.program.mentions(_KEPT.get(why, ())):
            return
        condition = _condition(node, ctx)
        if condition is not None and (why is compiling.Break.WARN or ONE_TIME.search(ctx.text(condition))):
            return
        if why in (compiling.Break.PRINT, compiling.Break.LOG) and condition is not None and _is_flag(condition):
            return
        yield self.finding(
            node,
            ctx,
            f"`{short_call(node, ctx, 60)}` {why.value} in compiled code, which is a graph break.",
            advice=_ADVICE[why],
            confidence=None if condition is None else Confidence.MEDIUM,
            related=(place,),
        )


_LOG_ADVICE = "Log outside of the compiled function, or only `if not torch.compiler.is_compiling():`."
_ADVICE = {
    compiling.Break.PRINT: ("Print outside of the compiled function, or only `if not torch.compiler.is_compiling():`."),
    compiling.Break.LOG: _LOG_ADVICE,
    compiling.Break.WARN: _LOG_ADVICE,
    compiling.Break.CLOCK: "Time around the call of the compiled function.",
    compiling.Break.RANDOM: "Draw random numbers with torch, or pass the number as an argument.",
    compiling.Break.COLLECT: "Collect outside of the compiled function.",
    compiling.Break.EXPLICIT: "Remove the break when it is no longer needed.",
    compiling.Break.READ: "Keep it a tensor, or read it outside of the compiled function.",
}


def _break(node: ast.Call, ctx: Context) -> compiling.Break | None:
    name = callee_name(node)
    if name in compiling.BREAKING_METHODS:
        if isinstance(node.func, ast.Attribute) and not node.args and ctx.kind(node.func.value).is_tensor:
            return compiling.BREAKING_METHODS[name]
        return None
    target = ctx.target(node.func)
    if target is not None:
        if target in compiling.BREAKING_FUNCTIONS:
            return compiling.BREAKING_FUNCTIONS[target]
        owner, _, method = target.rpartition(".")
        return compiling.Break.LOG if method in compiling.LOG_METHODS and owner in compiling.LOGGER_FACTORIES else None
    return compiling.Break.LOG if _is_log_helper(node, ctx) else None


def _is_log_helper(node: ast.Call, ctx: Context) -> bool:
    """A project function named for it that logs: the break is told of where it is called."""
    helper = ctx.project_target(node.func)
    return helper is not None and bool(TELLS.match(last(helper.name)))


def _is_exceptional(node: ast.AST, ctx: Context) -> bool:
    """Whether the call is off the traced way: under a guard, in an error path, or inside a logging helper itself."""
    if ctx.guards(node) or TELLS.match(ctx.facts(node).name):
        return True
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(outer, (ast.Raise, ast.Assert, ast.ExceptHandler)):
            return True
    return False


def _condition(node: ast.AST, ctx: Context) -> ast.expr | None:
    """The innermost test that has to hold where `node` runs."""
    return next((test for test, holds in reversed(ctx.conditions(node)) if holds), None)


def _is_flag(test: ast.expr) -> bool:
    """`if self.verbose:`: who has it on wants to see what is printed, and the tracer leaves the branch out else."""
    return isinstance(test, (ast.Name, ast.Attribute)) and last_name(test) != "training"


def _formats_tensor(node: ast.FormattedValue, ctx: Context) -> bool:
    """Whether a tensor's value is written, outside of a call that is reported itself."""
    if not ctx.kind(node.value).is_tensor:
        return False
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, ast.Call):
            return _break(outer, ctx) is None
        if isinstance(outer, ast.stmt):
            return True
    return True
