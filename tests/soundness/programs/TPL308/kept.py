import collections
import contextlib
import functools
import queue
import types
import weakref

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

F = nn.functional


def pairs(n=8):
    inputs = torch.linspace(-1, 1, n * 4).view(n, 4)
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=4)


def evaluate(model: nn.Module, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.mse_loss(model(inputs), targets).item()
    return total


def fit(model):
    print(round(evaluate(model, pairs()), 4))
    model.train()
    loss = model.late()
    try:
        loss.backward()
    except RuntimeError:
        print("no graph")
    print([None if p.grad is None else round(p.grad.sum().item(), 4) for p in model.parameters()])


# program: in a buffer made when it is first needed
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        if not hasattr(self, "centre"):
            self.register_buffer("centre", self.body(x).mean(0))
        return self.body(x) - self.centre

    def late(self):
        return (self.body(torch.ones(2, 4)) * self.centre).sum()


fit(Net())
# program: by setattr
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        out = self.body(x)
        setattr(self, "last", out)
        return out

    def late(self):
        return self.last.sum()


fit(Net())
# program: in a class attribute
class Net(nn.Module):
    last = None

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        Net.last = self.body(x)
        return Net.last

    def late(self):
        return self.last.sum()


fit(Net())
# program: through the type of self
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        type(self).last = out = self.body(x)
        return out

    def late(self):
        return self.last.sum()


fit(Net())
# program: in a global
LAST = None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        global LAST
        LAST = self.body(x)
        return LAST

    def late(self):
        return LAST.sum()


fit(Net())
# program: in a dict of the program
SEEN = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        SEEN["out"] = self.body(x)
        return SEEN["out"]

    def late(self):
        return SEEN["out"].sum()


fit(Net())
# program: through globals
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        globals()["kept"] = out = self.body(x)
        return out

    def late(self):
        return kept.sum()


fit(Net())
# program: in a list of the program that grows
SEEN = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        out = self.body(x)
        SEEN.append(out)
        return out

    def late(self):
        return torch.cat(SEEN).sum()


fit(Net())
# program: in a default argument
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x, seen=[]):
        if not seen:
            seen.append(self.body(x).mean(0))
        return self.body(x) + seen[0]

    def late(self):
        return self.forward(torch.ones(2, 4)).sum()


fit(Net())
# program: in a closure
def keeper():
    kept = None

    def keep(value=None):
        nonlocal kept
        if value is not None:
            kept = value
        return kept

    return keep


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.keep = keeper()

    def forward(self, x):
        return self.keep(self.body(x))

    def late(self):
        return self.keep().sum()


fit(Net())
# program: in a cache of functools
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    @functools.cache
    def scale(self):
        return self.body(torch.ones(4)).sigmoid()

    def forward(self, x):
        return self.body(x) * self.scale()

    def late(self):
        return self.scale().sum()


fit(Net())
# program: in a cache applied by hand
@functools.cache
def scaled(layer):
    return layer(torch.ones(4)).sigmoid()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x) * scaled(self.body)

    def late(self):
        return scaled(self.body).sum()


fit(Net())
# program: in a queue
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.waiting = queue.Queue()

    def forward(self, x):
        out = self.body(x)
        self.waiting.put(out)
        return out

    def late(self):
        return self.waiting.get().sum()


fit(Net())
# program: in a deque, from its left
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.recent = collections.deque(maxlen=3)

    def forward(self, x):
        out = self.body(x)
        self.recent.appendleft(out)
        return out

    def late(self):
        return self.recent[0].sum()


fit(Net())
# program: in a dict of the module by another name
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.cache = {}

    def forward(self, x):
        cache = self.cache
        cache[len(x)] = self.body(x)
        return cache[len(x)]

    def late(self):
        return self.cache[4].sum()


fit(Net())
# program: in what vars gives
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        vars(self)["last"] = out = self.body(x)
        return out

    def late(self):
        return self.last.sum()


fit(Net())
# program: in the dict of self
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        out = self.body(x)
        self.__dict__.update(last=out)
        return out

    def late(self):
        return self.last.sum()


fit(Net())
# program: on a layer
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        body = self.body
        body.last = body(x)
        return body.last

    def late(self):
        return self.body.last.sum()


fit(Net())
# program: under another name of self
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(this, x):
        this.last = this.body(x)
        return this.last

    def late(self):
        return self.last.sum()


fit(Net())
# program: in a namespace that it was given
class Net(nn.Module):
    def __init__(self, shared):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.shared = shared

    def forward(self, x):
        shared = self.shared
        shared.out = self.body(x)
        return shared.out

    def late(self):
        return self.shared.out.sum()


fit(Net(types.SimpleNamespace()))
# program: by the target of a loop
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        for self.last in [self.body(x)]:
            pass
        return self.last

    def late(self):
        return self.last.sum()


fit(Net())
# program: by the target of a with
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        with contextlib.nullcontext(self.body(x)) as self.last:
            return self.last

    def late(self):
        return self.last.sum()


fit(Net())
# program: by an annotated assignment
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        self.last: torch.Tensor = self.body(x)
        return self.last

    def late(self):
        return self.last.sum()


fit(Net())
# program: by a capture of match
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.kept = [0]

    def forward(self, x):
        match self.kept:
            case [_] as held:
                held[0] = self.body(x)
        return self.kept[0]

    def late(self):
        return self.kept[0].sum()


fit(Net())
# program: by slices
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.kept = []

    def forward(self, x):
        kept = self.kept
        kept[len(kept):] = [self.body(x)]
        return kept[-1]

    def late(self):
        return self.kept[-1].sum()


fit(Net())
# program: by adding to a list
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.kept = []

    def forward(self, x):
        kept = self.kept
        kept += [self.body(x)]
        return kept[-1]

    def late(self):
        return self.kept[-1].sum()


fit(Net())
# program: by a bound method
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.kept = []
        self.keep = self.kept.append

    def forward(self, x):
        out = self.body(x)
        self.keep(out)
        return out

    def late(self):
        return self.kept[-1].sum()


fit(Net())
# program: by what a helper of the program does
def remember(owner, value):
    owner.last = value
    return value


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return remember(self, self.body(x))

    def late(self):
        return self.last.sum()


fit(Net())
# program: by a property that sets
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.box = {}

    @property
    def out(self):
        return self.box["out"]

    @out.setter
    def out(self, value):
        self.box["out"] = value

    def forward(self, x):
        self.out = self.body(x)
        return self.out

    def late(self):
        return self.out.sum()


fit(Net())
# program: by a property that computes once
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.box = []

    @property
    def scale(self):
        if not self.box:
            self.box.append(self.body(torch.ones(4)))
        return self.box[0]

    def forward(self, x):
        return self.body(x) * self.scale

    def late(self):
        return self.scale.sum()


fit(Net())
# program: by a hook that keeps
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x)

    def late(self):
        return SEEN["out"].sum()


SEEN = {}


def keep(module, given, out):
    SEEN["out"] = out


net = Net()
net.body.register_forward_hook(keep)
fit(net)
# program: by a hook that is a lambda
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.seen = []
        self.body.register_forward_hook(lambda module, given, out: self.seen.append(out))

    def forward(self, x):
        return self.body(x)

    def late(self):
        return self.seen[0].sum()


fit(Net())
# program: by a hook of all modules
SEEN = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x)

    def late(self):
        return SEEN[0].sum()


nn.modules.module.register_module_forward_hook(lambda module, given, out: SEEN.insert(0, out))
fit(Net())
# program: by a layer of its own deep inside
class Probe(nn.Module):
    def __init__(self, box):
        super().__init__()
        self.box = box

    def forward(self, x):
        box, = [self.box]
        box["x"] = x
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = {}
        self.body = nn.Sequential(nn.Linear(4, 4), Probe(self.seen), nn.Linear(4, 1))

    def forward(self, x):
        return self.body(x)

    def late(self):
        return self.seen["x"].sum()


fit(Net())
# program: by what a forward calls on another object
class Meter:
    def note(self, value):
        self.value = value


class Net(nn.Module):
    def __init__(self, meter):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.meter = meter

    def forward(self, x):
        out = self.body(x)
        self.meter.note(out)
        return out

    def late(self):
        return self.meter.value.sum()


fit(Net(Meter()))
# program: by a forward that hands out and is read again
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.lazy = None

    def table(self):
        if self.lazy is None:
            object.__setattr__(self, "lazy", self.body.weight.softmax(1))
        return self.lazy

    def forward(self, x):
        return x @ self.table().t()

    def late(self):
        return (self.table() * torch.arange(4.0)).sum()


fit(Net())
# program: in an attribute by its place in a tuple
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        out, self.half = self.body(x), self.body(x) / 2
        return out

    def late(self):
        return self.half.sum()


fit(Net())
# program: by a context manager of its own
class Keeping:
    kept = []

    def __init__(self, value):
        self.value = value

    def __enter__(self):
        return self.value

    def __exit__(self, *error):
        self.kept.append(self.value)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        with Keeping(self.body(x)) as out:
            return out

    def late(self):
        return Keeping.kept[0].sum()


fit(Net())
# program: by an operator of its own
class Log:
    def __init__(self):
        self.all = []

    def __lshift__(self, value):
        self.all.append(value)
        return value


LOG = Log()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return LOG << self.body(x)

    def late(self):
        return LOG.all[0].sum()


fit(Net())
# program: on the input
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        out = self.body(x)
        table[id(self)] = out
        return out

    def late(self):
        return table[id(self)].sum()


table = weakref.WeakValueDictionary()
hold = []
table_set = table.__class__.__setitem__


def note(self, key, value):
    hold.append(value)
    table_set(self, key, value)


table = type("Table", (weakref.WeakValueDictionary,), {"__setitem__": note})()
fit(Net())
# program: by a decorator of the program
def remembering(function):
    @functools.wraps(function)
    def wrapped(self, *given):
        out = function(self, *given)
        STORE[type(self).__name__] = out
        return out

    return wrapped


STORE = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    @remembering
    def forward(self, x):
        return self.body(x)

    def late(self):
        return STORE["Net"].sum()


fit(Net())
# program: by who calls a module
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def __call__(self, *given):
        kept["out"] = super().__call__(*given)
        return kept["out"]

    def forward(self, x):
        return self.body(x)

    def late(self):
        return kept["out"].sum()


kept = {}
fit(Net())
# program: by a generator that waits
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.steps = self.keeping()
        next(self.steps)

    def keeping(self):
        kept = None
        while True:
            kept = (yield kept) or kept

    def forward(self, x):
        return self.steps.send([self.body(x)])[0]

    def late(self):
        return next(self.steps)[0].sum()


fit(Net())
# program: by a thread of its own
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.kept = torch.zeros(1)

    def forward(self, x):
        out = self.body(x)
        self.kept = self.kept + out.mean()
        return out

    def late(self):
        return self.kept.sum()


fit(Net())
# program: in a tensor that grows in place
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.kept = torch.zeros(4, 1)

    def forward(self, x):
        out = self.body(x)
        self.kept.add_(out)
        return out

    def late(self):
        return self.kept.sum()


fit(Net())
# program: in a tensor that is copied into
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.register_buffer("kept", torch.zeros(4, 1))

    def forward(self, x):
        out = self.body(x)
        kept = self.kept
        torch.add(kept, 0, out=kept) if False else kept.copy_(out)
        return out

    def late(self):
        return self.kept.sum()


fit(Net())
# program: a state that is carried on
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 1)
        self.state = {"h": None}

    def forward(self, x):
        state = self.state
        state.update(h=self.cell(x, state["h"]))
        return state["h"]

    def late(self):
        return self.state["h"].sum()


fit(Net())
# program: kept by a function that is a global
def remember(value):
    remember.last = value
    return value


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return remember(self.body(x))

    def late(self):
        return remember.last.sum()


fit(Net())
