"""TPL605: parameters updated one by one in Python on every step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from perflint.api import (
    Context,
    Finding,
    Heat,
    Impact,
    Kind,
    Loops,
    Rule,
    Tag,
    callee_name,
    keyword,
    last_name,
    last_of,
    walk,
)
from perflint.api.loops import launches_of_step, names_in
from perflint.api.names import ADAPTS, LAST_LAYERS, PARAMETER_LISTS
from perflint.api.phases import is_trial_run

from ._fixes.foreach_update import on_lists

_WALKS = frozenset("parameters named_parameters buffers named_buffers".split())
#: Functions around a walk that leave it one.
_WRAPPERS = frozenset("list tuple enumerate filter zip zip_strict reversed chain".split())
_UPDATES = frozenset(
    "mul_ add_ sub_ div_ lerp_ addcmul_ addcdiv_ clamp_ clamp_min_ clamp_max_ clip_ copy_ mul add sub lerp".split()
)
#: What an update may call besides: it neither computes statistics nor communicates.
_HARMLESS = frozenset(
    "detach to float data is_floating_point items values keys zip parameters named_parameters state_dict isinstance "
    "hasattr getattr no_grad type_as cpu cuda startswith replace removeprefix min max float int dtype clone view_as "
    "is_complex".split()
)
#: Layers of one or two parameters.
_LAYERS = frozenset(f"torch.nn.{name}" for name in "Linear Conv1d Conv2d Conv3d Embedding LayerNorm Bilinear".split())
#: Operations for each parameter of an optimizer's own step: of fewer there is little to gain.
_SEVERAL = 4
#: Parameters for which a loop of updates costs as much as one for all.
_FEW = 2
_OF_NUMBERS = frozenset("int float bool len max min round".split())
#: By which a module may hold more than its attributes say.
_ADD_UNSEEN = frozenset("setattr add_module register_module register_parameter".split())
#: Methods by which classes of moving averages mix two values.
_MIXERS = frozenset("update_average".split())
#: Tensors that are spread over processes, which `torch._foreach_*` does not take everywhere.
_SHARDED = (
    "FullyShardedDataParallel",
    "FSDP",
    "fully_shard",
    "DTensor",
    "summon_full_params",
    "to_local",
    "full_tensor",
    "GatheredParameters",
)


class PerParameterUpdate(Rule):
    """A Python loop updates one parameter at a time on every step: a moving average, clipping, or a manual step.

    What it does

    Reports loops on the hot path that update all parameters one by one, and the `step` of an optimizer of your own that
    does the same arithmetic on each.

    Why is this slow?

    Each operation on each parameter launches a kernel: two operations for 300 parameters are 600 launches, where
    `torch._foreach_*` needs a handful. On a GPU, where the launch is most of the cost of a small update, the loop
    loses more than on a CPU.

    What to do

    Moving averages: `torch._foreach_lerp_(averages, values, 1 - decay)` on two lists, or
    `torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn`, whose state dict has other keys. Clipping:
    `torch.nn.utils.clip_grad_norm_` or `clip_grad_value_`. Scaling: `torch._foreach_mul_(gradients, factor)`. A
    manual step: `torch.optim.SGD`. An optimizer of your own: `torch._foreach_*` on lists of parameters, gradients and
    states, as the optimizers of torch do.

    Fix safety

    Unsafe: `torch._foreach_*` is not a public API, and raises for an empty list, integer buffers and mixed types.
    `_foreach_mul_` and `_foreach_add_` give the same bits as `mul_` and `add_`; `lerp_` differs from them in the last
    bit. A mixture that is copied (`copy_(a * x + b * y)`) keeps its bits, and holds a second copy for a moment.

    Not reported

    - Loops that are not on the hot path, and loops beside a `_foreach_` branch.
    - Updates that differ per parameter: rates by name, statistics of each, noise.
    - An optimizer's own step of fewer than four operations, or with norms, products of matrices or views of a shape.
    - Sharded parameters, plain copies, communication, and steps that adapt a model to tasks.
    - `module._parameters`, which holds at most a few.

    Known limitations

    For a handful of parameters there is no gain.

    Measured

    On one CPU thread with torch 2.13, a moving average of 300 parameters of 1,000 numbers took 0.57 of the loop's
    time with `_foreach_mul_` and `_foreach_add_`, 0.42 with `lerp_` in the loop, and 0.19 with `_foreach_lerp_`. 300
    parameters of 30,000 numbers: 0.71 to 0.79. 12 parameters of a million: 0.75. Building the new value first
    (`copy_(d * x + (1 - d) * y)`) takes twice as long as in place.

    References

    - torch.optim, weight averaging: https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    - `torch.nn.utils.clip_grad_norm_`:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
    """

    code, name = "TPL605", "per-parameter-update"
    impact = Impact.MEDIUM
    listens = (Loops(),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not isinstance(node, ast.For):
            return
        if (launches := launches_of_step(node, ctx)) >= _SEVERAL and ctx.heat(node.body[0]) >= Heat.STEP:
            yield self._own_step(node, launches, ctx)
            return
        if not (_is_walk(node.iter) or _hands_out(node.iter, ctx) or _is_of_mapping(node.iter, ctx)):
            return
        if ctx.heat(node.body[0]) < Heat.STEP or _has_another_way(node, ctx) or _is_small(node.iter, ctx):
            return
        if is_trial_run(node, ctx) or _adapts_to_tasks(node, ctx):
            return
        updates = _updates(node)
        if not updates or not _is_alike(node):
            return
        yield self.finding(
            node,
            ctx,
            f"The loop over `{ctx.text(node.iter)}` {ctx.heat(node.body[0]).phrase} and launches "
            f"{_count(updates)} for each parameter.",
            advice=_advice(updates, ctx),
            fix=on_lists(node, ctx),
        )

    def _own_step(self, node: ast.For, launches: int, ctx: Context) -> Finding:
        """The step of an optimizer that the project has written itself."""
        return self.finding(
            node,
            ctx,
            f"The loop over `{ctx.text(node.iter)}` {ctx.heat(node.body[0]).phrase} and launches {launches} or more "
            "operations for each parameter.",
            advice="Collect parameters, gradients and states in lists and use `torch._foreach_*` on them, as "
            "`torch.optim` does; or use its optimizer, where it has this one.",
        )


class _Update(NamedTuple):
    """One operation that changes what the loop walks over."""

    node: ast.AST
    method: str


def _is_walk(node: ast.expr) -> bool:
    """`model.parameters()`, pairs of those, entries of state dicts, lists named for parameters or gradients."""
    if isinstance(node, ast.Name):
        return PARAMETER_LISTS.search(node.id) is not None
    if isinstance(node, ast.Attribute):
        return PARAMETER_LISTS.search(node.attr) is not None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_walk(node.left) and _is_walk(node.right)
    if not isinstance(node, ast.Call):
        return False
    if callee_name(node) in _WALKS:
        return isinstance(node.func, ast.Attribute)
    if callee_name(node) in ("items", "values") and isinstance(node.func, ast.Attribute):
        return _is_state(node.func.value)
    return callee_name(node) in _WRAPPERS and any(_is_walk(item) for item in node.args)


def _hands_out(node: ast.expr, ctx: Context) -> bool:
    """Whether a function of this file is called that returns such a walk: `for name, p in self.averaged(model):`."""
    if not isinstance(node, ast.Call) or ctx.text(node.func) not in (callee_name(node), f"self.{callee_name(node)}"):
        return False
    if all(ref.path != ctx.path for ref in ctx.refs(node.func)):
        return False
    defined = [part for part in walk(ctx.tree.module) if isinstance(part, ast.FunctionDef)]
    named = [function for function in defined if function.name == callee_name(node)]
    return len(named) == 1 and _returns_walks(named[0])


def _is_of_mapping(node: ast.expr, ctx: Context) -> bool:
    """`params.items()` of what was bound to `dict(model.named_parameters())`."""
    if not isinstance(node, ast.Call) or callee_name(node) not in ("items", "values", "keys"):
        return False
    mapping = node.func.value if isinstance(node.func, ast.Attribute) else None
    made = ctx.inference.flow.definitions(mapping) if isinstance(mapping, ast.Name) else ()
    return bool(made) and all(
        isinstance(item.value, ast.Call)
        and callee_name(item.value) in ("dict", "OrderedDict")
        and any(_is_walk(given) for given in item.value.args)
        for item in made
    )


def _returns_walks(function: ast.FunctionDef) -> bool:
    """Whether all that a function returns are walks over parameters, written there or bound to a name."""
    parts = list(walk(function))
    returned = [part.value for part in parts if isinstance(part, ast.Return) and part.value is not None]
    walks = {
        target.id
        for part in parts
        if isinstance(part, ast.Assign) and _is_walk(part.value)
        for target in part.targets
        if isinstance(target, ast.Name)
    }
    return bool(returned) and all(
        _is_walk(value) or (isinstance(value, ast.Name) and value.id in walks) for value in returned
    )


def _is_state(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return callee_name(node) == "state_dict"
    return re.search(r"(?:^|_)(?:shadow|ema)(?:_|$)|state_dict$", last_name(node)) is not None


def _is_small(node: ast.expr, ctx: Context) -> bool:
    """Whether the walk is over the two parameters of a single layer, or those of the last layers only."""
    if any(_is_few(part, ctx) for part in walk(node)) or "_parameters" in names_in(node):
        return True  # `module._parameters` holds those of the module itself, not of its layers
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in _WALKS
        and _holds_few(ctx.kind(part.func.value), ctx)
        for part in walk(node)
    )


def _holds_few(module: Kind, ctx: Context) -> bool:
    """Whether a module is a single layer, or a class of the project with a parameter or two and no layers, as losses
    that learn their centers are.
    """
    if module.qualified in _LAYERS:
        return True
    summary = ctx.program.summaries.get(module.path) if module.tag is Tag.MODULE and module.path else None
    facts = summary.classes.get(module.qualified) if summary is not None else None
    if summary is None or facts is None or [last_of(base) for base in facts.bases] != ["Module"]:
        return False  # what it is derived from holds more
    own = [summary.functions[f"{module.qualified}.{method}"] for method in facts.methods]
    if any(_ADD_UNSEEN & set(method.identifiers.split()) for method in own):
        return False
    run = {call.func for method in own for call in method.calls if isinstance(call.func, str)}
    parameters = 0
    for name, values in facts.attributes.items():
        made = [last_of(value[1]) if isinstance(value, tuple) and value[0] == "call" else "" for value, _ in values]
        if made and set(made) == {"Parameter"}:
            parameters += 1
        elif f"self.{name}" in run or not all(
            call in _OF_NUMBERS if call else _is_plain(value) for call, (value, _) in zip(made, values)
        ):
            return False  # may be a module that it makes or is given
    return 0 < parameters <= _FEW


def _is_plain(value: object) -> bool:
    """Whether a value is written as a name, a literal or arithmetic, which has no notation."""
    return not isinstance(value, tuple) or value[0] in ("const", "seq", "map")


def _adapts_to_tasks(node: ast.For, ctx: Context) -> bool:
    """Whether the step around `node` adapts the model to a task: it runs tens of forwards and backwards, mostly of a
    small network.
    """
    return any(
        isinstance(part, ast.Call) and ADAPTS.search(callee_name(part))
        for loop in ctx.loops(node)[:1]
        for part in ctx.walk(loop)
    )


def _is_few(node: ast.AST, ctx: Context) -> bool:
    """`model.classifier.parameters()`, `params[-2:]`, and names that were set to these."""
    if isinstance(node, ast.Call) and callee_name(node) in _WALKS and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        return isinstance(owner, ast.Attribute) and LAST_LAYERS.match(owner.attr) is not None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return isinstance(node.slice.lower, ast.UnaryOp) and node.slice.upper is None
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        made = ctx.inference.flow.definitions(node)
        value = made[0].value if len(made) == 1 and not made[0].path else None
        if isinstance(value, ast.Call) and callee_name(value) in _WRAPPERS and value.args:
            value = value.args[0]
        return isinstance(value, (ast.Call, ast.Subscript)) and _is_few(value, ctx)
    return False


def _has_another_way(node: ast.For, ctx: Context) -> bool:
    """Whether it is an optimizer's own step, stands beside a `_foreach_` way, or walks over sharded tensors."""
    if ctx.mentions(*_SHARDED):
        return True
    function = ctx.tree.function_of(node)
    if function is not None and any(name.startswith("_foreach") for name in names_in(function)):
        return True
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, ast.ClassDef):
            return any("Optim" in name for base in outer.bases for name in names_in(base))
        if isinstance(outer, ast.For) and _is_walk(outer.iter):
            return True
    return False


# What the body does.


def _updates(node: ast.For) -> list[_Update]:
    """Operations that change a tensor of the loop by arithmetic."""
    own = _own_names(node)
    found = []
    for part in _statements(node):
        if isinstance(part, ast.AugAssign) and _root(part.target) in own:
            found.append(_Update(part, type(part.op).__name__))
        elif isinstance(part, ast.Assign) and len(part.targets) == 1 and _sets_tensor(part.targets[0], own):
            if _mixes(part.value, node):
                found.append(_Update(part, "copy_"))
        elif isinstance(part, ast.Expr):
            found += _calls(part.value, own)
    return found


def _calls(node: ast.expr, own: set[str]) -> Iterator[_Update]:
    """Updates of a chain such as `e.mul_(d).add_(p, alpha=1 - d)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    name = node.func.attr
    if name not in _UPDATES:
        return
    out = keyword(node, "out")
    if out is not None and _root(out) in own:
        yield _Update(node, name)
    elif name.endswith("_"):
        yield from _calls(node.func.value, own)
        changed = _root(node.func.value)
        if changed in own and (name != "copy_" or any(_mixes(item, None) for item in node.args)):
            yield _Update(node, name)


def _mixes(value: ast.expr, loop: ast.For | None) -> bool:
    """Whether a value is computed: by an operator, by a method that mixes two, or so in the loop before."""
    for part in walk(value):
        if isinstance(part, ast.BinOp) or (isinstance(part, ast.Call) and callee_name(part) in _MIXERS):
            return True
        if isinstance(part, ast.Name) and loop is not None:
            made = [item for item in _statements(loop) if isinstance(item, ast.Assign) and _binds(item, part.id)]
            if any(_mixes(item.value, None) for item in made):
                return True
    return False


def _binds(statement: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)


def _own_names(node: ast.For) -> set[str]:
    """The loop's names, and those bound in it."""
    names = {part.id for part in walk(node.target) if isinstance(part, ast.Name)}
    for part in _statements(node):
        if isinstance(part, ast.Assign):
            names |= {item.id for item in part.targets if isinstance(item, ast.Name)}
    # What is reached by the loop's key: `average[name]`.
    for item in walk(node):
        if isinstance(item, ast.Subscript) and isinstance(item.slice, ast.Name) and item.slice.id in names:
            base = _root(item.value)
            if base is not None:
                names.add(f"{base}[]")
    return names


def _statements(node: ast.For) -> Iterator[ast.stmt]:
    for statement in node.body:
        for part in walk(statement):
            if isinstance(part, ast.stmt):
                yield part


def _root(node: ast.expr) -> str | None:
    """The name an update starts from; `name[]` where it is an entry."""
    entry = False
    while True:
        if isinstance(node, ast.Subscript):
            entry, node = True, node.value
        elif isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            break
    return (f"{node.id}[]" if entry else node.id) if isinstance(node, ast.Name) else None


def _sets_tensor(target: ast.expr, own: set[str]) -> bool:
    """Whether an assignment gives a parameter other values: `p.data = ...`, `average[name] = ...`."""
    if isinstance(target, ast.Attribute):
        return target.attr in ("data", "grad") and _root(target) in own
    return isinstance(target, ast.Subscript) and _root(target) in own


def _is_alike(node: ast.For) -> bool:
    """Whether every parameter is treated the same way, by updates and nothing else."""
    for part in walk(ast.Module(body=node.body, type_ignores=[])):
        if isinstance(part, ast.Call) and callee_name(part) not in _UPDATES | _HARMLESS | _MIXERS:
            return False
        if isinstance(part, (ast.If, ast.IfExp)) and _tells_apart(part.test):
            return False
        if isinstance(part, (ast.For, ast.While, ast.Break, ast.Return, ast.Await, ast.Yield)):
            return False
    return True


def _tells_apart(test: ast.expr) -> bool:
    """Whether a test asks for some parameters by name or shape."""
    return any(
        (isinstance(part, ast.Constant) and isinstance(part.value, str))
        or (isinstance(part, ast.Attribute) and part.attr in ("ndim", "shape"))
        for part in walk(test)
    )


# What is said and done.


def _count(updates: list[_Update]) -> str:
    return "an update" if len(updates) == 1 else f"{len(updates)} updates"


def _advice(updates: list[_Update], ctx: Context) -> str:
    text = " ".join(ctx.text(update.node) for update in updates)
    methods = {update.method for update in updates}
    if methods & {"clamp_", "clip_", "clamp_min_", "clamp_max_"}:
        return "Use `torch._foreach_clamp_min_` and `torch._foreach_clamp_max_` on a list of all of them."
    if len(updates) == 1 and ".grad" in text and methods & {"mul_", "div_", "Mult", "Div"}:
        return "Use `torch._foreach_mul_` on a list of all gradients, or `torch.nn.utils.clip_grad_norm_`."
    if ".grad" in text:
        return "Use an optimizer such as `torch.optim.SGD`, or `torch._foreach_add_` on lists."
    if len(updates) == 1 and methods & {"mul_", "div_", "Mult", "Div"}:
        return "Use `torch._foreach_mul_` on a list of all of them."
    return (
        "Use `torch._foreach_lerp_` on two lists, or `torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn`."
    )
