"""What is the loss of a step of training, though nothing else is known of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.waits.accelerators import uses_accelerator
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk

#: Methods of a tensor that give a tensor on the same device.
_KEEPS_DEVICE = frozenset("detach mean sum clone float double view reshape squeeze".split())
_BACKWARD = ("backward", "manual_backward")
#: How far a loss is followed from what is back-propagated.
_LINKS = 3
_LOSS_MAKERS = ("loss", "criterion", "objective", "model", "net", "compute_loss", "loss_fn", "module", "engine")


def is_loss(value: ast.expr, ctx: FileFacts) -> bool:
    """Whether something unknown is the loss of a step: back-propagated here, a part or a sum of what is, or made by a
    criterion and named so.
    """
    value = without_reductions(value)
    if is_propagated(value, ctx):
        return True
    if not isinstance(value, (ast.Name, ast.Attribute)) or not uses_accelerator(ctx):
        return False
    if "loss" not in ctx.text(value).rpartition(".")[2].lower():
        return False
    for origin in ctx.inference.origins(value):
        maker = without_reductions(origin.value if isinstance(origin, ast.Attribute) else origin)
        if not isinstance(maker, ast.Call) or not _makes_loss(maker):
            return False
    return True


def is_propagated(value: ast.expr, ctx: FileFacts) -> bool:
    """Whether a value is back-propagated in its function, or is a part or a sum of what is: it is one number."""
    if not isinstance(value, (ast.Name, ast.Attribute)) or not uses_accelerator(ctx):
        return False
    return ctx.text(value) in ctx.once(_losses, ctx.tree.function_of(value) or ctx.tree.module)


def without_reductions(value: ast.expr) -> ast.expr:
    """`loss` of `loss.detach().mean()`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and callee_name(value) in _KEEPS_DEVICE:
        value = value.func.value
    return value


def _makes_loss(call: ast.Call) -> bool:
    name = callee_name(call).strip("_").lower()
    return name.endswith(_LOSS_MAKERS) or name.startswith("criterion")


def _losses(function: ast.AST, ctx: FileFacts) -> set[str]:
    """What is back-propagated in a function, with the parts and the sums of it that are called so."""
    nodes = list(walk(function))
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _BACKWARD:
            scaled = node.func.value.args if isinstance(node.func.value, ast.Call) else ()
            found.update(ctx.text(part) for part in (node.func.value, *node.args, *scaled))
    if not found:
        return found
    sums = [
        (ctx.text(target), {ctx.text(part) for part in _terms(node.value)})
        for node in nodes
        if isinstance(node, (ast.Assign, ast.AugAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    for _ in range(_LINKS):
        for target, terms in sums:
            if target in found:
                found.update(term for term in terms if "loss" in term.lower())
            elif "loss" in target.lower() and terms & found:
                found.add(target)
    return found


def _terms(value: ast.expr) -> Iterator[ast.expr]:
    """The names that a value is computed from without leaving the device: `a` and `b` of `a.detach() + b * 2`."""
    value = without_reductions(value)
    if isinstance(value, ast.BinOp):
        yield from _terms(value.left)
        yield from _terms(value.right)
    elif isinstance(value, (ast.Name, ast.Attribute)):
        yield value
