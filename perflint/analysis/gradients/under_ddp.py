"""Whether what a file trains is put under DistributedDataParallel, and run through it."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.finding import Confidence, Heat
from perflint.syntax.walk import walk
from perflint.torch_model import distributed
from perflint.torch_model.names import canonical

_DDP_NAMES = frozenset({"DistributedDataParallel"})
#: Where a file can shard the model as well, nobody sees which of the two is trained.
_SHARDED = ("FullyShardedDataParallel", "FSDP", "fully_shard")


def trains_under_ddp(ctx: FileFacts) -> Confidence | None:
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


def callers_train_under_ddp(node: ast.AST, ctx: FileFacts) -> Confidence | None:
    """How sure it is that those who call the function around `node` put what they train under DDP."""
    program = ctx.program
    if not program.mentions(_DDP_NAMES) or ctx.mentions(*_SHARDED) or _is_passed_by(ctx):
        return None
    callers = {edge.caller.path for edge in program.callers(ctx.scope(node)) if edge.index >= 0}
    around = [there for path in sorted(callers) if (there := ctx.at(path)) is not None]
    return Confidence.MEDIUM if any(trains_under_ddp(there) is not None for there in around) else None


def _is_passed_by(ctx: FileFacts) -> bool:
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
    """Whether a file puts a model under DDP, or under a class of its own that may derive from it."""
    if not program.mentions(_DDP_NAMES, (path,)):
        return False
    bases = {base for facts in program.summaries[path].classes.values() for base in facts.bases}
    for name, facts in program.summaries[path].functions.items():
        scope = Scope(path, name)
        if any(isinstance(call.func, str) and _is_ddp(program, call.func, scope) for call in facts.calls):
            return True
        # `chosen = DistributedDataParallel if distributed else Other`, and then `class Wrapped(chosen):`.
        chosen = [value for key in bases & facts.binds.keys() for value in facts.binds[key]]
        if any(isinstance(value, str) and _is_ddp(program, value, scope) for value in chosen):
            return True
    return False


def _is_ddp(program: Program, name: str, scope: Scope) -> bool:
    return any(canonical(ref.name) in distributed.WITH_NO_SYNC for ref in program.refs(name, scope))
