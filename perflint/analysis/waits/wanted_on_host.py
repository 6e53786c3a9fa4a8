"""Values that the program wants on the host because they are what it was after: an action to take, a finished text."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.model_calls import name_of_whole
from perflint.analysis.invariants.number_sources import goes_back
from perflint.analysis.naming.loops import LENGTH_LIMIT
from perflint.analysis.naming.phases import CHOOSES, DECODES, KEEPS_EXPERIENCE, SHOWS_PROGRESS
from perflint.analysis.phases.memory_pressure import is_load_shedding
from perflint.analysis.phases.phase import Phase
from perflint.analysis.waits.arrays_told import only_tells
from perflint.analysis.waits.host_search import is_read_for_search
from perflint.analysis.waits.host_work import in_forward, region_of
from perflint.analysis.waits.losses import is_loss
from perflint.analysis.waits.reads import READ_NAMES, Read, device_read
from perflint.analysis.waits.repeated_reads import read_before
from perflint.analysis.waits.value_uses import later_uses
from perflint.finding import Heat
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk
from perflint.torch_model.effects import Effect

_CHOICES = frozenset("argmax argmin sample multinomial max topk".split())
#: Methods that leave a choice what it is.
_KEEPS = frozenset("detach cpu squeeze flatten view reshape long int item".split())
_DEPTH = 4
_WRITERS = frozenset({"write", "writelines", "writerow", "writerows"})


def is_wanted_on_host(node: ast.expr, read: Read, ctx: FileFacts) -> bool:
    """Whether the program needs on the host what it reads there, at the time it does: no advice would help."""
    if read.copies and not _is_single_number(node, ctx) and (_hands_on(node, ctx) or _goes_to_replay(node, ctx)):
        return True
    return (
        goes_back(node, ctx)
        or _is_around_decoding(node, ctx)
        or _sums_up_evaluation(node, ctx)
        or _is_for_export(node, ctx)
        or _is_choice(read.value, ctx)
        or (read.copies and is_load_shedding(node, ctx))
        or _is_written_down(node, ctx)
        or _answers(node, ctx)
        or is_read_for_search(node, ctx)
    )


def _is_alone(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether the iteration reads nothing else, but on paths that this one is not on."""
    return not any(
        isinstance(part, ast.Call)
        and part is not node
        and callee_name(part) in READ_NAMES
        and ctx.heat(part) >= Heat.STEP
        and (read := device_read(part, ctx)) is not None
        and not read_before(part, read.value, ctx, tests=True)
        and not ctx.are_exclusive(node, part)
        for part in ctx.walk(region_of(node, ctx))
    )


def _hands_on(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether a whole tensor is moved because it leaves torch or the loop: results have to reach the host somehow, but
    once per step, not once per sample of it.
    """
    parent = ctx.tree.parent(node)
    to_numpy = _becomes_array(node, ctx)
    if in_forward(node, ctx):
        if to_numpy and ctx.kind(node).scalar:
            return False  # `count = torch.sum(mask).cpu().numpy()`: a number, as by `item`
        # A step that trains takes what its forwards return: most of them are not at the end of it.
        is_handed_on = isinstance(parent, ast.Return) and ctx.phase(node).phase is not Phase.TRAIN
        return to_numpy or is_handed_on or _is_put_away(node, ctx)
    if ctx.role(node) == "train":
        leaves = to_numpy and not _is_of_number(node, ctx) and not only_tells(node, ctx)
        return _is_iterated(node, ctx) or (leaves and _is_alone(node, ctx))
    return len([loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP]) < 2


def _is_single_number(node: ast.expr, ctx: FileFacts) -> bool:
    """`value.cpu().item()`, `int(value.cpu())`: read as a number, by way of a copy."""
    outer = ctx.tree.parent(node)
    if isinstance(outer, ast.Call):
        return isinstance(outer.func, ast.Name) and outer.func.id in ("int", "float", "bool") and node in outer.args
    return isinstance(outer, ast.Attribute) and outer.attr == "item"


def _is_of_number(node: ast.expr, ctx: FileFacts) -> bool:
    """`loss.detach().cpu().numpy()`, `value.mean().data.cpu().numpy()`: a number read in a roundabout way."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    value = node.func.value
    while isinstance(value, ast.Attribute) and value.attr == "data":
        value = value.value
    reduced = value
    while isinstance(reduced, ast.Call) and isinstance(reduced.func, ast.Attribute) and reduced.func.attr == "detach":
        reduced = reduced.func.value
    if isinstance(reduced, ast.Call) and callee_name(reduced) in ("mean", "sum"):
        return isinstance(reduced.func, ast.Attribute) and not (reduced.args or reduced.keywords)
    return is_loss(value, ctx)


def _is_put_away(node: ast.expr, ctx: FileFacts) -> bool:
    """`message.tensors = tuple(t.cpu() for t in message.tensors)`: a whole list is kept or sent from the host. Or
    `self.weights = weights.detach().cpu()`: one is kept, for whoever wants to look at it.
    """
    statement = ctx.tree.statement_of(node)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], (ast.Attribute, ast.Subscript)):
        return False
    if statement.value is node and isinstance(statement.targets[0], ast.Attribute):
        return True
    return any(
        isinstance(outer, (ast.ListComp, ast.GeneratorExp)) and outer.elt is node for outer in ctx.tree.ancestors(node)
    )


def _becomes_array(node: ast.expr, ctx: FileFacts) -> bool:
    """`values.cpu().numpy()`, or `values = values.cpu()` and later `values.numpy()`; and what a function gives back as
    `values.cpu().data.numpy()`.
    """
    outer = ctx.tree.parent(node)
    is_returned = isinstance(ctx.tree.statement_of(node), ast.Return)
    while is_returned and isinstance(outer, ast.Attribute) and outer.attr == "data":
        outer = ctx.tree.parent(outer)
    parents = [outer]
    if isinstance(outer, ast.Assign):
        parents += [ctx.tree.parent(use) for use in later_uses(node, ctx)]
    return any(isinstance(item, ast.Attribute) and item.attr == "numpy" for item in parents)


def _is_iterated(node: ast.expr, ctx: FileFacts) -> bool:
    """`for row in ids.cpu()`, or so with a name for it in a helper: one copy instead of one for each row."""
    child: ast.AST = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.For, ast.comprehension)):
            return child is outer.iter
        if isinstance(outer, ast.Assign) and isinstance(node, ast.Call) and not ctx.loops(node):
            return any(_is_iterated(use, ctx) for use in later_uses(node, ctx))
        if isinstance(outer, ast.stmt):
            return False
        child = outer
    return False


def _is_around_decoding(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether a function that makes token after token reads this before or after its loop: once for each text."""
    function = ctx.tree.function_of(node)
    if function is None or ctx.loops(node) or ctx.role(node) == "decode":
        return False
    loops = (part for part in ctx.walk(function) if isinstance(part, (ast.For, ast.While)))
    decodes = bool(DECODES.search(function.name))
    return any(ctx.role(loop.body[0]) == "decode" or (decodes and _counts_tokens(loop, ctx)) for loop in loops)


def _counts_tokens(loop: ast.For | ast.While, ctx: FileFacts) -> bool:
    """`for step in range(2, max_seq_len)`"""
    header = loop.iter if isinstance(loop, ast.For) else loop.test
    return isinstance(header, (ast.Call, ast.Compare)) and bool(LENGTH_LIMIT.search(ctx.text(header)))


def _sums_up_evaluation(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether a model has been switched to evaluation on every path here, and no loop goes through batches around it:
    once for each evaluation, whose result is wanted as a number.
    """
    if ctx.loops(node) or in_forward(node, ctx) or ctx.program.effects(ctx.scope(node)).does(Effect.BACKWARD):
        return False
    graph = ctx.control_flow(node)
    switches: dict[str, list[ast.Call]] = {"eval": [], "train": []}
    for part in ctx.walk(graph.scope):
        if isinstance(part, ast.Call) and callee_name(part) in switches and isinstance(part.func, ast.Attribute):
            switches[part.func.attr] += [part] if graph.dominates(part, node) else []
    return any(
        not any(graph.dominates(off, on) and _receiver(on, ctx) == _receiver(off, ctx) for on in switches["train"])
        for off in switches["eval"]
    )


def _receiver(call: ast.Call, ctx: FileFacts) -> str:
    return ctx.text(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _is_for_export(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether the number is told to `torch._check`: code for `torch.export`, which knows no other way to read one."""
    return any(
        isinstance(outer, ast.Call) and (ctx.target(outer.func) or "").startswith("torch._check")
        for use in later_uses(node, ctx)
        for outer in ctx.tree.ancestors(use)
    )


def _is_written_down(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether a loop goes through what is read to write each row to a file."""
    if ctx.role(node) == "train":
        return False
    child: ast.AST = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, ast.For):
            return child is outer.iter and any(
                isinstance(part, ast.Call)
                and callee_name(part) in _WRITERS
                and isinstance(part.func, ast.Attribute)
                and not SHOWS_PROGRESS.search(ctx.text(part.func.value))
                for part in walk(outer)
            )
        if isinstance(outer, ast.stmt):
            return False
        child = outer
    return False


def _answers(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether what a server, a simulation or an agent calls gives the number to it: `return score.item()`,
    `self.results["energy"] = energy.item()`.
    """
    root = ctx.program.roots.functions.get(ctx.scope(node))
    if root is None or root.role != "infer" or not root.last_resort or ctx.loops(node):
        return False
    statement = ctx.tree.statement_of(node)
    is_kept = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript)
    return is_kept or _is_returned(node, ctx)


def _is_choice(value: ast.expr, ctx: FileFacts) -> bool:
    """Whether a function that chooses an action gives back the choice that is read: an environment waits for it."""
    function = ctx.tree.function_of(value)
    if function is None or not CHOOSES.search(function.name) or ctx.loops(value):
        return False
    return _is_chosen(value, ctx, _DEPTH) and _is_returned(value, ctx)


def _is_chosen(value: ast.expr, ctx: FileFacts, depth: int) -> bool:
    while isinstance(value, (ast.Subscript, ast.Call)):
        if isinstance(value, ast.Call):
            if callee_name(value) in _CHOICES:
                return True
            if not isinstance(value.func, ast.Attribute) or value.func.attr not in _KEEPS:
                return False
            value = value.func.value
        else:
            if _is_chosen_by(value.slice, ctx, depth):
                return True
            value = value.value
    if not isinstance(value, ast.Name) or depth == 0:
        return False
    origins = ctx.inference.origins(value)
    return bool(origins) and all(origin is not value and _is_chosen(origin, ctx, depth - 1) for origin in origins)


def _is_chosen_by(index: ast.expr, ctx: FileFacts, depth: int) -> bool:
    """`allowed[scores[allowed].argmax().item()]`"""
    return isinstance(index, ast.Call) and callee_name(index) in ("item", "argmax") and _is_chosen(index, ctx, depth)


def _is_returned(value: ast.expr, ctx: FileFacts) -> bool:
    for outer in ctx.tree.ancestors(value):
        if isinstance(outer, ast.Return):
            return True
        if isinstance(outer, ast.stmt):
            return any(isinstance(ctx.tree.statement_of(use), ast.Return) for use in later_uses(value, ctx))
    return False


def _goes_to_replay(node: ast.expr, ctx: FileFacts) -> bool:
    """`errors = errors.cpu().numpy()`, and then `self.replay_buffer.update(indices, errors)`: kept on the host."""
    statement = ctx.tree.statement_of(node)
    function = ctx.tree.function_of(node)
    if not isinstance(statement, ast.Assign) or function is None:
        return False
    names = {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.lineno > node.lineno
        and bool(KEEPS_EXPERIENCE.search(name_of_whole(part.func.value)))
        and any(isinstance(item, ast.Name) and item.id in names for item in part.args)
        for part in ctx.walk(function)
    )
