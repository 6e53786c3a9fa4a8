"""Names that stand for whole numbers which callers choose, of which there are few."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_parts import targets_and_items
from perflint.analysis.naming.values import WHOLE_NUMBERS


def are_numbers_of_callers(names: set[str], loops: list[ast.AST], node: ast.AST, ctx: FileFacts) -> bool:
    """Whether all of these names are whole numbers that callers choose, or what loops go through of such: versions,
    layers.
    """
    function = ctx.tree.function_of(node)
    if function is None:
        return False
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    numbers = {
        item.arg for item in given if item.annotation is not None and WHOLE_NUMBERS.fullmatch(ctx.text(item.annotation))
    }
    for loop in loops:
        for target, items in targets_and_items(loop):
            if isinstance(target, ast.Name) and isinstance(items, ast.Name) and items.id in numbers:
                numbers.add(target.id)
    return bool(names) and names <= numbers
