"""Packages that nothing of this project had used, or read, before they were observed: spiking networks, equivariant
networks, stochastic differential equations, optimization on manifolds, spline networks, attacks, networks of tables.
"""

from __future__ import annotations

from typing import Any

import small_tensors as inputs
from small_modules import Package


def _spiking(neuron: str, **options: Any) -> Any:
    """Two layers of neurons over a few steps of time, and a loss over their spikes."""
    loss, steps = options.pop("loss", "ce_rate_loss"), 5

    def make() -> Any:
        import snntorch
        import torch
        from snntorch import functional, utils

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                both = [{"init_hidden": True, **options}, {"init_hidden": True, "output": True, **options}]
                kinds = [getattr(snntorch, neuron)(**one) for one in both]
                self.layers = torch.nn.Sequential(torch.nn.Linear(8, 5), kinds[0], torch.nn.Linear(5, 5), kinds[1])
                self.loss = getattr(functional, loss)()

            def forward(self, vectors: Any, labels: Any) -> Any:
                utils.reset(self.layers)
                spikes = [self.layers(vectors)[0] for _ in range(steps)]
                return self.loss(torch.stack(spikes), labels)

        return Trained()

    return make


def _spiking_whole(neuron: str, **options: Any) -> Any:
    """Neurons that take all steps of time at once."""

    def make() -> Any:
        import snntorch
        import torch

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.neuron = getattr(snntorch, neuron)(**options)

            def forward(self, vectors: Any, _: Any) -> Any:
                return self.neuron(vectors.expand(5, *vectors.shape))

        return Trained()

    return make


_CELL = {"beta": 0.9, "threshold": 0.5}
_SNNTORCH = Package(
    parts=(),
    of_class={
        "Leaky": _spiking("Leaky", **_CELL),
        "LearntLeaky": _spiking("Leaky", **_CELL, learn_beta=True, learn_threshold=True),
        "ZeroedLeaky": _spiking("Leaky", **_CELL, reset_mechanism="zero"),
        "InhibitedLeaky": _spiking("Leaky", **_CELL, inhibition=True),
        "Synaptic": _spiking("Synaptic", **_CELL, alpha=0.8),
        "Alpha": _spiking("Alpha", alpha=0.9, beta=0.8, threshold=0.5),
        "Lapicque": _spiking("Lapicque", **_CELL),
        "DeltaLeaky": _spiking("DeltaLeaky", **_CELL),
        "RLeaky": _spiking("RLeaky", **_CELL, linear_features=5),
        "RSynaptic": _spiking("RSynaptic", **_CELL, alpha=0.8, linear_features=5),
        "SLSTM": _spiking("SLSTM", input_size=5, hidden_size=5, threshold=0.2),
        **{
            loss: _spiking("Leaky", **_CELL, loss=loss)
            for loss in "ce_count_loss ce_max_membrane_loss mse_count_loss mse_membrane_loss mse_temporal_loss "
            "ce_temporal_loss".split()
        },
        "LeakyParallel": _spiking_whole("LeakyParallel", input_size=8, hidden_size=5),
        "LinearLeaky": _spiking_whole("LinearLeaky", beta=0.9, in_features=8, out_features=5),
        "StateLeaky": _spiking_whole("StateLeaky", beta=0.9, channels=8),
        "AssociativeLeaky": _spiking_whole("AssociativeLeaky", in_dim=8, d_value=4, d_key=4, num_spiking_neurons=16),
    },
    inputs=inputs.embeddings,
)


def _equivariant(version: str) -> Any:
    """A network over a cloud of points."""

    def make() -> Any:
        import importlib

        import torch

        networks = importlib.import_module(f"e3nn.nn.models.{version}.gate_points_networks")

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                sizes = {"max_radius": 2.0, "num_neighbors": 3.0, "num_nodes": 5.0, "mul": 4, "layers": 1, "lmax": 1}
                self.plain = networks.SimpleNetwork("0e + 1o", "0e + 1o", **sizes)
                self.rich = networks.NetworkForAGraphWithAttributes("0e + 1o", "0e", "0e", "0e", **sizes)

            def forward(self, features: Any, places: Any, edges: Any) -> Any:
                cloud = {"pos": places, "x": features, "batch": torch.arange(10, device=places.device) // 5}
                graph = {"edge_index": edges, "node_attr": features[:, :1], "edge_attr": features[edges[0], :1]}
                return self.plain(cloud), self.rich(cloud | graph)

        return Trained()

    return make


def _equivariant_layer(name: str, *given: Any, part: str = "nn", **options: Any) -> Any:
    def make() -> Any:
        import importlib

        import torch
        from e3nn.o3 import Irreps

        words = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "irreps": Irreps(_TWO)}

        def known(one: Any) -> Any:
            return [known(each) for each in one] if isinstance(one, list) else words.get(one, one)

        kind = getattr(importlib.import_module(f"e3nn.{part}"), name)
        return kind(*map(known, given), **{key: known(value) for key, value in options.items()})

    return make


def _clouds() -> inputs.Inputs:
    import torch

    places = torch.rand(10, 3)
    yield torch.randn(10, 4), places, torch.stack([torch.arange(10), torch.arange(10).roll(1)])
    yield (torch.randn(10, 4),)
    yield torch.randn(10, 4), torch.randn(10, 4)
    for width in (16, 3, 5, 6, 10):
        yield (torch.randn(10, width),)
    yield (torch.randn(1, 4, 6, 6, 6),)
    yield torch.rand(10), torch.rand(10)


_TWO = "0e + 1o"
_E3NN = Package(
    parts=(),
    of_class={
        "Network": _equivariant("v2106"),
        "BatchNorm": _equivariant_layer("BatchNorm", _TWO),
        "InstanceNorm": _equivariant_layer("BatchNorm", _TWO, instance=True),
        "Dropout": _equivariant_layer("Dropout", _TWO, 0.5),
        "NormActivation": _equivariant_layer("NormActivation", "irreps", "sigmoid", bias=True),
        "Activation": _equivariant_layer("Activation", "4x0e", ["tanh"]),
        "Gate": _equivariant_layer("Gate", "1x0e", ["relu"], "1x0e", ["sigmoid"], "1x1o"),
        "S2Activation": _equivariant_layer("S2Activation", _TWO, "tanh", 10),
        "SO3Activation": _equivariant_layer("SO3Activation", 1, 1, "tanh", 4),
        "FullyConnectedNet": _equivariant_layer("FullyConnectedNet", [4, 8, 4], "relu"),
        "Linear": _equivariant_layer("Linear", _TWO, _TWO, part="o3"),
        "Norm": _equivariant_layer("Norm", _TWO, part="o3"),
        "FullTensorProduct": _equivariant_layer("FullTensorProduct", _TWO, _TWO, part="o3"),
        "ElementwiseTensorProduct": _equivariant_layer("ElementwiseTensorProduct", _TWO, _TWO, part="o3"),
        "FullyConnectedTensorProduct": _equivariant_layer("FullyConnectedTensorProduct", *[_TWO] * 3, part="o3"),
        "TensorSquare": _equivariant_layer("TensorSquare", _TWO, part="o3"),
        "ReducedTensorProducts": _equivariant_layer("ReducedTensorProducts", "ij=ji", i="1o", part="o3"),
        "SphericalHarmonics": _equivariant_layer("SphericalHarmonics", [0, 1, 2], True, part="o3"),
        "SphericalHarmonicsAlphaBeta": _equivariant_layer("SphericalHarmonicsAlphaBeta", [0, 1, 2], part="o3"),
        "ToS2Grid": _equivariant_layer("ToS2Grid", 1, (6, 5), part="o3"),
        "Voxels": _equivariant_layer("Convolution", _TWO, _TWO, _TWO, 3, 3, part="nn.models.v2104.voxel_convolution"),
        "LowPassFilter": _equivariant_layer("LowPassFilter", 2.0, stride=2, part="nn.models.v2104.voxel_convolution"),
    },
    inputs=_clouds,
)


def _stochastic(noise: str, kind: str, method: str, use: str = "sdeint", **options: Any) -> Any:
    """A neural stochastic differential equation, solved and differentiated."""

    def make() -> Any:
        import torch
        import torchsde

        class Equation(torch.nn.Module):  # type: ignore[misc]
            noise_type, sde_type = noise, kind

            def __init__(self) -> None:
                super().__init__()
                self.drift, self.prior = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
                self.spread = torch.nn.Parameter(torch.full((3,), 0.3))

            def f(self, _: Any, y: Any) -> Any:
                return self.drift(y)

            def g(self, _: Any, y: Any) -> Any:
                if noise == "diagonal":
                    return self.spread * y.sigmoid()
                if noise == "scalar":
                    return (self.spread * y.sigmoid()).unsqueeze(-1)
                wide = self.spread[:, None].expand(3, 2)
                return wide.expand(len(y), 3, 2) if noise == "additive" else wide * y.sigmoid().unsqueeze(-1)

            def h(self, _: Any, y: Any) -> Any:
                return self.prior(y)

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.equation = Equation()

            def forward(self, start: Any) -> Any:
                times = torch.linspace(0.0, 0.3, 4, device=start.device)
                return getattr(torchsde, use)(self.equation, start, times, method=method, dt=0.1, **options)

        return Trained()

    return make


def _starts() -> inputs.Inputs:
    import torch

    yield (torch.rand(4, 3),)


_TORCHSDE = Package(
    parts=(),
    of_class={
        "Euler": _stochastic("diagonal", "ito", "euler"),
        "Milstein": _stochastic("diagonal", "ito", "milstein"),
        "MilsteinFree": _stochastic("diagonal", "ito", "milstein", options={"grad_free": True}),
        "MilsteinStratonovich": _stochastic("diagonal", "stratonovich", "milstein"),
        "SRK": _stochastic("diagonal", "ito", "srk"),
        "SRKAdditive": _stochastic("additive", "ito", "srk"),
        "Midpoint": _stochastic("general", "stratonovich", "midpoint"),
        "Heun": _stochastic("general", "stratonovich", "heun"),
        "EulerHeun": _stochastic("scalar", "stratonovich", "euler_heun"),
        "ReversibleHeun": _stochastic("general", "stratonovich", "reversible_heun"),
        "LogOde": _stochastic("general", "stratonovich", "log_ode"),
        "Adaptive": _stochastic("diagonal", "ito", "srk", adaptive=True, rtol=1e-2, atol=1e-2),
        "Likelihood": _stochastic("diagonal", "ito", "euler", logqp=True),
        "Adjoint": _stochastic("diagonal", "ito", "euler", "sdeint_adjoint"),
        "AdjointMidpoint": _stochastic("general", "stratonovich", "midpoint", "sdeint_adjoint"),
        "AdjointReversible": _stochastic(
            "general", "stratonovich", "reversible_heun", "sdeint_adjoint", adjoint_method="adjoint_reversible_heun"
        ),
        "AdjointAdaptive": _stochastic(
            "diagonal", "ito", "milstein", "sdeint_adjoint", adaptive=True, adjoint_adaptive=True, rtol=1e-2, atol=1e-2
        ),
    },
    inputs=_starts,
)


def _on_manifold(manifold: str, optimizer: str = "RiemannianAdam", **options: Any) -> Any:
    """Parameters on a manifold that an optimizer moves along it, and distances from data there."""

    def make() -> Any:
        import geoopt
        import torch

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.manifold = getattr(geoopt, manifold, None) or getattr(geoopt.manifolds, manifold)
                self.manifold = self.manifold(**options)
                start = self.manifold.random(6, 4, 4) if manifold in _SQUARE else self.manifold.random(6, 4)
                self.places = geoopt.ManifoldParameter(start, manifold=self.manifold)
                # Of the step, and made when the parameters lie where they are trained.
                self.rule: Any = None

            def forward(self, _: Any) -> Any:
                if self.rule is None:
                    kind = getattr(geoopt.optim, optimizer)
                    given = {} if optimizer == "RiemannianLineSearch" else {"lr": 1e-2, **_MOMENTUM.get(optimizer, {})}
                    self.rule = kind(self.parameters(), **given)
                self.rule.zero_grad()
                self._loss().backward()
                self.rule.step(*([self._loss] if optimizer == "RiemannianLineSearch" else []))
                return self._loss().detach()

            def _loss(self) -> Any:
                first, second = self.places[:3], self.places[3:].detach()
                if hasattr(self.manifold, "dist") and manifold not in _WITHOUT_DISTANCE:
                    return self.manifold.dist(first, second).square().mean()
                return (first - second).square().mean()

        return Trained()

    return make


_SQUARE = {"Stiefel", "EuclideanStiefel", "CanonicalStiefel", "SymmetricPositiveDefinite", "BirkhoffPolytope"}
_WITHOUT_DISTANCE = {"Stiefel", "EuclideanStiefel", "CanonicalStiefel", "BirkhoffPolytope"}
_MOMENTUM: dict[str, dict[str, Any]] = {
    "RiemannianSGD": {"momentum": 0.9, "stabilize": 1},
    "RiemannianAdam": {"stabilize": 1},
}


def _hyperbolic_planes() -> Any:
    import geoopt
    import torch
    from geoopt.layers.stereographic import Distance2StereographicHyperplanes

    class Trained(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.ball = geoopt.PoincareBall()
            self.planes = Distance2StereographicHyperplanes(4, 3, ball=self.ball)

        def forward(self, vectors: Any) -> Any:
            return self.planes(self.ball.expmap0(vectors))

    return Trained()


def _rows() -> inputs.Inputs:
    import torch

    yield (torch.rand(16, 4),)


_MANIFOLDS = (
    "Euclidean Stiefel CanonicalStiefel Sphere SphereExact SymmetricPositiveDefinite BirkhoffPolytope PoincareBall "
    "PoincareBallExact SphereProjection Lorentz"
)
_GEOOPT = Package(
    parts=(),
    of_class={
        **{name: _on_manifold(name) for name in _MANIFOLDS.split()},
        **{f"{name}SGD": _on_manifold(name, "RiemannianSGD") for name in ("Sphere", "PoincareBall", "Stiefel")},
        "LearntBall": _on_manifold("PoincareBall", learnable=True),
        "LineSearch": _on_manifold("Sphere", "RiemannianLineSearch"),
        "Hyperplanes": _hyperbolic_planes,
    },
    inputs=_rows,
)


def _spline_network(**options: Any) -> Any:
    """A network of splines, fitted by the package's own loop of which a step is observed."""
    fitted = {"opt": "Adam", "steps": 4, "lr": 1e-2, **options.pop("fit", {})}

    def make() -> Any:
        import torch
        from kan import MultKAN

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.network = MultKAN(width=[4, 3, 1], grid=3, k=3, auto_save=False, **options)

            def forward(self, points: Any) -> Any:
                self.network.to(points.device)
                values = points.detach().square().sum(1, keepdim=True)
                parts = {"train_input": points.detach(), "train_label": values}
                self.network.fit({**parts, "test_input": points.detach(), "test_label": values}, **fitted)
                return self.network(points.detach()).mean().detach()

        return Trained()

    return make


def _spline_forward(**options: Any) -> Any:
    def make() -> Any:
        import torch
        from kan import MultKAN

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.network = MultKAN(width=[4, [2, 1], 1], grid=3, k=3, auto_save=False, **options)

            def forward(self, points: Any) -> Any:
                self.network.to(points.device)
                found = self.network(points)
                return found.mean() + self.network.get_reg("edge_forward_spline_n", 1.0, 2.0, 0.1, 0.1)

        return Trained()

    return make


_PYKAN = Package(
    parts=(),
    of_class={
        "Adam": _spline_network(),
        "AdamPlain": _spline_network(symbolic_enabled=False, fit={"batch": 8}),
        "Penalized": _spline_network(fit={"lamb": 0.01, "lamb_coef": 0.1}),
        "Backward": _spline_network(fit={"lamb": 0.01, "reg_metric": "edge_backward"}),
        "NodeBackward": _spline_network(fit={"lamb": 0.01, "reg_metric": "node_backward"}),
        "LBFGS": _spline_network(fit={"opt": "LBFGS"}),
        "Avoiding": _spline_network(fit={"singularity_avoiding": True}),
        "Forward": _spline_forward(),
        "ForwardSparse": _spline_forward(sparse_init=True, affine_trainable=True),
    },
    inputs=_rows,
)


def _attacked(name: str, **options: Any) -> Any:
    """Training on pictures that an attack has changed."""

    def make() -> Any:
        import torch
        import torchattacks

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                layers = torch.nn.Conv2d(3, 4, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(196, 10)
                self.network = torch.nn.Sequential(*layers)
                self.attack = [getattr(torchattacks, name)(self.network, **options)]

            def forward(self, pictures: Any, labels: Any) -> Any:
                self.attack[0].set_device(pictures.device)
                changed = self.attack[0](pictures.detach(), labels)
                return torch.nn.functional.cross_entropy(self.network(changed), labels)

        return Trained()

    return make


def _labelled() -> inputs.Inputs:
    import torch

    yield torch.rand(4, 3, 16, 16), torch.randint(0, 10, (4,))
    yield torch.rand(1, 3, 16, 16), torch.randint(0, 10, (1,))


_STEPPED = (
    "BIM RFGSM PGD EOTPGD TPGD MIFGSM UPGD APGD APGDT DIFGSM TIFGSM Jitter NIFGSM PGDRS SINIFGSM VMIFGSM VNIFGSM CW "
    "PGDL2 DeepFool PGDRSL2 SparseFool FAB"
)
_TORCHATTACKS = Package(
    parts=(),
    of_class={
        **{name: _attacked(name) for name in ("VANILA", "GN", "FGSM", "FFGSM", "JSMA")},
        **{name: _attacked(name, steps=3) for name in _STEPPED.split()},
        "PIFGSM": _attacked("PIFGSM", num_iter_set=3),
        "PIFGSMPP": _attacked("PIFGSMPP", num_iter_set=3),
        "SPSA": _attacked("SPSA", nb_sample=8),
        "EADL1": _attacked("EADL1", binary_search_steps=2, max_iterations=20),
        "EADEN": _attacked("EADEN", binary_search_steps=2, max_iterations=20),
        "Square": _attacked("Square", n_queries=5),
        "OnePixel": _attacked("OnePixel", steps=1, popsize=4),
        "Pixle": _attacked("Pixle", restarts=2, max_iterations=2),
    },
    inputs=_labelled,
)


def _fitted_table(kind: str, **options: Any) -> Any:
    """The package's own loop over batches of a table, of which a step is observed."""

    def make() -> Any:
        import numpy as np
        import torch
        from pytorch_tabnet import augmentations, multitask, pretraining, tab_model

        rows, sizes = np.random.RandomState(0).rand(48, 6).astype("float32"), {"n_d": 4, "n_a": 4, "n_steps": 2}
        classes: Any = np.arange(48) % 2
        loop: dict[str, Any] = {"max_epochs": 1, "batch_size": 8, "virtual_batch_size": 4, "drop_last": False}
        module = {"TabNetPretrainer": pretraining, "TabNetMultiTaskClassifier": multitask}.get(kind, tab_model)
        targets = {
            "TabNetClassifier": (classes,),
            "TabNetRegressor": (rows[:, :1],),
            "TabNetMultiTaskClassifier": (np.stack([classes, classes], 1),),
        }.get(kind, ())
        if options.pop("is_augmented", False):
            loop["augmentations"] = augmentations.ClassificationSMOTE(device_name="cuda")

        class Trained(torch.nn.Module):  # type: ignore[misc]
            def forward(self, values: Any) -> Any:
                chosen = getattr(module, kind)(device_name=values.device.type, verbose=0, **sizes, **options)
                if isinstance(loop.get("augmentations"), augmentations.ClassificationSMOTE):
                    loop["augmentations"].device = values.device
                chosen.fit(rows, *targets, **loop)
                return values.detach()

        return Trained()

    return make


def _tabular(name: str, **options: Any) -> Any:
    def make() -> Any:
        import torch
        from pytorch_tabnet import tab_network

        groups = {} if name == "TabNetDecoder" else {"group_attention_matrix": torch.eye(4)}
        found = getattr(tab_network, name)(**{"input_dim": 4, "n_d": 4, **groups, **options})
        return _placed_groups(found)

    return make


def _placed_groups(found: Any) -> Any:
    """The package leaves the matrix of groups to the caller."""
    import torch

    class Placed(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = found

        def forward(self, rows: Any) -> Any:
            for one in self.inner.modules():
                if isinstance(getattr(one, "group_attention_matrix", None), torch.Tensor):
                    one.group_attention_matrix = one.group_attention_matrix.to(rows.device)
            return self.inner(rows)

    return Placed()


_PYTORCH_TABNET = Package(
    parts=(),
    of_class={
        **{
            kind: _fitted_table(kind)
            for kind in ("TabNetClassifier", "TabNetRegressor", "TabNetPretrainer", "TabNetMultiTaskClassifier")
        },
        "Embedded": _fitted_table("TabNetClassifier", cat_idxs=[], cat_dims=[], mask_type="entmax"),
        "Augmented": _fitted_table("TabNetClassifier", is_augmented=True),
        "TabNet": _tabular("TabNet", output_dim=2),
        "TabNetNoEmbeddings": _tabular("TabNetNoEmbeddings", output_dim=2),
        "TabNetPretraining": _tabular("TabNetPretraining"),
        "TabNetEncoder": _tabular("TabNetEncoder", output_dim=2, mask_type="entmax"),
    },
    inputs=_rows,
)

UNSEEN_LOOKS: dict[str, tuple[str, Package]] = {
    "snntorch": ("snntorch", _SNNTORCH),
    "e3nn": ("e3nn", _E3NN),
    "torchsde": ("torchsde", _TORCHSDE),
    "geoopt": ("geoopt", _GEOOPT),
    "pykan": ("kan", _PYKAN),
    "torchattacks": ("torchattacks", _TORCHATTACKS),
    "pytorch-tabnet": ("pytorch_tabnet", _PYTORCH_TABNET),
}
