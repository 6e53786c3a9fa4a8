"""Matrices that are multiplied out late: which methods of linear_operator, whose matrices gpytorch works with, make a
tensor of the device of a Python number that they are given.

Read in the sources of linear_operator 0.6 (`operators/_linear_operator.py`: `mul`, `div`, `add_jitter`).
"""

from __future__ import annotations

from collections.abc import Mapping

LIBRARIES = ("linear_operator", "gpytorch")
#: What to call with a tensor instead.
COPYING_METHODS: Mapping[str, str] = {"add_jitter": "add_diagonal", "mul": "mul"}
#: Those of them that no tensor has.
OWN_METHODS = frozenset({"add_jitter"})
#: What they add where they are given nothing.
JITTER = "1e-3"
