"""Rules with safe fixes: a program in which the fix is safe, and each condition under which it is not.

A condition is a change of that program, so that nothing but the condition can be the reason. What is listed as
`SILENT` is not reported at all once the condition holds.
"""

from __future__ import annotations

import conditions_of_data
import conditions_of_models
from conditions import SILENT, Condition, Program

__all__ = ["ALWAYS_UNSAFE", "RULES", "SILENT", "Condition", "Program"]

RULES: dict[str, Program] = {**conditions_of_data.RULES, **conditions_of_models.RULES}

#: Rules whose fixes RULES never calls safe: whatever the conditions, they are a person's choice.
ALWAYS_UNSAFE = frozenset(
    "TPL103 TPL104 TPL106 TPL116 TPL201 TPL202 TPL204 TPL205 TPL209 TPL210 TPL303 TPL304 TPL307 TPL309 TPL310 TPL312 "
    "TPL313 TPL314 TPL315 TPL316 TPL317 TPL402 TPL502 TPL504 TPL605 TPL607 TPL609 TPL610 TPL618 TPL702 TPL703 TPL704 "
    "TPL706 TPL806 TPL901 TPL903".split()
)
