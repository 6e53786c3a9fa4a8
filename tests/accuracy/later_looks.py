"""More packages that were observed before any rule was held against them: normalizing flows, spectrograms of sounds,
and losses of self-supervised learning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import small_tensors as inputs
from small_modules import Package


def _points() -> inputs.Inputs:
    import torch

    yield (torch.rand(16, 4),)


def _flow(layers: Callable[[Any], list[Any]], base: str = "DiagGaussian", *args: Any, of_samples: bool = False) -> Any:
    """A flow that is trained on points, or to draw samples of a target."""

    def make() -> Any:
        import normflows as nf
        import torch

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                size = 2 if of_samples else 4
                kind = getattr(nf.distributions.base, base)
                target = nf.distributions.TwoMoons() if of_samples else None
                self.flow = nf.NormalizingFlow(kind(*(args or (size,))), layers(nf), target)

            def forward(self, points: Any) -> Any:
                return self.flow.reverse_kld(16) if of_samples else self.flow.forward_kld(points)

        return Trained()

    return make


def _coupled(nf: Any) -> list[Any]:
    return [nf.flows.AffineCouplingBlock(nf.nets.MLP([2, 16, 4], init_zeros=True)), nf.flows.Permute(4, mode="swap")]


def _masked(nf: Any) -> list[Any]:
    import torch

    mask = torch.tensor([1.0, 0.0, 1.0, 0.0])
    return [nf.flows.MaskedAffineFlow(mask, nf.nets.MLP([4, 16, 4]), nf.nets.MLP([4, 16, 4])), nf.flows.ActNorm(4)]


_NORMFLOWS = Package(
    parts=(),
    of_class={
        "Coupled": _flow(_coupled),
        "Masked": _flow(_masked),
        "MaskedAutoregressive": _flow(lambda nf: [nf.flows.MaskedAffineAutoregressive(4, 16)]),
        "Spline": _flow(lambda nf: [nf.flows.CoupledRationalQuadraticSpline(4, 1, 16), nf.flows.LULinearPermute(4)]),
        "AutoregressiveSpline": _flow(lambda nf: [nf.flows.AutoregressiveRationalQuadraticSpline(4, 1, 16)]),
        "Circular": _flow(lambda nf: [nf.flows.CircularAutoregressiveRationalQuadraticSpline(4, 1, 16, [0])]),
        "Affine": _flow(lambda nf: [nf.flows.InvertibleAffine(4)]),
        "Residual": _flow(lambda nf: [nf.flows.Residual(nf.nets.LipschitzMLP([4, 16, 4]))]),
        "Mixture": _flow(_coupled, "GaussianMixture", 3, 4),
        "Planar": _flow(lambda nf: [nf.flows.Planar((2,)) for _ in range(3)], of_samples=True),
        "Radial": _flow(lambda nf: [nf.flows.Radial((2,)) for _ in range(3)], of_samples=True),
    },
    inputs=_points,
)


def _sounds() -> inputs.Inputs:
    import torch

    yield (torch.randn(2, 22050),)
    yield (torch.rand(2, 1025, 20),)
    yield (torch.rand(2, 1025, 20, 2),)


_NNAUDIO = Package(
    parts=("features",),
    arguments={"n_fft": 2048, "sr": 22050, "sample_rate": 22050, "verbose": False},
    inputs=_sounds,
)


def _views() -> inputs.Inputs:
    """Features of two views of a batch; of several views; and what teachers say."""
    import torch

    yield torch.randn(16, 32), torch.randn(16, 32)
    yield (torch.randn(16, 32),)
    yield [torch.randn(16, 32) for _ in range(2)], [torch.randn(16, 32) for _ in range(2)]
    yield torch.randn(16, 32), torch.randn(16, 32), torch.randn(8, 32)
    yield torch.randn(2, 16, 32), torch.randn(2, 16, 32)


_LIGHTLY = Package(
    parts=("loss",),
    arguments={"output_dim": 32, "verbose": False},
    of_class={"NTXentLoss": {"memory_bank_size": (32, 32)}},
    inputs=_views,
)

LATER_LOOKS = {
    "normflows": ("normflows", _NORMFLOWS),
    "nnaudio": ("nnAudio", _NNAUDIO),
    "lightly": ("lightly", _LIGHTLY),
}
