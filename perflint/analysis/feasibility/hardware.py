"""Tests that ask what the machine is, not what the user wants: whether there is a device, how many processes."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.phases.loop_purpose import names_in
from perflint.ir.callees import last_name as last_of
from perflint.ir.control_flow import Inherited
from perflint.ir.notation import last_name
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

_ASKS = frozenset(
    "is_available is_initialized is_cuda is_built device_count get_world_size get_rank current_device "
    "is_torch_npu_available is_bf16_supported get_device_capability".split()
)
#: Attributes of devices and of what frameworks know of processes.
_ATTRIBUTES = frozenset({"is_cuda", "type", "num_processes", "world_size", "local_rank"})


def asks_hardware(test: ast.expr, ctx: FileFacts, depth: int = 3) -> bool:
    """Whether a test comes out by the machine alone, also by way of names: `dp_on = torch.cuda.device_count() > 1`."""
    if isinstance(test, ast.Constant):
        return True
    if isinstance(test, ast.UnaryOp):
        return asks_hardware(test.operand, ctx, depth)
    if isinstance(test, ast.BoolOp):
        return all(asks_hardware(item, ctx, depth) for item in test.values)
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        return not all(isinstance(side, ast.Constant) for side in sides) and all(
            asks_hardware(side, ctx, depth) for side in sides
        )
    if isinstance(test, ast.Call):
        return last_name(test.func) in _ASKS or ctx.target(test.func) in tensors.NUMBER_FUNCTIONS
    if depth and isinstance(test, ast.Name):
        origins = ctx.inference.origins(test)
        return bool(origins) and all(
            item is not test and not isinstance(item, ast.Constant) and asks_hardware(item, ctx, depth - 1)
            for item in origins
        )
    return isinstance(test, ast.Attribute) and (test.attr in _ATTRIBUTES or _is_attribute_of_hardware(test, ctx))


def _is_attribute_of_hardware(test: ast.Attribute, ctx: FileFacts) -> bool:
    """`self.on_gpu`, where the constructor has `self.on_gpu = torch.cuda.is_available()`."""
    if not (isinstance(test.value, ast.Name) and test.value.id == "self"):
        return False
    cls = ctx.summary.classes.get(ctx.facts(test).in_class)
    values = cls.attributes.get(test.attr, ()) if cls is not None else ()
    return bool(values) and all(
        isinstance(value, tuple) and value[0] == "call" and last_of(value[1]) in _ASKS for value, _ in values
    )


def is_on_a_mac(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether `node` only runs where Metal is there: `if torch.backends.mps.is_available()`."""
    return ctx.once(_metal, ctx.control_flow(node).scope).holds(node)


def _metal(scope: ast.AST, ctx: FileFacts) -> Inherited:
    body = scope.body  # type: ignore[attr-defined]
    graph = ctx.control_flow(body[0] if isinstance(body, list) else body)
    return Inherited(graph, lambda condition: condition[1] and _asks_for_metal(condition[0]))


def _asks_for_metal(test: ast.expr) -> bool:
    """Whether a test asks for Metal alone, and not for any device, or for its absence."""
    names = set(names_in(test))
    turned = any(isinstance(getattr(part, "op", None), (ast.Or, ast.Not)) for part in walk(test))
    return "mps" in names and not turned
