"""Packages that were observed before any rule was held against them, and what their classes need."""

from __future__ import annotations

from typing import Any

import small_tensors as inputs
from small_modules import Package


def _judged_pictures() -> inputs.Inputs:
    """Two pictures of which one is held against the other, then features of many."""
    import torch

    for size in (64, 192, 256):
        yield torch.rand(2, 3, size, size), torch.rand(2, 3, size, size)
    yield (torch.rand(2, 3, 96, 96),)
    yield torch.rand(32, 16), torch.rand(32, 16)


_PIQ = Package(inputs=_judged_pictures)


def _sounds() -> inputs.Inputs:
    import torch

    yield torch.randn(2, 1, 16000), torch.randn(2, 1, 16000)
    yield torch.randn(2, 2, 16000), torch.randn(2, 2, 16000)


_AURALOSS = Package(
    parts=("freq", "time"),
    arguments={
        "sample_rate": 16000,
        "fft_sizes": [256, 512],
        "hop_sizes": [64, 128],
        "win_lengths": [256, 512],
    },
    of_class={
        "MultiResolutionSTFTLoss": {"sample_rate": 16000, "perceptual_weighting": True, "scale": "mel", "n_bins": 32},
    },
    inputs=_sounds,
)


def _marked() -> inputs.Inputs:
    """Scores of classes with the right ones, in a sequence and without."""
    import torch

    yield torch.randn(2, 8, 5), torch.randint(0, 5, (2, 8))
    yield torch.randn(16, 5), torch.randint(0, 5, (16,))
    yield (torch.randn(16, 5),)


def _masked_field() -> Any:
    """A conditional random field over sequences of different lengths."""
    import torch
    from torchcrf import CRF

    class Masked(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.field = CRF(5, batch_first=True)

        def forward(self, scores: Any, tags: Any) -> Any:
            mask = torch.arange(scores.shape[1], device=scores.device) < 6
            return self.field(scores, tags, mask=mask.expand(len(scores), -1))

    return Masked()


_TORCHCRF = Package(
    arguments={"num_tags": 5},
    of_class={"CRF": {"num_tags": 5, "batch_first": True}, "MaskedCRF": _masked_field},
    inputs=_marked,
)
_ENTMAX = Package(inputs=_marked)


def _exact(kernel: str, likelihood: str = "GaussianLikelihood", **options: Any) -> Any:
    """An exact Gaussian process with a kernel, and its marginal likelihood."""

    def make() -> Any:
        import gpytorch
        import torch

        known, values = torch.rand(24, 2), torch.randn(24)
        noise = getattr(gpytorch.likelihoods, likelihood)()

        class Process(gpytorch.models.ExactGP):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__(known, values, noise)
                self.mean = gpytorch.means.LinearMean(2)
                self.covariance = gpytorch.kernels.ScaleKernel(getattr(gpytorch.kernels, kernel)(**options))

            def forward(self, points: Any) -> Any:
                return gpytorch.distributions.MultivariateNormal(self.mean(points), self.covariance(points))

        return _trained_process(Process(), noise)

    return make


def _trained_process(process: Any, likelihood: Any) -> Any:
    import gpytorch
    import torch

    class Trained(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.process, self.likelihood = process, likelihood
            self.fit = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)

        def forward(self, *_: Any) -> Any:
            return -self.fit(self.process(*self.process.train_inputs), self.process.train_targets)

    return Trained()


def _approximate(likelihood: str, objective: str = "VariationalELBO", **options: Any) -> Any:
    """A variational Gaussian process, with the likelihood and the objective named."""

    def make() -> Any:
        import gpytorch
        import torch
        from gpytorch import variational

        noise, points = getattr(gpytorch.likelihoods, likelihood)(**options), torch.rand(8, 2)

        class Process(gpytorch.models.ApproximateGP):  # type: ignore[misc]
            def __init__(self) -> None:
                over = variational.CholeskyVariationalDistribution(len(points))
                super().__init__(variational.VariationalStrategy(self, points, over))
                self.mean, self.covariance = gpytorch.means.ConstantMean(), gpytorch.kernels.RBFKernel()

            def forward(self, points: Any) -> Any:
                return gpytorch.distributions.MultivariateNormal(self.mean(points), self.covariance(points))

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.process, self.likelihood = Process(), noise
                self.fit = getattr(gpytorch.mlls, objective)(noise, self.process, num_data=24)

            def forward(self, points: Any, values: Any) -> Any:
                return -self.fit(self.process(points), values)

        return Trained()

    return make


def _placed() -> inputs.Inputs:
    import torch

    points = torch.rand(24, 2)
    yield points, torch.rand(24).clamp(0.1, 0.9)
    yield points, torch.randint(0, 2, (24,)).float()
    yield (points,)


_GPYTORCH = Package(
    parts=("kernels", "means"),
    arguments={"input_size": 2, "num_tasks": 2, "power": 2, "num_dims": 2, "num_samples": 8},
    of_class={
        **{f"Exact{one}": _exact(one) for one in ("RBFKernel", "MaternKernel", "RQKernel", "PeriodicKernel")},
        "ExactLinear": _exact("LinearKernel"),
        "ExactARD": _exact("RBFKernel", ard_num_dims=2),
        "ExactMissing": _exact("RBFKernel", "GaussianLikelihoodWithMissingObs"),
        **{
            f"Approximate{one}": _approximate(f"{one}Likelihood")
            for one in ("Gaussian", "Bernoulli", "Beta", "Laplace", "StudentT")
        },
        "ApproximatePredictive": _approximate("GaussianLikelihood", "PredictiveLogLikelihood"),
        "ApproximateRobust": _approximate("GaussianLikelihood", "GammaRobustVariationalELBO"),
    },
    inputs=_placed,
)


def _optimized(name: str, **options: Any) -> Any:
    """A small network that an optimizer of the package trains: the step of this corpus is the optimizer's."""

    def make() -> Any:
        import pytorch_optimizer
        import torch

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                layers = torch.nn.Linear(32, 32), torch.nn.LayerNorm(32), torch.nn.ReLU(), torch.nn.Linear(32, 16)
                self.layers = torch.nn.Sequential(*layers)
                self.rule = getattr(pytorch_optimizer, name)(self.layers.parameters(), lr=1e-3, **options)

            def forward(self, vectors: Any) -> Any:
                self.rule.zero_grad()
                loss = self.layers(vectors).square().mean()
                loss.backward(create_graph=name in ("AdaHessian", "SophiaH"))
                self.rule.step(lambda: loss) if name in ("AliG", "BSAM") else self.rule.step()
                return loss.detach()

        return Trained()

    return make


_OPTIMIZERS = (
    "A2Grad ADOPT APOLLO ASGD AccSGD AdEMAMix AdaBelief AdaBound AdaDelta AdaFactor AdaGC AdaGO AdaHessian AdaMax "
    "AdaMod AdaNorm AdaPNM AdaShift AdaSmooth AdaTAM Adai Adalite AdamC AdamG AdamP AdamS AdamWSN Adan AggMo Aida "
    "AliG Alice Amos Ano ApolloDQN AvaGrad BCOS CAME Conda DAdaptAdaGrad DAdaptAdam DAdaptAdan DAdaptLion "
    "DAdaptSGD DiffGrad DualAdam EXAdam EmoFact EmoLynx EmoNavi FAdam FOCUS FTRL Fira Fromage GaLore Grams "
    "Gravity GrokFastAdamW Kate Kron LARS LaProp Lamb Lion MADGRAD MARS MSVAG Nero NovoGrad PAdam PID PNM Prodigy "
    "QHAdam QHM RACS RAdam Ranger SGDP SGDSaI SGDW SM3 SOAP SPAM SPlus SRMM SWATS SaRA ScalableShampoo "
    "ScheduleFreeAdamW ScheduleFreeRAdam ScheduleFreeSGD Shampoo SignSGD SimplifiedAdEMAMix SophiaH StableAdamW "
    "StableSPAM TAM Tiger VSGD Yogi"
)
_PYTORCH_OPTIMIZER = Package(
    parts=(),
    of_class={
        **{name: _optimized(name) for name in _OPTIMIZERS.split()},
        "Ranger21": _optimized("Ranger21", num_iterations=10),
    },
    inputs=inputs.vectors,
)


def _flow(name: str, **options: Any) -> Any:
    """A normalizing flow, and how likely it finds what it is given."""

    def make() -> Any:
        import torch
        import zuko

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.flow = getattr(zuko.flows, name)(4, 3, **options)

            def forward(self, points: Any, context: Any) -> Any:
                return -self.flow(context).log_prob(points)

        return Trained()

    return make


def _conditioned() -> inputs.Inputs:
    import torch

    yield torch.rand(16, 4), torch.randn(16, 3)


_ZUKO = Package(
    parts=(),
    of_class={
        **{name: _flow(name) for name in "GMM MAF NSF NICE RealNVP NCSF SOSPF NAF UNAF CNF GF BPF".split()},
        "Random": _flow("NSF", randperm=True),
        "Coupled": _flow("MAF", passes=2),
    },
    inputs=_conditioned,
)


def _connected() -> inputs.Inputs:
    """Nodes with edges and what is known of them; nodes by graph; dense graphs; triples of a knowledge graph."""
    import torch

    nodes, graph = torch.randn(12, 8), torch.arange(12) // 4
    edges = torch.stack([torch.arange(12).repeat(2), torch.cat([torch.arange(12).roll(1), torch.arange(12).roll(3)])])
    weight, marks, kinds = torch.rand(24), torch.rand(24, 8), torch.arange(24) % 2
    place, charges = torch.rand(12, 3), torch.randint(1, 9, (12,))
    yield nodes, edges
    yield nodes, edges, weight
    yield nodes, edges, marks
    yield nodes, edges, kinds
    yield nodes, edges, marks[:, :2].clamp(0, 1)
    yield nodes, edges, marks, graph
    yield nodes, nodes.flip(0), edges
    yield nodes, place, edges
    yield nodes, place, place, edges
    yield nodes, edges, edges.flip(0)
    yield nodes, edges, graph % 2, kinds
    yield nodes, edges, kinds, marks
    yield nodes, graph
    yield torch.randn(2, 6, 8), (torch.rand(2, 6, 6) > 0.5).float()
    yield charges, place, graph
    yield graph, kinds[:12], graph.flip(0)
    yield edges, edges
    yield (torch.randn(2, 6, 8),)
    yield (nodes,)


def _layered(**options: Any) -> dict[str, Any]:
    return {"in_channels": 8, "out_channels": 8, **options}


def _of_nodes(name: str, part: str = "conv", **options: Any) -> Any:
    """A layer around a small network."""

    def make() -> Any:
        import importlib

        import torch

        kind = getattr(importlib.import_module(f"torch_geometric.nn.{part}"), name)
        width = {"EdgeConv": (16, 8), "NNConv": (8, 64)}.get(name, (8, 1 if part == "aggr" else 8))
        return kind(nn=torch.nn.Linear(*width), **options) if part == "conv" else kind(torch.nn.Linear(*width))

    return make


_GRAPHS = Package(
    parts=tuple(f"nn.{part}" for part in "conv aggr norm pool models dense kge attention".split()),
    arguments={
        **dict.fromkeys(("in_channels", "out_channels", "hidden_channels", "channels", "edge_dim"), 8),
        **dict.fromkeys(("num_layers", "num_timesteps", "depth", "num_relations", "num_types", "dim", "groups"), 2),
        **dict.fromkeys(("num_node_types", "num_edge_types", "heads", "num_clusters", "processing_steps"), 2),
        **dict.fromkeys(("edge_type_emb_dim", "edge_attr_emb_dim", "kernel_size", "filter_size", "patch_size"), 2),
        **dict.fromkeys(("alpha", "q"), 0.5),
        "K": 2,
        "k": 3,
        "num_nodes": 12,
        "max_num_elements": 6,
        "aggrs": ["mean", "std"],
        "first_aggr": True,
    },
    of_class={
        "HypergraphConv": _layered(use_attention=False),
        "PNAConv": _layered(aggregators=["mean", "max"], scalers=["identity", "amplification"]),
        **{name: _of_nodes(name) for name in ("EdgeConv", "GINConv", "GINEConv")},
        "NNConv": _of_nodes("NNConv", **_layered()),
        "AttentionalAggregation": _of_nodes("AttentionalAggregation", "aggr"),
    },
    inputs=_connected,
)


def _inferred(guide: str, objective: str = "Trace_ELBO", **options: Any) -> Any:
    """A regression whose weights are inferred: the loss and its gradients, as `SVI` has them in a step."""

    def make() -> Any:
        import pyro
        import pyro.distributions as dist
        import torch
        from pyro.infer import autoguide

        def model(points: Any, values: Any) -> None:
            one = points.new_ones(())
            weights = pyro.sample("weights", dist.Normal(0.0 * one, one).expand([2]).to_event(1))
            spread = pyro.sample("spread", dist.LogNormal(0.0 * one, one))
            with pyro.plate("data", len(points)):
                pyro.sample("seen", dist.Normal(points @ weights, spread), obs=values)

        return _differentiated(model, getattr(autoguide, guide)(model, **options), objective, pyro, torch)

    return make


def _mixed(objective: str) -> Any:
    """A mixture, whose parts are enumerated or drawn."""

    def make() -> Any:
        import pyro
        import pyro.distributions as dist
        import torch
        from pyro.infer import autoguide, config_enumerate

        def model(points: Any, values: Any) -> None:
            one = points.new_ones(())
            shares = pyro.sample("shares", dist.Dirichlet(points.new_ones(2)))
            places = pyro.sample("places", dist.Normal(0.0 * one, one).expand([2]).to_event(1))
            with pyro.plate("data", len(points)):
                part = pyro.sample("part", dist.Categorical(shares))
                pyro.sample("seen", dist.Normal(places[..., part], one), obs=values)

        guide = autoguide.AutoNormal(pyro.poutine.block(model, hide=["part", "seen"]))
        return _differentiated(config_enumerate(model), guide, objective, pyro, torch)

    return make


def _differentiated(model: Any, guide: Any, objective: str, pyro: Any, torch: Any) -> Any:
    class Trained(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.guide, self.loss = guide, getattr(pyro.infer, objective)()
            pyro.clear_param_store()
            # A guide makes its parameters when it is first called.
            self.guide(torch.rand(24, 2), torch.rand(24))

        def forward(self, points: Any, values: Any) -> Any:
            return self.loss.loss_and_grads(model, self.guide, points, values)

    return Trained()


_PYRO = Package(
    parts=("nn", "distributions.transforms"),
    arguments={"input_dim": 2, "hidden_dims": [8], "count_bins": 4},
    of_class={
        **{
            guide: _inferred(guide)
            for guide in "AutoNormal AutoDiagonalNormal AutoMultivariateNormal AutoLowRankMultivariateNormal AutoDelta "
            "AutoLaplaceApproximation AutoIAFNormal AutoStructured".split()
        },
        **{
            objective: _inferred("AutoNormal", objective)
            for objective in "TraceMeanField_ELBO TraceGraph_ELBO RenyiELBO EnergyDistance".split()
        },
        "Enumerated": _mixed("TraceEnum_ELBO"),
    },
    inputs=_placed,
)


#: By the name of the corpus: the package, and how its classes are made.
FIRST_LOOKS: dict[str, tuple[str, Package]] = {
    "piq": ("piq", _PIQ),
    "auraloss": ("auraloss", _AURALOSS),
    "pytorch-crf": ("torchcrf", _TORCHCRF),
    "entmax": ("entmax", _ENTMAX),
    "gpytorch": ("gpytorch", _GPYTORCH),
    "pytorch-optimizer": ("pytorch_optimizer", _PYTORCH_OPTIMIZER),
    "zuko": ("zuko", _ZUKO),
    "torch-geometric": ("torch_geometric", _GRAPHS),
    "pyro": ("pyro", _PYRO),
}
