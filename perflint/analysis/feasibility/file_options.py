"""The command line that a file offers, as it writes it down: options with their names and defaults."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import keyword
from perflint.syntax.walk import walk


def is_option(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"


def names_of_option(node: ast.Call) -> Iterator[str]:
    """`--batch-size` and `-b` of `add_argument("--batch-size", "-b")`."""
    return (item.value for item in node.args if isinstance(item, ast.Constant) and isinstance(item.value, str))


def accumulates_by_default(ctx: FileFacts) -> bool:
    """Whether another option asks for accumulation unless told otherwise: who does that has no memory for two."""
    for part in walk(ctx.tree.module):
        if isinstance(part, ast.Call) and is_option(part):
            default = keyword(part, "default")
            named = any("accum" in name for name in names_of_option(part))
            if named and isinstance(default, ast.Constant) and isinstance(default.value, int) and default.value > 1:
                return True
    return False


def steps_here(ctx: FileFacts) -> bool:
    """Whether the file itself walks back and steps: the options of other scripts are about other batches."""
    return ".backward(" in ctx.source.text and ".step(" in ctx.source.text
