"""What the rules about loading modules share."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import CLASS, INSTANCE, Ref
from perflint.ir.calls import arguments_of, callee_name
from perflint.syntax.named import is_name
from perflint.syntax.walk import walk

_LOADING = ("load_state_dict", "_load_from_state_dict")
#: Methods by which a part of a module, of whatever class, may keep what is loaded.
_PARTS = ("_load_from_state_dict", "set_extra_state")
_HOOKS = ("_register_load_state_dict_pre_hook", "register_load_state_dict_pre_hook")
#: What reads a dict and leaves it as it is.
_READERS = frozenset("load_state_dict len print list sorted set dict".split())


def is_part(first: ast.expr, second: ast.expr, ctx: FileFacts) -> bool:
    """Whether one of two modules is reached through the other, by its name or by what that was bound to: `model` and
    `model.body[0]`, `model` and `Wrapper(model)`.
    """
    if any(_is_within(left, right) for left in _ways(first, ctx) for right in _ways(second, ctx)):
        return True
    return _is_built_around(first, second, ctx) or _is_built_around(second, first, ctx)


def _is_built_around(module: ast.expr, inner: ast.expr, ctx: FileFacts) -> bool:
    ways = _ways(inner, ctx)
    return any(
        isinstance(made, ast.Call)
        and callee_name(made) != "deepcopy"
        and any(ctx.text(item) in ways for item in arguments_of(made))
        for made in ctx.inference.origins(module)
    )


def is_same(first: ast.expr, second: ast.expr, ctx: FileFacts) -> bool:
    """Whether two expressions may be one module, by their text or by what they were bound to."""
    return not _ways(first, ctx).isdisjoint(_ways(second, ctx))


def loads_in_its_own_way(module: ast.expr, ctx: FileFacts) -> bool:
    """Whether the class of a module, or one it may be of, says itself what `load_state_dict` does with a dict; or any
    class of the project, of which a part of it may be.
    """
    if ctx.program.mentions(_HOOKS) or any(
        "." in scope.function for name in _PARTS for scope in ctx.program.named(name)
    ):
        return True
    kind, resolver = ctx.kind(module), ctx.program.resolver
    if kind.path:
        made = Ref(INSTANCE, kind.path, kind.qualified)
        return any(resolver.method(made, name) is not None for name in _LOADING)
    if kind.qualified not in ("", "torch.nn.Module"):
        return False  # a class of a library
    own = [scope for name in _LOADING for scope in ctx.program.named(name) if "." in scope.function]
    return any(ctx.program.is_module(Ref(CLASS, scope.path, scope.function.rpartition(".")[0])) for scope in own)


def comes_from(source: ast.expr, ctx: FileFacts) -> list[ast.expr]:
    """All that a dict may be, as written; empty where something else may be bound to its name as well."""
    origins = ctx.inference.origins(source)
    if not isinstance(source, ast.Name):
        return origins
    definitions = ctx.inference.flow.definitions(source)
    plain = all(isinstance(item.node, ast.Assign) and not item.path for item in definitions)
    return origins if plain and not any(isinstance(item, ast.Name) for item in origins) else []


def takes_in_others(source: ast.expr, ctx: FileFacts) -> bool:
    """Whether entries of a dict are bound to what is none of its own: `state["a"] = student.b`."""
    if not isinstance(source, ast.Name):
        return False
    region = ctx.tree.function_of(source) or ctx.tree.module
    for part in walk(region):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and is_name(part.func.value, source.id):
            if part.func.attr in ("update", "setdefault"):
                return True
        if isinstance(part, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and part.value is not None:
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            stored = [item for target in targets for item in walk(target) if _is_entry(item, source.id)]
            if stored and not (_is_entry(part.value, source.id) or _is_popped(part.value, source.id)):
                return True
    return False


def is_only_looped_over(source: ast.expr, ctx: FileFacts) -> bool:
    """Whether a dict is written where it is looped over, or its name does nothing but be read and looped over."""
    if not isinstance(source, ast.Name):
        return True
    region = ctx.tree.function_of(source) or ctx.tree.module
    return all(_only_reads(part, ctx) for part in walk(region) if is_name(part, source.id))


def _only_reads(use: ast.AST, ctx: FileFacts) -> bool:
    outer = ctx.tree.parent(use)
    if isinstance(use, ast.Name) and isinstance(use.ctx, ast.Store):
        return isinstance(outer, ast.Assign)
    if isinstance(outer, ast.Attribute):
        return outer.attr in ("items", "keys")
    if isinstance(outer, ast.Call):
        return use in outer.args and callee_name(outer) in _READERS
    return isinstance(outer, (ast.For, ast.comprehension, ast.Compare))


def _ways(module: ast.expr, ctx: FileFacts) -> set[str]:
    """How a module is written, and what was bound to its name; two calls of one text make two modules."""
    return {
        f"{item.lineno}:{item.col_offset}" if isinstance(item, ast.Call) else ctx.text(item)
        for item in (module, *ctx.inference.origins(module))
    }


def _is_within(left: str, right: str) -> bool:
    return left != right and (right.startswith((f"{left}.", f"{left}[")) or left.startswith((f"{right}.", f"{right}[")))


def _is_entry(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Subscript) and is_name(node.value, name)


def _is_popped(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("pop", "get")
        and is_name(node.func.value, name)
    )
