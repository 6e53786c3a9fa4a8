"""What rules about whole training loops share: which loops train, and which code they run or are run by."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.analysis.naming.models import OPTIMIZERS
from perflint.analysis.phases.loop_purpose import names_in
from perflint.analysis.program import Program
from perflint.analysis.values.kind import Tag
from perflint.finding import Heat
from perflint.ir.summary import CallFacts
from perflint.syntax.walk import walk
from perflint.torch_model import precision

#: What only a loop that trains has; a profile of forward and backward has not.
_STEPS = frozenset("step zero_grad optimizer optimizer_step opt optim".split())
#: The words that a training loop has one of, for `Loops`.
BACKWARD = ("backward", "manual_backward", "zero_grad")
_EXPERIENCE = frozenset(
    "rollout_buffer rollout_data replay_buffer replay_data rollouts trajectories env envs episodes num_envs".split()
)
_REACH = 60
_LAYERS = ("torch.nn.Linear", "torch.nn.Bilinear")


def is_training_loop(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` is the outermost loop over training steps of its function."""
    if not isinstance(node, (ast.For, ast.AsyncFor, ast.While)) or not ctx.is_root_loop(node):
        return False
    if ctx.role(node.body[0]) != "train" or ctx.body_heat(node) < Heat.STEP or _is_inside_one(node, ctx):
        return False
    if isinstance(node, (ast.For, ast.AsyncFor)) and any(OPTIMIZERS.search(name) for name in names_in(node.iter)):
        return False  # one step of several optimizers
    return any(name in _STEPS for name in names_in(node))


def _is_inside_one(node: ast.For | ast.AsyncFor | ast.While, ctx: FileFacts) -> bool:
    """Whether the loop around this one is one too: then this one is over micro-batches of a step."""
    return any(ctx.is_root_loop(loop) and ctx.role(loop.body[0]) == "train" for loop in ctx.loops(node))


def is_about_agents(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the loop or its function is about an agent's experience, whose networks do not keep a device busy."""
    header = (
        node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else node.test if isinstance(node, ast.While) else node
    )
    around = ctx.tree.function_of(node) or node  # of a script without functions, the loop
    return not _EXPERIENCE.isdisjoint(names_in(header)) or ctx.once(_names_experience, around)


def _names_experience(region: ast.AST, _: FileFacts) -> bool:
    return not _EXPERIENCE.isdisjoint(names_in(region))


def shares_on_the_host(ctx: FileFacts) -> bool:
    """Whether the file, or one beside it, shares a model among processes on the host."""
    folder = ctx.path.rpartition("/")[0]
    beside = [path for path in ctx.program.summaries if path.rpartition("/")[0] == folder]
    return ctx.program.mentions(precision.ON_THE_HOST, beside)


def trains_one_layer(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the loop belongs to a class that is a single layer, and trains itself, or puts its batches through one
    and nothing else: a probe of features that were made before. Too little for tensor cores, or a compiler.
    """
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, ast.ClassDef):
            return any(ctx.target(base) in _LAYERS for base in outer.bases)
    return isinstance(node, ast.For) and _goes_through_one_layer(node, ctx)


def _goes_through_one_layer(loop: ast.For, ctx: FileFacts) -> bool:
    batch = set(names_in(loop.target))
    given = [
        part.func
        for part in ctx.walk(loop)
        if isinstance(part, ast.Call)
        and part.args
        and isinstance(part.args[0], ast.Name)
        and part.args[0].id in batch
        and isinstance(part.func, (ast.Name, ast.Attribute))
    ]
    models = [func for func in given if ctx.target(func) is None or ctx.kind(func).tag is Tag.MODULE]
    return bool(models) and all(ctx.target(model) in _LAYERS for model in models)


def connected(scope: Scope, program: Program) -> Iterator[Scope]:
    """A function, those that lead to it, and those it runs but for loaders; not all of a large program."""
    seen, waiting = {scope}, [scope]
    while waiting and len(seen) < _REACH:
        current = waiting.pop(0)
        around = [edge.caller for edge in program.callers(current)]
        for near in (*around, *(edge.callee for edge in program.graph.outgoing.get(current, ()))):
            if near not in seen and not _brings_data(near, program):
                seen.add(near)
                waiting.append(near)
    yield from seen


def _brings_data(scope: Scope, program: Program) -> bool:
    """Whether a function belongs to a loader or data set, whose types are not those of the model."""
    owner = program.summaries[scope.path].classes.get(program.function(scope).in_class)
    return owner is not None and any(name in ("__iter__", "__next__", "__getitem__") for name in owner.methods)


def identifiers_near(node: ast.AST, ctx: FileFacts) -> Iterator[str]:
    """Identifiers, and keywords of calls, of the file and of the functions that the loop runs or is run by."""
    yield from ctx.once(_identifiers_here, ctx.tree.module)
    for scope in connected(ctx.scope(node), ctx.program):
        if scope.path != ctx.path:
            yield from _identifiers(scope, ctx.program)


def _identifiers_here(module: ast.Module, ctx: FileFacts) -> frozenset[str]:
    keywords = {part.arg for part in walk(module) if isinstance(part, ast.keyword) and part.arg is not None}
    return frozenset(keywords.union(*ctx.summary.words_by_statement().values()))


def identifiers_below(node: ast.AST, ctx: FileFacts) -> Iterator[str]:
    """Identifiers of the functions that the loop's function runs, without its own."""
    own = ctx.scope(node)
    seen, waiting = set[Scope](), [own]
    while waiting and len(seen) < _REACH:
        current = waiting.pop(0)
        if current not in seen:
            seen.add(current)
            if current != own:
                yield from _identifiers(current, ctx.program)
            waiting += [edge.callee for edge in ctx.program.graph.outgoing.get(current, ())]


def _identifiers(scope: Scope, program: Program) -> Iterator[str]:
    facts = program.function(scope)
    summary = program.summaries[scope.path]
    yield from summary.words_by_statement()[summary.statement_at(facts.line)]
    calls: tuple[CallFacts, ...] = facts.calls
    for call in calls:
        yield from (name for name, _ in call.keywords)
