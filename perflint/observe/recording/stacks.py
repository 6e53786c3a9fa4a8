"""Where an operation happened: the project's innermost expression, and the stack that led there.

A stack is looked at whole once, and found again by the code and the instruction of each of its frames.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

from perflint.observe.trace import Frame, Phase, Site

#: Beyond so many different stacks, all are forgotten and found anew.
_STACKS = 200_000
_OWN = str(Path(__file__).resolve().parents[2]) + os.sep
_LIBRARIES = ("site-packages", "dist-packages")
#: Library frames below the project's that are kept: the outermost ones say which call it was.
_LIBRARY_FRAMES = 12


@dataclass(frozen=True, slots=True)
class Place:
    """What a stack says.

    `site` is an index into `Stacks.sites`. `own_backward`: frames of Python run
    inside the backward pass, and the place is theirs (a custom function, a hook, a recomputed block).
    """

    site: int
    phase: Phase
    own_backward: bool = False


@dataclass
class Stacks:
    """Places of stacks. `root` is the folder that paths are relative to; `project` are folders that are the user's own
    even where they are installed.
    """

    root: Path
    project: Sequence[Path] = ()
    sites: list[Site] = field(default_factory=list)
    _places: dict[tuple[int, ...], Place] = field(default_factory=dict)
    _numbers: dict[Site, int] = field(default_factory=dict)
    #: Keeps code alive whose identity is part of a key.
    _codes: dict[int, CodeType] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    _standard: str = field(default_factory=lambda: os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep)

    def at(self, frame: FrameType | None) -> Place:
        """The place of a frame and all that called it."""
        key = []
        here = frame
        while here is not None:
            key.append(id(here.f_code))
            key.append(here.f_lasti)
            here = here.f_back
        stack = tuple(key)
        place = self._places.get(stack)
        if place is None:
            if len(self._places) > _STACKS:
                self._places.clear()
            place = self._places[stack] = self._look(frame)
        return place

    def owner(self, filename: str) -> str:
        """`project`, `library`, or `tool` for perflint's own frames."""
        owner = self._owners.get(filename)
        if owner is None:
            owner = self._owners[filename] = self._owner(filename)
        return owner

    def shown(self, filename: str) -> str:
        """A file's path as findings have it: from the root, with forward slashes."""
        path = Path(os.path.realpath(filename))
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()

    def _owner(self, filename: str) -> str:
        if filename.startswith("<"):
            return "library"
        path = os.path.realpath(filename)
        if path.startswith(_OWN):
            return "tool"
        if any(Path(path).is_relative_to(folder) for folder in self.project):
            return "project"
        if any(part in _LIBRARIES for part in Path(path).parts) or path.startswith(self._standard):
            return "library"
        return "project"

    def _look(self, frame: FrameType | None) -> Place:
        frames: list[FrameType] = []
        while frame is not None:
            self._codes[id(frame.f_code)] = frame.f_code
            if self.owner(frame.f_code.co_filename) != "tool":
                frames.append(frame)
            frame = frame.f_back
        owners = [self.owner(one.f_code.co_filename) for one in frames]
        innermost = owners.index("project") if "project" in owners else None
        engine = next((at for at, one in enumerate(frames) if _runs_backward(one.f_code)), None)
        own_backward = engine is not None and innermost is not None and innermost < engine
        phase = _phase(
            frames if engine is None or not own_backward else frames[:engine], in_backward=engine is not None
        )
        if innermost is None:
            # A thread of a library's own: its innermost frame says most.
            return Place(self._site(frames, owners, 0) if frames else self._number(Site("", 1, 1, 1, 1)), phase)
        return Place(self._site(frames, owners, innermost), phase, own_backward)

    def _site(self, frames: Sequence[FrameType], owners: Sequence[str], innermost: int) -> int:
        calls = [one for one, owner in zip(frames[innermost:], owners[innermost:]) if owner == "project"]
        stack = [self._frame(one, library=owners[innermost] == "library") for one in reversed(calls or frames[:1])]
        library = [one for one in reversed(frames[:innermost]) if not _is_plumbing(one.f_code)]
        stack.extend(self._frame(one, library=True) for one in library[:_LIBRARY_FRAMES])
        here = frames[innermost]
        line, end_line, column, end_column = _span(here)
        filename = here.f_code.co_filename
        path = self.shown(filename) if owners[innermost] == "project" else _in_library(filename)
        site = Site(path, line, column, end_line, end_column, tuple(stack))
        return self._number(site)

    def _number(self, site: Site) -> int:
        number = self._numbers.get(site)
        if number is None:
            number = self._numbers[site] = len(self.sites)
            self.sites.append(site)
        return number

    def _frame(self, frame: FrameType, *, library: bool) -> Frame:
        filename = frame.f_code.co_filename
        path = _in_library(filename) if library else self.shown(filename)
        return Frame(path, frame.f_lineno or 0, _name(frame.f_code), library)


def _in_library(filename: str) -> str:
    """`torch/optim/adam.py` for a file that is installed, else the path as it is."""
    parts = Path(filename).parts
    for at in range(len(parts) - 1, -1, -1):
        if parts[at] in _LIBRARIES:
            return "/".join(parts[at + 1 :])
    return "/".join(parts[-2:])


def _name(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _span(frame: FrameType) -> tuple[int, int, int, int]:
    """Line, end line, column and end column of the expression that runs, from 1, in characters; ends exclusive."""
    line = frame.f_lineno or 1
    if sys.version_info >= (3, 11):
        from itertools import islice

        positions = next(islice(frame.f_code.co_positions(), _instruction(frame), None), None)
        if positions is not None and None not in positions:
            first, last, column, end_column = positions
            assert first is not None
            assert last is not None
            assert column is not None
            assert end_column is not None
            filename = frame.f_code.co_filename
            return first, last, _characters(filename, first, column), _characters(filename, last, end_column)
    import linecache

    return line, line, 1, len(linecache.getline(frame.f_code.co_filename, line).rstrip("\n")) + 1


def _instruction(frame: FrameType) -> int:
    """The number of the instruction whose place is that of what runs.

    A branch inside `and` and `or` has the place of the first operand: what made the value that it tests stands before.
    """
    import dis

    code, at = frame.f_code.co_code, frame.f_lasti // 2
    if "JUMP" in dis.opname[code[2 * at]]:
        at -= 1
        while at > 0 and dis.opname[code[2 * at]] == "CACHE":
            at -= 1
    return at


def _characters(filename: str, line: int, column: int) -> int:
    """A column in bytes of UTF-8 from 0, as Python has it, in characters from 1."""
    import linecache

    text = linecache.getline(filename, line)
    if text.isascii():
        return column + 1
    return len(text.encode()[:column].decode(errors="replace")) + 1


def _runs_backward(code: CodeType) -> bool:
    return code.co_name == "_engine_run_backward" and code.co_filename.endswith("graph.py")


def _is_plumbing(code: CodeType) -> bool:
    """Frames through which every module call or decorated function goes."""
    return code.co_name in {"_call_impl", "_wrapped_call_impl", "decorate_context", "_fn", "inner"}


def _phase(frames: Sequence[FrameType], *, in_backward: bool) -> Phase:
    for frame in frames:
        code = frame.f_code
        name = code.co_filename.replace(os.sep, "/")
        if "/torch/optim/" in name:
            return "optimizer"
        if "/torch/utils/data/" in name:
            return "data"
        if code.co_name == "_call_impl" and name.endswith("torch/nn/modules/module.py"):
            return "backward" if in_backward else "forward"
    return "backward" if in_backward else "other"
