"""Which library moves what the processes of a training share: the backend of their group, and where the tensors are."""

from __future__ import annotations

import ast

from perflint.analysis.evidence import last_name
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.ir.calls import argument
from perflint.ir.summary import CallFacts
from perflint.syntax.walk import walk
from perflint.torch_model import distributed
from perflint.torch_model.names import canonical

_WRAPPER = "DistributedDataParallel"
_NOTHING = (("const", "NoneType", None), ("seq", ()))
#: What tells platforms and machines apart, some of which have no other backend.
_MACHINES = frozenset({"sys.platform", "os.name", "platform.system", "platform.platform"})
_ASKS_DEVICES = frozenset({"torch.cuda.is_available", "torch.distributed.is_nccl_available", "torch.cuda.device_count"})


def gloo_backend(call: ast.Call) -> ast.Constant | None:
    """The name of the backend where it is written out and is gloo's."""
    given = argument(call, 0, "backend")
    if not isinstance(given, ast.Constant) or not isinstance(given.value, str):
        return None
    return given if given.value.lower() == "gloo" else None


def is_chosen(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the program sets up another group elsewhere, or asks the machine before this one."""
    program = ctx.program
    paths = [path for path in sorted(program.summaries) if path not in program.resolver.tests]
    found = [
        made
        for path in paths
        if program.mentions({"init_process_group"}, (path,))
        for facts in program.summaries[path].functions.values()
        for made in facts.calls
        if last_name(made.func) == "init_process_group"
    ]
    return len(found) > 1 or any(
        isinstance(part, (ast.Attribute, ast.Name)) and ctx.target(part) in _MACHINES | _ASKS_DEVICES
        for test, _ in ctx.conditions(call)
        for part in walk(test)
    )


def reduces_on_gpus(program: Program) -> bool:
    """Whether the program wraps a module for the device of each process: `DistributedDataParallel(device_ids=...)`."""
    paths = [path for path in sorted(program.summaries) if program.mentions({_WRAPPER}, (path,))]
    return any(
        _is_for_a_device(call) and _is_wrapper(call, Scope(path, name), program)
        for path in paths
        if path not in program.resolver.tests
        for name, facts in program.summaries[path].functions.items()
        for call in facts.calls
    )


def _is_for_a_device(call: CallFacts) -> bool:
    given = dict(call.keywords).get("device_ids", call.args[1] if len(call.args) > 1 else _NOTHING[0])
    return given not in _NOTHING


def _is_wrapper(call: CallFacts, scope: Scope, program: Program) -> bool:
    return isinstance(call.func, str) and any(
        canonical(ref.name) in distributed.DISTRIBUTED_DATA_PARALLEL for ref in program.refs(call.func, scope)
    )
