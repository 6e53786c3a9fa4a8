"""Distributed training: collectives, wrappers, and who am I."""

from __future__ import annotations

from perflint.pytorch.names import within, words

COLLECTIVES = within(
    "torch.distributed",
    "all_reduce all_gather all_gather_into_tensor all_gather_object reduce reduce_scatter reduce_scatter_tensor "
    "broadcast broadcast_object_list gather gather_object scatter scatter_object_list all_to_all all_to_all_single "
    "send recv isend irecv barrier monitored_barrier",
)
BARRIERS = words("torch.distributed.barrier torch.distributed.monitored_barrier")
#: Methods of frameworks' helpers that wait for all processes.
BARRIER_METHODS = words("barrier wait_for_everyone")
#: Pickle through the host.
OBJECT_COLLECTIVES = within(
    "torch.distributed", "all_gather_object broadcast_object_list gather_object scatter_object_list"
)
SYNCHRONIZE = words(
    "torch.cuda.synchronize torch.accelerator.synchronize torch.mps.synchronize torch.xpu.synchronize "
    "torch.cuda.Stream.synchronize torch.npu.synchronize"
)
DATA_PARALLEL = words("torch.nn.DataParallel torch.nn.parallel.DataParallel")
DISTRIBUTED_DATA_PARALLEL = words("torch.nn.parallel.DistributedDataParallel apex.parallel.DistributedDataParallel")
FULLY_SHARDED = words(
    "torch.distributed.fsdp.FullyShardedDataParallel torch.distributed.fsdp.fully_shard "
    "torch.distributed._composable.fsdp.fully_shard "
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel"
)
NO_SYNC_METHODS = words("no_sync no_backward_sync set_requires_gradient_sync accumulate")
#: Ask which process this is: `if rank == 0` makes nothing rarer.
RANK_FUNCTIONS = words("torch.distributed.get_rank ignite.distributed.get_rank")
RANK_NAMES = words(
    "rank local_rank global_rank is_main_process is_local_main_process is_global_zero is_master master_process "
    "is_rank_zero is_main is_primary main_process"
)
