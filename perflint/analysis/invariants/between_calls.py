"""What happens between two calls of a function: whether the first always ran, what may change a model or its input."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import FORWARD_METHODS, is_forward
from perflint.analysis.gradients.helper_forwards import Behind, is_changed
from perflint.analysis.invariants.in_loops import writes_data
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import arguments_of
from perflint.syntax.walk import walk

_SWITCHES = frozenset(
    "train load_state_dict step update fuse quantize disable_adapter enable_adapter set_adapter merge_adapter apply "
    "register_forward_hook add_hook reset_hooks remove unload prune half float requires_grad_ backward dropout "
    "enable_dropout seed manual_seed disable_adapters enable_adapters copy_ mul_ add_ data".split()
)


def comes_before(first: ast.Call, second: ast.Call, ctx: FileFacts) -> bool:
    """Whether the first has always run when the second does: before it, or in a loop before it that always turns."""
    graph, loop = ctx.control_flow(second), next(iter(ctx.loops(first)), None)
    if graph.dominates(first, second):
        return True
    if loop is None or loop in ctx.loops(second) or not _always_turns(loop) or not graph.dominates(loop, second):
        return False
    return not any(loop in ctx.loops(test) for test, _ in ctx.conditions(first))


def _always_turns(loop: ast.stmt) -> bool:
    """Whether a loop is over what is written there, so that its body has run when it is over."""
    return isinstance(loop, ast.For) and isinstance(loop.iter, (ast.List, ast.Tuple)) and bool(loop.iter.elts)


def managers_around(node: ast.AST, ctx: FileFacts) -> list[str]:
    """The context managers around a call but those that only switch gradients or precision."""
    found = []
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            texts = [ctx.text(item.context_expr) for item in outer.items]
            found += [text for text in texts if "no_grad" not in text and "inference_mode" not in text]
    return found


def is_switched_between(
    first: ast.Call, second: ast.Call, behind: Behind | None, function: ast.stmt, ctx: FileFacts
) -> bool:
    """Whether anything between the two may change the module or its input."""
    start, end = (first.end_lineno or 0, first.end_col_offset or 0), (second.lineno, second.col_offset)
    own = set(names_in(first.func if behind is None or behind.model is None else behind.model))
    given = {part.id for item in arguments_of(first) for part in walk(item) if isinstance(part, ast.Name)}
    for part in walk(function):
        if not isinstance(part, (ast.expr, ast.stmt)) or not start <= (part.lineno, part.col_offset) < end:
            continue
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _SWITCHES:
            return True
        if writes_data(part):
            return True
        if isinstance(part, ast.Call) and not is_forward(part, ctx) and own & set(_passed(part)):
            return True
        if isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, ast.Store):
            if set(names_in(part)) & given or _is_part_of_model(part, first, behind, ctx):
                return True
        if isinstance(part, ast.AugAssign) and set(names_in(part.target)) & given:
            return True
    return False


def _is_part_of_model(stored: ast.expr, run: ast.Call, behind: Behind | None, ctx: FileFacts) -> bool:
    """Whether what is stored to is the model, a part of it, or what holds it: `holder.model` is not `holder.other`."""
    if behind is not None:
        return is_changed(run, behind, [stored], ctx)
    while isinstance(stored, ast.Subscript):
        stored = stored.value
    func = run.func
    model = func.value if isinstance(func, ast.Attribute) and func.attr in FORWARD_METHODS else func
    one, other = f"{ctx.text(stored)}.", f"{ctx.text(model)}."
    return one.startswith(other) or (other.startswith(one) and one != "self.")


def _passed(call: ast.Call) -> Iterator[str]:
    """Names a call is given; a method's receiver is none."""
    for item in arguments_of(call):
        if isinstance(item, (ast.Name, ast.Attribute)):
            yield from names_in(item)
