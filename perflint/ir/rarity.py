"""Names of the guards that make code rarer than the loop around it, and which of several counts."""

from __future__ import annotations

from collections.abc import Sequence

#: Once every N turns: `step % n == 0`, `should_log`, `time.time() - last > 5`.
PERIODIC = "periodic"
#: Once per optimizer step of an accumulating loop: `(step + 1) % accumulation == 0`.
ACCUMULATION = "accumulation"
#: Once per pass of the loop: `i == 0`, `step == last`.
FIRST = "first"
#: Once in the object's life: `if self._cache is None`.
LAZY = "lazy"
#: Only when something went wrong or got better, or under a debugging switch.
RARE = "rare"

#: Only in evaluation: the other side of `if model.training`.
EVALUATION = "evaluation"

#: Once per pass of the innermost loop, as its counter says; that loop may itself run in each step.
TURN = "turn"
#: Once per pass of the loop as well: the block ends by leaving the loop.
LEAVES = "leaves"

_COLDEST_FIRST = (RARE, LAZY, FIRST, EVALUATION, PERIODIC, ACCUMULATION)


def coldest(kinds: Sequence[str | None]) -> str | None:
    return next((kind for kind in _COLDEST_FIRST if kind in kinds), None) if any(kinds) else None


def hottest(kinds: Sequence[str | None]) -> str | None:
    return next((kind for kind in reversed(_COLDEST_FIRST) if kind in kinds), None)
