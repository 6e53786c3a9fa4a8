"""Data parallelism, sharded and not, in one process on the simulated device: it trains as without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

from perflint.observe import observed  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch built without distributed")


@pytest.fixture
def group() -> Iterator[None]:
    """A process group of one on the simulated device."""
    with observed():
        torch.distributed.init_process_group("nccl", store=torch.distributed.HashStore(), rank=0, world_size=1)
        try:
            yield
        finally:
            torch.distributed.destroy_process_group()


def _model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).cuda()


def _losses(model: Any) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    batch = torch.linspace(-1, 1, 40, device="cuda").view(5, 8)
    found = []
    for _ in range(4):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    return found


def test_distributed_data_parallel_trains_as_the_plain_model() -> None:
    with observed() as seen:
        torch.distributed.init_process_group("nccl", store=torch.distributed.HashStore(), rank=0, world_size=1)
        try:
            plain = _losses(_model())
            model = torch.nn.parallel.DistributedDataParallel(_model(), device_ids=[0])
            losses = []
            with seen.step():
                losses = _losses(model)
        finally:
            torch.distributed.destroy_process_group()
    assert losses == pytest.approx(plain)
    # The four reads of the loss; and once, in a second forward, its buckets are laid out anew and their indices read.
    waited = seen.report().splitlines()
    assert [line.partition(": ")[2] for line in waited] == [
        "read (aten::_local_scalar_dense), 4 times",
        "to-host (aten::copy_), 2 times",
    ]


def test_fully_shard_trains_as_the_plain_model(group: None) -> None:
    from torch.distributed.fsdp import fully_shard

    plain = _losses(_model())
    model = _model()
    for layer in (model[0], model[2]):
        fully_shard(layer)
    fully_shard(model)
    assert _losses(model) == pytest.approx(plain)
    assert plain[-1] < plain[0]


@pytest.mark.filterwarnings("ignore")
def test_fully_sharded_data_parallel_trains_as_the_plain_model(group: None) -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel

    plain = _losses(_model())
    assert _losses(FullyShardedDataParallel(_model(), device_id=0)) == pytest.approx(plain)
