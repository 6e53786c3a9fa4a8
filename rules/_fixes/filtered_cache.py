"""A run that keeps the activations which are read, by a filter of their names."""

from __future__ import annotations

import ast

from perflint.api import Applicability, Context, Fix, walk


def filtered(call: ast.Call, items: list[ast.expr], ctx: Context) -> Fix | None:
    """The call with a filter, where the keys can be written so that they mean the same before the call."""
    keys = [_before(item, call, ctx) for item in items]
    if not all(keys):
        return None
    return Fix(
        "Keep only the activations that are read",
        Applicability.UNSAFE,
        (ctx.edit.set_keyword(call, "names_filter", keys[0] if len(keys) == 1 else f"[{', '.join(keys)}]"),),
        reason="a cache is also read by short names of activations, and a filter takes full names only",
        numerics="same bits",
    )


def _before(key: ast.expr, call: ast.Call, ctx: Context) -> str:
    """A key as it can be written at the call: itself, or what a name is bound to behind it; empty where it cannot."""
    if isinstance(key, ast.Name) and not _is_known_before(key, call, ctx):
        definitions = ctx.inference.flow.definitions(key)
        value = definitions[0].value if len(definitions) == 1 and not definitions[0].path else None
        if not isinstance(value, (ast.Constant, ast.JoinedStr)):
            return ""
        key = value
    return ctx.text(key) if _is_full_name(key) and _is_known_before(key, call, ctx) else ""


def _is_full_name(key: ast.expr) -> bool:
    """`"blocks.5.hook_resid_post"`, `f"blocks.{layer}.hook_z"`, and names of such texts."""
    if isinstance(key, ast.Constant):
        return isinstance(key.value, str) and "hook_" in key.value
    return isinstance(key, (ast.Name, ast.JoinedStr))


def _is_known_before(key: ast.expr, call: ast.Call, ctx: Context) -> bool:
    """Whether the names in a key have the values at the call that they have where the cache is read."""
    flow, statement = ctx.inference.flow, ctx.tree.statement_of(call)
    return all(
        set(flow.definitions_before(part.id, statement)[0]) == set(flow.definitions(part))
        for part in walk(key)
        if isinstance(part, ast.Name)
    )
