"""Distributed training: collectives, wrappers, and who am I."""

from __future__ import annotations

from perflint.torch_model.names import within, words

COLLECTIVES = within(
    "torch.distributed",
    "all_reduce all_gather all_gather_into_tensor all_gather_object reduce reduce_scatter reduce_scatter_tensor "
    "broadcast broadcast_object_list gather gather_object scatter scatter_object_list all_to_all all_to_all_single "
    "send recv isend irecv barrier monitored_barrier",
)
#: How many processes, or workers of a loader, share the work: https://docs.pytorch.org/docs/stable/distributed.html
COUNTS_PROCESSES = words(
    "torch.distributed.get_world_size torch.cuda.device_count torch.accelerator.device_count horovod.torch.size "
    "torch_xla.core.xla_model.xrt_world_size torch_xla.runtime.world_size jax.process_count"
)
BARRIERS = words("torch.distributed.barrier torch.distributed.monitored_barrier")
#: Methods of frameworks' helpers that wait for all processes.
BARRIER_METHODS = words("barrier wait_for_everyone")
SYNCHRONIZE = words(
    "torch.cuda.synchronize torch.accelerator.synchronize torch.mps.synchronize torch.xpu.synchronize "
    "torch.cuda.Stream.synchronize torch.npu.synchronize"
)
DATA_PARALLEL = words("torch.nn.DataParallel torch.nn.parallel.DataParallel")
#: Classes of other packages that derive from it, which projects take in as submodules that may not be there:
#: https://github.com/vacancy/Synchronized-BatchNorm-PyTorch
DERIVED_DATA_PARALLEL = words("DataParallelWithCallback")
#: Apex's has no `no_sync`.
WITH_NO_SYNC = words("torch.nn.parallel.DistributedDataParallel")
DISTRIBUTED_DATA_PARALLEL = words("torch.nn.parallel.DistributedDataParallel apex.parallel.DistributedDataParallel")
FULLY_SHARDED = words(
    "torch.distributed.fsdp.FullyShardedDataParallel torch.distributed.fsdp.fully_shard "
    "torch.distributed._composable.fsdp.fully_shard "
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel"
)
