"""`Effects`: what running a function does beside giving a value, with the places that do it. Plain data."""

from __future__ import annotations

from typing import NamedTuple

from perflint.analysis.names.refs import Scope
from perflint.torch_model.effects import Effect

__all__ = ["NOTHING", "Effect", "Effects", "Kept", "Witness"]


class Witness(NamedTuple):
    """The nearest place at which a function has an effect: at `path`, `line` by a call of `text`, `depth` calls below.
    `at` is the line in the function itself, `via` the function that is called there, None where the place is its own.
    """

    effect: Effect
    depth: int
    path: str
    line: int
    text: str
    at: int
    via: Scope | None


class Kept(NamedTuple):
    """A parameter that is put into what outlives the call: `how` it is ("append", "sum", "item", "set", ...) and
    `into` what: `self.items`, another parameter, or `<name>` of what stands outside of all functions.
    """

    param: str
    how: str
    into: str
    depth: int
    path: str
    line: int


class Effects(NamedTuple):
    """Of one function, or of one call.

    `may` has one witness for each effect that some run of it has; `must` are those that every run has that does not end
    by an error. `keeps`, `writes`, `trains` and `returns` are parameters: kept, written into, run as a module whose
    result is walked back, handed back.
    """

    may: tuple[Witness, ...] = ()
    must: tuple[Effect, ...] = ()
    keeps: tuple[Kept, ...] = ()
    writes: tuple[str, ...] = ()
    trains: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()

    def does(self, *effects: Effect) -> bool:
        """Whether some run has one of the effects."""
        return any(witness.effect in effects for witness in self.may)

    def surely(self, effect: Effect) -> bool:
        """Whether every run has the effect."""
        return effect in self.must

    def witness(self, effect: Effect) -> Witness | None:
        """The nearest place that has the effect."""
        return next((witness for witness in self.may if witness.effect is effect), None)


NOTHING = Effects()
