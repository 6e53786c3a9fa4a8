"""How long the texts of a tokenizer's call are: cut to one length, or short by default."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.data import LONG_TEXTS
from perflint.ir.calls import callee_name
from perflint.ir.calls import keyword as given
from perflint.ir.notation import last_name

#: Texts cut at so few tokens are all of about that length, and next to nothing beside what they stand with.
_SHORT = 16
#: Short texts beside a picture or a video have a parameter of their own.
_SHORT_BY_DEFAULT = 32


def is_cut_to_length(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether all texts are as long as they are wanted, cut out of one that is longer: `str(chromosome[start:end])`,
    `genome(start, max_length=self.max_length)`, `text.rjust(size)`.
    """
    texts = ctx.inference.origins(node.args[0]) if node.args else []
    return bool(texts) and all(_is_cut(item, ctx) for item in texts)


def _is_cut(text: ast.expr, ctx: FileFacts, depth: int = 4) -> bool:
    if depth == 0:
        return False
    if isinstance(text, ast.Subscript):
        return isinstance(text.slice, ast.Slice) and _is_window(text.slice)
    if isinstance(text, ast.Name):
        origins = [item for item in ctx.inference.origins(text) if item is not text]
        return bool(origins) and all(_is_cut(item, ctx, depth - 1) for item in origins)
    if not isinstance(text, ast.Call):
        return False
    if callee_name(text) == "str" and len(text.args) == 1:
        return _is_cut(text.args[0], ctx, depth - 1)
    if callee_name(text) in ("rjust", "ljust", "zfill"):
        return True
    return given(text, "max_length") is not None and bool(LONG_TEXTS.search(ctx.text(text.func)))


def _is_window(cut: ast.Slice) -> bool:
    """`text[start:end]`. `text[0:512]` leaves shorter ones as they are, and `text[1:-1]` takes quotes off."""
    if cut.lower is None or cut.upper is None or isinstance(cut.upper, ast.UnaryOp):
        return False
    return not isinstance(cut.lower, ast.Constant)


def is_short_length(longest: ast.expr, ctx: FileFacts) -> bool:
    """Whether a length is short as it is written, or by the default of the parameter that it is: questions of 25
    tokens, unless someone asks for more.
    """
    if isinstance(longest, ast.Constant):
        return isinstance(longest.value, int) and longest.value <= _SHORT
    lengths = list(_lengths(longest, last_name(longest), ctx))
    return bool(lengths) and all(isinstance(item, int) and item <= _SHORT_BY_DEFAULT for item in lengths)


def _lengths(longest: ast.expr, name: str, ctx: FileFacts) -> Iterator[object]:
    """What a parameter of a function around it is by default and wherever it is passed as a number; for `self.name`
    that of a method beside it.
    """
    around: list[ast.AST] = []
    if isinstance(longest, ast.Name):
        around = list(ctx.tree.ancestors(longest))
    elif ctx.text(longest) == f"self.{name}" and (owner := ctx.tree.class_of(longest)) is not None:
        around = list(owner.body)
    for part in around:
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        positional = [*part.args.posonlyargs, *part.args.args]
        found = [*zip(positional[len(positional) - len(part.args.defaults) :], part.args.defaults)]
        found += [(item, default) for item, default in zip(part.args.kwonlyargs, part.args.kw_defaults) if default]
        for item, default in found:
            if item.arg == name and isinstance(default, ast.Constant):
                yield default.value
                given = (ctx.program.argument(edge, name) for edge in ctx.program.callers(ctx.own_scope(part)))
                yield from (value[2] for value in given if isinstance(value, tuple) and value[0] == "const")
