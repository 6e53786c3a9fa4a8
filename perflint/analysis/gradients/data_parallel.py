"""Whether `DataParallel` copies a model that is trained, on several devices, and not because a user chose so."""

from __future__ import annotations

import ast

from perflint.analysis.feasibility.hardware import asks_hardware
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import CLASS, Scope
from perflint.analysis.naming.models import DATA_PARALLEL
from perflint.analysis.naming.phases import WITHOUT_TRAINING
from perflint.finding import Confidence
from perflint.ir.calls import argument, callee_name
from perflint.ir.notation import last_name
from perflint.ir.summary import CallFacts
from perflint.syntax.walk import walk
from perflint.torch_model import distributed
from perflint.torch_model.names import canonical

#: What a module hands itself back from, and what else of it runs no forward.
_ITSELF = frozenset("to cuda cpu float half double bfloat16 type eval train requires_grad_ apply".split())
_NO_FORWARD = frozenset(
    "module load_state_dict state_dict parameters named_parameters buffers named_buffers modules named_modules "
    "children named_children zero_grad training device_ids".split()
)
_OF_PROCESSES = (*distributed.DISTRIBUTED_DATA_PARALLEL, *distributed.FULLY_SHARDED)


def is_data_parallel(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call makes torch's wrapper, or one of a class of the project that derives from it."""
    if ctx.is_call_of(node, *distributed.DATA_PARALLEL):
        return True
    if (ctx.target(node.func) or "").rpartition(".")[2] in distributed.DERIVED_DATA_PARALLEL:
        return True
    cls = ctx.project_target(node.func)
    return (
        cls is not None
        and cls.kind == CLASS
        and not distributed.DATA_PARALLEL.isdisjoint(map(canonical, ctx.program.resolver.base_names(cls)))
    )


def has_process_for_each(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether another branch of the function puts the same model, or what it is a part of, under a wrapper of one
    process per device: who starts it with a launcher gets that. Not where a user asks this process for several devices
    by an option of its own, whatever a launcher says: beside such a test there is no other branch.
    """
    wrapped = argument(node, 0, "module")
    name = _root(wrapped)
    if not name:
        return False
    asked = _test_of_count(node, ctx)
    for part in walk(ctx.tree.scope_of(node)):
        if isinstance(part, ast.Call) and part is not node and ctx.is_call_of(part, *_OF_PROCESSES):
            given = argument(part, 0, "module")
            if _root(given) == name and (asked is None or any(test is asked for test, _ in ctx.conditions(part))):
                return True
    return False


def _root(node: ast.expr | None) -> str:
    """`model` of `model.features` and of `model.to(device)`; `self.model` of an attribute of an object's own."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    names: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return f"self.{names[-1]}" if node.id == "self" and names else node.id


def trains_wrapped(node: ast.Call, ctx: FileFacts) -> Confidence | None:
    """How sure it is that what is wrapped is trained: by the function around, one that calls it, or its file."""
    scope, function = ctx.scope(node), ctx.tree.function_of(node)
    if ctx.program.trains(scope):
        return Confidence.HIGH
    if function is not None and WITHOUT_TRAINING.search(function.name):
        return None
    if ctx.grad_off(node):
        return None
    callers, seen = [scope], {scope}
    for _ in range(3):
        callers = [edge.caller for each in callers for edge in ctx.program.callers(each) if edge.caller not in seen]
        seen.update(callers)
        if any(ctx.program.trains(caller) for caller in callers):
            return Confidence.HIGH
    if any(ctx.program.trains(Scope(ctx.path, name)) for name in ctx.summary.functions):
        return Confidence.HIGH
    return None


def runs_forward(wrapped: ast.expr, ctx: FileFacts) -> bool:
    """Whether a forward may go through what is wrapped: it is called, or goes where nobody follows it. Not where it is
    only unwrapped again: `model.load_state_dict(saved)` and `model = model.module`.
    """
    return _runs(wrapped, ctx, {wrapped})


def _runs(value: ast.expr, ctx: FileFacts, seen: set[ast.expr]) -> bool:
    outer = ctx.tree.parent(value)
    if isinstance(outer, ast.Expr):
        return False
    if isinstance(outer, ast.Attribute):
        if outer.attr in _NO_FORWARD:
            return False
        call = ctx.tree.parent(outer)
        is_called = isinstance(call, ast.Call) and call.func is outer
        return outer.attr not in _ITSELF or not isinstance(call, ast.Call) or not is_called or _runs(call, ctx, seen)
    target = outer.targets[0] if isinstance(outer, ast.Assign) and len(outer.targets) == 1 else None
    made = ctx.inference.flow.definition_at(target) if isinstance(target, ast.Name) else None
    if made is None or made.path:
        return True
    if any(isinstance(part, ast.Global) and made.name in part.names for part in ctx.walk(ctx.tree.scope_of(value))):
        return True
    uses = [use for use in ctx.inference.flow.uses_of(made) if use not in seen]
    seen.update(uses)
    return any(_runs(use, ctx, seen) for use in uses)


def copies_module(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a wrapper copies the module to several devices: not to one, not where there is none, not in dead code."""
    if _is_without_device(node, ctx) or _has_one_device(node):
        return False
    return ctx.control_flow(node).block_of(node) is not None  # not under `if False:`


def _has_one_device(node: ast.Call) -> bool:
    """`device_ids=[0]`: then the wrapper calls the module as it is."""
    devices = argument(node, 1, "device_ids")
    return isinstance(devices, (ast.List, ast.Tuple)) and len(devices.elts) == 1


def option_of_several(node: ast.Call, ctx: FileFacts) -> str:
    """The option by which a user gives a wrapper several devices, where it is one by default; empty where none is."""
    devices = argument(node, 1, "device_ids")
    name = last_name(devices).strip("_") if isinstance(devices, (ast.Name, ast.Attribute)) else ""
    defaults = ctx.program.whole.option_defaults(name, ctx.path) if name else ()
    if defaults and all(isinstance(item, tuple) and len(item) == 1 for item in defaults):
        return name
    asked = _test_of_count(node, ctx)
    return last_name(asked.left) if asked is not None else ""


def _test_of_count(node: ast.Call, ctx: FileFacts) -> ast.Compare | None:
    """`args.num_gpu > 1` around a wrapper, where the option of a command line is one device, or none, by default."""
    for test, holds in ctx.conditions(node):
        if not holds or not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Gt, ast.GtE)):
            continue
        if isinstance(test.left, (ast.Name, ast.Attribute)) and isinstance(test.comparators[0], ast.Constant):
            defaults = ctx.program.whole.option_defaults(last_name(test.left), ctx.path)
            if defaults and all(type(item) is int and item <= 1 for item in defaults):
                return test
    return None


def _is_without_device(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether it stands where `torch.cuda.is_available()` is false: the wrapper calls the module as it is."""
    return any(
        not holds and isinstance(test, ast.Call) and callee_name(test) == "is_available"
        for test, holds in ctx.conditions(node)
    )


def is_offered(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a test around it is there for it, or a class that is one of several ways to run: a user has chosen it.
    That a function says in its name what it does tells nothing of who calls it.
    """
    if DATA_PARALLEL.search(ctx.facts(node).in_class):
        return True
    asked = (test for test, _ in ctx.conditions(node) if DATA_PARALLEL.search(ctx.text(test)))
    return any(not asks_hardware(test, ctx) and not _is_written_by_callers(test, ctx) for test in asked)


def _is_written_by_callers(test: ast.expr, ctx: FileFacts) -> bool:
    """Whether the code decides a test, and no user: a parameter that each call gives as a literal, or leaves out."""
    scope = ctx.scope(test)
    params = {param.name.lstrip("="): param.default for param in ctx.program.function(scope).params}
    if not isinstance(test, ast.Name) or test.id not in params:
        return False
    edges = [edge for edge in ctx.program.callers(scope) if not ctx.program.never_runs(edge.caller)]
    if any(edge.index < 0 or _unpacks(ctx.program.function(edge.caller).calls[edge.index]) for edge in edges):
        return False
    given = [ctx.program.argument(edge, test.id) for edge in edges]
    values = [params[test.id] if value is None else value for value in given]
    written = [isinstance(value, tuple) and value[:2] == ("const", "bool") for value in values]
    return bool(written) and all(written) and any(value is not None and value[2] is True for value in values)


def _unpacks(call: CallFacts) -> bool:
    """Whether a call may give more than it writes out."""
    return any(not key for key, _ in call.keywords)
