"""What a counter-example is: a program in which a fix is safe, and the conditions under which it is not."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SILENT", "STEP", "Condition", "Program"]

#: In place of a reason: nothing is reported, so nothing is offered.
SILENT = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """`old` in the program becomes `new`; `reason` is a part of what the fix then says, or `SILENT`."""

    why: str
    old: str
    new: str
    reason: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program with one finding, whose fix is safe."""

    text: str
    conditions: tuple[Condition, ...]


#: How a step ends.
STEP = """
        optimizer.step()
        optimizer.zero_grad()
"""
