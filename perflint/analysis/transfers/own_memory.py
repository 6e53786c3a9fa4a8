"""Operations on the host whose result a program copies to the device: ordinary memory, whatever the loader pins.

Views keep the memory that they are of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.aliases.new_tensors import is_new_tensor
from perflint.analysis.elsewhere import definition_of
from perflint.analysis.feasibility.at_nodes import conditions_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.analysis.values.kind import Tag
from perflint.finding import Heat
from perflint.ir.calls import argument, callee_name, is_constant
from perflint.ir.computed import expression
from perflint.syntax.bindings import Binding, Definition
from perflint.torch_model import tensors

#: What gives a view of the receiver, or of its first argument, or the receiver itself.
_VIEWS = tensors.VIEW_METHODS | frozenset("chunk split tensor_split unbind hsplit vsplit dsplit Variable".split())
_DEPTH = 8


def made_anew(moved: ast.expr, ctx: FileFacts) -> ast.expr | None:
    """The operation whose result is moved, or a view of it: of `torch.clamp(x, 0, 1)[0]` the call. None where what is
    moved may be the memory of something that was there before.
    """
    return ctx.once(_made_anew, moved)


def _made_anew(moved: ast.expr, ctx: FileFacts) -> ast.expr | None:
    found = list(_makers(moved, ctx, set(), _DEPTH))
    return found[0] if found and None not in found else None


def _makers(value: ast.expr, ctx: FileFacts, seen: set[int], depth: int) -> Iterator[ast.expr | None]:
    if depth == 0:
        yield None
    elif isinstance(value, ast.Name):
        yield from _of_name(value, ctx, seen, depth)
    elif isinstance(value, ast.IfExp):
        yield from _makers(value.body, ctx, seen, depth - 1)
        yield from _makers(value.orelse, ctx, seen, depth - 1)
    elif isinstance(value, ast.Subscript):
        if ctx.kind(value.value).is_tensor and ctx.kind(value.slice).is_tensor:
            yield value
        else:
            yield from _makers(value.value, ctx, seen, depth - 1)
    elif is_new_tensor(value, ctx, changes=False):
        yield value
    elif isinstance(value, ast.Call):
        yield from _of_call(value, ctx, seen, depth)
    else:
        yield None


def _of_call(call: ast.Call, ctx: FileFacts, seen: set[int], depth: int) -> Iterator[ast.expr | None]:
    if callee_name(call) in _VIEWS and ctx.project_target(call.func) is None:
        is_function = (ctx.target(call.func) or "").startswith("torch.")
        source = next(iter(call.args), None) if is_function else getattr(call.func, "value", None)
        yield from _makers(source, ctx, seen, depth - 1) if source is not None else (None,)
        return
    target = ctx.project_target(call.func)
    found = (
        definition_of(Scope(target.path, target.name), ctx) if target is not None and target.kind == FUNCTION else None
    )
    if found is None:
        yield None
        return
    function, there = found
    returns = [part for part in there.walk(function) if isinstance(part, ast.Return) and part.value is not None]
    own = [item for item in returns if there.tree.function_of(item) is function]
    given = [item for item in own if not _needs_none(item, function, there, call, ctx)]
    made = [each for item in given if item.value is not None for each in _makers(item.value, there, set(), depth // 2)]
    yield call if made and None not in made else None


def _needs_none(
    item: ast.Return, function: ast.FunctionDef | ast.AsyncFunctionDef, there: FileFacts, call: ast.Call, ctx: FileFacts
) -> bool:
    """Whether a function returns there only where it is not given what the call gives: `if count is None: return x`."""
    names = [param.arg for param in function.args.args]
    for test, holds in there.conditions(item):
        if not holds or not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Is):
            continue
        if (
            not isinstance(test.left, ast.Name)
            or test.left.id not in names
            or not is_constant(test.comparators[0], None)
        ):
            continue
        given = argument(call, names.index(test.left.id), test.left.id)
        if given is not None and ctx.kind(given).tag is Tag.NUMBER and not ctx.kind(given).optional:
            return True
    return False


def _of_name(name: ast.Name, ctx: FileFacts, seen: set[int], depth: int) -> Iterator[ast.expr | None]:
    definitions = _that_count(ctx.inference.flow.definitions(name), name, ctx)
    if not definitions:
        yield None
    for item in definitions:
        if item.binding is not Binding.ASSIGN or item.value is None:
            yield None
        elif id(item) not in seen:  # each is asked once: `x = x[0]` of a loop is what the others say
            seen.add(id(item))
            yield from _makers(item.value, ctx, seen, depth - 1)


def _that_count(definitions: tuple[Definition, ...], name: ast.Name, ctx: FileFacts) -> list[Definition]:
    """The definitions but those that another one always overwrites: `if clamped: x = x.clamp(0, 1)` with an option that
    is never off.
    """
    for item in definitions:
        if isinstance(item.node, ast.Assign) and len(definitions) > 1 and _always_runs(item.node, name, ctx):
            place = item.node.lineno
            return [other for other in definitions if getattr(other.node, "lineno", place) >= place]
    return [*definitions]


def _always_runs(statement: ast.Assign, use: ast.Name, ctx: FileFacts) -> bool:
    """Whether a run that comes to a use has come through a statement of a branch before it."""
    if statement.lineno >= use.lineno or ctx.tree.scope_of(statement) is not ctx.tree.scope_of(use):
        return False
    branch = ctx.tree.parent(statement)
    if not isinstance(branch, ast.If) or statement not in branch.body or branch.orelse:
        return False
    if ctx.tree.parent(branch) not in list(ctx.tree.ancestors(use)):
        return False
    test = expression(branch.test)
    if test is None:
        return False
    scope, context = ctx.scope(branch), ctx.context(branch)
    where = (*conditions_of(branch, ctx), (test, False))
    return not ctx.program.feasible(scope, context, where, Heat.ONCE, (branch.lineno, branch.col_offset)).feasible
