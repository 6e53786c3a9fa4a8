"""TPL802: gradients reduced across processes for every micro-batch of an accumulated step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.api import (
    CLASS,
    Calls,
    Confidence,
    Context,
    Effect,
    Finding,
    Heat,
    Impact,
    Program,
    Ref,
    Rule,
    Scope,
    callee_name,
    canonical,
    distributed,
    guards,
    walk,
)
from perflint.api.loops import names_in
from perflint.api.names import MINDS_SYNC, WITHOUT_SYNC

_DDP_NAMES = frozenset({"DistributedDataParallel"})

#: Where a file can shard the model as well, nobody sees which of the two is trained.
_SHARDED = ("FullyShardedDataParallel", "FSDP", "fully_shard")
_WITHOUT = ("no_sync", "no_backward_sync")


class DdpSyncEveryMicrobatch(Rule):
    """Gradient accumulation under DDP without `no_sync` all-reduces the gradients of every micro-batch.

    What it does

    Reports backward passes of an accumulation loop under DDP without `no_sync`, and `no_sync` around the backward
    alone.

    Why is this slow?

    DDP starts to all-reduce gradients during each backward pass. A step of N micro-batches needs this only for the
    last one. Until then the sums can stay in `.grad`.

    What to do

    Run the forward and backward passes of all but the last micro-batch under `model.no_sync()`:

        with contextlib.nullcontext() if is_last else model.no_sync():
            loss = model(batch) / accumulation
            loss.backward()

    The forward pass must be inside: DDP decides there whether the next backward pass reduces. The last micro-batch of
    an incomplete step must synchronize, too.

    Fix safety

    No fix: which micro-batch is the last must be known before its forward pass.

    Not reported

    - Accumulation by a framework: accelerate, Fabric, Lightning, DeepSpeed.
    - Code that sets `require_backward_grad_sync` before the forward pass.
    - FSDP, whose `no_sync` keeps whole gradients in memory, and code without DDP.
    - Micro-batches that each clip all gradients.
    - Forward passes of `model.module`, which bypass the wrapper: nothing is reduced then, which is a bug of its own.

    Known limitations

    Synchronized batch norm still communicates in every forward pass.

    Measured

    Four micro-batches took 168 ms, with `no_sync` 75 ms, with `no_sync` around the backward alone 136 ms (gloo, two
    processes on one machine). Across machines the gap grows.

    References

    - DistributedDataParallel.no_sync:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
    - Distributed data parallel, internal design: https://docs.pytorch.org/docs/stable/notes/ddp.html
    """

    code, name = "TPL802", "ddp-sync-every-microbatch"
    impact = Impact.HIGH
    listens = (Calls("backward"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not _is_backward(node):
            return
        useless = _no_sync_around_backward_only(node, ctx)
        if useless is not None:
            yield self.finding(
                node,
                ctx,
                f"`{_short(useless, ctx)}` contains the backward pass but not the forward pass, so DDP reduces "
                "gradients anyway.",
                advice="Move the forward pass into the `with`: DDP decides there whether the backward pass reduces.",
                related=(ctx.hop(useless, "gradients should stay local here"),),
            )
            return
        step = _accumulates(node, ctx)
        certainty = _wrapped(ctx) if step else None
        if step is None or certainty is None or _is_handled(node, ctx) or _needs_gradients(node, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"`{_short(node, ctx)}` {ctx.heat(node).phrase} and all-reduces gradients each time; only the last "
            "micro-batch of a step needs it.",
            advice="Run the forward and backward passes of all but the last micro-batch under `no_sync()`.",
            confidence=certainty,
            related=(ctx.hop(step, "the optimizer step of these micro-batches"),),
            block=step,
        )


def _is_backward(node: ast.Call) -> bool:
    if not isinstance(node.func, ast.Attribute):
        return False
    owner = ast.unparse(node.func.value)
    return not re.search(r"accelerator|fabric|engine|strategy|trainer|super\(\)|^self$|autograd", owner)


def _no_sync_around_backward_only(node: ast.Call, ctx: Context) -> ast.expr | None:
    """The `no_sync()` of a `with` in whose body nothing but the backward happens, with the forward in sight before."""
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.While)):
            return None
        if not isinstance(outer, ast.With):
            continue
        for item in outer.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and WITHOUT_SYNC.search(callee_name(call)):
                return call if _only_backward(outer) and _forward_before(node, outer, ctx) else None
    return None


def _only_backward(block: ast.With) -> bool:
    return all(
        isinstance(item, ast.Expr) and isinstance(item.value, ast.Call) and callee_name(item.value) == "backward"
        for item in block.body
    )


def _forward_before(node: ast.Call, block: ast.With, ctx: Context) -> bool:
    """Whether the loss is made in this function, before the block, outside of any other `no_sync`."""
    given = node.func.value if isinstance(node.func, ast.Attribute) else node
    function = ctx.tree.function_of(node) or ctx.tree.module
    names = set(names_in(given))
    return any(
        isinstance(part, ast.Assign)
        and part.lineno < block.lineno
        and isinstance(part.value, (ast.Call, ast.BinOp, ast.Attribute, ast.Subscript))
        and any(isinstance(name, ast.Name) and name.id in names for target in part.targets for name in walk(target))
        for part in walk(function)
    ) and not any(
        isinstance(outer, ast.With) and "sync" in ctx.text(outer.items[0].context_expr)
        for outer in ctx.tree.ancestors(block)
    )


#: Guards of an optimizer's step that comes once for several backward passes: every N of them, whatever N is called.
_GATHERED = frozenset({guards.ACCUMULATION, guards.PERIODIC})


def _accumulates(node: ast.Call, ctx: Context) -> ast.Call | None:
    """The optimizer's step that comes once for several runs of this backward, in the same function: of a loop in it, or
    of the function as a whole, which a loop elsewhere calls for each micro-batch.
    """
    loops = ctx.loops(node)
    function = ctx.tree.function_of(node) or ctx.tree.module
    if _steps_itself(node, ctx) or (not loops and function is ctx.tree.module):
        return None
    steps = ctx.once(_optimizer_steps, function)
    if not _GATHERED.intersection(ctx.guards(node)):
        for part in steps.get(id(loops[0]) if loops else None, ()):
            if _GATHERED.intersection(ctx.guards(part)):
                return part
    if ctx.heat(node) != Heat.MICROBATCH or not loops:
        return None
    outside = (steps.get(key) for key in (*map(id, loops[1:]), None))
    return next((found[0] for found in outside if found), None)


def _optimizer_steps(function: ast.AST, ctx: Context) -> dict[int | None, list[ast.Call]]:
    """The optimizers' steps in a function, by the id of the loop right around each."""
    found: dict[int | None, list[ast.Call]] = {}
    for part in ctx.walk(function):
        if isinstance(part, ast.Call) and callee_name(part) == "step" and _is_of_optimizer(part, ctx):
            around = ctx.loops(part)
            found.setdefault(id(around[0]) if around else None, []).append(part)
    return found


def _is_of_optimizer(step: ast.Call, ctx: Context) -> bool:
    """Whether a step is an optimizer's, also of one whose class the project has written itself."""
    if ctx.effects(step).does(Effect.STEPS):
        return True
    made = ctx.refs(step.func.value) if isinstance(step.func, ast.Attribute) else ()
    bases = (ctx.program.resolver.base_names(Ref(CLASS, ref.path, ref.name)) for ref in made if ref.path)
    return any("torch.optim.Optimizer" in names for names in bases)


def _steps_itself(node: ast.Call, ctx: Context) -> bool:
    """Whether a test decides about the backward and the step behind it at once: nothing is gathered there."""
    graph = ctx.control_flow(node)
    if not any(ctx.loops(test)[:1] == ctx.loops(node)[:1] for test, _ in graph.decided_by(node)):
        return False
    loops = ctx.loops(node)
    steps = ctx.once(_optimizer_steps, ctx.tree.function_of(node) or ctx.tree.module)
    return any(graph.post_dominates(step, node) for step in steps.get(id(loops[0]) if loops else None, ()))


def _is_handled(node: ast.Call, ctx: Context) -> bool:
    """Whether the file, or a function on the way to the line, minds when gradients are reduced."""
    if any(MINDS_SYNC.search(name) for words in ctx.summary.words_by_statement().values() for name in words):
        return True
    _, route, _ = ctx.heat_and_route(node)
    return any(WITHOUT_SYNC.search(hop.text) for hop in route) or _is_in_own_block(node, ctx)


def _is_in_own_block(node: ast.Call, ctx: Context) -> bool:
    """`with ddp_sync(model, last):`, of a file of the project that says `no_sync`; `with fabric.accumulate(m):`."""
    for outer in ctx.tree.ancestors(node):
        for item in outer.items if isinstance(outer, ast.With) else ():
            call = item.context_expr
            if isinstance(call, ast.Call) and callee_name(call) == "accumulate":
                return True  # the framework knows the last micro-batch
            target = ctx.project_target(call.func) if isinstance(call, ast.Call) else None
            if target is not None and ctx.program.mentions(_WITHOUT, {target.path}):
                return True
    return False


def _needs_gradients(node: ast.Call, ctx: Context) -> bool:
    """Whether each micro-batch clips the gradients of all, not only those of the last: they have to be reduced then."""
    loops = ctx.loops(node)
    return any(
        isinstance(part, ast.Call)
        and "clip_grad" in callee_name(part)
        and ctx.loops(part) == loops
        and not _GATHERED.intersection(ctx.guards(part))
        for part in ctx.walk(loops[0] if loops else ctx.tree.function_of(node) or ctx.tree.module)
    )


def _wrapped(ctx: Context) -> Confidence | None:
    """How sure it is that what this file trains is put under DDP: in the file itself, or by one that it calls."""
    program = ctx.program
    if not program.mentions(_DDP_NAMES) or ctx.mentions(*_SHARDED):
        return None
    called = {
        edge.callee.path
        for name in ctx.summary.functions
        for edge in program.graph.outgoing.get(Scope(ctx.path, name), ())
        # A method found by its name alone may be anybody's.
        if edge.confidence is Confidence.HIGH
    }
    certainty = Confidence.HIGH if _wraps(program, ctx.path) else None
    if certainty is None and any(_wraps(program, path) for path in sorted(called)):
        certainty = Confidence.MEDIUM
    if certainty is None:
        return None
    # Asked last, and of files with the word alone: it goes through the trees of all that is called.
    paths = [path for path in sorted({ctx.path} | called) if program.mentions(("module",), (path,))]
    around = [there for path in paths if (there := ctx.at(path)) is not None]
    return None if any(map(_is_passed_by, around)) else certainty


def _is_passed_by(ctx: Context) -> bool:
    """Whether a step of this file runs the module inside of the wrapper: DDP sees no forward then, and its backward
    reduces nothing.
    """
    inner: set[str] = set()
    for part in walk(ctx.tree.module):
        if isinstance(part, ast.Assign) and any(_is_inside(item) for item in walk(part.value)):
            inner |= {item.id for item in part.targets if isinstance(item, ast.Name)}
    return any(
        isinstance(part, ast.Call)
        and (_is_inside(part.func) or (isinstance(part.func, ast.Name) and part.func.id in inner))
        and ctx.heat(part) >= Heat.STEP
        and not ctx.grad_off(part)
        for part in walk(ctx.tree.module)
    )


def _is_inside(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute) and node.attr == "module" and isinstance(node.value, (ast.Name, ast.Attribute))
    )


def _wraps(program: Program, path: str) -> bool:
    if not program.mentions(_DDP_NAMES, (path,)):
        return False
    for name, facts in program.summaries[path].functions.items():
        for call in facts.calls:
            if isinstance(call.func, str) and any(
                canonical(ref.name) in distributed.DISTRIBUTED_DATA_PARALLEL
                for ref in program.refs(call.func, Scope(path, name))
            ):
                return True
    return False


def _short(node: ast.AST, ctx: Context) -> str:
    text = ctx.text(node)
    return text if len(text) <= 60 else "backward()"
