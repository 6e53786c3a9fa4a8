"""What a program computes on the pretended device is what the host computes, with the types that CUDA gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

from perflint.observe.recording.session import Wanted, observing  # noqa: E402

EXPRESSIONS: list[Callable[[Any], Any]] = [
    lambda x: 1 - x,
    lambda x: 1.5 - x,
    lambda x: 2 / (x + 1),
    lambda x: 2 ** (x % 3),
    lambda x: torch.rsub(x, 2, alpha=3),
    lambda x: torch.sub(1, x),
    lambda x: 7 // (x + 1),
    lambda x: 7 % (x + 1),
    lambda x: torch.where(x > 1, 0.0, x),
    lambda x: torch.where(x > 1, x, 0),
    lambda x: torch.maximum(x, torch.tensor(1)),
    lambda x: x.clamp(min=1),
    lambda x: x > 1,
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32])
@pytest.mark.parametrize("at", range(len(EXPRESSIONS)))
def test_numbers_and_tensors_mix_as_on_the_host(at: int, dtype: Any) -> None:
    host = torch.arange(4).to(dtype)
    wanted = EXPRESSIONS[at](host)
    with observing(Wanted(coverage=False)):
        found = EXPRESSIONS[at](host.cuda())
        assert found.is_cuda
        back = found.cpu()
    assert back.dtype == wanted.dtype
    assert torch.equal(back, wanted)


def test_integers_are_counted_although_the_host_cannot() -> None:
    with observing(Wanted(coverage=False)):
        counts = torch.histc(torch.tensor([0, 1, 1, 3], dtype=torch.int32).cuda(), bins=4, min=0, max=3).cpu()
    assert counts.tolist() == [1, 2, 0, 1]
    assert counts.dtype == torch.int32


def test_types_of_old_make_tensors_on_the_device() -> None:
    with observing(Wanted(coverage=False)):
        made = torch.cuda.FloatTensor([[1.0, 2.0]])
        assert made.is_cuda
        assert isinstance(made, torch.cuda.FloatTensor)
        assert not isinstance(made.long(), torch.cuda.FloatTensor)
        assert torch.cuda.LongTensor(2, 3).shape == (2, 3)
        assert torch.ones(2).type(torch.cuda.HalfTensor).dtype is torch.float16
        assert torch.ones(2).type("torch.cuda.LongTensor").is_cuda
        assert made.type() == "torch.cuda.FloatTensor"
        assert made.type(torch.float64).dtype is torch.float64


def test_data_parallel_runs_on_the_one_device() -> None:
    with observing(Wanted(coverage=False)):
        model = torch.nn.DataParallel(torch.nn.Linear(3, 2)).cuda()
        loss = model(torch.ones(4, 3)).sum()
        loss.backward()
        assert loss.is_cuda
        assert model.module.weight.grad is not None
