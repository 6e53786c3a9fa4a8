import copy
import torch
from torch import nn

torch.manual_seed(1)


def show(*modules):
    for module in modules:
        print([round(float(value), 4) for p in module.parameters() for value in p.flatten()[:4]])


class Pair(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.a, self.b = a, b

    def forward(self, x):
        return self.b(self.a(x))

# program: two of torch's own, made here
# expect: fixed
source = nn.Linear(3, 3)
target = nn.Linear(3, 3)
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: two sequences of layers
# expect: fixed
def twin():
    source = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    target = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    target.load_state_dict(copy.deepcopy(source.state_dict()))
    return source, target

show(*twin())

# program: a class of the program
# expect: fixed
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.first = nn.Linear(n, n)
        self.rest = nn.ModuleList([nn.Linear(n, n) for _ in range(2)])

source = Net(3)
target = Net(3).eval()
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: only written out
# expect: fixed
import io
file = io.BytesIO()
torch.save(copy.deepcopy(nn.Linear(2, 2).state_dict()), file)
file.seek(0)
print(torch.load(file))

# program: agent with a target network
# expect: fixed
class Agent:
    def __init__(self):
        self.policy = nn.Linear(2, 2)
        self.target = nn.Linear(2, 2)

    def update(self):
        self.target.load_state_dict(copy.deepcopy(self.policy.state_dict()))

agent = Agent()
for step in range(3):
    agent.policy(torch.ones(2)).sum().backward()
    agent.update()
print(agent.target(torch.ones(2)))

# program: a layer is shared under other keys
shared = nn.Linear(3, 3)
source = Pair(nn.Linear(3, 3), shared)
target = Pair(shared, nn.Linear(3, 3))
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: a layer is shared by a global of the class's file
SHARED = nn.Linear(3, 3)

class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), SHARED

class Second(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = SHARED, nn.Linear(3, 3)

source, target = First(), Second()
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: a layer is shared by the class
class Both(nn.Module):
    common = nn.Linear(3, 3)

    def __init__(self, first):
        super().__init__()
        self.a = self.common if first else nn.Linear(3, 3)
        self.b = nn.Linear(3, 3) if first else self.common

source = Both(True)
target = Both(False)
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: a layer is shared by a default argument
class Both(nn.Module):
    def __init__(self, first, common=nn.Linear(3, 3)):
        super().__init__()
        self.a = common if first else nn.Linear(3, 3)
        self.b = nn.Linear(3, 3) if first else common

source = Both(True)
target = Both(False)
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: a layer is shared by a cached function
import functools

@functools.lru_cache
def layer():
    return nn.Linear(3, 3)

class Both(nn.Module):
    def __init__(self, first):
        super().__init__()
        self.a = layer() if first else nn.Linear(3, 3)
        self.b = nn.Linear(3, 3) if first else layer()

source = Both(True)
target = Both(False)
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: a layer is shared by what configures both
import types

class Both(nn.Module):
    def __init__(self, config, first):
        super().__init__()
        self.a = config.layer if first else nn.Linear(3, 3)
        self.b = nn.Linear(3, 3) if first else config.layer

config = types.SimpleNamespace(layer=nn.Linear(3, 3))
source = Both(config, True)
target = Both(config, False)
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: weights are tied afterwards
source = Pair(nn.Linear(3, 3), nn.Linear(3, 3))
target = Pair(nn.Linear(3, 3), nn.Linear(3, 3))
target.a.weight = source.b.weight
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: weights are tied by a helper
def tie(one, other):
    one.a.weight = other.b.weight

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

source = Net()
target = Net()
tie(target, source)
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: one is part of the other
inner = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
outer = nn.Sequential(inner[1], inner[0])
outer.load_state_dict(copy.deepcopy(inner.state_dict()))
show(inner, outer)

# program: the parts are taken by position
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

source = Net()
target = Net()
target.layers[0] = source.layers[1]
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: the parts are set by name
source = Pair(nn.Linear(3, 3), nn.Linear(3, 3))
target = Pair(nn.Linear(3, 3), nn.Linear(3, 3))
setattr(target, "a", source.b)
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: the parts are added by a method
source = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
target = nn.Sequential()
target.append(source[1])
target.append(source[0])
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: the same module by two parameters
class Swapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.x = inner[1]
        self.y = inner[0]

def twin(student: nn.Module, teacher: nn.Module):
    teacher.load_state_dict({k.replace("0", "z").replace("1", "0").replace("z", "1"): v for k, v in student.state_dict().items()})
    teacher.load_state_dict(copy.deepcopy(student.state_dict()))

both = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
twin(both, both)
show(both)

# program: parameters that share layers
def twin(student: nn.Sequential, teacher: nn.Sequential):
    teacher.load_state_dict(copy.deepcopy(student.state_dict()))

a, b = nn.Linear(2, 2), nn.Linear(2, 2)
one, other = nn.Sequential(a, b), nn.Sequential(b, a)
twin(one, other)
show(one, other)

# program: a library module keeps what it loads
from library import Metric

source, target = Metric(), Metric()
target.load_state_dict(copy.deepcopy(source.state_dict()))
source.total.add_(5)
print(target.total)
# file: library/__init__.py
import torch

class Metric(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.total = torch.zeros(2)

    def state_dict(self, *args, **kwargs):
        return {"total": self.total}

    def load_state_dict(self, state, strict=True):
        self.total = state["total"]

# program: a part of a library keeps what it loads
import sys
sys.path.insert(0, "site")
from outside import Part

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

source = Net()
target = Net()
target.load_state_dict(copy.deepcopy(source.state_dict()))
with torch.no_grad():
    source.part.w.add_(5)
print(target.part.w)
# file: site/outside.txt
# file: outside.pyx
# file: outside/__init__.py
exec('''
import torch

class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(2))

    def _load_from_state_dict(self, state, prefix, *rest):
        self.w.data = state[prefix + "w"].data
''')

# program: extra state is kept
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def get_extra_state(self):
        return self.seen

    def set_extra_state(self, state):
        self.seen = state

source = nn.Sequential(Counter())
target = nn.Sequential(Counter())
target.load_state_dict(copy.deepcopy(source.state_dict()))
source[0].seen.append(1)
print(target[0].seen)

# program: a hook keeps what is loaded
kept = []
source = nn.Linear(2, 2)
target = nn.Linear(2, 2)
target.register_load_state_dict_pre_hook(lambda module, state, *rest: kept.append(state["weight"]))
target.load_state_dict(copy.deepcopy(source.state_dict()))
with torch.no_grad():
    source.weight.add_(1)
print(kept)

# program: memory is shared by an earlier assign
source = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
target = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
target.load_state_dict({k.translate({48: 49, 49: 48}): v for k, v in source.state_dict().items()}, assign=True)
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: what is saved cannot be written as it is
import threading, io

class Locked:
    def __init__(self):
        self.lock, self.n = threading.Lock(), 3

    def __deepcopy__(self, memo):
        return 3

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(1, 1)
        self.lock = Locked()

    def get_extra_state(self):
        return self.lock

    def set_extra_state(self, state):
        pass

file = io.BytesIO()
model = Net()
torch.save(copy.deepcopy(model.state_dict()), file)
print(file.tell() > 0)

# program: the modules come out of a list
layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
source = nn.Sequential(*layers)
target = nn.Sequential(*reversed(layers))
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: parameters are shared by hand
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.a = nn.Linear(n, n)
        self.b = nn.Linear(n, n)

source = Net(2)
target = Net(2)
for p, q in zip(target.a.parameters(), source.b.parameters()):
    p.data = q.data
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: attributes share a layer
class Agent:
    def __init__(self):
        trunk = nn.Linear(2, 2)
        self.policy = nn.Sequential(trunk, nn.Linear(2, 2))
        self.target = nn.Sequential(nn.Linear(2, 2), trunk)

    def update(self):
        self.target.load_state_dict(copy.deepcopy(self.policy.state_dict()))

agent = Agent()
agent.update()
show(agent.policy, agent.target)

# program: an attribute is changed from outside
class Agent:
    def __init__(self):
        self.policy = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        self.target = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))

    def update(self):
        self.target.load_state_dict(copy.deepcopy(self.policy.state_dict()))

agent = Agent()
agent.target[0] = agent.policy[1]
agent.update()
show(agent.policy, agent.target)

# program: a subclass shares a layer
class Agent:
    def __init__(self):
        self.policy = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        self.target = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        self.build()

    def build(self):
        pass

    def update(self):
        self.target.load_state_dict(copy.deepcopy(self.policy.state_dict()))

class Sharing(Agent):
    def build(self):
        self.target = nn.Sequential(self.policy[1], self.policy[0])

agent = Sharing()
agent.update()
show(agent.policy, agent.target)

# program: the copy is made of a copy
# expect: fixed
source = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
target = copy.deepcopy(source)
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: a shallow copy of a module
source = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
target = copy.copy(source)
target._modules = {"0": source[1], "1": source[0]}
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)

# program: a weight of a parametrization
source = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
target = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
target.load_state_dict(copy.deepcopy(source.state_dict()))
show(source, target)
