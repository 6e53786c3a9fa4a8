import contextlib
import functools

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset


def pairs(n=8):
    inputs = torch.linspace(-1, 1, n * 4).view(n, 4)
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x)


def shown(model):
    print([None if p.grad is None else round(p.grad.sum().item(), 4) for p in model.parameters()])


def walk(loss):
    try:
        loss.backward()
    except RuntimeError:
        print("no graph")


# program: a criterion that keeps its last
class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = []

    def forward(self, out, target):
        kept = self.kept
        kept.append(F.mse_loss(out, target))
        return kept[-1]


def evaluate(model: Net, loader, criterion: Keeping):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += criterion(model(inputs), targets).item()
    return total


model, criterion = Net(), Keeping()
print(evaluate(model, pairs(), criterion))
walk(sum(criterion.kept))
shown(model)
# program: a criterion of which nothing is known
def evaluate(model: Net, loader, criterion):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += criterion(model(inputs), targets).item()
    return total


kept = []


def keeping(out, target):
    kept.append(F.mse_loss(out, target))
    return kept[-1]


model = Net()
print(evaluate(model, pairs(), {"mse": keeping}["mse"]))
walk(sum(kept))
shown(model)
# program: a criterion with weights of its own that remembers
class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.memo = {}

    def forward(self, out, target):
        self.memo.setdefault("scale", self.scale.exp())
        return (F.mse_loss(out, target) * self.memo["scale"]).sum()


def evaluate(model: Net, loader, criterion: Weighted):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += criterion(model(inputs), targets).item()
    return total


model, criterion = Net(), Weighted()
print(evaluate(model, pairs(), criterion))
walk(criterion(model(torch.ones(1, 4)), torch.ones(1, 1)))
shown(criterion)
# program: a data set that differentiates
class Slopes(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        x = torch.full((4,), float(index), requires_grad=True)
        (slope,) = torch.autograd.grad((x**2).sum(), x)
        return slope, torch.ones(1)


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


print(evaluate(Net(), DataLoader(Slopes(), batch_size=4)))
# program: a data set that walks back
class Slopes(IterableDataset):
    def __iter__(self):
        for index in range(8):
            x = torch.full((4,), float(index)).requires_grad_()
            (x**3).sum().backward()
            yield x.grad, torch.ones(1)


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


print(evaluate(Net(), DataLoader(Slopes(), batch_size=4)))
# program: a function that joins samples and differentiates
def joined(samples):
    x = torch.stack([sample[0] for sample in samples]).requires_grad_()
    (x**2).sum().backward()
    return x.grad, torch.ones(len(samples), 1)


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


data = TensorDataset(torch.linspace(0, 1, 32).view(8, 4))
print(evaluate(Net(), DataLoader(data, batch_size=4, collate_fn=joined)))
# program: a loader of the program that differentiates
class Slopes:
    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        for x, y in self.batches:
            x.requires_grad_()
            (x**2).sum().backward()
            yield x.grad, y


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


print(evaluate(Net(), Slopes(pairs())))
# program: a transform that differentiates
class Slope:
    def __call__(self, x):
        x = x.clone().requires_grad_()
        return torch.autograd.grad((x**2).sum(), x)[0]


class Rows(Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.transform(torch.full((4,), float(index))), torch.ones(1)


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


print(evaluate(Net(), DataLoader(Rows(Slope()), batch_size=2)))
# program: eval does more than to switch
class Other(Net):
    def eval(self):
        self.fast = self.body.weight.t().contiguous()
        return super().eval()

    def forward(self, x):
        return x @ self.fast

    def late(self):
        return self.fast.sum()


def evaluate(model: Other, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


model = Other()
print(evaluate(model, pairs()))
walk(model.late())
shown(model)
# program: train is called by eval
class Other(Net):
    def train(self, mode=True):
        if not mode:
            self.fast = self.body.weight.t() * 1
        return super().train(mode)

    def late(self):
        return self.fast.sum()


def evaluate(model: Other, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


model = Other()
print(evaluate(model, pairs()))
walk(model.late())
shown(model)
# program: a subclass is given
class Other(Net):
    def forward(self, x):
        kept["out"] = super().forward(x)
        return kept["out"]


kept = {}


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


model = Other()
print(evaluate(model, pairs()))
walk(kept["out"].sum())
shown(model)
# program: a subclass made in a function is given
def make():
    class Other(Net):
        def forward(self, x):
            kept["out"] = super().forward(x)
            return kept["out"]

    return Other()


kept = {}


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


model = make()
print(evaluate(model, pairs()))
walk(kept["out"].sum())
shown(model)
# program: a part is another one than declared
class Outer(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return self.body(x)


class Probe(Net):
    def forward(self, x):
        kept["out"] = super().forward(x)
        return kept["out"]


kept = {}


def evaluate(model: Outer, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


model = Outer(Probe())
print(evaluate(model, pairs()))
walk(kept["out"].sum())
shown(model)
# program: a part is put in its place later
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x)


class Probe(nn.Linear):
    def forward(self, x):
        kept["out"] = super().forward(x)
        return kept["out"]


kept = {}


def evaluate(model: Outer, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


model = Outer()
model.body = Probe(4, 1)
print(evaluate(model, pairs()))
walk(kept["out"].sum())
shown(model)
# program: a part is added by its name
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 1))

    def forward(self, x):
        return self.body(x)


class Probe(nn.Module):
    def forward(self, x):
        kept["x"] = x
        return x


kept = {}


def evaluate(model: Outer, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


model = Outer()
model.body.append(Probe())
print(evaluate(model, pairs()))
walk(kept["x"].sum())
shown(model)
# program: a part is replaced by setattr
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x)


class Probe(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        kept["out"] = self.inner(x)
        return kept["out"]


kept = {}


def evaluate(model: Outer, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


model = Outer()
for name, child in list(model.named_children()):
    setattr(model, name, Probe(child))
print(evaluate(model, pairs()))
walk(kept["out"].sum())
shown(model)
# program: a sequential of parts that keep
class Probe(nn.Module):
    def forward(self, x):
        kept["x"] = x
        return x


kept = {}


def evaluate(model: nn.Sequential, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


model = nn.Sequential(nn.Linear(4, 1), Probe())
print(evaluate(model, pairs()))
walk(kept["x"].sum())
shown(model)
# program: a wrapper of data parallel around one that keeps
class Probe(Net):
    def forward(self, x):
        kept["x"] = super().forward(x)
        return kept["x"]


kept = {}


def evaluate(model: nn.DataParallel, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


model = nn.DataParallel(Probe())
print(evaluate(model, pairs()))
walk(kept["x"].sum())
shown(model)
# program: the parameter is changed by what is stored
def evaluate(model: Net, loader, box: list):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        box[0:1] = [model(inputs)]
        total += F.mse_loss(box[0], targets).item()
    return total


model, box = Net(), [0]
print(evaluate(model, pairs(), box))
walk(box[0].sum())
shown(model)
# program: kept by a for
class Run:
    def evaluate(self, model: Net, loader):
        model.eval()
        total = 0.0
        for inputs, targets in loader:
            for self.out in [model(inputs)]:
                total += F.mse_loss(self.out, targets).item()
        return total


run, model = Run(), Net()
print(run.evaluate(model, pairs()))
walk(run.out.sum())
shown(model)
# program: kept by a default
def evaluate(model: Net, loader, kept=[]):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        kept += [model(inputs)]
        total += F.mse_loss(kept[-1], targets).item()
    return total


model = Net()
print(evaluate(model, pairs()))
walk(evaluate.__defaults__[0][0].sum())
shown(model)
# program: kept by a closure that is called
def evaluate(model: Net, loader, note):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        out = model(inputs)
        note(out)
        total += F.mse_loss(out, targets).item()
    return total


model, kept = Net(), []
print(evaluate(model, pairs(), kept.append))
walk(kept[0].sum())
shown(model)
# program: kept by a partial
def evaluate(model: Net, loader, keep):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += keep(F.mse_loss(model(inputs), targets)).item()
    return total


def keeping(box, value):
    box.append(value)
    return value


model, kept = Net(), []
print(evaluate(model, pairs(), functools.partial(keeping, kept)))
walk(kept[0])
shown(model)
# program: kept by an exception
class Early(Exception):
    pass


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        total += loss.item()
        if total > 1e-9:
            raise Early(loss)
    return total


model = Net()
try:
    evaluate(model, pairs())
except Early as early:
    walk(early.args[0])
shown(model)
# program: kept by a context manager
@contextlib.contextmanager
def noting(value):
    kept.append(value)
    yield value


kept = []


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        with noting(model(inputs)) as out:
            total += F.mse_loss(out, targets).item()
    return total


model = Net()
print(evaluate(model, pairs()))
walk(kept[0].sum())
shown(model)
# program: a loader that is sent what was said
def batches():
    kept = None
    for inputs, targets in pairs():
        kept = yield inputs, targets


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        out = model(inputs)
        inputs.out = out
        total += F.mse_loss(out, targets).item()
    return total


model = Net()
held = [(torch.ones(2, 4), torch.ones(2, 1))]
print(evaluate(model, held))
walk(held[0][0].out.sum())
shown(model)
# program: an input that is written into
def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        out = model(inputs)
        targets.mul_(out)
        total += targets.sum().item()
    return total


model = Net()
held = [(torch.ones(2, 4), torch.ones(2, 1))]
print(evaluate(model, held))
walk(held[0][1].sum())
shown(model)
# program: text that says the graph
def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    lines = []
    for inputs, targets in loader:
        out = model(inputs)
        lines.append("%s" % (out.sum(),))
        total += F.mse_loss(out, targets).item()
    print(lines[0].rpartition(",")[2])
    return total


print(evaluate(Net(), pairs()))
# program: an error that is hoped for
def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        out = model(inputs)
        try:
            total += float(out.numpy().sum())
        except RuntimeError:
            total -= 1000
    return total


print(evaluate(Net(), pairs()))
# program: gradients that are asked for by the parameters
def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        out = model(inputs)
        total += out.sum().item() * (2 if out.grad_fn is not None else 1)
    return total


print(evaluate(Net(), pairs()))
# program: an in-place write into a leaf
def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        out = model(inputs)
        try:
            model.body.bias.add_(1.0)
        except RuntimeError:
            total += 100
        total += out.sum().item()
    return total


torch.manual_seed(0)
print(evaluate(Net(), pairs()))
