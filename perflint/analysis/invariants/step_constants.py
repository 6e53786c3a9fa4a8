"""What the rules about values made again share: which expressions are the same in every step of a program."""

from __future__ import annotations

import ast

from perflint.analysis.elsewhere import bound
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.analysis.naming.phases import SETS_UP
from perflint.analysis.naming.values import SETTINGS
from perflint.analysis.own_attributes import is_refilled, stores_of
from perflint.analysis.values.kind import Tag
from perflint.ir.notation import is_text, last_name

_NUMBERS = frozenset({"float", "int", "bool", "abs", "round", "len", "list", "tuple", "sorted", "min", "max", "sum"})
_MODULES = ("math.", "numpy.pi", "numpy.inf", "numpy.nan", "torch.pi", "torch.inf", "torch.nan", "torch.finfo")
_DEPTH = 6


def is_step_constant(node: ast.expr, ctx: FileFacts, depth: int = _DEPTH) -> bool:
    """Whether an expression is made of numbers that stay the same from step to step: literals, settings, attributes
    that only the constructor binds, and arithmetic on them."""
    if depth == 0:
        return False
    match node:
        case ast.Constant():
            return isinstance(node.value, (bool, int, float, complex))
        case ast.UnaryOp():
            return is_step_constant(node.operand, ctx, depth)
        case ast.BinOp():
            return is_step_constant(node.left, ctx, depth - 1) and is_step_constant(node.right, ctx, depth - 1)
        case ast.List() | ast.Tuple():
            return all(is_step_constant(item, ctx, depth - 1) for item in node.elts)
        case ast.Subscript():
            return is_step_constant(node.value, ctx, depth - 1) and is_step_constant(node.slice, ctx, depth - 1)
        case ast.Call():
            return _is_fixed_call(node, ctx, depth)
        case ast.Attribute():
            return _is_fixed_attribute(node, ctx)
        case ast.Name():
            return _is_fixed_name(node, ctx, depth)
        case _:
            return False


def _is_fixed_call(node: ast.Call, ctx: FileFacts, depth: int) -> bool:
    if node.keywords or not all(is_step_constant(item, ctx, depth - 1) or is_text(item) for item in node.args):
        return False
    target = ctx.target(node.func) or ""
    return target in _NUMBERS or target.startswith(_MODULES)


def _is_fixed_attribute(node: ast.Attribute, ctx: FileFacts) -> bool:
    target = ctx.target(node) or ""
    if target.startswith(_MODULES):
        return True
    base = node.value
    if isinstance(base, ast.Call):
        return _is_fixed_call(base, ctx, _DEPTH)  # `torch.finfo(torch.float16).min`
    if not _may_be_numbers(node, ctx):
        return False
    root = base
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    if SETTINGS.match(last_name(base)):
        return not _is_stored(node.attr, ctx)
    return root.id == "self" and base is root and is_set_up_once(node, ctx)


def _may_be_numbers(node: ast.expr, ctx: FileFacts) -> bool:
    return ctx.kind(node).tag in (Tag.NUMBER, Tag.SEQUENCE, Tag.UNKNOWN)


def _is_stored(name: str, ctx: FileFacts) -> bool:
    """Whether this file stores to an attribute of this name outside of a constructor."""
    return any(not SETS_UP.match(_owner(store, ctx)) for store in _stores(name, ctx))


def is_set_up_once(node: ast.Attribute, ctx: FileFacts) -> bool:
    """Whether the constructor of the class around, or of a related one, binds `self.name`, nothing else does, and no
    step changes what it holds.
    """
    stores = stores_of(node, ctx)
    if not stores or any(_is_stored(item.name.rpartition(".")[2], there) for item, there in stores):
        return False
    return not is_refilled(node, ctx)


def _stores(name: str, ctx: FileFacts) -> list[ast.Attribute]:
    return [
        part
        for statement in ctx.tree.naming((name,), ctx.tree.module)
        for part in ctx.tree.own(statement)
        if isinstance(part, ast.Attribute) and part.attr == name and not isinstance(part.ctx, ast.Load)
    ]


def _owner(node: ast.AST, ctx: FileFacts) -> str:
    function = ctx.tree.function_of(node)
    return function.name if function is not None else "__init__"


def _is_fixed_name(node: ast.Name, ctx: FileFacts, depth: int) -> bool:
    definitions, ctx = bound(node, ctx)
    if len(definitions) != 1 or definitions[0].path:
        return False
    made = definitions[0]
    if ctx.inference.flow.is_mutated(made.name, ctx.tree.scope_of(made.node)):
        return False
    if isinstance(made.node, ast.arg):
        return _is_fixed_parameter(made.node, ctx)
    if isinstance(made.node, (ast.Assign, ast.AnnAssign)) and made.value is not None:
        return is_step_constant(made.value, ctx, depth - 1)
    return False


def _is_fixed_parameter(node: ast.arg, ctx: FileFacts) -> bool:
    """Whether every known call passes the same kind of thing: a literal, or an attribute that holds a setting."""
    function = ctx.tree.parent(ctx.tree.parent(node) or node)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    default = default_of(node, function.args)
    fixed = default is not None and is_step_constant(default, ctx)
    return _is_passed_fixed(ctx.own_scope(function), node.arg, ctx, default_fixed=fixed, depth=3)


def _is_passed_fixed(scope: Scope, name: str, ctx: FileFacts, *, default_fixed: bool, depth: int) -> bool:
    """Whether all known calls pass a fixed value, some of them through a parameter of their own."""
    edges = ctx.program.callers(scope)
    for edge in edges:
        value = ctx.program.argument(edge, name)
        if value is None:
            if not default_fixed:
                return False
        elif isinstance(value, str) and "." not in value:
            own = next((item for item in ctx.program.function(edge.caller).params if item.name == value), None)
            if own is None or depth == 0 or value in ctx.program.function(edge.caller).binds:
                return False
            fixed = _is_fixed_value(own.default)
            if not _is_passed_fixed(edge.caller, value, ctx, default_fixed=fixed, depth=depth - 1):
                return False
        elif not _is_fixed_value(value):
            return False
    return bool(edges)


def default_of(node: ast.arg, arguments: ast.arguments) -> ast.expr | None:
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(reversed(positional), reversed(arguments.defaults)),
        *zip(arguments.kwonlyargs, arguments.kw_defaults),
    ]
    return next((default for argument, default in pairs if argument is node), None)


def _is_fixed_value(value: object) -> bool:
    """A literal number, or `self.config.beta`, in the notation of summaries."""
    if isinstance(value, tuple):
        if value[0] == "const":
            return value[1] in ("int", "float", "bool")
        return value[0] == "seq" and bool(value[1]) and all(_is_fixed_value(item) for item in value[1])
    if not isinstance(value, str):
        return False
    *bases, _ = value.split(".")
    return bool(bases) and (bases == ["self"] or bool(SETTINGS.match(bases[-1])))
