"""What a training framework is: the methods it calls, how often, and the work it takes over."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

from perflint.finding import Heat


class Role(enum.Enum):
    """Which part of training a hook belongs to."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"
    DATA = "data"
    #: An optimizer's own step: what it counts is on the host, what it changes is on the device.
    OPTIMIZER = "optimizer"


class Does(enum.Enum):
    """Work that a framework takes over, so that it must not be asked of the user."""

    PINS = "pins host memory"
    TRANSFERS = "moves batches to the device"
    AUTOCASTS = "runs mixed precision"
    EVALUATES_WITHOUT_GRAD = "switches gradients off for evaluation"
    ZEROES_GRAD = "zeroes gradients"
    STEPS = "runs backward and the optimizer"
    ACCUMULATES = "accumulates gradients without synchronising"
    CHECKPOINTS = "saves checkpoints on its own schedule"
    COMPILES = "compiles on request"


class Hook(NamedTuple):
    """How often a method runs. `managed` are positions (self is 0) of parameters that hold values already on the
    device; `host` of those still on the host; `tensors` of those that are single tensors on the device, `modules` of
    those that are modules there, `closures` of functions that run the model and give the loss. By `contract` it is
    called by whoever trains with the class, not by a framework: what that one gives lies where its model does, as far
    as anybody knows. Of `given_tensors` that holds only for a method that is declared to take some.
    """

    heat: Heat
    role: Role
    grad: bool = True
    managed: tuple[int, ...] = ()
    host: tuple[int, ...] = ()
    tensors: tuple[int, ...] = ()
    modules: tuple[int, ...] = ()
    contract: bool = False
    given_tensors: bool = False
    closures: tuple[int, ...] = ()


#: What stands for a function that an optimizer's step is given.
CLOSURE = "torch.optim.Optimizer.step.closure"


def hooks(
    heat: Heat,
    role: Role,
    names: str,
    *,
    grad: bool = True,
    contract: bool = False,
    given_tensors: bool = False,
    tensors: tuple[int, ...] = (),
    closures: tuple[int, ...] = (),
) -> dict[str, Hook]:
    """One hook under each of several names."""
    made = Hook(heat, role, grad, tensors=tensors, contract=contract, given_tensors=given_tensors, closures=closures)
    return dict.fromkeys(names.split(), made)


class Framework(NamedTuple):
    """`roots` are its top modules. `distinctive` base names count even where their module is not known."""

    name: str
    roots: frozenset[str]
    bases: Mapping[str, Mapping[str, Hook]]
    does: frozenset[Does] = frozenset()
    distinctive: frozenset[str] = frozenset()
