"""Loops over parameters as calls on lists of them: `torch._foreach_mul_`, `_foreach_add_`, `_foreach_lerp_`."""

from __future__ import annotations

import ast

from perflint.api import (
    Applicability,
    Context,
    Fix,
    callee_name,
    keyword,
    walk,
)

#: The first version of torch that clamps lists of tensors.
_CLAMPS_LISTS = (2, 0)


def on_lists(node: ast.For, ctx: Context) -> Fix | None:
    """The loop as calls on lists, where its body is chains of updates over fresh walks."""
    walks = _fresh_walks(node)
    chains = [statement.value for statement in node.body if isinstance(statement, ast.Expr)]
    if len(chains) != len(node.body) or not walks or ctx.edit.would_lose_comment(node):
        return None
    torch, imports = ctx.edit.ensure_import("torch", at=node)
    lines = [line for chain in chains for link in _links(chain) for line in _lines(link, walks, torch, ctx)]
    if not lines or "" in lines:
        return None
    holds_two = any("_foreach_mul(" in line for line in lines)
    kept = "; it holds a second copy of the values for a moment" if holds_two else ""
    indent = "\n" + ctx.source.lines[node.lineno - 1][: node.col_offset]
    return Fix(
        "Update all parameters in one call",
        Applicability.UNSAFE,
        (*imports, ctx.edit.replace(node, indent.join(lines))),
        reason=f"it raises for empty or unequal lists, a tensor weight, and mixed dtypes{kept}",
        numerics="same to rounding" if any("_foreach_lerp_" in line for line in lines) else "same bits",
    )


def _fresh_walks(node: ast.For) -> dict[str, ast.expr]:
    """What each name of the loop walks over, where the walks start anew when they are asked for again."""
    if isinstance(node.target, ast.Name):
        names, walks = [node.target], [node.iter]
    elif isinstance(node.target, ast.Tuple) and isinstance(node.iter, ast.Call) and callee_name(node.iter) == "zip":
        names = [item for item in node.target.elts if isinstance(item, ast.Name)]
        walks = node.iter.args
    else:
        return {}
    fresh = all(isinstance(item, ast.Call) and callee_name(item) == "parameters" for item in walks)
    return {name.id: item for name, item in zip(names, walks)} if fresh and len(names) == len(walks) else {}


def _links(node: ast.expr) -> list[ast.Call]:
    """The calls of a chain, first to last."""
    links: list[ast.Call] = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        links.insert(0, node)
        node = node.func.value
    return links


def _lines(link: ast.Call, walks: dict[str, ast.expr], torch: str, ctx: Context) -> list[str]:
    """The calls on lists that do the same for all, an empty one where there is none."""
    method, given = callee_name(link), link.args
    plain = isinstance(link.func, ast.Attribute) and not isinstance(link.func.value, ast.Call) and not link.keywords
    if plain and method == "copy_" and len(given) == 1:
        return _mixed(link, given[0], walks, torch, ctx)
    if plain and method == "add_" and len(given) == 1 and isinstance(given[0], ast.BinOp):
        changed, scaled = _list(_receiver(link), walks, ctx), _scaled(given[0], walks, torch, ctx)
        return [f"{torch}._foreach_add_({changed}, {scaled})" if changed and scaled else ""]
    if (
        plain
        and method in ("clamp_", "clip_")
        and len(given) == 2
        and (ctx.torch_version or _CLAMPS_LISTS) >= _CLAMPS_LISTS
    ):
        changed = _list(_receiver(link), walks, ctx)
        if not changed or any(_uses(item, walks) for item in given):
            return [""]
        bounds = zip(("min", "max"), given)
        return [f"{torch}._foreach_clamp_{name}_({changed}, {ctx.tree.text(bound)})" for name, bound in bounds]
    return [_line(link, walks, torch, ctx)]


def _receiver(link: ast.Call) -> ast.expr:
    assert isinstance(link.func, ast.Attribute)
    return link.func.value


def _mixed(link: ast.Call, value: ast.expr, walks: dict[str, ast.expr], torch: str, ctx: Context) -> list[str]:
    """`e.copy_(a * e + b * p)`: both products are rounded, then their sum, in either order."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return [""]
    receiver = _receiver(link)
    for own, other in ((value.left, value.right), (value.right, value.left)):
        factor = _factor(own, walks)
        if factor is None or ctx.text(factor[0]) != ctx.text(receiver):
            continue
        changed, scaled = _list(receiver, walks, ctx), _scaled(other, walks, torch, ctx)
        if changed and scaled:
            return [
                f"{torch}._foreach_mul_({changed}, {ctx.tree.text(factor[1])})",
                f"{torch}._foreach_add_({changed}, {scaled})",
            ]
    return [""]


def _factor(node: ast.expr, walks: dict[str, ast.expr]) -> tuple[ast.expr, ast.expr] | None:
    """The tensor and the number of a product."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    left, right = _uses(node.left, walks), _uses(node.right, walks)
    if left == right:
        return None
    return (node.left, node.right) if left else (node.right, node.left)


def _scaled(node: ast.expr, walks: dict[str, ast.expr], torch: str, ctx: Context) -> str:
    """The products of a list with a number; empty where a term is none."""
    factor = _factor(node, walks)
    values = _list(factor[0], walks, ctx) if factor is not None else ""
    return f"{torch}._foreach_mul({values}, {ctx.tree.text(factor[1])})" if factor is not None and values else ""


def _line(link: ast.Call, walks: dict[str, ast.expr], torch: str, ctx: Context) -> str:
    """The call on lists that does the same for all; empty where there is none."""
    given, method = link.args, callee_name(link)
    first = link.func
    while isinstance(first, ast.Attribute) and isinstance(first.value, ast.Call):
        first = first.value.func
    assert isinstance(first, ast.Attribute)
    changed = _list(first.value, walks, ctx)
    weight = given[1] if method == "lerp_" and len(given) == 2 else keyword(link, "alpha") or keyword(link, "weight")
    if method == "mul_" and len(given) == 1 and not link.keywords and changed:
        return "" if _uses(given[0], walks) else f"{torch}._foreach_mul_({changed}, {ctx.tree.text(given[0])})"
    other = _list(given[0], walks, ctx) if given else ""
    if weight is None or _uses(weight, walks) or not changed or not other:
        return ""
    if method == "lerp_":
        return f"{torch}._foreach_lerp_({changed}, {other}, {ctx.tree.text(weight)})"
    if method == "add_" and len(given) == 1:
        return f"{torch}._foreach_add_({changed}, {other}, alpha={ctx.tree.text(weight)})"
    return ""


def _list(node: ast.expr, walks: dict[str, ast.expr], ctx: Context) -> str:
    """All values that an expression of one of the loop's names takes; empty where it has several."""
    names = {part.id for part in walk(node) if isinstance(part, ast.Name) and part.id in walks}
    if len(names) != 1:
        return ""
    name = names.pop()
    walked = ctx.tree.text(walks[name])
    return f"list({walked})" if isinstance(node, ast.Name) else f"[{ctx.tree.text(node)} for {name} in {walked}]"


def _uses(node: ast.expr, walks: dict[str, ast.expr]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in walks for part in walk(node))
