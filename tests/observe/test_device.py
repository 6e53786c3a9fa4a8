"""What a program finds on the simulated device: CUDA's answers, types, errors and results."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

from perflint.observe import Observed, observed  # noqa: E402


@pytest.fixture
def seen() -> Iterator[Observed]:
    with observed() as found:
        yield found


def _operations(seen: Observed) -> set[str]:
    """The first operation of each line, phase and kind, once the block is over."""
    seen.finish()
    step = seen.observation.step
    assert step is not None
    return {event.operation for event in step.events}


def test_tensors_are_of_cuda_and_compute_what_the_host_computes(seen: Observed) -> None:
    host = torch.randn(5, 7)
    x = host.cuda()
    assert x.device == torch.device("cuda", 0)
    assert x.is_cuda
    assert type(x) is torch.Tensor
    assert x.type() == "torch.cuda.FloatTensor"
    assert "device='cuda:0'" in repr(x)
    for there, here in (
        (x.softmax(-1), host.softmax(-1)),
        (x @ x.T, host @ host.T),
        (x[x > 0], host[host > 0]),
        (x.to(torch.float64).sum(0), host.to(torch.float64).sum(0)),
        (torch.einsum("ab,cb->ac", x, x), torch.einsum("ab,cb->ac", host, host)),
    ):
        assert there.is_cuda
        assert torch.equal(there.cpu(), here)


def test_views_share_memory_and_stay_views(seen: Observed) -> None:
    x = torch.zeros(4, 4, device="cuda")
    x.view(16)[3:5] = 1.0
    x.t()[0] += 2.0
    assert x.sum().item() == 2.0 + 4 * 2.0
    assert x[1].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert x[1]._base is x


def test_gradients_are_those_of_the_host(seen: Observed) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten())
    there = copy.deepcopy(model).cuda()
    batch = torch.randn(2, 3, 6, 6)
    for network, value in ((model, batch), (there, batch.cuda())):
        network(value).pow(2).sum().backward()
    for one, other in zip(model.parameters(), there.parameters()):
        assert other.grad is not None
        assert other.grad.is_cuda
        torch.testing.assert_close(other.grad.cpu(), one.grad)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_are_one_launch_and_train(seen: Observed, name: str) -> None:
    torch.manual_seed(0)
    layer = getattr(torch.nn, name)(3, 4, num_layers=2, batch_first=True)
    there = copy.deepcopy(layer).cuda()
    batch = torch.randn(2, 5, 3)
    out = there(batch.cuda())[0]
    out.sum().backward()
    expected = layer(batch)[0]
    expected.sum().backward()
    torch.testing.assert_close(out.cpu(), expected)
    torch.testing.assert_close(there.weight_ih_l0.grad.cpu(), layer.weight_ih_l0.grad)
    assert {"aten::_cudnn_rnn", "aten::_cudnn_rnn_backward"} <= _operations(seen)


def test_packed_sequences_take_lengths_of_the_host_only(seen: Observed) -> None:
    layer = torch.nn.LSTM(3, 4).cuda()
    batch = torch.randn(5, 2, 3, device="cuda")
    packed = torch.nn.utils.rnn.pack_padded_sequence(batch, torch.tensor([5, 3]))
    assert layer(packed)[0].data.is_cuda
    with pytest.raises(RuntimeError, match="should be a 1D CPU int64 tensor"):
        torch.nn.utils.rnn.pack_padded_sequence(batch, torch.tensor([5, 3], device="cuda"))


@pytest.mark.parametrize("half", [True, False])
def test_attention_is_one_fused_launch(seen: Observed, half: bool) -> None:
    dtype = torch.bfloat16 if half else torch.float32
    query, key, value = (torch.randn(2, 4, 8, 16, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    out.float().sum().backward()
    assert query.grad is not None
    names = _operations(seen)
    kind = "flash" if half else "efficient"
    assert f"aten::_scaled_dot_product_{kind}_attention" in names
    assert f"aten::_scaled_dot_product_{kind}_attention_backward" in names


def test_autocast_casts_as_cuda_does(seen: Observed) -> None:
    x = torch.randn(4, 4, device="cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        assert torch.is_autocast_enabled()
        assert (x @ x).dtype == torch.float16
        assert torch.nn.functional.linear(x, x).dtype == torch.float16
        assert x.softmax(-1).dtype == torch.float32
        assert (x @ x).sum().dtype == torch.float32
        assert torch.nn.functional.scaled_dot_product_attention(*[x[None, None]] * 3).dtype == torch.float16
    assert (x @ x).dtype == torch.float32


def test_gradient_scaler_skips_a_step_and_reads_once(seen: Observed) -> None:
    model = torch.nn.Linear(2, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda")
    before = model.weight.detach().clone()
    for factor in (1.0, float("inf")):
        optimizer.zero_grad()
        with seen.step():
            scaler.scale(model(torch.ones(1, 2, device="cuda")).sum() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
    assert not torch.equal(model.weight, before)
    assert scaler.get_scale() == 32768.0
    assert [total.waits for total in seen.observation.totals] == [1, 1]


def test_errors_are_those_of_cuda(seen: Observed) -> None:
    x = torch.ones(3, device="cuda")
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cpu"):
        x + torch.ones(3)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.nn.functional.linear(x[None], torch.ones(3, 3))
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.pin_memory()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.set_device(1)
    assert (x + torch.tensor(2.0)).sum().item() == 9.0


def test_state_survives_saving_copying_and_pickling(seen: Observed) -> None:
    model = torch.nn.Linear(3, 3).cuda()
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    for where in ("cuda", "cpu", None):
        file.seek(0)
        loaded = torch.load(file, map_location=where)
        assert loaded["weight"].device.type == (where or "cuda")
        assert torch.equal(loaded["weight"].cpu(), model.weight.detach().cpu())
    assert copy.deepcopy(model).weight.is_cuda
    assert pickle.loads(pickle.dumps(model.weight.detach())).is_cuda
    assert not model.cpu().weight.is_cuda


def test_random_numbers_repeat_by_seed_and_by_state(seen: Observed) -> None:
    torch.manual_seed(3)
    first = torch.rand(4, device="cuda")
    torch.cuda.manual_seed(3)
    assert torch.equal(torch.rand(4, device="cuda"), first)
    state = torch.cuda.get_rng_state()
    second = torch.randn(4, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.randn(4, device="cuda"), second)
    generator = torch.Generator(device="cuda").manual_seed(5)
    assert generator.device.type == "cuda"
    drawn = torch.rand(4, generator=generator, device="cuda")
    assert torch.equal(torch.rand(4, generator=torch.Generator("cuda").manual_seed(5), device="cuda"), drawn)
    assert isinstance(torch.default_generator, torch.Generator)


def test_memory_is_counted_and_given_back(seen: Observed) -> None:
    before = torch.cuda.memory_allocated()
    x = torch.empty(1024, 256, device="cuda")
    assert torch.cuda.memory_allocated() - before == 1024 * 256 * 4
    y = x[:10]
    del x
    assert torch.cuda.memory_allocated() > before
    del y
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() >= before + 1024 * 256 * 4
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == before
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total == torch.cuda.get_device_properties(0).total_memory


@pytest.mark.filterwarnings("ignore:Sparse invariant")
def test_sparse_tensors_are_refused_in_one_sentence(seen: Observed) -> None:
    index, values = torch.tensor([[0, 1], [1, 0]]), torch.ones(2)
    with pytest.raises(NotImplementedError, match=r"sparse tensors do not run .* --device cuda$"):
        torch.sparse_coo_tensor(index, values, (2, 2)).to("cuda")


def test_time_between_events_is_that_of_the_model(seen: Observed) -> None:
    """Twice the work takes about twice the time, the same work the same, whatever the host takes for it."""

    def timed(products: int) -> float:
        begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begun.record()
        for _ in range(products):
            x @ x
        ended.record()
        ended.synchronize()
        return float(begun.elapsed_time(ended))

    x = torch.ones(700, 700, device="cuda")
    first, again, twice = timed(10), timed(10), timed(20)
    assert again == pytest.approx(first)
    assert twice == pytest.approx(2 * first, rel=0.2)
    with pytest.raises(RuntimeError, match="enable_timing"):
        torch.cuda.Event().elapsed_time(torch.cuda.Event(enable_timing=True))


def test_streams_events_and_properties_are_there(seen: Observed) -> None:
    begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    side = torch.cuda.Stream()
    begun.record()
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() is side
        torch.ones(2, device="cuda").record_stream(side)
    torch.cuda.current_stream().wait_stream(side)
    ended.record()
    ended.synchronize()
    assert begun.elapsed_time(ended) > 0.0
    assert torch.cuda.get_device_capability() == (9, 0)
    assert torch.cuda.is_bf16_supported()
    assert torch.cuda.device_count() == 1


def test_pinned_memory_is_known_through_views_and_loaders(seen: Observed) -> None:
    assert torch.zeros(3, pin_memory=True).is_pinned()
    assert torch.zeros(6).pin_memory()[2:4].is_pinned()
    assert not torch.zeros(3).is_pinned()
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    for workers in (0, 1):
        loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True, num_workers=workers)
        assert all(batch.is_pinned() for (batch,) in loader)


def test_strided_pinned_memory_is_gathered_in_pageable_memory(seen: Observed) -> None:
    pinned = torch.zeros(400, 400).pin_memory()
    for part, waits in ((pinned, 0), (pinned.t(), 0), (pinned[:, :200], 1)):
        seen.restart()
        part.to("cuda", non_blocking=True)
        with seen.step():
            moved = part.to("cuda", non_blocking=True)
        assert torch.equal(moved.cpu(), part)
        assert seen.waits == waits


def test_threads_have_the_device(seen: Observed) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append((torch.ones(2, device="cuda") * 2).sum().item()))
    thread.start()
    thread.join()
    assert found == [4.0]


def test_checkpoint_custom_function_and_vmap(seen: Observed) -> None:
    class Double(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            return value * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    x = torch.ones(3, device="cuda", requires_grad=True)
    inner = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)).cuda()
    torch.utils.checkpoint.checkpoint(inner, Double.apply(x), use_reentrant=False).sum().backward()
    assert x.grad is not None
    batch = torch.randn(4, 3, device="cuda")
    torch.testing.assert_close(torch.func.vmap(lambda row: row.sum() * row)(batch), batch.sum(1, keepdim=True) * batch)
    gradient = torch.func.grad(lambda value: (value**2).sum())(batch)
    torch.testing.assert_close(gradient, 2 * batch)


def test_choices_of_optimizers_are_those_on_cuda(seen: Observed) -> None:
    for options in ({}, {"fused": True}, {"foreach": False}):
        parameters = [torch.nn.Parameter(torch.ones(3, device="cuda")) for _ in range(4)]
        optimizer = torch.optim.AdamW(parameters, **options)
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        assert all(parameter[0].item() < 1.0 for parameter in parameters)
    names = _operations(seen)
    assert {"aten::_fused_adamw_", "aten::_foreach_addcdiv_", "aten::addcdiv_"} <= names


def test_outputs_and_resizing(seen: Observed) -> None:
    x = torch.arange(6.0, device="cuda")
    out = torch.empty(0, device="cuda")
    torch.mul(x, 2, out=out)
    assert out.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    x.resize_(2, 4)
    assert tuple(x.shape) == (2, 4)
    assert x.flatten()[:6].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    value = torch.tensor([1, 2, 3], device="cuda")
    assert (value * 1.5).dtype == torch.float32
    assert (torch.ones(2, device="cuda", dtype=torch.bfloat16) + 1.5).dtype == torch.bfloat16


def test_compile_is_passed_over_and_said_so(seen: Observed) -> None:
    model = torch.compile(torch.nn.Linear(2, 2).cuda())
    assert model(torch.ones(1, 2, device="cuda")).is_cuda
    assert any("torch.compile" in error for error in seen.observation.errors)


@pytest.mark.parametrize(
    "moved",
    [
        "torch.ones(2, 3).to('cuda')",
        "torch.ones(2, 3).bool().to('cuda')",
        "torch.zeros(2, 3).to(torch.int64).cuda()",
        "torch.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).cuda()",
        "torch.rand(2, 3).half().pin_memory().to('cuda', non_blocking=True)",
    ],
)
def test_what_is_made_on_the_host_and_moved_is_told_through_conversions(seen: Observed, moved: str) -> None:
    with seen.step():
        exec(moved, {"torch": torch})
    allocated = [line for line in seen.observation.lines if line.kind == "host-allocation"]
    assert [(line.total, line.bytes) for line in allocated] == [(1, 24)]


def test_what_a_loader_makes_is_no_allocation_of_the_program(seen: Observed) -> None:
    loader = torch.utils.data.DataLoader([(1.0, 2), (3.0, 4)], batch_size=2)
    with seen.step():
        for numbers, labels in loader:
            numbers.cuda()
            labels.cuda()
    assert [line.kind for line in seen.observation.lines if line.kind != "launch"] == ["to-device"] * 2
