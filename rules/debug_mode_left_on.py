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
    argument,
    callee_name,
    debugging,
    is_constant,
    keyword,
    last,
    walk,
)
from perflint.api.names import COMPARES, DIAGNOSES, ENTRY
from perflint.api.phases import is_conversion, is_main_guard, main_guard

#: What a script names that trains, or hands itself to what does.
_TRAINING = ("backward", "fit", "optim", "optimizer", "Trainer", "train", "main", "grad")
#: The last names of what is set, and what sets variables of the environment.
_SET = frozenset(last(name) for name in debugging.SETTINGS)
_WRITERS = ("os.environ.setdefault", "os.environ.update", "os.putenv")


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
        found = _setting(node, ctx) if isinstance(node, ast.Assign) else _switch(node, ctx)
        if found is None or is_conversion(ctx):
            return
        file = ctx.path.rpartition("/")[2]
        if DIAGNOSES.search(file) or COMPARES.search(file) or not _is_unconditional(node, ctx):
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


def _setting(node: ast.Assign, ctx: Context) -> tuple[str, str] | None:
    """`os.environ["NAME"] = "1"` and `torch._dynamo.config.disable = True`."""
    if len(node.targets) != 1:
        return None
    target = node.targets[0]
    # What is written comes first: nearly every assignment sets something else.
    if isinstance(target, ast.Subscript):
        found = _variable(target.slice, node.value)
        return found if found is not None and ctx.target(target.value) == "os.environ" else None
    if isinstance(target, ast.Attribute) and target.attr in _SET and is_constant(node.value, value=True):
        owner = ctx.target(target.value) or ""
        cost = debugging.SETTINGS.get(f"{owner}.{target.attr}")
        return (ctx.text(target), cost) if cost else None
    return None


def _variable(name: ast.expr, value: ast.expr) -> tuple[str, str] | None:
    if not (isinstance(name, ast.Constant) and isinstance(value, ast.Constant)):
        return None
    if not (isinstance(name.value, str) and isinstance(value.value, str)):
        return None
    values, cost = debugging.ENVIRONMENT.get(name.value, (frozenset(), ""))
    on = value.value.upper() in values if values else value.value not in ("", "0")
    return (f"{name.value}={value.value}", cost) if cost and on else None


def _switch(node: ast.AST, ctx: Context) -> tuple[str, str] | None:
    assert isinstance(node, ast.Call)
    name = callee_name(node)
    if name in ("setdefault", "putenv", "update"):
        found = _in_update(node) if name == "update" else _variable(*node.args) if len(node.args) == 2 else None
        return found if found is not None and ctx.target(node.func) in _WRITERS else None
    target = ctx.target(node.func)
    if name == "Trainer":
        is_lightning = target is not None and "lightning" in target
        wanted = is_lightning and is_constant(keyword(node, "detect_anomaly"), value=True)
        return ("detect_anomaly=True", debugging.SWITCHES["torch.autograd.detect_anomaly"]) if wanted else None
    cost = debugging.SWITCHES.get(target or "")
    if cost is None or not _turns_on(node, name):
        return None
    return ctx.text(node), cost


def _in_update(node: ast.Call) -> tuple[str, str] | None:
    for given in node.args:
        if isinstance(given, ast.Dict):
            for key, value in zip(given.keys, given.values):
                found = None if key is None else _variable(key, value)
                if found:
                    return found
    return None


def _turns_on(node: ast.Call, name: str) -> bool:
    if name == "set_detect_anomaly":
        return is_constant(argument(node, 0, "mode"), value=True)
    enabled = argument(node, 0, "enabled")
    if name == "_record_memory_history":
        return enabled is None or (isinstance(enabled, ast.Constant) and enabled.value not in (None, False))
    return name == "detect_anomaly" or enabled is None or is_constant(enabled, value=True)


def _is_unconditional(node: ast.AST, ctx: Context) -> bool:
    """Whether `node` runs in every run: in the module's body or an entry of the program, under no condition."""
    if not all(is_main_guard(test) for test, _ in ctx.conditions(node, outward=True)):
        return False
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if DIAGNOSES.search(outer.name) or not (
                ENTRY.search(outer.name) or ctx.program.trains(ctx.own_scope(outer))
            ):
                return False
        elif isinstance(outer, ast.ClassDef) and DIAGNOSES.search(outer.name):
            return False
        elif isinstance(outer, (ast.ExceptHandler, ast.Lambda, ast.Match)):
            return False
    return not _is_switched_back(node, ctx)


def _walks_back_nothing(node: ast.AST, ctx: Context) -> bool:
    """Whether the line stands in a script that only runs a model: anomalies are looked for in a backward pass."""
    if ctx.mentions(*_TRAINING) or main_guard(node, ctx) is None:
        return False
    return not ctx.program.trains(ctx.scope(node))


def _is_switched_back(node: ast.AST, ctx: Context) -> bool:
    """Whether the file switches the same thing off as well, so that somebody minds it."""
    function = ctx.tree.function_of(node) or ctx.tree.module
    for part in walk(function):
        if part is node or not isinstance(part, ast.Call):
            continue
        if callee_name(part) == "set_detect_anomaly" and is_constant(argument(part, 0, "mode"), value=False):
            return isinstance(node, ast.Call) and callee_name(node) == "set_detect_anomaly"
        if callee_name(part) in ("_record_memory_history", "_dump_snapshot"):
            return isinstance(node, ast.Call) and callee_name(node) == "_record_memory_history"
        if callee_name(part) in ("pop", "unsetenv") and isinstance(node, ast.Assign):
            target = node.targets[0]
            return isinstance(target, ast.Subscript) and ctx.text(target.slice) in ctx.text(part)
    return False


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
