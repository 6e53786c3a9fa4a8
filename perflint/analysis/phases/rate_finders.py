"""What is run once, before training, to find a learning rate to train with."""

from __future__ import annotations

import ast

from perflint.syntax.walk import walk

_FIRST_RATE, _LAST_RATE = frozenset({"start_lr", "lr_start"}), frozenset({"end_lr", "lr_end"})


def sweeps_rate(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is given both ends of a range of learning rates, goes through it until it breaks off, and
    gives back what it saw: it is run once, before training.
    """
    given = {item.arg for item in (*function.args.args, *function.args.kwonlyargs)}
    if not (_FIRST_RATE & given and _LAST_RATE & given):
        return False
    parts = list(walk(function))
    return any(isinstance(part, ast.Break) for part in parts) and any(
        isinstance(part, ast.Return) and part.value is not None for part in parts
    )
