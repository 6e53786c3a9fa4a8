"""Modules that share no tensor with any other, and load as torch's own do: made here, of layers of torch, and kept."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import arguments_of, callee_name
from perflint.syntax.walk import walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Methods that give back the module they are called on.
_SELVES = frozenset("to cuda cpu eval train half float double bfloat16 requires_grad_".split())
#: Methods by which nobody else gets hold of a part.
_KEEPING = _SELVES | frozenset("load_state_dict zero_grad forward".split())
#: What takes modules or tensors that were there before, or loads in a way of its own.
_TAKING = frozenset(
    "Sequential ModuleList ModuleDict ParameterList ParameterDict Parameter Transformer TransformerEncoder "
    "TransformerDecoder DataParallel Module TransformerEncoderLayer TransformerDecoderLayer".split()
)
_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList"})
#: What brings in more than its arguments.
_REACHING = frozenset(
    "globals vars locals eval exec open input __import__ getattr setattr delattr memoryview breakpoint".split()
)
_NUMBERS = (Tag.NUMBER, Tag.STRING, Tag.DTYPE, Tag.DEVICE, Tag.SHAPE)
_OWN_WAYS = frozenset(
    "load_state_dict _load_from_state_dict set_extra_state __setattr__ __new__ __getattr__ __deepcopy__ state_dict "
    "_save_to_state_dict parameters named_parameters".split()
)
_DEPTH = 4


def is_owned(module: ast.expr, ctx: FileFacts) -> bool:
    """Whether a module is made once, in sight, of layers that only it has, and nobody got hold of them since."""
    if isinstance(module, ast.Attribute):
        return _is_owned_attribute(module, ctx)
    if not isinstance(module, ast.Name):
        return False
    definitions = ctx.inference.flow.definitions(module)
    region = ctx.tree.function_of(module) or ctx.tree.module
    names = [part for part in ast.walk(region) if isinstance(part, ast.Name) and part.id == module.id]
    if len(definitions) != 1 or sum(not isinstance(name.ctx, ast.Load) for name in names) != 1:
        return False
    if any(isinstance(part, (ast.Global, ast.Nonlocal)) and module.id in part.names for part in ast.walk(region)):
        return False
    value: ast.expr | None = definitions[0].value
    for step in definitions[0].path:
        if not (isinstance(value, (ast.Tuple, ast.List)) and isinstance(step, int) and step < len(value.elts)):
            return False
        value = value.elts[step]
    if value is None or not isinstance(definitions[0].node, ast.Assign) or not _is_made(value, ctx, _DEPTH):
        return False
    loops = set(map(id, ctx.loops(module))) - set(map(id, ctx.loops(definitions[0].node)))
    after = None if loops else ctx.tree.statement_of(module)
    inside = ctx.tree.function_of(module)
    return all(
        not isinstance(name.ctx, ast.Load)
        or _keeps(name, ctx)
        or (after is not None and ctx.tree.function_of(name) is inside and name.lineno > (after.end_lineno or 0))
        for name in names
    )


def _is_owned_attribute(module: ast.Attribute, ctx: FileFacts) -> bool:
    """`self.target`, which the constructor binds, nothing else binds, and no other file names."""
    function, cls = ctx.tree.function_of(module), ctx.tree.class_of(module)
    if not (isinstance(module.value, ast.Name) and module.value.id == "self") or function is None or cls is None:
        return False
    used = [part for part in walk(ctx.tree.module) if isinstance(part, ast.Attribute) and part.attr == module.attr]
    bound = [part for part in used if not isinstance(part.ctx, ast.Load)]
    if len(bound) != 1 or ctx.program.mentions(
        {module.attr}, [path for path in ctx.program.summaries if path != ctx.path]
    ):
        return False
    statement, maker = ctx.tree.parent(bound[0]), ctx.tree.function_of(bound[0])
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1 and maker is not None):
        return False
    if maker.name != "__init__" or ctx.tree.class_of(bound[0]) is not cls or not _is_made(statement.value, ctx, _DEPTH):
        return False
    return all(part is bound[0] or _keeps(part, ctx) for part in used)


def _keeps(use: ast.expr, ctx: FileFacts) -> bool:
    """Whether a use of a module leaves its parts to it: it runs, moves, loads, or is copied."""
    outer = ctx.tree.parent(use)
    if isinstance(outer, ast.Call):
        return outer.func is use or ctx.is_call_of(outer, "copy.deepcopy")
    if not isinstance(outer, ast.Attribute):
        return False
    call = ctx.tree.parent(outer)
    if not isinstance(call, ast.Call) or call.func is not outer:
        return False
    if outer.attr == "state_dict":
        return _is_read_at_once(call, ctx)
    if outer.attr == "load_state_dict":
        return len(call.args) < 3 and all(item.arg in ("state_dict", "strict") for item in call.keywords)
    if outer.attr == "parameters":
        taker = ctx.tree.parent(call)
        return (
            isinstance(taker, ast.Call) and call in taker.args and (ctx.target(taker.func) or "").startswith("torch.")
        )
    return outer.attr in _KEEPING and (outer.attr not in _SELVES or isinstance(ctx.tree.parent(call), ast.Expr))


def _is_read_at_once(call: ast.Call, ctx: FileFacts) -> bool:
    """`copy.deepcopy(model.state_dict())`, `{k: v.clone() for k, v in model.state_dict().items()}`"""
    outer = ctx.tree.parent(call)
    if isinstance(outer, ast.Attribute) and outer.attr == "items":
        loop = ctx.tree.parent(ctx.tree.parent(outer) or outer)
        made = ctx.tree.parent(loop) if isinstance(loop, ast.comprehension) else None
        return isinstance(made, ast.DictComp) and isinstance(made.value, ast.Call) and not _is_assigned(made, ctx)
    if isinstance(outer, ast.Call) and call in outer.args:
        return ctx.is_call_of(outer, "copy.deepcopy", "torch.save") or (
            callee_name(outer) == "load_state_dict" and len(outer.args) < 3 and not outer.keywords
        )
    return False


def _is_assigned(made: ast.expr, ctx: FileFacts) -> bool:
    """Whether a dict is kept whose values may not be clones."""
    assert isinstance(made, ast.DictComp)
    clones = any(isinstance(part, ast.Call) and callee_name(part) == "clone" for part in ast.walk(made.value))
    return not clones and not isinstance(ctx.tree.parent(made), ast.Call)


def _is_made(value: ast.expr, ctx: FileFacts, depth: int) -> bool:
    """Whether an expression makes a module of new layers: `nn.Linear(4, 4)`, `Net(3).eval()`, `deepcopy(model)`."""
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in _SELVES
        and isinstance(value.func.value, ast.Call)
    ):
        value = value.func.value
    if not isinstance(value, ast.Call) or depth == 0:
        return False
    if ctx.is_call_of(value, "copy.deepcopy"):
        return len(value.args) == 1 and isinstance(value.args[0], ast.Name) and is_owned(value.args[0], ctx)
    given = arguments_of(value)
    target = ctx.target(value.func) or ""
    if target in _CONTAINERS:
        return not value.keywords and all(_are_made(item, ctx, depth - 1) for item in value.args)
    if target.startswith("torch.nn.") and target.count(".") == 2:
        private = any(item.arg is None or item.arg.startswith("_") for item in value.keywords) or len(value.args) > 6
        return not private and target.rpartition(".")[2] not in _TAKING and all(map(_is_one, given))
    cls = _class_named(value.func, ctx)
    return cls is not None and all(_is_plain(item, ctx) for item in given) and _makes_its_own(cls, ctx, depth - 1)


def _is_one(argument: ast.expr) -> bool:
    return not isinstance(argument, ast.Starred)


def _are_made(item: ast.expr, ctx: FileFacts, depth: int) -> bool:
    """What a container is made of: modules that are made in its call."""
    if isinstance(item, ast.Starred):
        return _are_made(item.value, ctx, depth)
    if isinstance(item, (ast.List, ast.Tuple)):
        return all(_are_made(part, ctx, depth) for part in item.elts)
    if isinstance(item, (ast.ListComp, ast.GeneratorExp)):
        return _is_made(item.elt, ctx, depth)
    return _is_made(item, ctx, depth)


def _is_plain(argument: ast.expr, ctx: FileFacts) -> bool:
    """Whether an argument can bring no module or tensor along: numbers, texts, types, and lists of them."""
    if isinstance(argument, (ast.Tuple, ast.List)):
        return all(_is_plain(item, ctx) for item in argument.elts)
    if isinstance(argument, (ast.UnaryOp, ast.BinOp)):
        operands = [argument.operand] if isinstance(argument, ast.UnaryOp) else [argument.left, argument.right]
        return all(_is_plain(item, ctx) for item in operands)
    return isinstance(argument, ast.Constant) or ctx.kind(argument).tag in _NUMBERS


def _class_named(func: ast.expr, ctx: FileFacts) -> ast.ClassDef | None:
    """The class of this file, at its top, that a call makes an instance of."""
    if not isinstance(func, ast.Name):
        return None
    found = [item for item in ctx.tree.module.body if getattr(item, "name", "") == func.id]
    bound = [part for part in walk(ctx.tree.module) if isinstance(part, ast.Name) and part.id == func.id]
    if len(found) != 1 or not all(isinstance(part.ctx, ast.Load) for part in bound):
        return None
    return found[0] if isinstance(found[0], ast.ClassDef) else None


def _makes_its_own(cls: ast.ClassDef, ctx: FileFacts, depth: int) -> bool:
    """Whether instances of a class have nothing in common: its code names nothing that outlives a call."""
    if depth == 0 or cls.decorator_list or cls.keywords:
        return False
    for base in cls.bases:
        own = _class_named(base, ctx)
        if ctx.target(base) != "torch.nn.Module" and (own is None or not _makes_its_own(own, ctx, depth - 1)):
            return False
    return all(_is_of_no_object(item) or _is_own_method(item, cls, ctx, depth) for item in cls.body)


def _is_of_no_object(item: ast.stmt) -> bool:
    """A text, an annotation, a constant of the class."""
    if isinstance(item, (ast.Expr, ast.Assign)):
        return isinstance(item.value, ast.Constant)
    return isinstance(item, ast.Pass) or (isinstance(item, ast.AnnAssign) and item.value is None)


def _is_own_method(item: ast.stmt, cls: ast.ClassDef, ctx: FileFacts, depth: int) -> bool:
    if not isinstance(item, ast.FunctionDef) or item.decorator_list or item.name in _OWN_WAYS:
        return False
    defaults = [*item.args.defaults, *(value for value in item.args.kw_defaults if value is not None)]
    if not all(isinstance(value, (ast.Constant, ast.UnaryOp)) for value in defaults):
        return False
    if any(
        isinstance(part, (*_FUNCTIONS, ast.Lambda, ast.Global, ast.Import)) for part in walk(item) if part is not item
    ):
        return False
    return all(_is_harmless(name, cls, ctx, depth) for name in _foreign(item))


def _foreign(function: ast.FunctionDef) -> Iterator[ast.Name]:
    """The names a function reads that it does not bind, annotations left out."""
    args = function.args
    bound = {item.arg for item in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg) if item}
    names = [part for statement in function.body for part in ast.walk(statement) if isinstance(part, ast.Name)]
    bound |= {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    return (name for name in names if name.id not in bound)


def _is_harmless(name: ast.Name, cls: ast.ClassDef, ctx: FileFacts, depth: int) -> bool:
    """A builtin, a module of torch, or a class of this file that makes its own as well."""
    if name.id == cls.name:
        return True
    own = _class_named(name, ctx)
    if own is not None:
        return _makes_its_own(own, ctx, depth - 1)
    if any(
        isinstance(part, ast.Name) and part.id == name.id and part.ctx.__class__ is not ast.Load
        for part in walk(ctx.tree.module)
    ):
        return False  # no import alone
    target = ctx.target(name) or ""
    if target in ("torch", "math", "torch.nn", "torch.nn.functional") or target.startswith("torch.nn."):
        return not _leads_out(name, ctx)
    return hasattr(builtins, name.id) and name.id not in _REACHING and target in ("", f"builtins.{name.id}", name.id)


def _leads_out(name: ast.Name, ctx: FileFacts) -> bool:
    """`torch.hub`, `torch.ao`, `nn.utils`: what holds more than layers."""
    outer = ctx.tree.parent(name)
    return isinstance(outer, ast.Attribute) and outer.attr in ("hub", "ao", "utils", "jit", "quantization", "package")
