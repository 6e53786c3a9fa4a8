"""Evaluation that may come back to itself: every question is answered once, and every answer comes to an end."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import ParamSpec, TypeVar

from perflint.kinds.kind import NEVER, UNKNOWN, Kind

#: Evaluations for one question. Beyond them the answer is unknown: code that needs more is not plain to see. (Half as
#: many lost two findings in 163 trees, a quarter as many two in speechbrain alone.)
_BUDGET = 2_000
_NOWHERE = 1 << 30
_Key = TypeVar("_Key", bound=Hashable)
_Given = ParamSpec("_Given")


class Guard:
    """What asks for itself on the way to its answer gets `NEVER`, which adds nothing to a join."""

    def __init__(self) -> None:
        self._active: dict[Hashable, int] = {}
        self._waiting: dict[Hashable, tuple[Kind, int]] = {}
        self._trail: list[Hashable] = []
        self._lowest = _NOWHERE
        self._spent = 0

    def restart(self) -> None:
        """A new question has a new budget. Questions asked while another is being answered share its."""
        if not self._active:
            self._spent = 0

    def abandon(self) -> None:
        """After an error nothing is being evaluated any more."""
        self._active.clear()
        self._waiting.clear()
        self._trail.clear()
        self._lowest = _NOWHERE

    @property
    def position(self) -> int:
        """Of the evaluation at work."""
        return max(len(self._active) - 1, 0)

    def lean(self, position: int) -> None:
        """What is being answered was cut short because of an evaluation further out, and holds only until that ends."""
        self._lowest = min(self._lowest, position)

    def once(
        self,
        key: Hashable,
        memo: dict[_Key, Kind],
        memo_key: _Key,
        evaluate: Callable[_Given, Kind],
        *args: _Given.args,
        **keywords: _Given.kwargs,
    ) -> Kind:
        """The answer to `key`, `evaluate(*args)`, kept under `memo_key` once it leans on nothing that is still worked
        out. It is not there yet.
        """
        waiting = self._waiting.get(key)
        if waiting is not None:
            self._lowest = min(self._lowest, waiting[1])
            return waiting[0]
        position = self._active.get(key)
        if position is not None:
            self._lowest = min(self._lowest, position)
            return NEVER
        self._spent += 1
        if self._spent > _BUDGET:
            return UNKNOWN
        position = len(self._active)
        mark = len(self._trail)
        outer, self._lowest = self._lowest, _NOWHERE
        self._active[key] = position
        try:
            found = evaluate(*args, **keywords)
        finally:
            self._active.pop(key, None)
        if self._lowest >= position:
            if len(self._trail) > mark:
                self._settle(mark)
            if self._spent <= _BUDGET:
                memo[memo_key] = found
            self._lowest = outer
        else:
            # It leans on an evaluation still going on, and is right only until that one is done.
            self._waiting[key] = (found, self._lowest)
            self._trail.append(key)
            self._hand_up(mark, position)
            self._lowest = min(self._lowest, outer)
        return found

    def _hand_up(self, mark: int, position: int) -> None:
        """What leaned on the evaluation that just ended leans on what that one leans on."""
        for key in self._trail[mark:]:
            found, lowest = self._waiting[key]
            if lowest >= position:
                self._waiting[key] = (found, self._lowest)

    def _settle(self, mark: int) -> None:
        """Forget the answers that leaned on one that is now known."""
        for key in self._trail[mark:]:
            del self._waiting[key]
        del self._trail[mark:]
