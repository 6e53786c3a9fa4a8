"""Whether the batches of a loader go to the device again and again."""

from __future__ import annotations

import ast

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.call_graph.ways_in import ways_in
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.glanced import is_glanced_at
from perflint.analysis.loading.loaders import purpose
from perflint.analysis.loading.made_anew import makes_all_anew
from perflint.analysis.loading.passes import Run, batch_names, called_in, calls_in, is_hook, runs, use
from perflint.analysis.loading.reaching import is_of_batch, moves_indices
from perflint.analysis.names.refs import Scope
from perflint.analysis.naming.data import MOVES
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import callee_name
from perflint.ir.summary import CallFacts, FunctionFacts

_CONVERSIONS = frozenset({"float", "double", "half", "long", "int"})
#: What a file says that means to compute with its batches, not only to prepare them.
_DEVICE_WORDS = ("to", "cuda", "device", "prepare", "fit", "Trainer", "backward")
_PREPARERS = ("prepare", "prepare_data_loader", "setup_dataloaders", "LightningModule", "deepspeed")


def is_copied(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether its batches go to the device again and again: in the loops over it, where these are in sight."""
    if is_glanced_at(call, ctx):
        return False
    loops = runs(call, ctx)
    if not loops:
        if ctx.program.never_runs(ctx.scope(call)) or _is_gathered(call, ctx):
            return False  # no program makes it, so none goes through it
        if is_hook(call, ctx, "train_dataloader", "val_dataloader"):
            return True
        return purpose(call, ctx) != "eval" and not _only_prepares(call, ctx)
    counting = [run for run in loops if use(run, ctx) != "look" or run.again]
    return any(
        not _takes_apart(run, ctx) if use(run, ctx) == "hand on" else moves_batches(run, ctx) for run in counting
    )


def _is_gathered(call: ast.Call, ctx: FileFacts) -> bool:
    """`frames = list(tqdm(loader))`: workers that are asked for numbers, of which nothing is moved as it comes."""
    if _goes_into_list(call, ctx):
        return True
    statement = ctx.tree.parent(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return False
    made = ctx.inference.flow.definition_at(targets[0])
    uses = ctx.inference.flow.uses_of(made) if made is not None else []
    return bool(uses) and all(_goes_into_list(used, ctx) for used in uses)


def _goes_into_list(used: ast.expr, ctx: FileFacts) -> bool:
    outer = ctx.tree.parent(used)
    while isinstance(outer, ast.Call) and used in outer.args:
        if isinstance(outer.func, ast.Name) and outer.func.id in ("list", "tuple"):
            return True
        if callee_name(outer) not in ("tqdm", "track", "progress"):
            return False
        used, outer = outer, ctx.tree.parent(outer)
    return False


def _takes_apart(run: Run, ctx: FileFacts) -> bool:
    """Whether a generator hands out the samples of each batch, one by one."""
    facts = ctx.program.function(run.scope)
    return bool(facts.yields) and all(facts.innermost_loop(context) != run.loop for _, context in facts.yields)


def _only_prepares(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the file goes through batches itself and speaks of no device: it writes them to files, or counts them.
    Not where another file has the loader made.
    """
    program = ctx.program
    if _is_made_for_others(ctx.scope(call), ctx):
        return False
    loops = (
        program.roots.loops.get((Scope(ctx.path, name), index))
        for name, facts in ctx.summary.functions.items()
        for index in range(len(facts.loops))
    )
    return any(loop is not None and loop.role == "batches" for loop in loops) and not ctx.mentions(*_DEVICE_WORDS)


def _is_made_for_others(scope: Scope, ctx: FileFacts) -> bool:
    """Whether a function is run by another file, itself or through its callers here."""
    return any(edge.caller.path != ctx.path for edge in ways_in(scope, ctx))


def moves_batches(run: Run, ctx: FileFacts) -> bool:
    """Whether the body of a loop, or a function that it calls, moves something that the loader may have pinned, or a
    library does so for it.
    """
    if ctx.program.mentions(_PREPARERS, _around(run, ctx)):
        return True
    if makes_all_anew(run, ctx):
        return False
    own, names = calls_in(run, ctx), batch_names(run, ctx)
    moved = [call for call in own if last_of(call.func) in ("to", "cuda")]
    of_batch = [call for call in moved if _is_of(call.func, names)]
    if of_batch and all(_is_converted(call.func, ctx.program.function(run.scope)) for call in of_batch):
        return False
    if of_batch:
        # Parts of the batch are moved as they come: what else is made of arrays says nothing of it.
        return not any(_makes_anew(call) and _is_made_of(call, names) for call in own)
    facts = ctx.program.function(run.scope)
    reached = {is_of_batch(call, names, facts) for call in moved}
    if False in reached and True not in reached:
        return False
    called = called_in(run, ctx)
    movers = [edge.callee for scope in called for edge in ctx.program.graph.outgoing.get(scope, ()) if _is_mover(edge)]
    if movers and not moved and all(moves_indices(scope, ctx) for scope in movers):
        return False
    calls = [*own, *(call for scope in called for call in ctx.program.function(scope).calls)]
    return any(MOVES.search(last_of(call.func)) for call in calls) and not any(_makes_anew(call) for call in calls)


def _is_mover(edge: Edge) -> bool:
    """Whether a function of the project is called that moves what it is given, by its name: what it does is known."""
    return MOVES.search(edge.callee.function.rpartition(".")[2]) is not None


def _around(run: Run, ctx: FileFacts) -> set[str] | None:
    """The files that may have a library move the batches of a loop: all, where it only hands them on."""
    if ctx.program.function(run.scope).loops[run.loop].kind == "comprehension":
        return None
    scopes = [run.scope, *(edge.caller for edge in ctx.program.callers(run.scope))]
    called = [edge.callee for scope in scopes for edge in ctx.program.graph.outgoing.get(scope, ())]
    return {ctx.path, *(scope.path for scope in (*scopes, *called))}


def _is_made_of(call: CallFacts, names: frozenset[str]) -> bool:
    """Whether `images.float().to()` or `from_numpy(images)` is of one of `names`."""
    if isinstance(call.func, tuple):
        return _is_of(call.func[1][1], names)
    return any(_is_of(value, names) for value in call.args)


def _is_of(value: object, names: frozenset[str]) -> bool:
    """Whether a value is one of `names` or a part of it: `images.cuda`, `batch[0].to`, `batch.labels.cuda`."""
    while isinstance(value, tuple) and value[0] in ("attr", "item"):
        value = value[1]
    return isinstance(value, str) and value.partition(".")[0] in names


def _makes_anew(call: CallFacts) -> bool:
    """Whether a call makes a tensor in pageable memory of a batch: `from_numpy(array)`, `x.float().to()`."""
    func = call.func
    if func == "torch.Tensor" or last_of(func) == "from_numpy":
        return True
    if not (isinstance(func, tuple) and func[0] == "attr" and MOVES.search(str(func[2]))):
        return False
    return _is_conversion(func[1])


def _is_conversion(value: object) -> bool:
    """`x.float()`, `x.type(torch.FloatTensor)`: not pinned, whatever `x` was."""
    if not (isinstance(value, tuple) and value[0] == "call"):
        return False
    to_host = [item for item in value[2] if isinstance(item, str) and item.startswith("torch.") and ".cuda" not in item]
    return last_of(value[1]) in _CONVERSIONS or (last_of(value[1]) == "type" and bool(to_host))


def _is_converted(value: object, facts: FunctionFacts) -> bool:
    """Whether what is moved is a name that a conversion of itself is bound to: `x = x.float()` before `x.cuda()`."""
    while isinstance(value, tuple) and value[0] in ("attr", "item"):
        value = value[1]
    name = value.partition(".")[0] if isinstance(value, str) else ""
    return any(
        _is_conversion(bound) and str(bound[1]).partition(".")[0] == name
        for bound in facts.binds.get(name, ())
        if isinstance(bound, tuple)
    )
