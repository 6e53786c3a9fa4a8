"""Loops over parts of which there need not be many, as far as their headers say."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.data import COLLECTED
from perflint.analysis.naming.loops import HANDFUL, MANY
from perflint.analysis.naming.models import STATE_DICT
from perflint.analysis.naming.values import KEY, NAME_OF_PART
from perflint.analysis.phases.loop_purpose import names_in
from perflint.finding import Heat
from perflint.ir.calls import callee_name
from perflint.ir.notation import last_name
from perflint.syntax.named import mentions_name
from perflint.syntax.walk import walk

#: What gives all that a file or a folder holds.
_READS = frozenset("read readlines splitlines iterrows itertuples glob rglob iterdir listdir scandir".split())


def goes_over_a_handful(loop: ast.stmt) -> bool:
    """Whether the header of a loop names what there are few of: `range(num_layers)`, `for crop in crops`."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    if isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Attribute) and loop.iter.func.attr == "items":
        first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
        if isinstance(first, ast.Name) and KEY.match(first.id):
            return True  # things by their kinds
    # Keywords are about how progress is shown: `trange(longest, disable=rank > 0)`.
    shown = {id(part) for item in walk(loop.iter) if isinstance(item, ast.keyword) for part in walk(item)}
    # `range(pad, length - pad)`: that of which there are few is left out at both ends.
    shown |= {
        id(part)
        for item in walk(loop.iter)
        if isinstance(item, ast.BinOp) and isinstance(item.op, ast.Sub)
        for part in walk(item.right)
    }
    if isinstance(loop.iter, ast.Call) and callee_name(loop.iter) in ("range", "trange") and len(loop.iter.args) > 1:
        shown |= {id(part) for part in walk(loop.iter.args[0])}
    return any(
        HANDFUL.search(part.id if isinstance(part, ast.Name) else part.attr)
        for header in (loop.target, loop.iter)
        for part in walk(header)
        if isinstance(part, (ast.Name, ast.Attribute)) and id(part) not in shown
    )


def need_not_be_many(node: ast.AST, loop: ast.stmt, ctx: FileFacts) -> bool:
    if not isinstance(loop, ast.For):
        return False
    if any(isinstance(part, ast.Call) and callee_name(part) in _READS for part in walk(loop.iter)):
        return False
    if ctx.heat(loop) < Heat.STEP <= ctx.body_heat(loop):
        return False  # each turn is a step
    header = list(names_in(loop.iter))
    if any(isinstance(part, ast.Call) and callee_name(part).endswith("range") for part in walk(loop.iter)):
        # What is gone over by its index, if anything is.
        indexed = [
            name
            for part in walk(loop)
            if isinstance(part, ast.Subscript) and mentions_name(part.slice, last_name(loop.target))
            for name in names_in(part.value)
        ]
        if not indexed:
            return False
        header += indexed
    collected = ctx.heat(node) < Heat.STEP and any(COLLECTED.search(name) for name in (*header, *names_in(loop.target)))
    return not collected and not any(MANY.search(name) for name in header)


def goes_over_names_of_parts(loop: ast.AST) -> bool:
    """Whether a loop goes over the names of parameters or modules, of which a model has hundreds (but few children)."""
    return any(
        isinstance(part, ast.Name) and NAME_OF_PART.search(part.id) is not None
        for target, items in targets_and_items(loop)
        if _is_of_a_model(items)
        for part in walk(target)
    )


def targets_and_items(loop: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of a loop or comprehension, each with what it is gone over."""
    if isinstance(loop, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        return [(item.target, item.iter) for item in loop.generators]
    return [(loop.target, loop.iter)] if isinstance(loop, (ast.For, ast.AsyncFor)) else []


def _is_of_a_model(items: ast.expr) -> bool:
    """Whether what is gone over may be all of a model: a state dict or what a model is asked for, no list of names."""
    named = set(names_in(items))
    return "named_children" not in named and any(STATE_DICT.search(name) for name in named)
