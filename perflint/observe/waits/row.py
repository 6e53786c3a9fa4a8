"""One row of the table of waits: an operation, a condition, and what the host does then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflint.observe.trace import Kind

#: Where PyTorch's sources are; a row's source is a path below, a page of documentation has its whole address.
PYTORCH = "https://github.com/pytorch/pytorch/blob/main/"
NATIVE = "aten/src/ATen/native/"
CUDA = NATIVE + "cuda/"

Arguments = Sequence[Any]
Keywords = Mapping[str, Any]
Condition = Callable[[Arguments, Keywords], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """What one operation does to the host under one condition.

    `operation` is the dispatcher's name without overload, or a Python function's for what never comes to the
    dispatcher. `condition` is for readers, `holds` decides (None: always).
    `example` are statements that make exactly this happen; they may use `torch`, `x` (float32, 4 by 4, on the
    device), `n` (int64, 8, on the device), `mask` (4 by 4, on the device, two set) and `host` (float32, pageable).
    """

    operation: str
    condition: str
    waits: bool
    kind: Kind
    source: str
    example: str
    holds: Condition | None = None
    #: The function in the source, where it is not plain from the operation's name.
    function: str = ""
    #: How often the host waits in one call.
    times: int = 1
