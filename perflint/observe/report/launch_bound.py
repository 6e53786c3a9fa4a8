"""What is said of a step that no wait makes slow: the host cannot launch kernels as fast as the device runs them."""

from __future__ import annotations

from collections.abc import Sequence

from perflint.observe.model.cost import StepTime

#: So much longer than the device the host has to be busy: figures of the model are no closer than that.
_CLEARLY = 1.25
#: Kernels of a step from which on launching them is what the host is busy with.
_MANY = 50


def launch_bound(time: StepTime, launches: float, errors: Sequence[str] = ()) -> str:
    """A sentence or two about a launch-bound step, and what helps; empty for any other step.

    `launches` is the mean number of kernel launches per step. The figures are modelled, as those of `time` are. Nothing
    is said where `errors`, those of the observation, tell that it passed `torch.compile` over.
    """
    if time.bound_by != "host" or launches < _MANY or time.host_ms < _CLEARLY * time.device_ms:
        return ""
    if any(one.startswith("torch.compile") for one in errors):
        return ""  # what is compiled launches less than was recorded
    return (
        f"launch-bound (modelled): the host is busy for {time.host_ms:.3g} ms with {launches:.0f} launches that the "
        f"device runs in {time.device_ms:.3g} ms. What helps: `torch.compile` (fewer kernels), its "
        '`mode="reduce-overhead"` or a CUDA graph (one launch for many), fused or foreach forms of loops over tensors, '
        "and a larger batch, which costs nothing while the device idles."
    )
