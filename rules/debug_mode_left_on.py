"""TPL901: debugging modes of PyTorch that are on in every run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Context,
    Finding,
    Fix,
    Impact,
    Nodes,
    Rule,
    callee_name,
    debugging,
    last,
)
from perflint.api.names import COMPARES, DIAGNOSES
from perflint.api.phases import debug_setting, debug_switch, is_conversion, is_in_every_run, main_guard

#: What a script names that trains, or hands itself to what does.
_TRAINING = ("backward", "fit", "optim", "optimizer", "Trainer", "train", "main", "grad")
#: The last names of what is set, and what sets variables of the environment.
_SET = frozenset(last(name) for name in debugging.SETTINGS)


class DebugModeLeftOn(Rule):
    """A debug mode is on in every run.

    What it does

    Reports `detect_anomaly`, `CUDA_LAUNCH_BLOCKING=1`, `PYTORCH_NO_CUDA_MEMORY_CACHING`, `TORCHDYNAMO_DISABLE=1` and
    similar that every run sets.

    Why is this slow?

    Anomaly detection checks every backward operation. `CUDA_LAUNCH_BLOCKING=1` makes the host block on each kernel,
    so nothing overlaps. Without the caching allocator every tensor is a driver call. `TORCHDYNAMO_DISABLE=1` silently
    runs compiled code eagerly.

    What to do

    Delete the line, or put it under an option that is off by default: `if args.debug:`. Set environment variables on
    the command line of the run that needs them.

    Fix safety

    Unsafe: the statement is deleted, and it may be there on purpose. The results stay the same.

    Not reported

    - Code under a condition (`args.debug`, the environment), and values that are not literal.
    - Tests and scripts that compare numbers, profiling and benchmark code.
    - Functions that debug or make runs deterministic.
    - Code that switches the mode off again.

    Measured

    Forward and backward passes under `detect_anomaly` took 4.6 times as long, 2.8 times with `check_nan=False` (CPU).

    References

    - torch.autograd, anomaly detection: https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection
    - CUDA environment variables: https://docs.pytorch.org/docs/stable/cuda_environment_variables.html
    """

    code, name = "TPL901", "debug-mode-left-on"
    numerics = "same bits"
    impact = Impact.HIGH
    lasting = True
    listens = (
        Calls(*sorted({last(name) for name in debugging.SWITCHES}), "Trainer", "setdefault", "update", "putenv"),
        Nodes(ast.Assign, mentioning=("environ", *sorted(_SET))),
    )

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        found = debug_setting(node, ctx) if isinstance(node, ast.Assign) else debug_switch(node, ctx)
        if found is None or is_conversion(ctx):
            return
        file = ctx.path.rpartition("/")[2]
        if DIAGNOSES.search(file) or COMPARES.search(file) or not is_in_every_run(node, ctx):
            return
        what, cost = found
        if "anomaly" in what and _walks_back_nothing(node, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"`{what}` is on in every run: {cost}.",
            advice="Delete it, or put it under an option that is off by default.",
            fix=_deletion(node, ctx),
        )


def _walks_back_nothing(node: ast.AST, ctx: Context) -> bool:
    """Whether the line stands in a script that only runs a model: anomalies are looked for in a backward pass."""
    if ctx.mentions(*_TRAINING) or main_guard(node, ctx) is None:
        return False
    return not ctx.program.trains(ctx.scope(node))


def _deletion(node: ast.AST, ctx: Context) -> Fix | None:
    reason = "it may be there on purpose"
    statement = ctx.tree.statement_of(node)
    whole = statement is node or (isinstance(statement, ast.Expr) and statement.value is node)
    if isinstance(node, ast.Call) and callee_name(node) == "update":
        return None
    if isinstance(node, ast.Call) and callee_name(node) == "Trainer":
        edit = ctx.edit.remove_keyword(node, "detect_anomaly")
        return Fix("Leave anomaly detection off", Applicability.UNSAFE, (edit,), reason=reason)
    if not whole or ctx.edit.would_lose_comment(statement):
        return None
    return Fix("Delete the debug setting", Applicability.UNSAFE, ctx.edit.delete_statement(statement), reason=reason)
