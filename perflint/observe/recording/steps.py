"""Where one training step ends and the next begins.

A step ends with the optimizer that stepped first (a program with two counts one round of both). A program without
optimizers is taken to make a step of each batch of a `DataLoader`, one without these of each backward pass; `--call`
makes one of each call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook
from torch.utils.data import dataloader

from perflint.observe.device.patches import Patches
from perflint.observe.recording.recorder import Recorder

#: An optimizer that stepped so often while the counted one did not takes its place.
_OVERTAKEN = 3


class _Rounds:
    """Ends a step when the counted one of several came round."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.counted: int | None = None
        self.others = 0

    def came(self, key: int) -> None:
        if self.counted is None:
            self.counted = key
        if key != self.counted:
            self.others += 1
            if self.others < _OVERTAKEN:
                return
            self.counted = key
        self.others = 0
        self.recorder.end_step()


class _Optimizers(_Rounds):
    """Ends a step when the counted optimizer has made one, and says which one that is where there are several."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.any = False
        self.sites: dict[int, int] = {}
        self.said = ""

    def stepped(self, optimizer: Any, *_arguments: Any) -> None:
        self.any = True
        if self.recorder.captured is not None:
            self.recorder.captured.append(lambda: self.stepped(optimizer))
            return
        # A wrapper's `step` calls the wrapped one's, which is another optimizer of the same parameters.
        key = id(optimizer.param_groups)
        if key not in self.sites:
            self.sites[key] = self.recorder.stacks.at(sys._getframe(1)).site
        try:
            self.came(key)
        finally:
            if len(self.sites) > 1:
                self._say()

    def _say(self) -> None:
        assert self.counted is not None
        errors = self.recorder.errors
        site = self.recorder.stacks.sites[self.sites[self.counted]]
        said = f"{len(self.sites)} optimizers step: a step ends with the one that steps at {site.path}:{site.line}"
        if said != self.said:
            errors[:] = [one for one in errors if one != self.said] + [said]
            self.said = said


@contextmanager
def watched(recorder: Recorder) -> Iterator[Callable[[], bool]]:
    """While the block runs, ends of steps are told to the recorder. Gives whether an optimizer has stepped."""
    optimizers = _Optimizers(recorder)
    patches = Patches()
    handle = register_optimizer_step_post_hook(optimizers.stepped)
    _watch_scaler(optimizers, patches)
    seen = _watch_batches(recorder, patches)
    _watch_backward(recorder, patches, seen)
    try:
        yield lambda: optimizers.any
    finally:
        patches.undo()
        handle.remove()


def _watch_scaler(optimizers: _Optimizers, patches: Patches) -> None:
    """A step that a `GradScaler` skips for infinite gradients is a step all the same."""
    scaler = torch.amp.GradScaler
    original = scaler.step

    def step(self: Any, optimizer: Any, *arguments: Any, **keywords: Any) -> Any:
        before = optimizers.recorder.index
        result = original(self, optimizer, *arguments, **keywords)
        if self.is_enabled() and result is None and optimizers.recorder.index == before:
            optimizers.stepped(optimizer)
        return result

    patches.set(scaler, "step", step)


def _watch_batches(recorder: Recorder, patches: Patches) -> dict[str, int]:
    """The first batch begins the first step; each further one ends the one before.

    Gives how many batches there were, and how many optimizers were made.
    """
    iterator = dataloader._BaseDataLoaderIter
    original_next, original_init = iterator.__next__, Optimizer.__init__
    seen = {"batches": 0, "optimizers": 0}

    def following(self: Any) -> Any:
        if seen["batches"] and not seen["optimizers"]:
            recorder.end_step()
        seen["batches"] += 1
        return original_next(self)

    def initialise(self: Any, *arguments: Any, **keywords: Any) -> None:
        seen["optimizers"] += 1
        original_init(self, *arguments, **keywords)

    patches.set(iterator, "__next__", following)
    patches.set(Optimizer, "__init__", initialise)
    return seen


def _watch_backward(recorder: Recorder, patches: Patches, seen: dict[str, int]) -> None:
    """Where the program itself changes its parameters, the backward pass of one line ends each step."""
    rounds = _Rounds(recorder)
    original = torch.autograd.backward

    def backward(*arguments: Any, **keywords: Any) -> None:
        original(*arguments, **keywords)
        if not (any(seen.values()) or recorder.by_calls):
            rounds.came(recorder.stacks.at(sys._getframe(1)).site)

    patches.set(torch.autograd, "backward", backward)
