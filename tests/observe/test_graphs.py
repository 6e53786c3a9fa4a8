"""CUDA graphs on the simulated device: a replay computes what the captured program would, in one launch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

from perflint.observe import observed  # noqa: E402


def _training() -> tuple[Any, Any]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).cuda()
    return model, torch.optim.Adam(model.parameters(), 0.1, capturable=True)


def _step(model: Any, optimizer: Any, batch: Any) -> Any:
    optimizer.zero_grad(set_to_none=True)
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    return loss


@pytest.mark.filterwarnings("ignore:This instance was constructed with capturable")
def test_a_replayed_step_trains_as_the_step_itself() -> None:
    batches = [torch.randn(5, 8) for _ in range(6)]
    with observed() as seen:
        plain, captured = _training(), _training()
        static = batches[0].cuda()
        _step(*plain, static)
        _step(*captured, static)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = _step(*captured, static)
        _step(*plain, static)
        for batch in batches[1:]:
            static.copy_(batch)
            wanted = _step(*plain, static)
            with seen.step():
                graph.replay()
            assert loss.item() == pytest.approx(wanted.item())
    assert (seen.waits, seen.launches) == (0, 1)


def test_what_waits_cannot_be_captured() -> None:
    with observed():
        x = torch.ones(3, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with pytest.raises(RuntimeError, match="not permitted when stream is capturing"), torch.cuda.graph(graph):
            x.sum().item()
        assert not torch.cuda.is_current_stream_capturing()
        assert x.sum().item() == 3.0


def test_a_graphed_module_has_gradients() -> None:
    with observed():
        module = torch.nn.Linear(4, 2).cuda()
        graphed = torch.cuda.make_graphed_callables(module, (torch.randn(3, 4, device="cuda"),))
        batch = torch.randn(3, 4, device="cuda")
        module.weight.grad = None
        graphed(batch).sum().backward()
        assert torch.allclose(module.weight.grad, batch.sum(0).expand(2, 4))


def test_steps_of_a_captured_optimizer_end_with_each_replay() -> None:
    from perflint.observe.recording.session import Wanted, observing

    with observing(Wanted(warmup=1)) as session:
        model = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.Adam(model.parameters(), capturable=True)
        batch = torch.ones(3, 4, device="cuda")
        _step(model, optimizer, batch)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            _step(model, optimizer, batch)
        before = session.recorder.index
        for _ in range(3):
            graph.replay()
        assert session.recorder.index == before + 3
        assert before == 1, "a capture is no step"
