"""Reads of the device that cost nothing more because the host has waited already, or that happen when asked for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import FUNCTION, Context, Tag, callee_name, guards, last_name, pattern, walk

from .printing import is_formatter, printed_in
from .waits import device_read, is_on_device

#: Calls that queue a good part of a step's work.
_WORK = frozenset("backward manual_backward step grad forward generate train_step training_step compute_loss".split())
_READS = frozenset({"item", "tolist", "cpu", "numpy"})
#: Flags that ask for text.
_ASKED = pattern(r"(?:^|_)(?:verbose|verbosity|debug|dbg|quiet|silent|print|show|trace|log)(?:_|$)", re.IGNORECASE)
#: Functions that tell of something that went wrong.
_COMPLAINS = pattern(r"warn|error|fail|critical|exception|alert", re.IGNORECASE)


def has_waited(node: ast.expr, ctx: Context) -> bool:
    """Whether the host waits for the device just before `node` in any case, with no work to speak of queued between."""
    statement = ctx.tree.statement_of(node)
    if any(_is_before(read, node) for read in _reads_in(statement, ctx)):
        return True
    child: ast.AST = statement
    for outer in ctx.tree.ancestors(statement):
        for block in _blocks(outer):
            if child in block:
                for earlier in reversed(block[: block.index(child)]):
                    waits = _waits_in(earlier, ctx)
                    if waits is not None:
                        return waits
        if isinstance(outer, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        child = outer
    return False


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def _waits_in(statement: ast.stmt, ctx: Context) -> bool | None:
    """True where a statement waits for the device last, False where it queues work last, None where it does neither."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return None
    if isinstance(statement, ast.If) and guards.classify(statement.test, statement.body) is None:
        # As often as not: what is read at its end has been waited for.
        for inner in reversed(statement.body):
            waits = _waits_in(inner, ctx)
            if waits is not None:
                return waits
    if isinstance(statement, (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try)):
        # What is in such a block may not run: it queues work, but does not certainly wait.
        works = any(_is_work(part, ctx) for part in walk(statement) if isinstance(part, ast.Call))
        return False if works else None
    last: tuple[tuple[int, int], bool] | None = None
    for read in _reads_in(statement, ctx):
        last = max(last or (_end(read), True), (_end(read), True))
    for part in walk(statement):
        if isinstance(part, ast.Call) and _is_work(part, ctx):
            found = _end(part), _reads_at_its_end(part, ctx)
            last = max(last, found) if last is not None else found
    return None if last is None else last[1]


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def _is_before(read: ast.expr, node: ast.expr) -> bool:
    return _end(read) <= (node.lineno, node.col_offset)


def _reads_in(statement: ast.stmt, ctx: Context) -> Iterator[ast.expr]:
    """The expressions of a statement that wait for the device whenever it runs."""
    for part in walk(statement):
        if isinstance(part, ast.expr) and not _is_conditional(part, statement, ctx):
            if device_read(part, ctx) is not None:
                yield part
            elif isinstance(part, (ast.JoinedStr, ast.BinOp, ast.Call)) and is_formatter(part, ctx):
                if any(True for _ in printed_in(part, ctx)):
                    yield part


def _is_conditional(part: ast.expr, statement: ast.stmt, ctx: Context) -> bool:
    """Whether `part` may not run, or run several times, when its statement does."""
    child: ast.AST = part
    for outer in ctx.tree.ancestors(part):
        if outer is statement:
            return False
        if isinstance(outer, (ast.Lambda, ast.comprehension)) or (
            isinstance(outer, (ast.IfExp, ast.BoolOp)) and child is not getattr(outer, "test", None)
        ):
            return True
        child = outer
    return False


def _is_work(call: ast.Call, ctx: Context) -> bool:
    """Whether a call may queue a good part of a step's work: all functions of the project are taken to."""
    name = callee_name(call)
    if name in _WORK or ctx.kind(call.func).tag is Tag.MODULE:
        return True
    ref = ctx.project_target(call.func)
    return ref is not None and ref.kind == FUNCTION


def _reads_at_its_end(call: ast.Call, ctx: Context) -> bool:
    """Whether a function of the project brings something to the host: then, as far as one sees, the device has done
    all before.
    """
    ref = ctx.project_target(call.func)
    if ref is None or ref.kind != FUNCTION:
        return False
    facts = ctx.program.summaries[ref.path].functions.get(ref.name)
    return facts is not None and not _READS.isdisjoint(facts.identifiers.split())


def is_asked_for(node: ast.AST, ctx: Context) -> bool:
    """Whether `node` only runs under a flag that asks for text, because of what a device tensor held (the test has
    waited then), or where something went wrong.
    """
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return bool(_COMPLAINS.search(outer.name))
        if isinstance(outer, ast.If) and child is not outer.test:
            block = outer.body if child in outer.body else outer.orelse
            if child in outer.body and _is_flag(outer.test):
                return True
            if _depends_on_device(outer.test, ctx) or _complains(block):
                return True
        child = outer
    return False


def _is_flag(test: ast.expr) -> bool:
    """`verbose`, `self.debug and step > 0`, `log_level > 1`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_is_flag(item) for item in test.values)
    if isinstance(test, ast.Compare):
        test = test.left
    return bool(_ASKED.search(last_name(test)))


def _depends_on_device(test: ast.expr, ctx: Context) -> bool:
    for part in walk(test):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) and is_on_device(part, ctx):
            parent = ctx.tree.parent(part)
            if not isinstance(parent, ast.Attribute) and not _asks_for_none(parent):
                return True
    return False


def _asks_for_none(parent: ast.AST | None) -> bool:
    return isinstance(parent, ast.Compare) and isinstance(parent.ops[0], (ast.Is, ast.IsNot))


def _complains(block: list[ast.stmt]) -> bool:
    return any(
        isinstance(part, ast.Raise) or (isinstance(part, ast.Call) and _COMPLAINS.search(callee_name(part)) is not None)
        for statement in block
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        for part in walk(statement)
    )
