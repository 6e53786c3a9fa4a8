"""What an optimizer's own step launches for one parameter after the other, where one list of all would do."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import CLASS, Ref
from perflint.ir.calls import callee_name
from perflint.ir.notation import last_name
from perflint.syntax.walk import children, walk
from perflint.torch_model.modules import makes_optimizer

#: Arithmetic on each element, which `torch._foreach_*` has for lists, without the `_` of those that work in place.
_ARITHMETIC = frozenset(
    "add sub mul div addcmul addcdiv lerp sqrt rsqrt abs neg sign pow square exp reciprocal maximum minimum max min "
    "clamp clamp_min clamp_max clip sigmoid tanh zero fill copy".split()
)
#: What moves elements and computes nothing: of it a step on lists needs none.
_MOVES = frozenset("cat stack unsqueeze squeeze clone detach float half double long to type_as new".split())
#: What a step does besides: states are made once, and numbers of the host cost nothing beside a launch.
_BESIDES = frozenset(
    "zeros_like ones_like empty_like full_like zeros ones tensor len get setdefault int bool isinstance hasattr "
    "getattr RuntimeError ValueError NotImplementedError format no_grad is_complex is_floating_point view_as_real "
    "requires_grad_ log log1p range enumerate zip".split()
)
#: What may be done to the gradient of each: a norm and a product, which there are for lists.
_CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm", "torch.nn.utils.clip_grad_value_")
#: What tells parameters apart that a list would treat alike.
_OF_SHAPES = frozenset("ndim shape dim size numel name".split())


def launches_of_step(loop: ast.For, ctx: FileFacts) -> int:
    """How many operations a loop over `group["params"]` of an optimizer's class launches for each parameter; 0 where it
    does not do the same arithmetic on each, or stands beside a way that works on lists.
    """
    cls = ctx.tree.class_of(loop)
    if cls is None or not _is_group(loop.iter, ctx) or not _is_optimizer(cls, ctx):
        return 0
    if "foreach" in ctx.tree.text(cls) and any("foreach" in last_name(part) for part in walk(cls)):
        return 0
    launches = sum(map(_is_launch, _always_run(loop.body)))
    body = [part for statement in loop.body for part in walk(statement)]
    if not launches or not all(_is_alike(part) or _is_beside(part, loop, ctx) for part in body):
        return 0
    return launches


def _is_group(over: ast.expr, ctx: FileFacts) -> bool:
    """`group["params"]`, by that name or another."""
    return any(
        isinstance(origin, ast.Subscript)
        and isinstance(origin.slice, ast.Constant)
        and origin.slice.value == "params"
        and not isinstance(origin.value, ast.Subscript)  # `self.param_groups[0]["params"]`: who has but one tensor
        for origin in (over, *ctx.inference.origins(over))
    )


def _is_optimizer(cls: ast.ClassDef, ctx: FileFacts) -> bool:
    bases = ctx.program.resolver.base_names(Ref(CLASS, ctx.path, ctx.tree.qualname(cls)))
    return any(base == "torch.optim.Optimizer" or makes_optimizer(base) for base in bases)


def _is_alike(part: ast.AST) -> bool:
    """Whether a part of the body treats each parameter as the others, element by element."""
    if isinstance(part, ast.Call):
        name = callee_name(part)
        return name.removesuffix("_") in _ARITHMETIC | _MOVES or name in _BESIDES
    if isinstance(part, (ast.If, ast.IfExp)):
        return not any(last_name(inner) in _OF_SHAPES for inner in walk(part.test))
    if isinstance(part, ast.BinOp):
        return not isinstance(part.op, ast.MatMult)
    return not isinstance(part, (ast.For, ast.While, ast.Break, ast.Return, ast.Await, ast.Yield))


def _is_beside(part: ast.AST, loop: ast.For, ctx: FileFacts) -> bool:
    """Whether a call clips the gradient of one parameter, as `torch._foreach_norm` does for a list, or is given nothing
    of the parameter: what it computes are numbers of the host, such as the rate of a schedule.
    """
    if not isinstance(part, ast.Call):
        return False
    if ctx.is_call_of(part, *_CLIPS):
        return True
    target = ctx.target(part.func) or ""
    if target.startswith("torch.") or ctx.text(part.func).startswith(("self.", "super()")):
        return False
    counts = {key for statement in loop.body for key in _counts(statement)}
    return _names_of_parameter(loop, counts).isdisjoint(_names_read(part, counts))


def _counts(statement: ast.stmt) -> Iterator[str]:
    """The keys of states that hold a number: `state["step"] = 0`."""
    for part in walk(statement):
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant):
            yield from (key for target in part.targets if (key := _key(target)))


def _key(node: ast.AST) -> str:
    is_entry = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    return str(node.slice.value) if is_entry else ""  # type: ignore[attr-defined]


def _names_of_parameter(loop: ast.For, counts: Container[str]) -> set[str]:
    """The loop's names, and those that hold what is computed of them, but for numbers."""
    found = {part.id for part in walk(loop.target) if isinstance(part, ast.Name)}
    for statement in loop.body:
        for part in walk(statement):
            targets = part.targets if isinstance(part, ast.Assign) else []
            if isinstance(part, (ast.AnnAssign, ast.AugAssign)):
                targets = [part.target]
            if targets and part.value is not None and not found.isdisjoint(_names_read(part.value, counts)):  # type: ignore[attr-defined]
                found |= {name.id for target in targets for name in walk(target) if isinstance(name, ast.Name)}
    return found


def _names_read(node: ast.AST, counts: Container[str]) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    if _key(node) not in counts:
        for part in children(node):
            yield from _names_read(part, counts)


def _always_run(block: list[ast.stmt]) -> list[ast.AST]:
    """What a block runs for each parameter that has a gradient, but for what options and first steps ask for."""
    found: list[ast.AST] = []
    for statement in block:
        if isinstance(statement, ast.With):
            found += _always_run(statement.body)
        elif isinstance(statement, ast.If):
            # `if p.grad is not None:` around all of it
            found += _always_run(statement.body) if _asks_for_gradient(statement.test) else []
        elif not isinstance(statement, ast.Raise):
            found += walk(statement)
    return found


def _asks_for_gradient(test: ast.expr) -> bool:
    is_negative = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot)
    return is_negative and any(last_name(part) in ("grad", "requires_grad") for part in walk(test))


def _is_launch(part: ast.AST) -> bool:
    """A method or a function of torch that computes: arithmetic by operators may be of numbers alone."""
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute):
        return False
    owner = part.func.value
    is_of_host = isinstance(owner, ast.Name) and owner.id == "math"
    return not is_of_host and part.func.attr.removesuffix("_") in _ARITHMETIC
