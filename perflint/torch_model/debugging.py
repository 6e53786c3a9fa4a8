"""Switches for finding bugs, which slow every step down while they are on."""

from __future__ import annotations

from collections.abc import Mapping

from perflint.torch_model.names import words

#: Environment variables with the values that switch them on (where none is named: all but "0" and ""), and the cost.
ENVIRONMENT: Mapping[str, tuple[frozenset[str], str]] = {
    "CUDA_LAUNCH_BLOCKING": (frozenset(), "the host waits for every kernel, one after the other"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (frozenset(), "every allocation on the device goes to the driver"),
    "TORCHDYNAMO_DISABLE": (frozenset(), "`torch.compile` does nothing"),
    "TORCH_DISTRIBUTED_DEBUG": (words("DETAIL"), "every collective is checked against the other processes"),
    "NCCL_DEBUG": (words("TRACE"), "NCCL writes a line for every call"),
    "HIP_LAUNCH_BLOCKING": (frozenset(), "the host waits for every kernel, one after the other"),
    "AMD_SERIALIZE_KERNEL": (frozenset(), "kernels run one after the other"),
}
#: Functions that switch checking on, with what it costs while it is.
SWITCHES: Mapping[str, str] = {
    "torch.autograd.set_detect_anomaly": "every backward checks for NaN and every forward keeps a stack trace",
    "torch.autograd.anomaly_mode.set_detect_anomaly": "every backward checks for NaN and every forward keeps a stack "
    "trace",
    "torch.autograd.detect_anomaly": "every backward checks for NaN and every forward keeps a stack trace",
    "torch.autograd.anomaly_mode.detect_anomaly": "every backward checks for NaN and every forward keeps a stack trace",
    "torch.cuda.memory._record_memory_history": "every allocation on the device keeps a stack trace",
    "torch.autograd.profiler.emit_nvtx": "every operation is marked for a profiler",
}
#: Attributes of modules of torch that switch something off, with what it costs while they are true.
SETTINGS: Mapping[str, str] = {
    "torch._dynamo.config.disable": "`torch.compile` does nothing",
}
