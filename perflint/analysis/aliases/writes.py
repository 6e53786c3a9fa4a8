"""Whether a tensor may be written into after it was read from: what an asynchronous copy must not meet."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from perflint.analysis.aliases.points_to import ARRAYS, FILLING, Memory, meet
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import arguments_of, callee_name, keyword
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

#: Functions that write into nothing that they are given.
_READING = frozenset(
    "len print isinstance type repr str id hasattr getattr float int bool list tuple dict set zip enumerate map filter "
    "iter next reversed sorted sum min max range any all abs round".split()
)
#: Methods that write into nothing that they are given.
_READING_METHODS = (
    tensors.VIEW_METHODS
    | tensors.TUPLE_METHODS
    | tensors.CAST_METHODS
    | tensors.FRESH_METHODS
    | FILLING
    | {"to", "cpu", "numpy", "pin_memory", "get", "pop", "items", "format", "join", "info", "debug", "warning"}
)
#: What writes into its receiver, beside all that ends in an underscore.
_WRITING = tensors.IN_PLACE_METHODS | {"fill", "sort", "put", "partition", "itemset", "resize"}
#: What changes no number of its receiver.
_HARMLESS = tensors.VIEW_METHODS | {"requires_grad_"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Write(NamedTuple):
    """Something that may write into the memory of one of the targets, or hand it out to who may."""

    part: ast.AST
    targets: list[ast.expr]
    #: Whether it is plain to see: no call that cannot be looked into.
    plain: bool = True


def changes_later(value: ast.expr, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the memory of `value` may be written into, in place, after `node` has begun to read it.

    Looks at the function, and at all around it and in it: writes through the value's name, through names of its views
    and of what it is part of, and calls that cannot be seen and are given one of them.
    """
    around = ctx.tree.outermost_scope(node)
    memory = Memory(around, node, ctx)
    if memory.is_handed_out(value) or _is_of_lambda(value, ctx):
        return True
    # Of two calls that cannot be seen, one that hands back what it is given and one that writes into it, too little is
    # known to count them together.
    sources = {through: memory.spots(value, through=through) for through in (False, True)}
    for write in ctx.once(_writes_in, around):
        targets = [item for item in write.targets if not _holds(item, node)]
        if not targets or _holds(node, write.part):
            continue
        if is_behind(write.part, node, ctx):
            if any(meet(memory.spots(item, through=write.plain), sources[write.plain]) for item in targets):
                return True
        elif (loop := _common_loop(write.part, node, ctx)) is not None:
            before = memory.spots(value, loop, through=write.plain)
            written = (memory.spots(item, loop, through=write.plain) for item in targets)
            if any(meet(spots, before, earlier=True) for spots in written):
                return True
    return False


def is_written_in(value: ast.expr, region: ast.AST, ctx: FileFacts) -> bool:
    """Whether the memory of `value` is plain to see written into in a region, by its name or by one that shares it."""
    memory = Memory(ctx.tree.outermost_scope(value), value, ctx, host=False)
    source = memory.spots(value)
    written = (write for write in _writes(walk(region), memory) if write.plain)
    return any(meet(memory.spots(item), source) for write in written for item in write.targets)


def _writes_in(region: ast.AST, ctx: FileFacts) -> list[Write]:
    """What may write into memory on the host, in all of a function or module."""
    return [write for write in _writes(walk(region), Memory(region, region, ctx)) if write.targets]


def writes_of(region: ast.AST, memory: Memory) -> Iterator[Write]:
    """What may write into memory in all of a function, by its name or through a call that cannot be seen."""
    return _writes(walk(region), memory)


def _is_of_lambda(value: ast.expr, ctx: FileFacts) -> bool:
    """`map(lambda part: part.cuda(), batch)`: what is handed to it cannot be seen."""
    names = {item.id for item in walk(value) if isinstance(item, ast.Name)}
    lambdas = (outer for outer in ctx.tree.ancestors(value) if isinstance(outer, ast.Lambda))
    return any(item.arg in names for outer in lambdas for item in walk(outer.args) if isinstance(item, ast.arg))


def _writes(region: Iterable[ast.AST], memory: Memory) -> Iterator[Write]:
    for part in region:
        if isinstance(part, (ast.Yield, ast.Return)) and part.value is not None:
            given = part.value.elts if isinstance(part.value, (ast.Tuple, ast.List)) else [part.value]
            yield Write(part, [item for item in given if not memory.has_none(item)], plain=False)
        elif isinstance(part, ast.AugAssign):
            if isinstance(part.target, ast.Name) or not memory.has_none(part.target):
                yield Write(part, [part.target])
        elif isinstance(part, ast.Subscript):
            if isinstance(part.ctx, ast.Store) and not _binds_entry(part, memory):
                yield Write(part, [part.value])
        elif isinstance(part, ast.Call):
            yield from _of_call(part, memory)


def _binds_entry(target: ast.Subscript, memory: Memory) -> bool:
    """An entry of a mapping or a list is bound anew; an element of a tensor is written."""
    if isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
        return True
    if memory.ctx.kind(target.value).tag in (Tag.SEQUENCE, Tag.MAPPING):
        return True
    statement = memory.ctx.tree.statement_of(target)
    return memory.host and isinstance(statement, ast.Assign) and memory.ctx.kind(statement.value).on_accelerator


def _of_call(call: ast.Call, memory: Memory) -> Iterator[Write]:
    func, name = call.func, callee_name(call)
    in_place = name.endswith("_") and not name.endswith("__") and name not in _HARMLESS
    if isinstance(func, ast.Attribute) and (in_place or name in _WRITING) and not memory.has_none(func.value):
        yield Write(call, [func.value])
    out = [item.value for item in call.keywords if item.arg == "out"]
    if out:
        yield Write(call, out)
    target = memory.ctx.target(func) or ""
    if in_place:
        yield Write(call, call.args[:1])
    given = arguments_of(call)
    if keyword(call, "inplace") is not None:
        yield Write(call, given)
    if target.startswith("torch.") and not target.endswith("_") and not isinstance(func, ast.Call):
        return
    if target in ARRAYS:
        return
    if (isinstance(func, ast.Name) and name in _READING) or (
        isinstance(func, ast.Attribute) and name in _READING_METHODS
    ):
        return
    yield Write(call, [item for item in given if not memory.has_none(item)], plain=False)


def is_behind(part: ast.AST, node: ast.Call, ctx: FileFacts) -> bool:
    """Whether `part` may run after `node`, in the same turn of all loops."""
    if _holds(part, node):
        return True  # `show(images.cuda(), images)`
    if ctx.tree.scope_of(part) is not ctx.tree.scope_of(node):
        return True  # it runs whenever the function that it stands in is called
    statement = ctx.tree.statement_of(node)
    if ctx.tree.statement_of(part) is statement and isinstance(part, (ast.Subscript, ast.AugAssign)):
        return True  # the target comes last
    end = (node.end_lineno, node.end_col_offset)
    if isinstance(statement, ast.Return) or (part.lineno, part.col_offset) < end:  # type: ignore[attr-defined]
        return False
    return not ctx.are_exclusive(node, part)


def _common_loop(part: ast.AST, node: ast.AST, ctx: FileFacts) -> ast.AST | None:
    loops = {id(loop) for loop in ctx.loops(part)}
    return next((loop for loop in ctx.loops(node) if id(loop) in loops), None)


def _holds(outer: ast.AST, part: ast.AST) -> bool:
    return any(inner is part for inner in walk(outer))
