"""What a move of a module is of, and what it goes by."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import argument, callee_name
from perflint.ir.summary import Value

#: Modules of torch that hold others.
_CONTAINERS = frozenset(
    "Module Sequential ModuleList ModuleDict Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer "
    "TransformerDecoderLayer DataParallel DistributedDataParallel ParameterDict ParameterList".split()
)


def may_be_module(module: ast.expr, node: ast.Call, statement: ast.stmt, ctx: FileFacts) -> bool:
    """Whether what is moved is a module: by what it is, or since nobody takes what the move gives."""
    if not isinstance(module, (ast.Name, ast.Attribute)):
        return False
    kind = ctx.kind(module)
    if kind.tag is Tag.MODULE:
        return True
    if kind.tag is Tag.INSTANCE:
        return holds_what_moves(node, ctx)
    # A tensor's move hands back a copy: a result that nobody takes says that this is a module.
    return not kind.known and isinstance(statement, ast.Expr) and statement.value is node


def holds_what_moves(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether an object of the project has a method of its own for the move, which does nothing but hand it on to what
    the object holds, modules among it: `for model in self.models: model.cuda()`.
    """
    method = ctx.project_target(node.func)
    if method is None or method.kind != FUNCTION:
        return False
    facts = ctx.program.function(Scope(method.path, method.name))
    own = facts.params[0].name if facts.params else ""
    held = {name for loop in facts.loops if _is_of(own, loop.iterable) for name in loop.targets}
    kept = ctx.program.summaries[method.path].classes.get(facts.in_class)
    taken = [value for values in facts.binds.values() for value in values]
    taken += [value for values in (kept.attributes.values() if kept else ()) for value, _ in values]
    found = False
    for call in facts.calls:
        owner, _, name = call.func.rpartition(".") if isinstance(call.func, str) else ("", "", "")
        if name != callee_name(node) or not (owner in held or _is_of(own, owner)):
            return False
        made = ("call", call.func, call.args, call.keywords)
        # Of a tensor the copy is wanted: what nobody takes is a module.
        found = found or (made not in taken and made not in facts.returns)
    return found


def _is_of(own: str, value: Value) -> bool:
    """`self.models`, `self.models.values()`"""
    while isinstance(value, tuple) and value and value[0] == "call":
        value = value[1]
    return isinstance(value, str) and value.startswith(f"{own}.")


def is_a_layer(module: ast.expr, ctx: FileFacts) -> bool:
    """Whether it is a single layer of torch, which is walked in no time."""
    made = ctx.refs(module) if isinstance(module, (ast.Name, ast.Attribute)) else ()
    return bool(made) and all(
        ref.name.startswith("torch.nn.") and ref.name.rpartition(".")[2] not in _CONTAINERS for ref in made
    )


def follows_another(node: ast.Call) -> bool:
    """`x.to(y.device)`"""
    given = argument(node, 0, "device")
    return callee_name(node) == "to" and isinstance(given, ast.Attribute) and given.attr == "device"


def goes_by_table(node: ast.Call) -> bool:
    """`module.to(state["encoder"]["device"])`: one of several states is restored, and the next may be another."""
    given = node.args[0] if node.args else None
    return isinstance(given, ast.Subscript) and isinstance(given.value, ast.Subscript)


def is_where_needed(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the move stands under a test of where the module is: `if p.device != x.device`."""
    return any(word in ctx.text(test) for test, _ in ctx.conditions(node) for word in ("device", "offload"))
