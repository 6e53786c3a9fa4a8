"""TPL504: a module moved to its device again on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Context,
    Device,
    Finding,
    Fix,
    Heat,
    Impact,
    Inherited,
    Rule,
    Tag,
    argument,
    callee_name,
    is_constant,
    last_name,
    walk,
)
from perflint.api.loops import names_in

#: Modules of torch that hold others.
_CONTAINERS = frozenset(
    "Module Sequential ModuleList ModuleDict Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer "
    "TransformerDecoderLayer DataParallel DistributedDataParallel ParameterDict ParameterList".split()
)


class ModuleSwitchInStep(Rule):
    """A module is moved on every step to the device it is already on.

    What it does

    Reports `module.to(device)` and `module.cuda()` on the hot path.

    Why is this slow?

    After the first call this is a no-op, but it still traverses every submodule, parameter and buffer.

    What to do

    Move the module once, where it is built or before the loop.

    Fix safety

    Unsafe: the module moves before the loop, even if the loop has no iterations. Same bits.

    Not reported

    - Modules that are offloaded to save memory (moved back to the host elsewhere).
    - Modules that the same iteration creates, and single layers.
    - Moves that happen lazily, under a test of the device or of Metal, per epoch, before an evaluation, or before a
      loop of training steps.
    - Tensors.
    - `train()` and `eval()`, which cost a third of it and are often needed.

    Measured

    3.6 ms for a module of 400 submodules and 400 parameters; `next(module.parameters()).device` takes 4 us (CPU).

    References

    - torch.nn.Module: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to
    """

    code, name = "TPL504", "module-switch-in-step"
    numerics = "same bits"
    impact = Impact.LOW
    listens = (Calls("to", "cuda"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or ctx.guards(node) or _is_on_a_mac(node, ctx):
            return
        module = node.func.value
        statement = ctx.tree.statement_of(node)
        # `x.to(y.device)`: where `y` is takes long to find out, and `x` is hardly ever a module.
        if not (_follows(node) or _goes_to_device(node, ctx)) or not _is_module(module, node, statement, ctx):
            return
        if not _goes_to_device(node, ctx):
            return
        if _is_new(module, node, statement, ctx) or _comes_and_goes(module, ctx) or _is_where_needed(node, ctx):
            return
        if _is_moved_around(module, node, ctx) or _is_anything(module, node, ctx) or _goes_by_table(node):
            return
        if _is_a_layer(module, ctx):
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {ctx.heat(node).phrase}: after the first step it is a no-op that still traverses "
            "every parameter.",
            advice=f"Move `{ctx.text(module)}` once, where it is built or before the loop.",
            fix=_before_the_loop(node, statement, ctx),
        )


def _is_on_a_mac(node: ast.AST, ctx: Context) -> bool:
    """Whether `node` only runs where Metal is there: `if torch.backends.mps.is_available()`."""
    return ctx.once(_metal, ctx.control_flow(node).scope).holds(node)


def _metal(scope: ast.AST, ctx: Context) -> Inherited:
    body = scope.body  # type: ignore[attr-defined]
    graph = ctx.control_flow(body[0] if isinstance(body, list) else body)
    return Inherited(graph, lambda condition: condition[1] and _asks_for_metal(condition[0]))


def _asks_for_metal(test: ast.expr) -> bool:
    """Whether a test asks for Metal alone, and not for any device, or for its absence."""
    names = set(names_in(test))
    turned = any(isinstance(getattr(part, "op", None), (ast.Or, ast.Not)) for part in walk(test))
    return "mps" in names and not turned


def _is_module(module: ast.expr, node: ast.Call, statement: ast.stmt, ctx: Context) -> bool:
    if not isinstance(module, (ast.Name, ast.Attribute)):
        return False
    kind = ctx.kind(module)
    if kind.tag is Tag.MODULE:
        return True
    # A tensor's move hands back a copy: a result that nobody takes says that this is a module.
    return not kind.known and isinstance(statement, ast.Expr) and statement.value is node


def _is_a_layer(module: ast.expr, ctx: Context) -> bool:
    """Whether it is a single layer of torch, which is walked in no time."""
    made = ctx.refs(module) if isinstance(module, (ast.Name, ast.Attribute)) else ()
    return bool(made) and all(
        ref.name.startswith("torch.nn.") and ref.name.rpartition(".")[2] not in _CONTAINERS for ref in made
    )


def _follows(node: ast.Call) -> bool:
    """`x.to(y.device)`"""
    given = argument(node, 0, "device")
    return callee_name(node) == "to" and isinstance(given, ast.Attribute) and given.attr == "device"


def _goes_to_device(node: ast.Call, ctx: Context) -> bool:
    """Whether the call names an accelerator, or a device chosen at run time."""
    if callee_name(node) == "cuda":
        return True
    given = [*node.args[:1], *(item.value for item in node.keywords if item.arg == "device")]
    if len(given) != 1 or is_constant(given[0], "cpu"):
        return False
    kind = ctx.kind(given[0])
    if kind.device is not None:
        return kind.device is not Device.CPU
    name = ctx.text(given[0])
    return kind.tag is Tag.DEVICE or ("device" in name.lower() and "dtype" not in name)


def _is_new(module: ast.expr, node: ast.Call, statement: ast.stmt, ctx: Context) -> bool:
    """Whether the module is not the same one on each step: made there, a loop variable, taken from a list by index."""
    function = ctx.tree.function_of(node)
    if function is not None and function.name in ("__init__", "__post_init__", "setup", "on_fit_start"):
        return True
    loops = ctx.loops(node)
    if isinstance(module, ast.Attribute):
        written = ctx.inference.flow.names_written(loops[-1] if loops else function or ctx.tree.module)
        return ctx.text(module) in written and not _assigns(statement, node)
    assert isinstance(module, ast.Name)
    made = [item for item in ctx.inference.flow.definitions(module) if item.node is not statement]
    if loops:
        first, last = loops[-1].lineno, loops[-1].end_lineno or loops[-1].lineno
        return any(first <= getattr(item.node, "lineno", 0) <= last for item in made)
    # Without a loop here the module must come from outside: a parameter that each caller fills.
    return not made or any(item.value is not None for item in made)


def _assigns(statement: ast.stmt, node: ast.Call) -> bool:
    return isinstance(statement, ast.Assign) and statement.value is node


def _comes_and_goes(module: ast.expr, ctx: Context) -> bool:
    """Whether the file also moves it back to the host, under this name."""
    text = ctx.text(module)
    last = text.rpartition(".")[2]
    for part in walk(ctx.tree.module):
        if not (isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)):
            continue
        is_it = _ends_in(part.func.value, last) or (
            # What is moved and not taken is a module: of a tensor the copy is wanted.
            _is_part(part.func.value, text) and isinstance(ctx.tree.parent(part), ast.Expr)
        )
        if part.func.attr not in ("cpu", "to") or not is_it:
            continue
        if part.func.attr == "cpu" or any(_is_host(item, ctx) for item in part.args):
            return True
    return False


def _is_part(node: ast.expr, whole: str) -> bool:
    """`self.unets`, where `self` is moved."""
    held = node.value if isinstance(node, ast.Attribute) else None
    return whole == "self" and isinstance(held, ast.Name) and held.id == whole


def _is_moved_around(module: ast.expr, node: ast.Call, ctx: Context) -> bool:
    """Whether the function moves it to several places: `vae.to(device)`, and `vae.to(before)` when it is done."""
    function = ctx.tree.function_of(node)
    last = ctx.text(module).rpartition(".")[2]
    places = {
        ctx.text(part.args[0]) if part.args else ""
        for part in walk(function or ctx.tree.module)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in ("to", "cuda")
        and _ends_in(part.func.value, last)
        and _goes_to_device(part, ctx)
    }
    return len(places) > 1


def _is_anything(module: ast.expr, node: ast.Call, ctx: Context) -> bool:
    """Whether a helper moves whatever it is handed, `if isinstance(item, nn.Module): return item.to(device)`: on each
    step that is a batch.
    """
    function = ctx.tree.function_of(node)
    if function is None or not isinstance(module, ast.Name):
        return False
    if module.id not in {item.arg for item in (*function.args.posonlyargs, *function.args.args)}:
        return False
    asked = [part for test, _ in ctx.conditions(node) for part in walk(test) if isinstance(part, ast.Call)]
    return any(
        callee_name(part) == "isinstance" and last_name(part.args[0]) == module.id for part in asked if part.args
    )


def _goes_by_table(node: ast.Call) -> bool:
    """`module.to(state["encoder"]["device"])`: one of several states is restored, and the next may be another."""
    given = node.args[0] if node.args else None
    return isinstance(given, ast.Subscript) and isinstance(given.value, ast.Subscript)


def _is_where_needed(node: ast.Call, ctx: Context) -> bool:
    """Whether the move stands under a test of where the module is: `if p.device != x.device`."""
    return any(word in ctx.text(test) for test, _ in ctx.conditions(node) for word in ("device", "offload"))


def _ends_in(node: ast.expr, name: str) -> bool:
    return last_name(node) == name


def _is_host(node: ast.expr, ctx: Context) -> bool:
    return (
        is_constant(node, "cpu")
        or ctx.text(node) in ('torch.device("cpu")', "torch.device('cpu')")
        or ("cpu" in ctx.text(node).lower() or "offload" in ctx.text(node).lower())
    )


def _before_the_loop(node: ast.Call, statement: ast.stmt, ctx: Context) -> Fix | None:
    if not (isinstance(statement, ast.Expr) and statement.value is node):
        return None
    outermost: ast.stmt | None = None
    for loop in ctx.loops(node):
        if not ctx.inference.flow.is_invariant(node, loop, lambda call: call is node):
            break
        outermost = loop
    if outermost is None or ctx.tree.parent(statement) not in ctx.loops(node):
        return None
    return Fix(
        "Move the module once before the loop",
        Applicability.UNSAFE,
        (ctx.edit.insert_before(outermost, ctx.tree.text(statement)), *ctx.edit.delete_statement(statement)),
        reason="the module is moved even if the loop has no iterations",
    )
