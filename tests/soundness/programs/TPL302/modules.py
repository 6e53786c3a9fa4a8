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

# program: two of torch's own
# expect: fixed
source = nn.Linear(3, 3)
target = nn.Linear(3, 3)
target.load_state_dict({k: v.clone() for k, v in source.state_dict().items()})
show(source, target)

# program: back to itself
# expect: fixed
model = nn.Linear(3, 3)
model.load_state_dict({k: v.detach().clone() for k, v in model.state_dict().items()})
show(model)

# program: a class of the program
# expect: fixed
class Net(nn.Module):
    def __init__(self, n, depth=2):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(n, n) for _ in range(depth)])

def load():
    source, target = Net(3), Net(3)
    target.load_state_dict({k: v.clone() for k, v in source.state_dict().items()})
    return source, target

show(*load())

# program: from a file
# expect: fixed
import io
file = io.BytesIO()
torch.save(nn.Linear(2, 2).state_dict(), file)
file.seek(0)
target = nn.Linear(2, 2)
state = torch.load(file)
target.load_state_dict({k: v.clone() for k, v in state.items()})
show(target)

# program: a layer is shared
shared = nn.Linear(3, 3)
source = Pair(nn.Linear(3, 3), shared)
target = Pair(shared, nn.Linear(3, 3))
target.load_state_dict({k: v.clone() for k, v in source.state_dict().items()})
show(source, target)

# program: parameters that share layers
def load(student: nn.Sequential, teacher: nn.Sequential):
    teacher.load_state_dict({k: v.clone() for k, v in student.state_dict().items()})

a, b = nn.Linear(2, 2), nn.Linear(2, 2)
one, other = nn.Sequential(a, b), nn.Sequential(b, a)
load(one, other)
show(one, other)

# program: parameters of other classes that are one
def load(student: nn.Sequential, teacher: nn.Module):
    teacher.load_state_dict({("1" if k[0] == "0" else "0") + k[1:]: v.clone() for k, v in student.state_dict().items()})

both = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
load(both, both)
show(both)

# program: a module loads its own tensors under other keys
model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
model.load_state_dict({("1" if k[0] == "0" else "0") + k[1:]: v.clone() for k, v in model.state_dict().items()})
show(model)

# program: another name for the same module
model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
same = [model][0]
model.load_state_dict({("1" if k[0] == "0" else "0") + k[1:]: v.clone() for k, v in same.state_dict().items()})
show(model)

# program: weights are tied
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

source = Net()
target = Net()
target.a.weight = source.b.weight
target.load_state_dict({k: v.clone() for k, v in source.state_dict().items()})
show(source, target)

# program: the layers of a list, turned around
layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
source = nn.Sequential(*layers)
target = nn.Sequential(*layers[::-1])
target.load_state_dict({k: v.clone() for k, v in source.state_dict().items()})
show(source, target)

# program: entries are exchanged
model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
state = model.state_dict()
state["0.weight"], state["1.weight"] = state["1.weight"], state["0.weight"]
model.load_state_dict({k: v.clone() for k, v in state.items()})
show(model)

# program: entries are exchanged by a helper
def swap(state):
    state["0.weight"], state["1.weight"] = state["1.weight"], state["0.weight"]

model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
state = model.state_dict()
swap(state)
model.load_state_dict({k: v.clone() for k, v in state.items()})
show(model)

# program: entries are exchanged by another name
model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
state = model.state_dict()
alias = state
alias["0.weight"], alias["1.weight"] = alias["1.weight"], alias["0.weight"]
model.load_state_dict({k: v.clone() for k, v in state.items()})
show(model)

# program: what a file is said to hold comes from memory
class Store:
    def __init__(self, model):
        self.model = model

    def load(self):
        a = dict(self.model.state_dict())
        a["0.weight"], a["1.weight"] = a["1.weight"], a["0.weight"]
        return a

model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
state = Store(model).load()
model.load_state_dict({k: v.clone() for k, v in state.items()})
show(model)

# program: a module shares its parts under two names
inner = nn.Linear(2, 2)
model = Pair(inner, inner)
model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()})
show(model)

# program: one of two tied names is left out
inner = nn.Linear(2, 2)
model = Pair(inner, inner)
model.load_state_dict({k: v.clone() for k, v in model.state_dict().items() if k[0] == "a"}, strict=False)
show(model)

# program: the dict is read again after it was loaded
source = nn.Linear(2, 2)
target = nn.Linear(2, 2)
state = {k: v.clone() for k, v in source.state_dict().items()}
target.load_state_dict(state)
with torch.no_grad():
    source.weight.add_(1)
print(state["weight"])

# program: a hook keeps what it is given
kept = {}
source = nn.Linear(2, 2)
target = nn.Linear(2, 2)
target.register_load_state_dict_pre_hook(lambda module, state, *rest: kept.update(state))
target.load_state_dict({k: v.clone() for k, v in source.state_dict().items()})
with torch.no_grad():
    source.weight.add_(1)
print(kept["weight"])

# program: an optimizer by the name of a model
class Wrapped(torch.optim.SGD):
    pass

p = nn.Parameter(torch.ones(2))
model = Wrapped([p], lr=0.1)
try:
    model.load_state_dict({k: v.clone() for k, v in model.state_dict()["state"].items()})
except Exception as error:
    print(type(error).__name__)

# program: its own class keeps the tensors
class Keeper(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))

    def _load_from_state_dict(self, state, prefix, *rest):
        self.w.data = state[prefix + "w"].data

source = nn.Sequential(Keeper())
target = nn.Sequential(Keeper())
target.load_state_dict({k: v.clone() for k, v in source.state_dict().items()})
with torch.no_grad():
    source[0].w.add_(1)
show(target)

# program: a library's class keeps the tensors
from library import Keeper

source = nn.Sequential(Keeper())
target = nn.Sequential(Keeper())
target.load_state_dict({k: v.clone() for k, v in source.state_dict().items()})
with torch.no_grad():
    source[0].w.add_(1)
show(target)
# file: library/__init__.py
exec('''
import torch

class Keeper(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(2))

    def _load_from_state_dict(self, state, prefix, *rest):
        self.w.data = state[prefix + "w"].data
''')

# program: the class makes both of one store
STORE = {}

class Net(nn.Module):
    def __init__(self, first):
        super().__init__()
        made = STORE.setdefault("layer", nn.Linear(2, 2))
        self.a = made if first else nn.Linear(2, 2)
        self.b = nn.Linear(2, 2) if first else made

source = Net(True)
target = Net(False)
target.load_state_dict({k: v.clone() for k, v in source.state_dict().items()})
show(source, target)

# program: the clone is of an expanded weight
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.arange(4.0))
        self.register_buffer("b", torch.zeros(4))

source = Wide()
source.b = source.a.flip(0)
target = Wide()
target.a = source.b
target.load_state_dict({k: v.clone() for k, v in source.state_dict().items()})
print(target.a, target.b, source.a, source.b)

# program: views of one buffer
class Views(nn.Module):
    def __init__(self):
        super().__init__()
        whole = torch.arange(6.0)
        self.register_buffer("a", whole[:4])
        self.register_buffer("b", whole[2:])

model = Views()
model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()})
print(model.a, model.b)

# program: views of one buffer, renamed
class Views(nn.Module):
    def __init__(self):
        super().__init__()
        whole = torch.arange(6.0)
        self.register_buffer("a", whole[:4])
        self.register_buffer("b", whole[2:])

model = Views()
model.load_state_dict({{"a": "b", "b": "a"}[k]: v.clone() for k, v in model.state_dict().items()})
print(model.a, model.b)
