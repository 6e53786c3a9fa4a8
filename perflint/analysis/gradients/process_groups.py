"""Which library moves what the processes of a training share: the backend of their group, and who chooses it."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import argument
from perflint.syntax.walk import walk

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
    return ctx.program.whole.process_groups > 1 or any(
        isinstance(part, (ast.Attribute, ast.Name)) and ctx.target(part) in _MACHINES | _ASKS_DEVICES
        for test, _ in ctx.conditions(call)
        for part in walk(test)
    )
