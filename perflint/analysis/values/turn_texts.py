"""Texts that the turns of a loop hand to a tokenizer, one at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.handed_out import is_several_texts
from perflint.analysis.gradients.model_calls import name_of_whole
from perflint.analysis.invariants.turn_dependence import bound_by, needed
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.values.kind import Tag
from perflint.analysis.values.single_samples import is_tokenizer_call
from perflint.analysis.values.takers import moves_values
from perflint.ir.calls import arguments_of, keyword
from perflint.syntax.walk import walk


def text_of_turn(node: ast.Call, loop: ast.For, ctx: FileFacts) -> ast.Call | None:
    """The tokenizer's call that turns this turn's one text into the inputs, where nothing else can be meant."""
    given = [*node.args, *(item.value for item in node.keywords if item.arg in (None, "input_ids", "inputs"))]
    for value in given:
        for made in _origins(value, ctx):
            if not is_tokenizer_call(made):
                continue
            if is_one_text(made.args[0], loop) or _is_text_of_turn(made, loop, ctx):
                return made
    embedded = keyword(node, "inputs_embeds")
    return None if embedded is None else _text_behind(embedded, loop, ctx)


def _text_behind(embedded: ast.expr, loop: ast.For, ctx: FileFacts) -> ast.Call | None:
    """The tokenizer's call whose one text the embeddings of this turn are made from."""
    for part in needed(embedded, loop)[1]:
        for made in walk(part):
            if isinstance(made, ast.Call) and is_tokenizer_call(made) and _is_text_of_turn(made, loop, ctx):
                return made
    return None


def _origins(value: ast.expr, ctx: FileFacts) -> Iterator[ast.Call]:
    """The calls that inputs come from: through `.to(device)`, `.input_ids`, `["input_ids"]` and names."""
    if isinstance(value, ast.Starred):
        value = value.value
    for _ in range(6):
        if isinstance(value, (ast.Attribute, ast.Subscript)):
            value = value.value
        elif isinstance(value, ast.Call):
            if isinstance(value.func, ast.Attribute) and value.func.attr in ("to", "cuda"):
                value = value.func.value
                continue
            yield value
            return
        elif isinstance(value, ast.DictComp) and moves_values(value):
            moved = value.generators[0].iter
            value = moved.func if isinstance(moved, ast.Call) else moved
        elif isinstance(value, ast.Name):
            found = ctx.inference.origins(value)
            if len(found) != 1 or found[0] is value:
                return
            value = found[0]
        else:
            return


def is_one_text(value: ast.expr, loop: ast.For) -> bool:
    """The loop's own element, an item of it, or a text made with it; a list of one text is one text."""
    if isinstance(value, ast.List) and len(value.elts) == 1:
        value = value.elts[0]
    if not isinstance(value, (ast.Name, ast.Subscript, ast.JoinedStr, ast.BinOp)):
        return False
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        return False
    return bool(set(names_in(value)) & set(names_in(loop.target)))


def _is_text_of_turn(made: ast.Call, loop: ast.For, ctx: FileFacts) -> bool:
    """Whether one text is written in the loop from what the turn hands out: `prompt = template.format(row["text"])`."""
    if _steps(loop.iter) or is_several_texts(made.args[0], ctx):
        return False
    if not bound_by(loop) & needed(made.args[0], loop)[0]:
        return False
    # Several texts have several lengths, and make a tensor only when they are padded.
    return ctx.kind(made.args[0]).tag is Tag.STRING or not any(item.arg == "padding" for item in made.keywords)


def _steps(rows: ast.expr) -> bool:
    """`range(0, len(texts), size)`, whose turns are batches."""
    return any(
        isinstance(part, ast.Call) and name_of_whole(part.func) == "range" and len(part.args) > 2 for part in walk(rows)
    )


def inputs_of(node: ast.Call, ctx: FileFacts) -> Iterator[ast.Call]:
    """The calls that all inputs of a call come from."""
    for value in arguments_of(node):
        yield from _origins(value, ctx)


def adds_to_inputs(node: ast.Call, loop: ast.For, ctx: FileFacts) -> bool:
    """Whether a turn needs the last one's answer: a history that the loop reads and adds to."""
    asked = set(names_in(node)) | {name for made in inputs_of(node, ctx) for name in names_in(made)}
    written = ctx.inference.flow.names_mutated(loop) - set(names_in(loop.target))
    return bool(asked & written)
