"""Measuring whether a rewrite pays. The only part that runs the code it is given, and only what was asked for.

From the bottom up: `contract` says what a rule's micro-benchmark is; `worker`, `trial`, `usercode`, `device` and
`outcome` are the inside of the processes in which trials run; `processes` and `launch` start and end those processes;
`measuring` takes turns and `judging` judges; `benchmarks` are the first workload, `fixtrials` tries fixes in copies of
the tree (`overlay`) under the two others, a callable of the user's or a `command`, and `choice` says which to keep;
`results`, `tables`, `plot` and `evidence` are what comes out. `selftest` measures the measuring. Nothing here imports
torch in perflint's own process.
"""

from __future__ import annotations

from perflint.verify.choice import Choice, LeftOut, choose

__all__ = ["Choice", "LeftOut", "choose"]
