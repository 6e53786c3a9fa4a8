"""Names that a program looks up by a text that is written out, read as the names: `eval("Net")()` makes a `Net`."""

from __future__ import annotations

import ast

from perflint.syntax.walk import visit_naming
from perflint.system.patterns import pattern

#: What a text has in which such a call may stand.
_ASKING = pattern(r"\beval\s*\(\s*(?:\w+\s*\(\s*)?f?['\"]|\bsys\.modules\[__name__\]|\b(?:globals|locals|vars)\(\)\[")
_NAMES = pattern(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_OWN_NAMES = frozenset({"globals", "locals", "vars"})


def read(module: ast.Module, text: str) -> None:
    """Put the names into the tree, at the places of what looks them up."""
    if _ASKING.search(text):
        visit_naming(("eval", "getattr", *_OWN_NAMES), module, text, _Reader())


class _Reader(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        func = node.func
        if node.keywords or not isinstance(func, ast.Name):
            return node
        found = None
        if func.id == "eval" and len(node.args) == 1:
            found = _evaluated(node.args[0])
        elif func.id == "getattr" and len(node.args) == 2 and _is_own_module(node.args[0]):
            found = _named(_text(node.args[1]))
        return node if found is None else _at(found, node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`globals()["Net"]`"""
        self.generic_visit(node)
        held = node.value
        if not isinstance(node.ctx, ast.Load) or not isinstance(held, ast.Call) or held.args:
            return node
        if not isinstance(held.func, ast.Name) or held.func.id not in _OWN_NAMES:
            return node
        name = _text(node.slice)
        found = None if "." in name else _named(name)
        return node if found is None else _at(found, node)


def _evaluated(written: ast.expr) -> ast.expr | None:
    """`models.Net` of `"models.Net"`; `getattr(models, name)` of `"models." + name`, and with `+ ".make"` behind it the
    `make` of the module of that name.
    """
    text = _text(written)
    if text:
        return _named(text)
    parts = _parts(written)
    if len(parts) not in (2, 3) or not isinstance(parts[1], ast.expr) or not isinstance(parts[0], str):
        return None
    prefix, last = parts[0], parts[2] if len(parts) == 3 else ""
    owner = _named(prefix.removesuffix(".")) if prefix.endswith(".") else None
    if owner is None or not isinstance(last, str):
        return None
    if not last:
        return ast.Call(ast.Name("getattr", ast.Load()), [owner, parts[1]], [])
    if not last.startswith(".") or _named(last[1:]) is None:
        return None
    name = ast.BinOp(ast.Constant(prefix), ast.Add(), parts[1])
    found: ast.expr = ast.Call(ast.Name("__import__", ast.Load()), [name], [])
    for attribute in last[1:].split("."):
        found = ast.Attribute(found, attribute, ast.Load())
    return found


def _parts(written: ast.expr) -> list[str | ast.expr]:
    """The pieces that a text is put together from."""
    if isinstance(written, ast.BinOp) and isinstance(written.op, ast.Add):
        return [*_parts(written.left), *_parts(written.right)]
    if isinstance(written, ast.JoinedStr):
        return [part for each in written.values for part in _parts(each)]
    if isinstance(written, ast.FormattedValue):
        return [written.value]
    if (
        isinstance(written, ast.Call)
        and isinstance(written.func, ast.Attribute)
        and written.func.attr == "format"
        and len(written.args) == 1
    ):
        before, field, after = _text(written.func.value).partition("{}")
        return [before, written.args[0], *([after] if after else [])] if field and not written.keywords else [written]
    return [_text(written) or written]


def _named(text: str) -> ast.expr | None:
    """The name or the attribute of a name that a text is."""
    if not _NAMES.fullmatch(text):
        return None
    first, *rest = text.split(".")
    found: ast.expr = ast.Name(first, ast.Load())
    for attribute in rest:
        found = ast.Attribute(found, attribute, ast.Load())
    return found


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_own_module(node: ast.expr) -> bool:
    """`sys.modules[__name__]`"""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "modules"
        and isinstance(node.slice, ast.Name)
        and node.slice.id == "__name__"
    )


def _at(found: ast.expr, place: ast.expr) -> ast.expr:
    """An expression at the place of another; what it takes over of that stays where it is."""
    for node in ast.walk(found):
        if isinstance(node, ast.expr) and not hasattr(node, "lineno"):
            ast.copy_location(node, place)
    return found
