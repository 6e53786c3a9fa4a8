"""Fixes that keep a constant tensor: as a buffer of the module that needs it, or by a function that remembers it."""

from __future__ import annotations

import ast
import re

from perflint.api import CLASS, Applicability, Context, Edit, Fix, Ref, callee_name, keyword, tensors, walk
from perflint.api.invariants import is_kept

from .copy_fixes import is_device, on_host

_AS_BUFFER = (
    "the buffer follows the module to its device and its type (`model.half()`), and is one tensor for all calls: "
    "nothing may write into it"
)
#: So many numbers make a name.
_FEW = 6
_REMEMBERED = (
    "one tensor serves all calls: nothing may write into it, and one that was made in inference mode is none for a "
    "training step"
)


def where_to_keep(node: ast.AST, ctx: Context) -> str:
    """Where a constant is kept, in words."""
    function = ctx.tree.function_of(node)
    around = ctx.tree.class_of(node)
    if around is not None and function is not None and function.name != "__init__":
        if _is_module(around, ctx):
            return 'in the constructor, with `self.register_buffer("...", ..., persistent=False)`'
        return "as an attribute, one per device"
    return "before the loop" if ctx.loops(node) else "in the caller, before the loop"


def keep(node: ast.Call, made: ast.expr, device: ast.expr | None, dtype: ast.expr | None, ctx: Context) -> Fix | None:
    """Replace `node`, which has the tensor `made` on a device, by one that is kept.

    `made` makes it on the host; `device` and `dtype` are what it is given at `node`, of things that change from call to
    call: a dtype that is written out belongs to `made`.
    """
    if ctx.edit.would_lose_comment(node):
        return None
    setup = _setup_of(node, ctx)
    if setup is not None and _can_stand_in(made, ctx, attributes=True):
        return _as_buffer(node, made, dtype, setup, ctx)
    there = ctx.tree.text(device) if device is not None else '"cuda"' if _is_plain_cuda(node) else ""
    if not there or dtype is not None:
        return None
    return _remembered(node, made, there, ctx) if _can_stand_in(made, ctx, attributes=False) else None


def register(node: ast.Call, ctx: Context) -> Fix | None:
    """`self.table = ...` in a module's constructor becomes a buffer, for a move `self.table.to(...)`."""
    moved = node.func.value if isinstance(node.func, ast.Attribute) else None
    setup = _setup_of(node, ctx)
    if not isinstance(moved, ast.Attribute) or setup is None or not is_kept(moved, ctx):
        return None
    around = ctx.tree.class_of(node)
    stores = ctx.inference.classes.attributes.stores(around, moved.attr) if around is not None else ()
    statement = stores[0].node if len(stores) == 1 else None
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or statement not in setup.body:
        return None
    begin = _super_call(setup)
    if begin is None or statement.lineno < begin.lineno or ctx.edit.would_lose_comment(statement, statement.value):
        return None
    value = ctx.tree.text(statement.value)
    text = f'self.register_buffer("{moved.attr}", {value}, persistent=False)'
    return _unsafe("Keep it as a buffer", (ctx.edit.replace(statement, text),), _AS_BUFFER)


def keep_list(node: ast.List, ctx: Context) -> Fix | None:
    """`x[:, self.index_2_0_1]` for `x[:, [2, 0, 1]]` in a module: the numbers are sent to its device once."""
    setup, around = _setup_of(node, ctx), ctx.tree.class_of(node)
    numbers = [item.value for item in node.elts if isinstance(item, ast.Constant) and type(item.value) is int]
    if setup is None or around is None or len(numbers) != len(node.elts) or len(numbers) > _FEW:
        return None
    name = "index_" + "_".join(map(str, numbers))
    alike = [part for part in walk(around) if isinstance(part, ast.List) and ctx.text(part) == ctx.text(node)]
    if alike[0] is not node or name in ctx.tree.text(around) or ctx.edit.would_lose_comment(node):
        return None  # the others can be given the same buffer by hand
    torch, imports = ctx.edit.ensure_import("torch", at=setup.body[-1])
    text = f'self.register_buffer("{name}", {torch}.tensor({ctx.text(node)}), persistent=False)'
    edits = (*imports, ctx.edit.insert_after(setup.body[-1], text), ctx.edit.replace(node, f"self.{name}"))
    return _unsafe("Keep it as a buffer", edits, _AS_BUFFER)


def _as_buffer(
    node: ast.Call, made: ast.expr, dtype: ast.expr | None, setup: ast.FunctionDef, ctx: Context
) -> Fix | None:
    name = _free_attribute(node, ctx)
    taken = f"self.{name}"
    if dtype is not None:
        taken += f".to({ctx.tree.text(dtype)})"
    text = f'self.register_buffer("{name}", {on_host(made, ctx)}, persistent=False)'
    if "\n" in text:
        return None
    edits = (ctx.edit.insert_after(setup.body[-1], text), ctx.edit.replace(node, taken))
    return _unsafe("Keep it as a buffer", edits, _AS_BUFFER)


def _remembered(node: ast.Call, made: ast.expr, device: str, ctx: Context) -> Fix | None:
    """A function below the imports that makes the tensor once for each device."""
    name = ctx.edit.free_name(f"_{_wanted(node, ctx)}_on")
    functools, imports = ctx.edit.ensure_import("functools")
    text = on_host(made, ctx)
    if "\n" in text:
        return None
    outer: ast.AST = node
    for around in ctx.tree.ancestors(node):
        if not isinstance(around, ast.Module):
            outer = around
    assert isinstance(outer, ast.stmt)
    unit = ctx.edit.indent_unit
    made_there = f"{text[:-1].rstrip(', ')}, device=device)" if _takes_device(made, ctx) else f"{text}.to(device)"
    body = f"@{functools}.lru_cache(maxsize=None)\ndef {name}(device):\n{unit}return {made_there}\n\n"
    edits = (
        *imports,
        ctx.edit.insert_before(outer, body),
        ctx.edit.replace(node, f"{name}({device})"),
    )
    return _unsafe("Keep it for each device", edits, _REMEMBERED)


def _is_plain_cuda(node: ast.Call) -> bool:
    return callee_name(node) == "cuda" and not node.args and not node.keywords


def _unsafe(title: str, edits: tuple[Edit, ...], reason: str) -> Fix:
    return Fix(title, Applicability.UNSAFE, edits, reason=reason, numerics="same bits")


def _takes_device(made: ast.expr, ctx: Context) -> bool:
    return isinstance(made, ast.Call) and ctx.target(made.func) in tensors.CONSTRUCTORS


def _can_stand_in(made: ast.expr, ctx: Context, *, attributes: bool) -> bool:
    """Whether an expression means the same below the imports; with `attributes`, at the end of the constructor."""
    for part in walk(made):
        if isinstance(part, ast.keyword) and part.arg == "device":
            continue
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and not _is_of_device(part, made):
            if part.id == "self":
                outer = ctx.tree.parent(part)
                if not (attributes and isinstance(outer, ast.Attribute) and is_kept(outer, ctx)):
                    return False
            elif any(ctx.tree.function_of(item.node) is not None for item in ctx.inference.flow.definitions(part)):
                return False
    return True


def _is_of_device(part: ast.Name, made: ast.expr) -> bool:
    given = keyword(made, "device") if isinstance(made, ast.Call) else None
    return given is not None and any(inner is part for inner in walk(given))


def _setup_of(node: ast.AST, ctx: Context) -> ast.FunctionDef | None:
    """The constructor of the module around, where it calls its parent's and ends as it began."""
    around, function = ctx.tree.class_of(node), ctx.tree.function_of(node)
    if around is None or function is None or not _is_module(around, ctx) or ctx.tree.parent(function) is not around:
        return None
    if not function.args.args or function.args.args[0].arg != "self":
        return None
    setup = next((item for item in around.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None)
    if setup is None or setup is function or _super_call(setup) is None or isinstance(setup.body[-1], ast.Return):
        return None
    return setup


def _super_call(setup: ast.FunctionDef) -> ast.stmt | None:
    for statement in setup.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            if callee_name(statement.value) == "__init__":
                return statement
    return None


def _is_module(around: ast.ClassDef, ctx: Context) -> bool:
    facts = ctx.summary.classes.get(ctx.tree.qualname(around))
    if facts is None:
        return False
    return ctx.program.is_module(Ref(CLASS, ctx.path, ctx.tree.qualname(around)))


def _wanted(node: ast.AST, ctx: Context) -> str:
    """A name for what is kept: that of the variable it is given, else of what it is made of."""
    statement = ctx.tree.statement_of(node)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id.strip("_").lower() or "kept"
    given = [item for part in walk(node) if isinstance(part, ast.Call) for item in part.args]
    names = [item.id for item in given if isinstance(item, ast.Name) and "device" not in item.id]
    return names[0].strip("_").lower() if names else "constant"


def _free_attribute(node: ast.AST, ctx: Context) -> str:
    around = ctx.tree.class_of(node)
    text = ctx.tree.text(around) if around is not None else ""
    wanted, number = _wanted(node, ctx), 1
    name = wanted
    while re.search(rf"\b{re.escape(name)}\b\s*[=(]|self\.{re.escape(name)}\b|[\"']{re.escape(name)}[\"']", text):
        number += 1
        name = f"{wanted}_kept" if number == 2 else f"{wanted}_kept{number - 1}"
    return name


def device_of(node: ast.Call, ctx: Context) -> ast.expr | None:
    """The device that a move or a constructor is given, where it is plain to see."""
    given = keyword(node, "device")
    if given is None and callee_name(node) == "to" and len(node.args) == 1:
        given = node.args[0]
    return given if given is not None and is_device(given, ctx) else None
