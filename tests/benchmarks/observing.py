"""What observation costs: microseconds of processor time an operation, and seconds for a step of a small transformer.

    python tests/benchmarks/observing.py [--operations N] [--profile]

The same operations run on host tensors without observation and on the simulated device with it; the difference of the
two is the overhead. Processor time, because other programs on the machine do not count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch

from perflint.observe.recording.session import Wanted, observing

_PARAMETERS = 10_000_000


def _operations(device: str) -> list[tuple[str, Callable[[], Any]]]:
    x = torch.randn(64, 64, device=device)
    y = torch.randn(64, 64, device=device)
    weight = torch.randn(64, 64, device=device, requires_grad=True)
    return [
        ("add", lambda: x + y),
        ("add a number", lambda: x + 1.0),
        ("add in place", lambda: x.add_(y)),
        ("matmul", lambda: x @ y),
        ("matmul with graph", lambda: x @ weight),
        ("transpose (a view)", x.t),
        ("layer_norm", lambda: torch.nn.functional.layer_norm(x, (64,))),
        ("zeros", lambda: torch.zeros(64, 64, device=device)),
        ("cat", lambda: torch.cat([x, y])),
        ("item", x[0, 0].item),
    ]


def _microseconds(run: Callable[[], Any], count: int) -> float:
    """A call, the least of five rounds."""
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for _ in range(count):
            run()
        best = min(best, time.process_time() - began)
    return best / count * 1e6


class _Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        width = 320
        layer = torch.nn.TransformerEncoderLayer(width, 5, 4 * width, dropout=0.0, batch_first=True)
        self.embedding = torch.nn.Embedding(1000, width)
        self.layers = torch.nn.TransformerEncoder(layer, 8, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, 1000)

    def forward(self, tokens: Any) -> Any:
        return self.head(self.layers(self.embedding(tokens)))


def _step(device: str, steps: int, finished: Callable[[], None]) -> tuple[float, int]:
    """Seconds of processor time a step, and the number of parameters."""
    model = _Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, 1000, (4, 64), device=device)
    finished()
    began = time.process_time()
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (time.process_time() - began) / steps, sum(one.numel() for one in model.parameters())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=2000)
    parser.add_argument("--profile", action="store_true", help="Print where the time of one operation goes.")
    given = parser.parse_args()
    torch.set_num_threads(1)
    plain = {name: _microseconds(run, given.operations) for name, run in _operations("cpu")}
    with observing(Wanted(warmup=0)) as session:
        observed = {}
        for name, run in _operations("cuda"):
            observed[name] = _microseconds(run, given.operations)
            session.recorder.end_step()
        if given.profile:
            _profile(_operations("cuda")[0][1], given.operations)
    print(f"{'operation':20} {'host':>8} {'observed':>9} {'overhead':>9}  us")
    for name, host in plain.items():
        print(f"{name:20} {host:8.1f} {observed[name]:9.1f} {observed[name] - host:9.1f}")
    overheads = sorted(observed[name] - plain[name] for name in plain)
    print(f"median overhead: {overheads[len(overheads) // 2]:.1f} us an operation")
    seconds, parameters = _step("cpu", 3, lambda: None)
    with observing(Wanted(warmup=0)) as session:
        with_it, _ = _step("cuda", 3, lambda: None)
        launches = session.observation().totals[-1].launches
    print(f"step of a transformer with {parameters / 1e6:.1f} M parameters: {seconds:.2f} s, observed {with_it:.2f} s,")
    print(f"{launches} launches")


def _profile(run: Callable[[], Any], count: int) -> None:
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.enable()
    for _ in range(count):
        run()
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(15)


if __name__ == "__main__":
    main()
