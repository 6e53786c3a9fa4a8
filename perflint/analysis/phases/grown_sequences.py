"""Loops that run a model on a whole sequence, and add the token that is picked to it."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_turns import turns_few_times
from perflint.analysis.gradients.model_calls import asks_for_gradients, is_model_call
from perflint.analysis.naming.models import CACHE
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.calls import argument, is_constant
from perflint.ir.notation import last_name
from perflint.syntax.walk import walk

#: What picks the next token.
_PICKS = frozenset("argmax multinomial topk sample categorical".split())
#: What the sequence can go through on its way to the model.
_MOVES = frozenset("to cuda cpu long contiguous unsqueeze".split())
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")


def forward_on_grown(node: ast.Call, ctx: FileFacts) -> ast.Call | None:
    """The forward on the whole sequence, where its loop then adds the picked token to that sequence."""
    statement, parts = ctx.tree.parent(node), argument(node, 0, "tensors")
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not ctx.is_call_of(node, *_JOINS):
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not isinstance(parts, (ast.List, ast.Tuple)) or len(parts.elts) != 2:
        return None
    first, new = parts.elts
    if not isinstance(first, ast.Name) or first.id != target.id:
        return None
    loops = ctx.loops(statement)
    if not loops or turns_few_times(loops[0], ctx) or _trains(loops[0]):
        return None
    loop = loops[0]
    if _names_a_cache(loop) or _is_cropped(loop, target.id, statement):
        return None
    forwards = [
        part
        for part in ctx.walk(loop)
        if isinstance(part, ast.Call) and _takes(part, target.id, loop) and is_model_call(part, ctx)
    ]
    if len(forwards) != 1 or not _is_picked(new, forwards[0], loop):
        return None
    return forwards[0]


def _trains(loop: ast.stmt) -> bool:
    """Whether the loop trains; `no_grad` in it is no sign of that."""
    return asks_for_gradients(loop) and not any(
        isinstance(part, ast.Attribute) and part.attr in ("no_grad", "inference_mode") for part in walk(loop)
    )


def _names_a_cache(loop: ast.stmt) -> bool:
    for part in walk(loop):
        name = last_name(part)
        if isinstance(part, ast.keyword):
            known = part.arg or ("" if _entries(part.value, loop) else "past")
            name = "" if part.arg == "use_cache" and is_constant(part.value, value=False) else known
        if isinstance(part, ast.Dict):
            name = " ".join(str(key.value) if isinstance(key, ast.Constant) else "past" for key in part.keys)
        if name != "empty_cache" and CACHE.search(name):
            return True
    return False


def _is_cropped(loop: ast.stmt, name: str, grown: ast.stmt) -> bool:
    """Whether the loop takes a window of the sequence, or sets it in another way."""
    for part in walk(loop):
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and part.value.id == name:
            if any(isinstance(item, ast.Slice) and item.lower is not None for item in walk(part.slice)):
                return True
        if isinstance(part, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and part is not grown:
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            if any(name in names_in(target) for target in targets):
                return True
    return False


def _takes(call: ast.Call, name: str, loop: ast.stmt) -> bool:
    """Whether the whole sequence is an argument of its own, or an entry of a dict that the loop spreads over some."""
    spread = [part.value for part in call.keywords if part.arg is None]
    entries = [item for options in spread for item in _entries(options, loop)]
    for given in [*call.args, *(part.value for part in call.keywords), *entries]:
        item = given
        while isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr in _MOVES:
            item = item.func.value
        if isinstance(item, ast.Name) and item.id == name:
            return True
    return False


def _entries(options: ast.expr, loop: ast.stmt) -> list[ast.expr]:
    """The values of a dict that is written out, there or where the loop gives it its name: `{"input_ids": tokens}`."""
    if isinstance(options, ast.Name):
        made = [item.value for item in _settings(loop, options.id)]
        return [entry for item in made if not isinstance(item, ast.Name) for entry in _entries(item, loop)]
    if isinstance(options, ast.Dict):
        return options.values
    if isinstance(options, ast.Call) and isinstance(options.func, ast.Name) and options.func.id == "dict":
        return [item.value for item in options.keywords]
    return []


def _is_picked(new: ast.expr, forward: ast.Call, loop: ast.stmt) -> bool:
    """Whether what is added comes from the forward, through a choice of a token."""
    reached: list[ast.AST] = [new]
    seen: set[str] = set()
    picks = found = False
    while reached:
        region = reached.pop()
        for part in walk(region):
            found = found or part is forward
            if isinstance(part, ast.Call):
                called = part.func
                name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                picks = picks or name in _PICKS or "sample" in name
            if isinstance(part, ast.Name) and part.id not in seen:
                seen.add(part.id)
                reached += [item.value for item in _settings(loop, part.id)]
    return picks and found


def _settings(loop: ast.stmt, name: str) -> list[ast.Assign]:
    return [
        part
        for part in walk(loop)
        if isinstance(part, ast.Assign)
        and any(isinstance(item, ast.Name) and item.id == name for target in part.targets for item in walk(target))
    ]
