"""What a whole program says of its processes: how many groups of them it sets up, and whether they share gradients of
GPUs. Told without a file at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from perflint.analysis.names.refs import Scope
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts
from perflint.torch_model import distributed
from perflint.torch_model.names import canonical

if TYPE_CHECKING:
    from perflint.analysis.program import Program

_WRAPPER, _SETS_UP = "DistributedDataParallel", "init_process_group"
_NOTHING = (("const", "NoneType", None), ("seq", ()))


def process_groups(program: Program) -> int:
    """How many calls of a program, outside its tests, set up a group of processes."""
    return sum(last_name(call.func) == _SETS_UP for _, call in _calls_in_files_with(_SETS_UP, program))


def reduces_on_gpus(program: Program) -> bool:
    """Whether the program wraps a module for the device of each process: `DistributedDataParallel(device_ids=...)`."""
    return any(
        _is_for_a_device(call) and _is_wrapper(call, scope, program)
        for scope, call in _calls_in_files_with(_WRAPPER, program)
    )


def _calls_in_files_with(word: str, program: Program) -> Iterator[tuple[Scope, CallFacts]]:
    for path, summary in program.summaries.items():
        if path not in program.resolver.tests and program.mentions({word}, (path,)):
            for name, facts in summary.functions.items():
                yield from ((Scope(path, name), call) for call in facts.calls)


def _is_for_a_device(call: CallFacts) -> bool:
    given = dict(call.keywords).get("device_ids", call.args[1] if len(call.args) > 1 else _NOTHING[0])
    return given not in _NOTHING


def _is_wrapper(call: CallFacts, scope: Scope, program: Program) -> bool:
    return isinstance(call.func, str) and any(
        canonical(ref.name) in distributed.DISTRIBUTED_DATA_PARALLEL for ref in program.refs(call.func, scope)
    )
