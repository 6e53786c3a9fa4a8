"""TPL609: token rows turned into text one by one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Confidence,
    Context,
    Finding,
    Fix,
    Impact,
    Rule,
    Tag,
    Tier,
    has_unpacking,
    last_name,
    walk,
)
from perflint.api.gradients import name_of_whole
from perflint.api.loops import names_in
from perflint.api.names import OF_TRANSFORMERS, OTHER_TOKENIZERS, STREAM, TOKEN, TOKENIZER
from perflint.api.phases import generates_or_predicts

#: What a row can go through on its way to the tokenizer.
_MOVES = frozenset("tolist cpu numpy detach squeeze".split())


class RowByRowDecode(Rule):
    """`tokenizer.decode(row)` runs for each row of a batch, although `batch_decode` takes the batch.

    What it does

    Reports `tokenizer.decode` of transformers tokenizers in a loop over the rows of a batch.

    Why is this slow?

    Each row pays for a call of its own, and rows on a GPU are copied one at a time, each with a synchronization. The
    gain depends on the tokenizer: some decode a batch in parallel, others loop over the rows themselves.

    What to do

    Write `tokenizer.batch_decode(ids, skip_special_tokens=True)`, with ids that are moved to the CPU once.

    Fix safety

    Unsafe: a tokenizer may define its own batch decoding, and 1-d ids would decode as single tokens.

    Not reported

    - Single tokens that are streamed or shown.
    - Rows with options of their own, and loops that skip rows.
    - Decoding beside the generation or forward pass that makes the rows, which costs far more.
    - Tokenizers of other libraries.

    References

    - transformers, batch_decode: https://huggingface.co/docs/transformers/main_classes/tokenizer
    """

    code, name = "TPL609", "row-by-row-decode"
    tier = Tier.EXTRA
    impact = Impact.LOW
    listens = (Calls("decode"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if has_unpacking(node) or len(node.args) != 1 or not _is_tokenizer(node, ctx):
            return
        row = _row(node.args[0])
        if not isinstance(row, ast.Name) or TOKEN.search(row.id):
            return
        loop = _loop_of(node, row.id, ctx)
        if loop is None:
            return
        rows = loop.iter
        own = set(_names(loop.target))
        rest = [*(part.value for part in node.keywords), node.func]
        if any(own & set(names_in(part)) for part in rest) or not _is_batch(rows) or generates_or_predicts(node, ctx):
            return
        if STREAM.search(last_name(rows)):
            return
        tokenizer = ctx.text(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        yield self.finding(
            node,
            ctx,
            f"`{tokenizer}.decode` runs once per row.",
            advice=f"Decode all rows with one call of `{tokenizer}.batch_decode`.",
            confidence=Confidence.MEDIUM,
            fix=_together(node, loop, tokenizer, ctx),
        )


def _is_tokenizer(node: ast.Call, ctx: Context) -> bool:
    if not isinstance(node.func, ast.Attribute) or OTHER_TOKENIZERS.search(ctx.source.text):
        return False
    if ctx.kind(node.func.value).tag is Tag.TOKENIZER:
        return True
    if ctx.project_target(node.func) is not None or not TOKENIZER.search(name_of_whole(node.func.value)):
        return False
    return bool(OF_TRANSFORMERS.search(ctx.source.text))


def _row(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
        node = node.func.value
    return node


def _loop_of(node: ast.Call, row: str, ctx: Context) -> ast.For | ast.comprehension | None:
    """The loop over the rows, where each of them is decoded on every turn and as it is."""
    inner: ast.AST = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.ListComp, ast.GeneratorExp)):
            loop = outer.generators[0]
            return loop if len(outer.generators) == 1 and not loop.ifs and row in _names(loop.target) else None
        if isinstance(outer, ast.For):
            tests = [test for test, _ in ctx.conditions(node) if outer in ctx.loops(test)]
            is_every_row = not tests and inner in outer.body and row in _names(outer.target)
            return outer if is_every_row and _is_kept(outer, row) else None
        if isinstance(outer, (ast.While, ast.Try, ast.Lambda, ast.FunctionDef)):
            return None
        inner = outer
    return None


def _is_kept(loop: ast.For, row: str) -> bool:
    """Whether the loop neither changes the row, nor leaves some out."""
    for part in walk(loop):
        if isinstance(part, (ast.Break, ast.Continue, ast.Return, ast.Yield)):
            return False
        if isinstance(part, ast.Name) and part.id == row and isinstance(part.ctx, ast.Store):
            if part not in list(walk(loop.target)):
                return False
    return True


def _names(target: ast.expr) -> list[str]:
    return [part.id for part in walk(target) if isinstance(part, ast.Name)]


def _is_batch(rows: ast.expr) -> bool:
    """Whether what is looped over may be a batch of rows: not one row of it, no range, no set of single ids."""
    if isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name) and rows.func.id in ("zip", "enumerate"):
        return all(_is_batch(part) for part in rows.args)
    rows = _row(rows)
    if isinstance(rows, ast.Subscript):
        # `outputs["ids"]`, `ids[:, n:]`; `ids[0]` is one row.
        index = rows.slice
        return isinstance(index, (ast.Tuple, ast.Slice)) or (
            isinstance(index, ast.Constant) and isinstance(index.value, str)
        )
    return isinstance(rows, (ast.Name, ast.Attribute))


def _together(node: ast.Call, loop: ast.For | ast.comprehension, tokenizer: str, ctx: Context) -> Fix | None:
    outer = ctx.tree.parent(node)
    if not isinstance(outer, ast.ListComp) or not isinstance(loop.target, ast.Name) or outer.generators[0] is not loop:
        return None
    if not isinstance(node.args[0], ast.Name) or not isinstance(loop.iter, (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    if ctx.edit.would_lose_comment(outer):
        return None
    rest = "".join(f", {item.arg}={ctx.tree.text(item.value)}" for item in node.keywords)
    return Fix(
        "Decode the batch with one call",
        Applicability.UNSAFE,
        (ctx.edit.replace(outer, f"{tokenizer}.batch_decode({ctx.tree.text(loop.iter)}{rest})"),),
        reason="a tokenizer may define its own batch decoding",
    )
