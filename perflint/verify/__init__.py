"""Measuring whether a rewrite pays. The only part that runs the code it is given, and only what was asked for.

From the bottom up: `contract` says what a rule's micro-benchmark is; `worker`, `trial`, `device` and `outcome` are the
inside of the processes in which trials run; `launch` and `command` start and end those processes; `measuring` takes
turns and judges with `statistics`; `benchmarks` and `fixes` are the workloads; `results`, `tables`, `plot` and
`evidence` are what comes out. Nothing here imports torch in perflint's own process.
"""

from __future__ import annotations

from perflint.verify.choice import Choice, LeftOut, choose

__all__ = ["Choice", "LeftOut", "choose"]
