"""Devices: which expressions certainly are an accelerator, the host, or may be either."""

from __future__ import annotations

from collections.abc import Mapping

from perflint.torch_model.names import words

#: Types of device in `torch.device("...")` and in string literals, without an index.
ACCELERATORS = words("cuda xpu hpu npu musa mlu xla privateuseone")

#: Functions and attributes that give a device, and the device they give ("" where it cannot be known).
DEVICE_FUNCTIONS: Mapping[str, str] = {
    "torch.cuda.current_device": "cuda",
    "torch.get_default_device": "",
    "torch.accelerator.current_accelerator": "",
    "torch_xla.core.xla_model.xla_device": "xla",
    "accelerate.utils.get_device": "",
    "transformers.utils.get_device": "",
    "timm.utils.init_distributed_device": "",
    "ignite.distributed.device": "",
    "fabric.device": "",
}
#: Attributes that hold a device on frameworks' objects: `accelerator.device`, `self.device` of a module.
DEVICE_ATTRIBUTES = words("device local_device output_device root_device _device")

#: Words that code which means to run on an accelerator cannot do without.
ACCELERATOR_WORDS = frozenset(
    "cuda device to_device deepspeed Accelerator accelerator Fabric LightningModule pl xpu npu local_rank "
    "get_device non_blocking".split()
)
