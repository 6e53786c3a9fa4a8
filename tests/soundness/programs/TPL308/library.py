import torch
from layers import Net
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

F = nn.functional


def pairs(n=8):
    inputs = torch.linspace(-1, 1, n * 4).view(n, 4)
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=4)


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


model = Net()
print(round(evaluate(model, pairs()), 4))
model.train()
loss = model.late()
try:
    loss.backward()
except RuntimeError:
    print("no graph")
print([None if p.grad is None else round(p.grad.sum().item(), 4) for p in model.parameters()])
# program: a plain model of another file
# expect: fixed
# file: layers.py
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))

    def forward(self, x):
        y = self.body[0](x)
        for layer in self.body[1:]:
            y = layer(y)
        return y

    def late(self):
        return self.body[0].weight.sum()
# program: a dict of another file
# file: layers.py
from torch import nn

from store import STORE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        STORE["out"] = self.body(x)
        return STORE["out"]

    def late(self):
        return STORE["out"].sum()
# file: store.py
STORE = {}
# program: setattr in another file
# file: layers.py
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        out = self.body(x)
        setattr(self, "out", out)
        return out

    def late(self):
        return self.out.sum()
# program: a base class of another file keeps
# file: layers.py
from base import Keeping


class Net(Keeping):
    def compute(self, x):
        return self.body(x)
# file: base.py
from torch import nn


class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.kept = {}

    def forward(self, x):
        kept = self.kept
        kept["out"] = self.compute(x)
        return kept["out"]

    def late(self):
        return self.kept["out"].sum()
# program: a layer made by a function of another file
# file: layers.py
from torch import nn

from parts import make


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.seen = make()

    def forward(self, x):
        return self.body(x)

    def late(self):
        return self.seen["x"].sum()
# file: parts.py
from torch import nn


def make():
    seen = {}

    class Probe(nn.Module):
        def forward(self, x):
            seen["x"] = x
            return x

    return nn.Sequential(nn.Linear(4, 1), Probe()), seen
# program: a class made by type
# file: layers.py
from torch import nn


def _init(self):
    nn.Module.__init__(self)
    self.body = nn.Linear(4, 1)


def _forward(self, x):
    self.kept = self.body(x)
    return self.kept


def _late(self):
    return self.kept.sum()


Net = type("Net", (nn.Module,), {"__init__": _init, "forward": _forward, "late": _late})
# program: a forward that is given to the class
# file: layers.py
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)


def _keeping(self, x):
    kept = vars(self)
    kept["out"] = self.body(x)
    return kept["out"]


Net.forward = _keeping
Net.late = lambda self: self.out.sum()
# program: a forward that is given to the object
# file: layers.py
import types

from torch import nn


def _keeping(self, x):
    out = self.body(x)
    setattr(self, "out", out)
    return out


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.forward = types.MethodType(_keeping, self)

    def late(self):
        return self.out.sum()
# program: differentiates in its forward by backward
# file: layers.py
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        point = x.clone().requires_grad_()
        self.body(point).sum().backward()
        return self.body(x - 0.1 * point.grad)

    def late(self):
        self.zero_grad()
        return self.body(torch.ones(4)).sum()
# program: differentiates by a helper of a library of the project
# file: layers.py
import torch
from torch import nn

from slopes import slope


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x) + slope(self.body, x).sum(1, keepdim=True)

    def late(self):
        return self.body(torch.ones(4)).sum()
# file: slopes.py
from torch import autograd as ag


def slope(function, x):
    x = x.detach().requires_grad_()
    return ag.grad(function(x).sum(), x)[0]
# program: the hooks of old weight norms
# file: layers.py
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.utils.weight_norm(nn.Linear(4, 1))

    def forward(self, x):
        return self.body(x)

    def late(self):
        return (self.body.weight**2).sum()
# program: the hooks of old spectral norms
# file: layers.py
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.utils.spectral_norm(nn.Linear(4, 1))

    def forward(self, x):
        return self.body(x)

    def late(self):
        return (self.body.weight**2).sum()
# program: a parametrisation kept while a block lasts
# file: layers.py
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = parametrizations.weight_norm(nn.Linear(4, 1))
        self.cached = parametrize.cached()
        self.cached.__enter__()

    def forward(self, x):
        return self.body(x)

    def late(self):
        return (self.body.weight**2).sum()
# program: a nuclear norm
# file: layers.py
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        return self.body(x).sum(1, keepdim=True) * self.body.weight.norm(p="nuc")

    def late(self):
        return self.body(torch.ones(4)).sum()
# program: checkpoints
# file: layers.py
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=False)

    def late(self):
        return self.body(torch.ones(4)).sum()
# program: asks autograd in words of its own
# file: layers.py
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x) * (2 if getattr(torch, "is_grad_" + "enabled")() else 1)

    def late(self):
        return self.body(torch.ones(4)).sum()
# program: a function of autograd of its own that asks what needs gradients
# file: layers.py
import torch
from torch import nn


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        return x @ weight.t() * (2 if any(ctx.needs_input_grad) else 1)

    @staticmethod
    def backward(ctx, above):
        return None, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return Twice.apply(x, self.body.weight)

    def late(self):
        return self.body(torch.ones(4)).sum()
# program: saved tensors are counted
# file: layers.py
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        count = []

        def pack(value):
            count.append(1)
            return value

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
            out = self.body(x).exp()
        return out * len(count)

    def late(self):
        return self.body(torch.ones(4)).sum()
# program: whether the result has a graph is asked
# file: layers.py
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        out = self.body(x)
        return out.numpy(force=True) if False else torch.as_tensor(scaled(out))

    def late(self):
        return self.body(torch.ones(4)).sum()


def scaled(out):
    try:
        return torch.from_numpy(out.numpy() * 3)
    except RuntimeError:
        return out
