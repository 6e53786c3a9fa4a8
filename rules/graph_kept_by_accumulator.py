"""TPL306: losses summed or collected with their graphs, for numbers alone."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from perflint.api import (
    CLASS,
    KEEPING,
    Applicability,
    Calls,
    Confidence,
    Context,
    Finding,
    Fix,
    Heat,
    Hop,
    Impact,
    Nodes,
    Ref,
    Rule,
    callee_name,
    statements,
    tensors,
    walk,
)
from perflint.api.gradients import (
    holds_walked_back,
    is_loss_function,
    is_loss_name,
    is_model_call,
    is_part_of_walked_back,
    kept_by_call,
    makes_instance,
    name_of_whole,
)
from perflint.api.names import LOGS, SWITCHES_GRADIENTS

#: What takes a tensor and gives a value that nothing flows back through.
_READERS = frozenset("item tolist numpy detach detach_ float int format print isnan isinf isfinite len".split())
#: Calls that give a tensor with the graph of what they are given.
_CARRIERS = frozenset("mean sum stack cat view reshape squeeze unsqueeze to cuda cpu div mul add clone max min".split())
#: Attributes of what a model gives, through which a graph is kept.
_GRAPH_ATTRIBUTES = frozenset({"loss", "logits"})
#: Libraries whose functions give no loss, but those that are called one.
_LIBRARIES = frozenset("torch numpy math os time random".split())
_BACKWARD = frozenset({"backward", "manual_backward"})
#: What makes a tensor of a tensor on the way to `backward`: methods of it, and functions that are given it.
_ARITHMETIC = frozenset("mean sum div mul add sub float double half squeeze to div_ mul_ add_ sub_".split())
_SCALING = frozenset({"scale", "scale_loss"})
#: What makes tensors of a class that may do anything when it is added.
_SUBCLASSING = ("as_subclass", "_make_subclass", "_make_wrapper_subclass", "__torch_function__")
#: What reads names that it does not write.
_LOOKING = frozenset({"locals", "vars", "eval", "exec", "_getframe", "currentframe"})
#: Attributes that ask for the graph, not for the number.
_OF_GRAPH = frozenset({"grad_fn", "requires_grad", "is_leaf", "grad", "retains_grad"})


class GraphKeptByAccumulator(Rule):
    """A loss that is accumulated with its autograd graph keeps the graph of every step alive.

    What it does

    Reports sums and lists of losses that keep their autograd graph although only numbers are read from them.

    Why is this slow?

    The sum refers to each loss, and each loss to its graph. After a `backward` the graph's nodes remain in host
    memory. Without a `backward` all activations remain as well.

    What to do

    Accumulate the detached value: `total += loss.detach()`. `.item()` also works, but synchronizes each time.

    Fix safety

    Safe if the backward pass of each loss runs in the same iteration and the accumulated value is only read: same
    bits. Otherwise unsafe: the value may not be a tensor, and text made from the tensor itself, as by `print(total)`,
    contains `grad_fn=...`, which the fix removes.

    Not reported

    - Sums whose own backward pass runs: several losses in one, unrolled networks, returns of an episode.
    - Accumulated values with a use that perflint cannot see, or that is not a read of a number.
    - Code with gradients off.

    Measured

    A network of 20 layers: about 45 KiB of host memory per step (4.3 GB after 100,000 steps) after a `backward`, 2.5
    MiB per step without one (CPU, torch 2.13).

    References

    - FAQ, my model reports "cuda runtime error(2): out of memory":
      https://docs.pytorch.org/docs/stable/notes/faq.html
    - `torch.Tensor.detach`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
    """

    code, name = "TPL306", "graph-kept-by-accumulator"
    numerics = "same bits"
    impact = Impact.HIGH
    at_least = Heat.STEP
    listens = (Nodes(ast.AugAssign), Calls("append", doing=(KEEPING,)))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Call) and callee_name(node) != "append":
            yield from self._handed_over(node, ctx)
            return
        kept = _kept(node, ctx)
        if kept is None or not _may_have_graph(kept.value, ctx) or ctx.grad_off(node):
            return
        loop = ctx.loops(node)[0]
        # What the text alone tells comes first: nearly every list that grows is refused by it.
        if not _starts_before(kept.name, node, loop, ctx):
            return
        if isinstance(node, ast.Call) and holds_walked_back(kept.value, loop, ctx):
            yield self._of_dict(node, kept, ctx)
            return
        if not _is_only_read(kept.name, node, ctx):
            return
        walked_back = _is_walked_back(kept.value, loop, ctx)
        if not walked_back and (_goes_back(loop) or not _has_graph(kept.value, loop, ctx)):
            return
        # What was walked back had a graph, whatever is switched elsewhere.
        if not walked_back and _switches_gradients(node, ctx):
            return
        value = ctx.text(kept.value)
        reason = ""
        if not walked_back:
            reason = f"`{value}` is not known to be a tensor"
        elif _may_be_no_tensor(kept.value, loop, node, ctx):
            reason = f"`{value}` may not be a tensor in every iteration, or may have no `detach`"
        elif not _begins_here(kept.name, node, ctx):
            reason = f"`{kept.name}` starts as an object that other code may use with its graph"
        elif any(_becomes_text(use, ctx) for use in _uses(kept.name, node, ctx)):
            reason = f"text made from `{kept.name}` may contain `grad_fn=...`, which would disappear"
        fix: Fix | None = Fix(
            "Accumulate the detached value",
            Applicability.UNSAFE if reason else Applicability.SAFE,
            (ctx.edit.append_method(kept.value, "detach()"),),
            reason=reason,
        )
        if walked_back and not _is_itself_walked_back(kept.value, loop, ctx):
            fix = None  # `sum(losses.values()).backward()`: a dict of tensors has no `detach`
        held = "its graph" if walked_back else "its graph and all activations"
        yield self.finding(
            node,
            ctx,
            f"`{kept.name}` keeps `{value}` of every iteration with {held}, but only numbers are read from it.",
            advice=f"Keep `{value}.detach()`."
            if isinstance(kept.value, ast.Name) and fix is not None
            else "Detach it before you keep it.",
            fix=fix,
        )

    def _of_dict(self, node: ast.AST, kept: _Kept, ctx: Context) -> Finding:
        """`losses.append(parts)` after `parts["total"].backward()`: nobody can go back through the rest any more."""
        value = ctx.text(kept.value)
        return self.finding(
            node,
            ctx,
            f"`{kept.name}` keeps the tensors of `{value}` of every iteration with their graphs, which `backward` has "
            "already used.",
            advice=f"Keep detached values: `{{key: value.detach() for key, value in {value}.items()}}`.",
            confidence=Confidence.MEDIUM,
        )

    def _handed_over(self, call: ast.Call, ctx: Context) -> Iterator[Finding]:
        """`self.log.keep({"aux": aux})`, where `keep` appends what it is given to what outlives the step."""
        loops = ctx.loops(call)
        if not loops or ctx.grad_off(call):
            return
        for value, kept in kept_by_call(call, loops[0], ctx):
            if not _is_walked_back(value, loops[0], ctx) and not is_part_of_walked_back(value, loops[0], ctx):
                continue
            fix = Fix(
                "Detach the kept value",
                Applicability.UNSAFE,
                (ctx.edit.append_method(value, "detach()"),),
                reason=f"what `{ctx.text(call.func)}` keeps may be used with its graph",
            )
            yield self.finding(
                value,
                ctx,
                f"`{ctx.text(call.func)}` keeps `{ctx.text(value)}` of every step with its graph, which `backward` "
                "has already used.",
                advice=f"Pass `{ctx.text(value)}.detach()`.",
                fix=fix,
                related=(Hop(kept.path, kept.line, "it is kept here"),),
            )


class _Kept(NamedTuple):
    name: str
    value: ast.expr


def _kept(node: ast.AST, ctx: Context) -> _Kept | None:
    """What is added to a name of the function, in a loop: `total += loss`, `losses.append(loss)`."""
    if isinstance(node, ast.AugAssign):
        if not isinstance(node.target, ast.Name) or not isinstance(node.op, ast.Add):
            return None
        kept = _Kept(node.target.id, node.value)
    elif isinstance(node, ast.Call):
        func = node.func
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name) or len(node.args) != 1:
            return None
        kept = _Kept(func.value.id, node.args[0])
    else:
        return None
    return kept if ctx.loops(node) and not isinstance(kept.value, (ast.Constant, ast.Starred)) else None


def _may_have_graph(value: ast.expr, ctx: Context) -> bool:
    """Whether its form leaves it open that a value has a graph: most of what is kept is a layer, an item, a number."""
    if isinstance(value, ast.Attribute):
        return value.attr in _GRAPH_ATTRIBUTES
    if not isinstance(value, ast.Call):
        return isinstance(value, (ast.BinOp, ast.Name))
    root: ast.expr = value.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or callee_name(value) in _CARRIERS:
        return True
    public = root.id if root.id in ctx.summary.classes else ctx.summary.imports.get(root.id)
    if public is None or "loss" in public.lower() or is_loss_name(value.func):
        return True
    # `Block(...)` and `nn.Linear(...)` make a layer; `crit`, of another file, may be a loss that was made there.
    return public.partition(".")[0] not in _LIBRARIES and not makes_instance(value.func)


def _switches_gradients(node: ast.AST, ctx: Context) -> bool:
    """Whether something around may switch gradients."""
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return any(SWITCHES_GRADIENTS.search(name) for name in _names(outer))
    return False


def _own_name(value: ast.expr) -> ast.expr:
    """`loss` of `loss / n`."""
    while isinstance(value, ast.BinOp):
        value = value.left if not isinstance(value.left, ast.Constant) else value.right
    return value


def _is_itself_walked_back(value: ast.expr, loop: ast.stmt, ctx: Context) -> bool:
    """Whether `backward` is called of the very value, or of what arithmetic makes of it: then it is a tensor."""
    name = _own_name(value)
    return isinstance(name, ast.Name) and any(
        isinstance(part, ast.Name) and part.id == name.id and _is_tensor_of(part, call, ctx)
        for call in _backwards(loop)
        for part in walk(call)
    )


def _is_tensor_of(name: ast.Name, backward: ast.Call, ctx: Context) -> bool:
    child: ast.AST = name
    for outer in ctx.tree.ancestors(name):
        if outer is backward:
            return child in backward.args[:1] or child is backward.func
        if isinstance(outer, ast.Call):
            # `scaler.scale(loss)`, `loss.mean()`
            if callee_name(outer) not in (_SCALING if child in outer.args else _ARITHMETIC):
                return False
        elif isinstance(outer, ast.Attribute):
            if outer.attr not in _ARITHMETIC | _BACKWARD:
                return False
        elif not isinstance(outer, (ast.BinOp, ast.UnaryOp)):
            return False
        child = outer
    return False


def _is_walked_back(value: ast.expr, loop: ast.stmt, ctx: Context) -> bool:
    """Whether the very value is given to `backward` in the same loop, whose graph is not retained."""
    value = _own_name(value)
    if not isinstance(value, ast.Name):
        return False
    ours = set(map(id, ctx.inference.flow.definitions(value)))
    for call in _backwards(loop):
        if any(item.arg in ("retain_graph", "create_graph") for item in call.keywords) or len(call.args) > 1:
            return False
        for part in walk(call):
            if isinstance(part, ast.Name) and part.id == value.id and isinstance(part.ctx, ast.Load):
                return ours == set(map(id, ctx.inference.flow.definitions(part)))
    return False


def _may_be_no_tensor(value: ast.expr, loop: ast.stmt, node: ast.AST, ctx: Context) -> bool:
    """Whether what is kept may be something else than a plain tensor on some turn: nothing but a `backward` on every
    turn on which it is kept says that it is one, and a class that has a `backward` need have no `detach`.
    """
    name = _own_name(value)
    if not isinstance(name, ast.Name) or _has_own_tensors(ctx):
        return True
    origins = ctx.inference.origins(name)
    if any(isinstance(item, (ast.Constant, ast.IfExp, ast.BoolOp, ast.UnaryOp)) for item in origins):
        return True
    return not any(_comes_along(call, node, loop, ctx) for call in _backwards(loop))


def _comes_along(backward: ast.Call, node: ast.AST, loop: ast.stmt, ctx: Context) -> bool:
    """Whether a `backward` surely runs on each turn on which a value is kept, or raises where nobody catches it."""
    around = itertools.takewhile(lambda outer: outer is not loop, ctx.tree.ancestors(backward))
    if any(_may_catch(outer, ctx) for outer in around):
        return False
    graph = ctx.control_flow(node)
    return ctx.loops(backward)[:1] == [loop] and (
        graph.dominates(backward, node) or graph.post_dominates(backward, node)
    )


def _may_catch(outer: ast.AST, ctx: Context) -> bool:
    """Whether a statement may catch what is raised in it: `torch.autocast("cuda")` catches nothing."""
    if isinstance(outer, (ast.With, ast.AsyncWith)):
        entered = (item.context_expr for item in outer.items)
        managers = [ctx.target(item.func) or "" if isinstance(item, ast.Call) else "" for item in entered]
        return not all(manager.startswith("torch.") for manager in managers)
    return isinstance(outer, (ast.Try, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))


def _has_own_tensors(ctx: Context) -> bool:
    """Whether the project has tensors of classes of its own, or objects that pass for one."""
    if _has_own_backward(ctx) or ctx.program.whole.has_derived("Tensor") or ctx.program.mentions(_SUBCLASSING):
        return True
    answering = (
        Ref(CLASS, scope.path, scope.function.rpartition(".")[0])
        for name in ("__getattr__", "__getattribute__")
        for scope in ctx.program.named(name)
        if "." in scope.function and ctx.program.function(scope).in_class
    )
    return any(not ctx.program.is_module(owner) for owner in answering)


def _has_own_backward(ctx: Context) -> bool:
    """Whether a class of the project, but for the functions of autograd, says itself what `backward` does."""
    owners = (
        Ref(CLASS, scope.path, scope.function.rpartition(".")[0])
        for scope in ctx.program.named("backward")
        if "." in scope.function and ctx.program.function(scope).in_class
    )
    return any(not ctx.program.is_subclass(owner, "torch.autograd.Function", "Function") for owner in owners)


def _begins_here(name: str, node: ast.AST, ctx: Context) -> bool:
    """Whether nothing else has what is kept: all that its name is bound to before is made there, and has no other
    name; and nothing in the function looks names up by itself.
    """
    function = _function(node, ctx)
    if any(part in _LOOKING for part in _names(function)):
        return False
    for store in _named(name, ast.Store, function, ctx):
        statement = ctx.tree.statement_of(store)
        if isinstance(statement, ast.AugAssign) or store.lineno > node.lineno:  # type: ignore[attr-defined]
            continue
        if not _is_made_for(store, statement, ctx):
            return False
    return True


def _is_made_for(store: ast.Name, statement: ast.stmt, ctx: Context) -> bool:
    """`total = 0.0`, `losses = []`, `total, losses = 0.0, []`, `total = torch.zeros(1)`"""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    value = statement.value
    if len(targets) > 1 and not isinstance(value, ast.Constant):
        return False
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and store in target.elts:
            return len(target.elts) == len(value.elts) and _is_new(value.elts[target.elts.index(store)], ctx)
    return store in targets and _is_new(value, ctx)


def _is_new(value: ast.expr, ctx: Context) -> bool:
    if isinstance(value, (ast.List, ast.Dict, ast.Set)):
        return not any(True for part in ast.iter_child_nodes(value) if not isinstance(part, (ast.Load, ast.Constant)))
    if isinstance(value, ast.Call):
        target = ctx.target(value.func) or ""
        return target in ("list", "float", "int") or target in tensors.CONSTRUCTORS
    return isinstance(value, ast.Constant) or (
        isinstance(value, ast.UnaryOp) and isinstance(value.operand, ast.Constant)
    )


def _backwards(region: ast.AST) -> list[ast.Call]:
    return [part for part in walk(region) if isinstance(part, ast.Call) and callee_name(part) in _BACKWARD]


def _goes_back(region: ast.AST) -> bool:
    """Whether a region names anything that walks a graph back."""
    return any(name in _BACKWARD or name in ("autograd", "grad", "closure") for name in _names(region))


def _has_graph(value: ast.expr, loop: ast.stmt, ctx: Context, depth: int = 0) -> bool:
    """Whether a value comes from a forward of a model in the same loop, through what keeps the graph."""
    if depth > 6:
        return False
    if isinstance(value, ast.BinOp):
        return any(_has_graph(part, loop, ctx, depth + 1) for part in (value.left, value.right))
    if isinstance(value, ast.Call):
        given = [*value.args, *(item.value for item in value.keywords)]
        if is_model_call(value, ctx):
            return depth > 0  # outputs may be meant to be kept; losses are for their numbers
        if isinstance(value.func, ast.Attribute) and callee_name(value) in _CARRIERS:
            given.append(value.func.value)
        elif not is_loss_function(value.func, ctx):
            return False
        return any(_has_graph(part, loop, ctx, depth + 1) for part in given)
    if isinstance(value, ast.Attribute):
        return value.attr in _GRAPH_ATTRIBUTES and _has_graph(value.value, loop, ctx, depth + 1)
    if isinstance(value, ast.Name):
        inside = set(map(id, ctx.tree.walk(loop)))
        definitions = ctx.inference.flow.definitions(value)
        return bool(definitions) and all(
            definition.value is not None
            and id(definition.node) in inside
            and _has_graph(definition.value, loop, ctx, depth + 1)
            for definition in definitions
        )
    return False


def _starts_before(name: str, node: ast.AST, loop: ast.stmt, ctx: Context) -> bool:
    """Whether what is kept outlives a turn: it is bound in the function, and in the loop by this statement alone."""
    stores = _named(name, ast.Store, _function(node, ctx), ctx)
    if not stores:
        return False
    statement = ctx.tree.statement_of(node)
    stores = [part for part in stores if not _stands_in(part, statement)]
    return bool(stores) and not any(_stands_in(part, loop) for part in stores)


def _stands_in(part: ast.expr, region: ast.stmt | ast.expr) -> bool:
    """Told by the places: of what stands beside each other one ends before the other begins."""
    here = (part.lineno, part.col_offset)
    return (region.lineno, region.col_offset) <= here < (region.end_lineno or 0, region.end_col_offset or 0)


def _named(name: str, how: type[ast.expr_context], region: ast.AST, ctx: Context) -> list[ast.Name]:
    """The loads or stores of a name in a region."""
    return [part for part in ctx.tree.named(name, region) if isinstance(part.ctx, how)]


def _function(node: ast.AST, ctx: Context) -> ast.AST:
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)):
            return outer
    raise AssertionError("a statement stands in a module")


def _is_only_read(name: str, node: ast.AST, ctx: Context) -> bool:
    """Whether every use of the name in its function reads numbers from it."""
    uses = _uses(name, node, ctx)
    return bool(uses) and all(_reads_number(use, ctx) for use in uses)


def _uses(name: str, node: ast.AST, ctx: Context) -> list[ast.Name]:
    """Where the function reads what is kept; none at module level, where others may read it."""
    function = _function(node, ctx)
    if isinstance(function, ast.Module):
        return []
    if any(isinstance(part, (ast.Global, ast.Nonlocal)) and name in part.names for part in statements(function)):
        return []
    loop = ctx.loops(node)[0]
    assert isinstance(node, (ast.stmt, ast.expr))
    uses = [part for part in _named(name, ast.Load, function, ctx) if not _stands_in(part, node)]
    end = loop.end_lineno or loop.lineno
    if any(store.lineno > end for store in _named(name, ast.Store, function, ctx)):
        uses = [use for use in uses if not _is_rebound_behind(use, loop, ctx)]
    return uses


def _is_rebound_behind(use: ast.Name, loop: ast.stmt, ctx: Context) -> bool:
    """Whether a use sees only what was bound to the name behind the loop: `losses = torch.stack(losses)`."""
    bound = [definition.node for definition in ctx.inference.flow.definitions(use)]
    end = loop.end_lineno or loop.lineno
    return bool(bound) and all(isinstance(item, ast.Assign) and item.lineno > end for item in bound)


def _reads_number(use: ast.expr, ctx: Context) -> bool:
    child: ast.AST = use
    for outer in ctx.tree.ancestors(use):
        if isinstance(outer, ast.Compare) and any(isinstance(how, (ast.Is, ast.In, ast.NotIn)) for how in outer.ops):
            return False  # whether it is the very tensor
        if isinstance(outer, (ast.FormattedValue, ast.Compare)) or _template(outer, child) is not None:
            return True
        if isinstance(outer, ast.Attribute):
            if outer.attr == "data":
                return True
            if outer.attr in _OF_GRAPH:
                return False
        elif isinstance(outer, ast.Call):
            name = callee_name(outer)
            if name in _READERS or (child is not outer.func and LOGS.search(name)):
                return True
            if child is outer.func and isinstance(outer.func, ast.Attribute) and name not in _CARRIERS:
                return False
            if child is not outer.func and name not in _CARRIERS:
                return False
        elif not isinstance(outer, (ast.BinOp, ast.UnaryOp, ast.Subscript, ast.keyword)):
            return False
        child = outer
    return False


def _template(node: ast.AST, child: ast.AST) -> str | None:
    """The text of `"mean loss: %f" % value` around the value."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and child is node.right:
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return node.left.value
    return None


def _becomes_text(use: ast.expr, ctx: Context) -> bool:
    """Whether a tensor made of what is kept is shown by `str`, which names its graph; a format shows the number."""
    child: ast.AST = use
    for outer in ctx.tree.ancestors(use):
        if isinstance(outer, ast.FormattedValue):
            return outer.format_spec is None or outer.conversion != -1
        template = _template(outer, child)
        if template is not None:
            return re.search(r"%[^a-z%]*[sra]", template) is not None
        if isinstance(outer, ast.Call):
            name = callee_name(outer)
            if child is not outer.func and (name in ("print", "str", "repr") or LOGS.search(name)):
                return True
            if name in _READERS:
                return name == "format" and child is not outer.func and not _has_spec(outer)
        elif isinstance(outer, (ast.stmt, ast.Compare)):
            return False
        child = outer
    return False


def _has_spec(call: ast.Call) -> bool:
    """Whether `"{:.3f}".format(total)` says how each value is written."""
    text = call.func.value if isinstance(call.func, ast.Attribute) else None
    written = isinstance(text, ast.Constant) and isinstance(text.value, str)
    if not written:
        return False
    from string import Formatter  # late: hardly any project asks

    return all(spec and not way for _, name, spec, way in Formatter().parse(text.value) if name is not None)  # type: ignore[union-attr]


def _names(region: ast.AST) -> Iterator[str]:
    for part in walk(region):
        if isinstance(part, (ast.Name, ast.Attribute)):
            yield name_of_whole(part)
