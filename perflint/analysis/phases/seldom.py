"""What rules about small costs share: code that runs rarely, though a hot loop leads to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.few_turns import turns_few_times
from perflint.analysis.frequency.routes import function_of
from perflint.analysis.gradients.forwards import is_forward
from perflint.analysis.naming.loops import OVER_EPOCHS
from perflint.analysis.naming.phases import (
    BETWEEN_PHASES,
    CHANGES_MODEL,
    CONVERTING_FILE,
    EVALUATING_FILE,
    EXPORTING_FILE,
    RUNS_RARELY,
    WITHOUT_TRAINING,
)
from perflint.analysis.naming.values import COUNT
from perflint.finding import Heat
from perflint.ir.calls import callee_name, is_constant
from perflint.ir.notation import last_name
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

_NONE = ("const", "NoneType")
#: How many calls a parameter is followed through that hand it on.
_CALLS = 3
#: Steps of a loop that are too few to train anything.
_FEW = 20


def is_conversion(ctx: FileFacts) -> bool:
    """Whether the file is a script that converts or exports a checkpoint, once."""
    return bool(CONVERTING_FILE.search(ctx.path))


def is_export(ctx: FileFacts) -> bool:
    """Whether the file is about a model in another runtime: what traces it makes constants of constants."""
    return bool(EXPORTING_FILE.search(ctx.path))


def runs_rarely(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the names on the way to `node` say that it does not run on every step."""
    return is_conversion(ctx) or any(RUNS_RARELY.search(name) for name in _on_the_way(node, ctx))


def is_between_phases(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` runs rarely, or where a program goes from one phase to the next, however often that is."""
    if runs_rarely(node, ctx) or hands_over(node, ctx):
        return True
    loops = [loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP]
    place = loops[0] if loops else ctx.tree.function_of(node)
    return place is not None and (_swaps_weights(place, node) or _has_sampled(place, node, ctx))


def hands_over(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the names on the way to `node` say that a program goes from one phase to the next there."""
    return any(BETWEEN_PHASES.search(name) for name in _on_the_way(node, ctx))


def _has_sampled(place: ast.AST, node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a whole loop of decoding, or of taking noise away, has ended before `node`: one sample of many steps."""
    found = ctx.program.roots.loops
    for loop in walk(place):
        if isinstance(loop, (ast.For, ast.While)) and loop is not place and (loop.end_lineno or 0) < node.lineno:  # type: ignore[attr-defined]
            scope = ctx.scope(loop)
            for index, facts in enumerate(ctx.summary.functions[scope.function].loops):
                root = found.get((scope, index))
                if root is not None and root.role == "decode" and facts.line == loop.lineno:
                    return True
    return False


def _swaps_weights(place: ast.AST, node: ast.AST) -> bool:
    """Whether other weights are loaded into a model before `node`: what held the former ones is to be freed."""
    return any(
        isinstance(part, ast.Call) and callee_name(part) == "load_state_dict" and part.lineno < node.lineno  # type: ignore[attr-defined]
        for part in walk(place)
    )


def _on_the_way(node: ast.AST, ctx: FileFacts) -> Iterator[str]:
    """The functions that lead to `node` from the root of its heat, its own first. The name of one that holds the hot
    loop itself says how often it is called, not how often what is in the loop runs.
    """
    function = ctx.tree.function_of(node)
    if function is not None and not any(ctx.is_root_loop(loop) for loop in ctx.loops(node)):
        yield function.name
    _, route, _ = ctx.heat_and_route(node)
    for hop in route[1:]:  # the first hop is the root itself
        yield function_of(hop).rpartition(".")[2]


def is_tried_out(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` only runs to try something out: in a loop of a handful of steps that is written so, or that
    measures one made-up input, in the stand-in of an operation that an exporter traces, or in an operation that nothing
    applies.
    """
    loops = [loop for loop in ctx.loops(node) if ctx.is_root_loop(loop)]
    if loops and all(
        turns_few_times(loop, ctx, _FEW) or ctx.once(_measures, loop) or ctx.once(_learns_nothing, loop)
        for loop in loops
    ):
        return True
    function = ctx.tree.function_of(node)
    owner = ctx.tree.parent(function) if function is not None else None
    if not isinstance(owner, ast.ClassDef) or not any(_is_operation(base, ctx) for base in owner.bases):
        return False
    methods = {item.name for item in owner.body if isinstance(item, ast.FunctionDef)}
    return ("symbolic" in methods and "backward" not in methods) or not _is_used(owner, ctx)


def _measures(loop: ast.AST, ctx: FileFacts) -> bool:
    """Whether every turn of a loop runs a model on what was made up before it, in a function that reads the clock."""
    if not isinstance(loop, ast.For) or not ctx.is_call_of(loop.iter, "range"):
        return False
    function = ctx.tree.function_of(loop)
    if function is None or not any(isinstance(part, ast.Call) and _reads_clock(part) for part in ctx.walk(function)):
        return False
    runs = [part for part in ctx.walk(loop) if isinstance(part, ast.Call) and is_forward(part, ctx)]
    return bool(runs) and all(_is_made_up(item, loop, ctx) for run in runs for item in run.args)


def _learns_nothing(loop: ast.AST, _: FileFacts) -> bool:
    """Whether a loop walks back and drops the gradients: it looks whether its batches fit into memory."""
    called = {callee_name(part) for part in walk(loop) if isinstance(part, ast.Call)}
    if not {"backward", "zero_grad"} <= called or any(CHANGES_MODEL.search(name) for name in called):
        return False
    return not any(isinstance(part, ast.Attribute) and part.attr == "grad" for part in walk(loop))


def _reads_clock(call: ast.Call) -> bool:
    name = callee_name(call)
    return name in ("perf_counter", "monotonic") or (name == "time" and isinstance(call.func, ast.Attribute))


def _is_made_up(value: ast.expr, loop: ast.For, ctx: FileFacts) -> bool:
    """`torch.randn(4, 16).to(device)`, made before a loop."""
    for origin in ctx.inference.origins(value):
        made = origin
        while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in ("to", "cuda"):
            made = made.func.value
        if not isinstance(made, ast.Call) or made.lineno >= loop.lineno:
            return False
        if ctx.target(made.func) not in tensors.CONSTRUCTORS:
            return False
    return True


def _is_operation(base: ast.expr, ctx: FileFacts) -> bool:
    return ctx.target(base) in ("torch.autograd.Function", "torch.autograd.function.Function")


def _is_used(owner: ast.ClassDef, ctx: FileFacts) -> bool:
    """Whether a class is named anywhere outside of itself."""
    if ctx.program.whole.is_used_outside(owner.name, ctx.path):
        return True
    inside = {id(part) for part in walk(owner)}
    return any(
        (isinstance(part, ast.Name) and part.id == owner.name)
        or (isinstance(part, ast.Constant) and part.value == owner.name)
        for part in walk(ctx.tree.module)
        if id(part) not in inside
    )


def is_empty_case(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` only runs where there is nothing: `if len(losses) == 0`, or the else of `if found.size(0) > 0`."""
    found = ctx.conditions(node)
    return any(_compares_count(test, ast.Eq if holds else (ast.Gt, ast.NotEq), ctx) for test, holds in found)


def _compares_count(test: ast.expr, operators: type[ast.cmpop] | tuple[type[ast.cmpop], ...], ctx: FileFacts) -> bool:
    """Whether a test holds a count against 0 by one of `operators`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], operators):
        return False
    return is_constant(test.comparators[0], 0) and (_is_count(test.left) or _is_of_mask(test.left, ctx))


def _is_of_mask(value: ast.expr, ctx: FileFacts) -> bool:
    """How many a mask selects: `mask.sum()`, `torch.sum(mask).float()`, also by name."""
    found = ctx.inference.origins(value)
    return bool(found) and all(_counts_mask(item, ctx) for item in found)


def _counts_mask(value: ast.expr, ctx: FileFacts) -> bool:
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    if value.func.attr in tensors.CAST_METHODS | {"item"}:
        return _counts_mask(value.func.value, ctx)
    counted = value.args[0] if ctx.is_call_of(value, "torch.sum") and value.args else value.func.value
    return value.func.attr in ("sum", "count_nonzero") and ctx.kind(counted).is_mask


def _is_count(value: ast.expr) -> bool:
    """`len(x)`, `x.numel()`, `x.shape[0]`, `num_boxes`."""
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Attribute) and value.value.attr == "shape"
    name = callee_name(value) if isinstance(value, ast.Call) else last_name(value)
    return COUNT.match(name) is not None


def is_for_evaluation(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the file or the function is named for what is done without training."""
    function = ctx.tree.function_of(node)
    file = ctx.path.rpartition("/")[2].lower()
    return bool(EVALUATING_FILE.search(file)) or (
        function is not None and bool(WITHOUT_TRAINING.search(function.name.lower()))
    )


def is_line_per_epoch(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether the loop of steps is one over epochs, each a step on all data at once: a line for each is wanted."""
    _, route, _ = ctx.heat_and_route(node)
    loops = [hop.text for hop in route if hop.text.startswith(("for ", "while "))]
    return len(loops) == 1 and bool(OVER_EPOCHS.match(loops[0]))
