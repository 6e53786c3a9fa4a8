"""Texts of a training step: whether the loop hands them down, or the step makes them."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.analysis.naming.phases import MAKES_TEXTS
from perflint.finding import Confidence, Heat
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

#: What makes the text in the step itself: then there is nothing to tokenize beforehand.
_FRESH = frozenset("generate sample rollout rollouts respond chat completions".split())
_OPENS = frozenset({"load_dataset", "load_from_disk"})
#: What turns tokens into text, for the step's own use where it stands before the tokenizer, and for a log after it.
_DECODES = frozenset({"decode", "batch_decode"})
#: Calls between the loop and the tokenizer; past that many nobody follows the text.
_LONGEST = 6


def makes_text(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the step that tokenizes generates text, or decodes some before it tokenizes."""
    loops = [loop for loop in ctx.loops(node) if ctx.is_root_loop(loop)]
    function = ctx.tree.function_of(node)
    place: ast.AST = loops[0] if loops else function if function is not None else ctx.tree.statement_of(node)
    for part in walk(place):
        if isinstance(part, ast.Call):
            name = callee_name(part)
            if name in _FRESH or (name in _DECODES and (not loops or part.lineno <= node.lineno)):
                return True
    _, route, _ = ctx.heat_and_route(node)
    return any(MAKES_TEXTS.search(hop.text) for hop in route)


def opens_data(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the function opens a data set first, to draw a few texts from it: none is called in each step. One that
    trains on what it has opened tokenizes in its own loop.
    """
    function = ctx.tree.function_of(node)
    if function is None or any(ctx.is_root_loop(loop) for loop in ctx.loops(node)):
        return False
    return any(isinstance(part, ast.Call) and callee_name(part) in _OPENS for part in walk(function))


def comes_from_step(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the text is handed down from the training loop, through functions none of which makes any."""
    scope, place = ctx.scope(node), node.lineno
    for _ in range(_LONGEST):
        facts = ctx.program.function(scope)
        edge = ctx.program.hottest_call(scope)
        names = {_last(call.func) for call in facts.calls}
        if edge is None or edge.confidence < Confidence.HIGH:
            return False
        if names & (_FRESH | _DECODES):
            return False
        scope, place = edge.caller, edge.line
        if _is_in_root_loop(scope, edge.context, ctx):
            calls = [call for call in ctx.program.function(scope).calls if _is_in_root_loop(scope, call.context, ctx)]
            return not any(
                _last(call.func) in _FRESH or (_last(call.func) in _DECODES and call.line <= place) for call in calls
            )
    return False


def _is_in_root_loop(scope: Scope, context: int, ctx: FileFacts) -> bool:
    contexts = ctx.program.function(scope).contexts
    while context >= 0:
        if contexts[context].kind == "loop":
            loop = ctx.program.roots.loops.get((scope, int(contexts[context].detail)))
            if loop is not None and loop.heat >= Heat.STEP:
                return True
        context = contexts[context].parent
    return False


def _last(value: object) -> str:
    if isinstance(value, str):
        return value.rpartition(".")[2]
    return str(value[2]) if isinstance(value, tuple) and len(value) > 2 and value[0] == "attr" else ""


def stands_in_step(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the call stands in the training loop itself, or in the step of a framework."""
    function = ctx.tree.function_of(node)
    if function is not None and function.name in ("training_step", "compute_loss", "train_step"):
        return True
    return any(ctx.is_root_loop(loop) for loop in ctx.loops(node))
