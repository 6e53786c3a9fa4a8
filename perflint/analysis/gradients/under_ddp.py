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
