"""What the rules about work in loops share: what a loop is for, and what stays the same in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.analysis.naming.loops import STARTS_AFRESH
from perflint.analysis.naming.phases import TRAINS
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

#: What reads a clock, by last names.
CLOCKS = frozenset({"time", "perf_counter", "monotonic", "process_time", "time_ns", "perf_counter_ns", "default_timer"})
_TIMING = frozenset(
    "perf_counter synchronize elapsed_time timeit do_bench profile warmup n_warmup num_warmup "
    "elapsed process_time monotonic".split()
)


def names_in(node: ast.AST) -> Iterator[str]:
    for part in walk(node):
        if type(part) is ast.Name:
            yield part.id
        elif type(part) is ast.Attribute:
            yield part.attr


def trains_inside(loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a loop trains something, itself or in a function of the project that it calls."""
    if any(TRAINS.search(name) for name in names_in(loop)):
        return True
    for part in walk(loop):
        if isinstance(part, ast.Call):
            if isinstance(part.func, ast.Attribute) and part.func.attr == "train" and part.args:
                return True
            if isinstance(part.func, ast.Name) and part.func.id == "train":
                return True
            target = ctx.project_target(part.func)
            if target is not None and target.kind == "function" and ctx.program.trains(Scope(target.path, target.name)):
                return True
    return False


def starts_afresh(loop: ast.stmt) -> bool:
    """Whether a loop runs over folds, seeds, trials or the like, each of which needs a model of its own."""
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        return any(STARTS_AFRESH.search(name) for part in (loop.target, loop.iter) for name in names_in(part))
    return isinstance(loop, ast.While) and any(STARTS_AFRESH.search(name) for name in names_in(loop.test))


def is_timing(node: ast.AST) -> bool:
    """Whether code measures time: it repeats itself on purpose."""
    # `timeit.default_timer()` is a clock as `time.time()` is, which shows how fast a training is.
    clocks = {id(part.value) for part in walk(node) if isinstance(part, ast.Attribute) and part.attr in CLOCKS}
    return any(
        getattr(part, "id", getattr(part, "attr", "")) in _TIMING for part in walk(node) if id(part) not in clocks
    ) or any(
        # What is called a benchmark may also be a data set.
        isinstance(part, ast.Call) and (callee_name(part) == "benchmark" or _is_timer(part.func))
        for part in walk(node)
    )


def is_between_clocks(loop: ast.stmt, ctx: FileFacts) -> bool:
    """Whether a loop stands between two readings of a clock, `began = time.time()` right before it and right behind,
    with nothing else between them than a wait for the device, or what switches gradients off around it.
    """
    statement, outer = loop, ctx.tree.parent(loop)
    while isinstance(outer, (ast.With, ast.AsyncWith)) and outer.body == [statement]:
        statement, outer = outer, ctx.tree.parent(outer)
    block = [item for item in ctx.tree.block_of(statement) if not _waits_only(item)]
    at = block.index(statement) if block else 0
    beside = [*block[max(at - 1, 0) : at], *block[at + 1 : at + 2]]
    return len(beside) == 2 and all(_reads_a_clock(item) for item in beside)


def _waits_only(statement: ast.stmt) -> bool:
    """`torch.cuda.synchronize()`"""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Call) and callee_name(value) == "synchronize"


def _reads_a_clock(statement: ast.stmt) -> bool:
    return any(isinstance(part, ast.Call) and callee_name(part) in CLOCKS for part in walk(statement))


def _is_timer(func: ast.expr) -> bool:
    """`benchmark.Timer` of `torch.utils`."""
    return isinstance(func, ast.Attribute) and func.attr == "Timer" and "benchmark" in names_in(func.value)


def is_forever(loop: ast.stmt) -> bool:
    """A service loop: what it calls answers a world that changes."""
    return isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)


def only_repeats(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
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


def tries_until(loop: ast.stmt) -> bool:
    """Whether the loop is one that tries until something works."""
    return any(isinstance(part, (ast.Break, ast.Return, ast.Try)) for part in walk(loop))


def drains(loop: ast.stmt) -> bool:
    """Whether the loop takes what it is handed out of a container until that is empty: it turns once for each of the
    few things that somebody put there, and a set-up hands over one.
    """
    if not isinstance(loop, ast.While):
        return False
    tested = set(names_in(loop.test))
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in ("pop", "popleft", "popitem", "get_nowait")
        and isinstance(part.func.value, ast.Name)
        and part.func.value.id in tested
        for part in walk(loop)
    )


def is_timed_each_turn(node: ast.Call, loop: ast.For) -> bool:
    """Whether a clock is read in the loop before a call and after it: how long each takes is the question."""
    clocks = [part.lineno for part in walk(loop) if isinstance(part, ast.Call) and callee_name(part) in CLOCKS]
    return any(line < node.lineno for line in clocks) and any(line > node.lineno for line in clocks)
