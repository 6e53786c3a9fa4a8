"""What the rules about freeing memory share."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.models import RUNS_MODEL
from perflint.analysis.naming.phases import GIVES_UP, RETRIES, SAVES_MEMORY, WEIGHED
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import callee_name, is_constant
from perflint.ir.notation import last_name
from perflint.ir.summary import FunctionFacts
from perflint.syntax.walk import walk

_PRESSURE = frozenset(
    "memory_allocated memory_reserved max_memory_allocated mem_get_info virtual_memory memory_percent memory_usage "
    "get_memory free_memory used_memory memory_summary memory_stats is_oom oom low_memory".split()
)


_MEASURING = ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_accumulated_memory_stats")


#: What starts and stops an engine that shares the device.
_WAKES = frozenset({"wake_up", "wakeup", "sleep", "resume_memory_occupation", "release_memory_occupation"})
_PAUSES = frozenset({"time.sleep", "asyncio.sleep"})


def is_weighed(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether a comment on the line of the call says that it makes the step slower."""
    line = ctx.source.lines[node.lineno - 1]
    return "#" in line and bool(WEIGHED.search(line.partition("#")[2]))


def is_outside_training(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the call only runs where a module is not trained, `if not self.training: del scores; empty_cache()`: so
    that an input fits that is larger than those of the training.
    """
    return any(
        not holds and isinstance(test, ast.Attribute) and test.attr == "training"
        for test, holds in ctx.conditions(node)
    )


def is_where_something_moved(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the call only runs where a test finds something on another device, or on the turn that a loop begins
    with: `if self.head.weight.device != self.device`, `if _ == 0`.
    """
    loops = ctx.loops(node)
    batch = {name for loop in loops[:1] for name in names_in(getattr(loop, "target", ast.Pass()))}
    turns = {name for loop in loops for name in names_in(getattr(loop, "target", ast.Pass()))}
    for test, holds in ctx.conditions(node, exits=False):
        if not (holds and isinstance(test, ast.Compare) and len(test.ops) == 1 and ctx.loops(test) == loops):
            continue
        if isinstance(test.ops[0], ast.NotEq) and _asks_for_device(test.left, batch):
            return True
        if isinstance(test.ops[0], ast.Eq) and is_constant(test.comparators[0], 0) and last_name(test.left) in turns:
            return True
    return False


def _asks_for_device(asked: ast.expr, batch: set[str]) -> bool:
    """`weight.device`, `weight.get_device()`; a batch is on the host on every turn."""
    asks = last_name(asked.func if isinstance(asked, ast.Call) else asked) in ("device", "get_device")
    return asks and batch.isdisjoint(names_in(asked))


def is_beside_an_engine(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether an engine that shares the device is woken or put to sleep in the same block."""
    statement = ctx.tree.statement_of(node)
    called = [part for item in ctx.tree.block_of(statement) for part in walk(item) if isinstance(part, ast.Call)]
    return any(callee_name(part) in _WAKES and ctx.target(part.func) not in _PAUSES for part in called)


def has_run_a_whole_loop(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a turn of the loop that leads here runs a model again and again, in a loop of a function of its own: a
    volume window by window, a sample step by step, all data for one row of a result. Once beside that is rare.
    """
    found = ctx.program.step_loop(ctx.scope(node), ctx.context(node))
    if found is None or ctx.role(node) == "train":
        return False
    scope, loop = found
    facts = ctx.program.function(scope)
    around = [outer.lineno for outer in ctx.loops(node)]
    if around and (scope != ctx.scope(node) or facts.loops[loop].line != around[0]):
        return False  # emptied in the inner loop
    inside = {call.context for call in facts.calls if loop in facts.loops_around(call.context)}
    below = [edge.callee for edge in ctx.program.graph.outgoing.get(scope, ()) if edge.context in inside]
    deeper = [edge.callee for item in below for edge in ctx.program.graph.outgoing.get(item, ())]
    return any(_runs_models_in_a_loop(ctx.program.function(item)) for item in (*below, *deeper))


def _runs_models_in_a_loop(facts: FunctionFacts) -> bool:
    """Not `for net in self.nets: x = net(x)`: those are the parts of one forward."""
    return any(
        RUNS_MODEL.search(last_of(call.func))
        and not any(last_of(call.func) in facts.loops[at].targets for at in around)
        for call in facts.calls
        if (around := facts.loops_around(call.context))
    )


def measures_memory(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the call stands beside one that sets the measured peak back: a clean start for a measurement."""
    block = ctx.tree.parent(ctx.tree.statement_of(node))
    beside = [item for item in getattr(block, "body", []) if isinstance(item, ast.Expr)]
    return any(isinstance(item.value, ast.Call) and callee_name(item.value) in _MEASURING for item in beside)


def gives_up_the_step(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the call stands where a batch is left out: `if has_nan: ...; continue`."""
    for test, holds in ctx.conditions(node, exits=False):
        branch = ctx.tree.statement_of(test)
        if holds and isinstance(branch, ast.If) and isinstance(branch.body[-1], (ast.Continue, ast.Return)):
            if ctx.loops(test) == ctx.loops(node) and any(GIVES_UP.search(name) for name in names_in(test)):
                return True
    return False


def is_load_shedding(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` runs only when memory is short: under a test of how much is used, or in what tries again then; or
    where a switch says that speed is given up for it.
    """
    if any(RETRIES.search(name) for name in ctx.scope(node).function.split(".")):
        return True
    names = (last_name(part) for test, _ in ctx.conditions(node, exits=False) for part in walk(test))
    return any(
        name in _PRESSURE or SAVES_MEMORY.search(name) is not None or ("memory" in name and "pin" not in name)
        for name in names
    )
