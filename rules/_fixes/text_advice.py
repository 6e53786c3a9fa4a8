"""What to say of device values that become text, and what to do about them."""

from __future__ import annotations

import ast

from perflint.api import Context
from perflint.api.waits import Printed


def message_of_text(node: ast.expr, printed: list[Printed], ctx: Context, *, tracks: bool) -> str:
    waits = sum(item.waits for item in printed)
    names = _listed([ctx.text(item.value) for item in printed])
    several = len({ctx.text(item.value) for item in printed}) > 1
    verb = "is passed to the tracker" if tracks else "becomes text"
    if several:
        verb = "are passed to the tracker" if tracks else "become text"
    often = "synchronizes" if waits == 1 else f"synchronizes {waits} times"
    if any(item.waits > 1 for item in printed):
        often = f"synchronizes at least {waits} times"
    return f"{names} {verb}, which {ctx.heat(node).phrase} and {often}."


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in dict.fromkeys(names)]
    if len(quoted) > 3:
        return f"{', '.join(quoted[:2])} and {len(quoted) - 2} more values"
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def advice_for_text(printed: list[Printed], ctx: Context) -> str:
    costly = next((item for item in printed if item.waits > 1), None)
    if costly is not None and ctx.kind(costly.value).scalar:
        return f"Print every N steps, and as a number: `{ctx.edit.receiver(costly.value)}.item()` synchronizes once."
    return "Print every N steps only."
