"""TPL503: the same model built or loaded again on every turn of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    FUNCTION,
    INSTANCE,
    Calls,
    Confidence,
    Context,
    Finding,
    Heat,
    Impact,
    Rule,
    Scope,
    Tag,
    callee_name,
    last,
    last_of,
    modules,
    walk,
)
from perflint.api.loops import is_timing, names_in, starts_afresh, trains_inside
from perflint.api.words import short_call

#: Modules of torch.nn whose weights are filled at construction.
_LAYERS = (
    "Linear",
    "Bilinear",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose2d",
    "Embedding",
    "LSTM",
    "GRU",
    "MultiheadAttention",
    "TransformerEncoderLayer",
    "TransformerEncoder",
    "TransformerDecoderLayer",
)
_BUILDERS = (
    "build_model",
    "make_model",
    "get_model",
    "load_model",
    "create_model",
    "init_model",
    "build_network",
    "load_network",
)

#: What only asks what something is, or takes it off what holds it.
_ASKING = frozenset(
    "isinstance issubclass type hasattr getattr len bool super is_parallel is_dist_avail_and_initialized".split()
)


class ModelBuiltInLoop(Rule):
    """The same model is built, or read from disk, again on every iteration of a loop.

    What it does

    Reports module constructors and `from_pretrained` in a loop, with arguments that do not change.

    Why is this slow?

    Building a module fills its weights with random numbers, which are overwritten if weights are loaded next.
    `from_pretrained` also reads the checkpoint.

    What to do

    Build it once before the loop. If the loop changes the weights, keep a copy of the state dict and load it at the
    start of each iteration with `strict=True`: with `strict=False`, missing keys silently keep the weights of the
    previous iteration. If weights are loaded anyway, build under `torch.device("meta")` and load with `assign=True`.
    A checkpoint opens faster with `torch.load(..., mmap=True)`.

    Fix safety

    No fix: random numbers would be drawn in another order, and state would carry over between iterations.

    Not reported

    - Folds, seeds, trials, ensembles and hyperparameter searches, which need a new model each time.
    - A different model in each iteration.
    - Loops that train what they build, or that empty a list, as checkpoint hooks do.
    - Layers built in `__init__`, lazy construction, and retries after an error.

    Measured

    `nn.Linear(2048, 2048)` takes 29 ms to build, as long as 42 of its forward passes; `torch.nn.utils.skip_init` 0.25
    ms, `device="meta"` 0.09 ms (CPU).

    References

    - `torch.nn.utils.skip_init`: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.skip_init.html
    - `torch.load`: https://docs.pytorch.org/docs/stable/generated/torch.load.html
    """

    code, name = "TPL503", "model-built-in-loop"
    impact = Impact.HIGH
    listens = (
        Calls(
            *modules.FACTORY_METHODS,
            *(last(name) for name in modules.MODULE_FACTORIES),
            *_LAYERS,
            *_BUILDERS,
            repeated=True,
        ),
    )

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        loops = ctx.loops(node)
        hot = ctx.heat(node) >= Heat.STEP
        if (not loops and not hot) or (callee_name(node) in _LAYERS and not hot):
            return
        if ctx.guards(node) or _is_kept(node, ctx) or not _builds(node, ctx):
            return
        if loops:
            if not _same_each_turn(node, loops[0], ctx) or starts_afresh(loops[0]) or _ends(loops[0]):
                return
            if is_timing(loops[0]) or (not hot and (trains_inside(loops[0], ctx) or _drains(loops[0]))):
                return
            often = ctx.heat(node).phrase if hot else "runs in every iteration"
        else:
            if not _is_constant(node, ctx) or _is_of_new_object(node, ctx):
                return
            often = ctx.heat(node).phrase
        reads = callee_name(node) in modules.FACTORY_METHODS - {"from_config"} or callee_name(node).startswith("load")
        yield self.finding(
            node,
            ctx,
            f"`{short_call(node, ctx)}` {often} with the same arguments and {'reads' if reads else 'builds'} the "
            "same model each time.",
            advice=(
                "Build it once before the loop. If an iteration changes its weights, load a kept state dict "
                "with `strict=True`."
            ),
            confidence=None if loops else Confidence.MEDIUM,
        )


def _builds(node: ast.Call, ctx: Context) -> bool:
    """Whether the call makes a module that costs: a checkpoint's, a factory's, or a layer with weights."""
    target = ctx.target(node.func)
    if target is not None:
        if modules.is_torch_module(target):
            return last(target) in _LAYERS
        return modules.makes_module(target)
    project = ctx.project_target(node.func)
    if project is None:
        return False
    if project.kind == FUNCTION and _only_hands_over(Scope(project.path, project.name), ctx):
        return False
    return project.kind != INSTANCE and ctx.kind(node).tag is Tag.MODULE and callee_name(node) not in _LAYERS


def _only_hands_over(scope: Scope, ctx: Context) -> bool:
    """Whether a function calls nothing that could build: `get_model` gives back the one that is there, unwrapped."""
    return all(last_of(call.func) in _ASKING for call in ctx.program.function(scope).calls)


def _is_kept(node: ast.Call, ctx: Context) -> bool:
    """Whether the modules are collected, or belong to one that is being built."""
    function = ctx.tree.function_of(node)
    if function is not None and function.name in ("__init__", "__post_init__", "build", "setup", "configure_model"):
        return True
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.Yield, ast.Return, ast.List, ast.Dict)):
            return True
        if isinstance(outer, ast.Call) and outer is not node:
            name = callee_name(outer)
            if name in ("append", "add_module", "extend", "insert", "setattr", "register_module"):
                return True
        if isinstance(outer, (ast.Assign, ast.AnnAssign)):
            targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target]
            if any(isinstance(target, (ast.Subscript, ast.Attribute)) for target in targets):
                return True
            return _is_collected([target.id for target in targets if isinstance(target, ast.Name)], outer, ctx)
        if isinstance(outer, ast.stmt):
            return isinstance(outer, ast.Return)
    return False


def _is_collected(names: list[str], statement: ast.stmt, ctx: Context) -> bool:
    """Whether the module is put into a container or stored by what follows."""
    for name in names:
        for use in ctx.inference.flow.uses_after(statement, name):
            parent = ctx.tree.parent(use)
            if isinstance(parent, (ast.Tuple, ast.List, ast.Dict, ast.Yield, ast.Return)):
                return True
            if isinstance(parent, ast.Assign) and any(not isinstance(item, ast.Name) for item in parent.targets):
                return True
            if isinstance(parent, ast.Call) and callee_name(parent) in ("append", "add_module", "setattr", "extend"):
                return True
    return False


def _same_each_turn(node: ast.Call, loop: ast.stmt, ctx: Context) -> bool:
    """Whether callee and arguments stay the same on every turn, seen through names the loop itself sets."""
    given = [*node.args, *(item.value for item in node.keywords)]
    if isinstance(loop, (ast.For, ast.AsyncFor)) and set(names_in(loop.target)) & set(names_in(node.func)):
        return False  # `for part in parts: part.from_pretrained(folder)`
    # A library's class is the same on each turn, even where the loop itself imports it.
    if ctx.target(node.func) is None:
        given.append(node.func)
    return all(_is_invariant(item, loop, ctx) for item in given)


def _is_invariant(node: ast.expr, loop: ast.stmt, ctx: Context) -> bool:
    return ctx.inference.flow.is_invariant(
        node, loop, lambda call: callee_name(call) in ("str", "int", "getattr", "len")
    )


def _ends(loop: ast.stmt) -> bool:
    """Whether the loop is one that tries until something works."""
    return any(isinstance(part, (ast.Break, ast.Return, ast.Try)) for part in walk(loop))


def _drains(loop: ast.stmt) -> bool:
    """Whether the loop takes what it is handed out of a container until that is empty: it turns once for each of the
    few things that somebody put there, and a set-up hands over one.
    """
    if not isinstance(loop, ast.While):
        return False
    tested = set(names_in(loop.test))
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in ("pop", "popleft", "popitem", "get_nowait")
        and isinstance(part.func.value, ast.Name)
        and part.func.value.id in tested
        for part in walk(loop)
    )


def _is_of_new_object(node: ast.Call, ctx: Context) -> bool:
    """Whether what the call is given belongs to an object that is made on the way, anew on each turn."""
    if not any(
        name == "self" for item in [*node.args, *(item.value for item in node.keywords)] for name in names_in(item)
    ):
        return False
    _, route, _ = ctx.heat_and_route(node)
    return any(hop.text.endswith("__init__") for hop in route[1:])


def _is_constant(node: ast.Call, ctx: Context) -> bool:
    """Whether nothing the call is given comes from the caller or the batch."""
    function = ctx.tree.function_of(node)
    if function is None:
        return False
    bound = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs, *function.args.posonlyargs)}
    bound |= set(ctx.inference.flow.names_written(function))
    given = [*node.args, *(item.value for item in node.keywords)]
    return not any(name in bound - {"self"} for item in given for name in names_in(item))
