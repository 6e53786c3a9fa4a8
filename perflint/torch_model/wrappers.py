"""Calls that hand back what they were given: the value's kind stays, whatever it is wrapped in."""

from __future__ import annotations

from collections.abc import Mapping

from perflint.torch_model.names import words

#: Functions and classes by dotted name, with the position of the argument they hand back.
#: Classes whose objects decorate functions, and give them back as they are: `torch.enable_grad()(closure)`.
DECORATING = frozenset(
    f"torch.{name}" for name in "no_grad enable_grad inference_mode set_grad_enabled autocast amp.autocast".split()
)
#: What stands for such an object.
DECORATOR = "torch.utils._contextlib.decorator"
IDENTITIES: Mapping[str, int] = {
    DECORATOR: 0,
    "torch.compile": 0,
    "torch._dynamo.optimize": 0,
    "torch.jit.script": 0,
    "torch.jit.trace": 0,
    "torch.jit.optimize_for_inference": 0,
    "torch.jit.freeze": 0,
    "torch.nn.DataParallel": 0,
    "torch.nn.parallel.DataParallel": 0,
    "torch.nn.parallel.DistributedDataParallel": 0,
    "torch.distributed.fsdp.FullyShardedDataParallel": 0,
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel": 0,
    "torch.distributed.fsdp.fully_shard": 0,
    "torch.distributed._composable.fsdp.fully_shard": 0,
    "torch.distributed._composable.replicate": 0,
    "torch.distributed.tensor.parallel.parallelize_module": 0,
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm": 0,
    "apex.parallel.DistributedDataParallel": 0,
    "apex.parallel.convert_syncbn_model": 0,
    "torch_xla.distributed.fsdp.XlaFullyShardedDataParallel": 0,
    "fairscale.nn.FullyShardedDataParallel": 0,
    "ray.remote": 0,
    "fairscale.nn.data_parallel.FullyShardedDataParallel": 0,
    "peft.get_peft_model": 0,
    "peft.prepare_model_for_kbit_training": 0,
    "accelerate.utils.extract_model_from_parallel": 0,
    "ignite.distributed.auto_model": 0,
    "ignite.distributed.auto_optim": 0,
    "torch.nn.utils.spectral_norm": 0,
    "torch.nn.utils.weight_norm": 0,
    "torch.nn.utils.parametrizations.spectral_norm": 0,
    "torch.nn.utils.parametrizations.weight_norm": 0,
    "torch.autograd.Variable": 0,
    "torch.autograd.variable.Variable": 0,
    "copy.deepcopy": 0,
    "copy.copy": 0,
    "typing.cast": 1,
}
#: The wrapped object goes by these attributes.
WRAPPED_ATTRIBUTES = words("module _orig_mod orig_mod _fsdp_wrapped_module _forward_module")

#: Methods of a module that hand the module back.
MODULE_CHAIN = words(
    "to cuda cpu xpu ipu eval train half float bfloat16 double type requires_grad_ apply share_memory to_empty "
    "merge_and_unload gradient_checkpointing_enable"
)
#: Methods of a helper that hand back an argument, unwrapped.
UNWRAP_METHODS = words("unwrap_model unwrap get_wrapped_model get_model_for_eval")
#: Methods of a helper that hand back their arguments, one value for one argument and a tuple for several.
PREPARE_METHODS = words(
    "prepare setup setup_module setup_model setup_optimizers setup_dataloaders prepare_model prepare_data_loader "
    "prepare_optimizer prepare_scheduler skip_first_batches"
)
#: Functions that hand back several of their arguments, each with its position and keyword, in a tuple in this order, or
#: the only one of them that is given. https://nvidia.github.io/apex/amp.html,
#: https://deepspeed.readthedocs.io/en/latest/initialize.html,
#: https://intel.github.io/intel-extension-for-pytorch/latest/tutorials/api_doc.html
HANDED_BACK: Mapping[str, tuple[tuple[int, str], ...]] = {
    "apex.amp.initialize": ((0, "models"), (1, "optimizers")),
    "deepspeed.initialize": ((1, "model"), (2, "optimizer")),
    "intel_extension_for_pytorch.optimize": ((0, "model"), (2, "optimizer")),
}
#: Those that give a tuple of them, however many they are given.
ALWAYS_SEVERAL = words("deepspeed.initialize")
#: Methods of a trainer that hand back a batch, or a part of one, on the device: `Trainer` calls them on every batch.
MOVING_METHODS = words("_prepare_inputs _prepare_input transfer_batch_to_device")

#: What gives back the object that somebody saved.
_SAVED = tuple(f"{name}." for name in ("torch.load", "pickle.load", "dill.load", "joblib.load"))


def is_of_what_was_saved(name: str) -> bool:
    """Whether a dotted name is a method of what a file was saved from, which may be of any class of the project:
    `torch.load(path).encode`.
    """
    return name.startswith(_SAVED)
