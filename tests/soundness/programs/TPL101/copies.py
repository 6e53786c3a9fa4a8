import contextlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def pairs(n=8):
    inputs = torch.linspace(-1, 1, n * 4).view(n, 4)
    return DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=4, pin_memory=torch.cuda.is_available())


def step(model, optimizer, inputs, targets):
    loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


# program: a plain loop
# expect: fixed
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        images = images.cuda()
        labels = labels.cuda()
        step(model, optimizer, images, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: moved where it is used
# expect: fixed
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        step(model, optimizer, images.cuda(), labels.cuda())


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a batch that is indexed
# expect: fixed
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        images = batch[0].to("cuda")
        labels = batch[1].to("cuda")
        step(model, optimizer, images, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: the device by a test
# expect: fixed
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        step(model, optimizer, images, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a number of the size is read
# expect: fixed
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        seen = images.size(0)
        moved = images.cuda()
        step(model, optimizer, moved, labels.cuda())
        print(seen, images.shape, len(labels))


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: the result is written into
# expect: fixed
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        moved.mul_(2)
        step(model, optimizer, moved, labels.cuda())


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: parts of a list
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        parts = list(batch)
        moved = batch[0].cuda()
        labels = batch[1].clone()
        for part in parts:
            part.zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: starred parts
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        images, *rest = batch
        moved, labels = images.cuda(), rest[0]
        for part in [images, *rest[:0]]:
            part.zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a starred display
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        images, labels = batch
        moved = images.cuda()
        first, *_ = [*batch]
        first.zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a capture of match
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        images, labels = batch
        moved = images.cuda()
        match batch:
            case [a, b]:
                a.zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a capture of match by as
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        match images:
            case torch.Tensor() as held:
                held.zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a bound method
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        reset = images.zero_
        moved = images.cuda()
        reset()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a bound method in a list
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        later = [images.zero_]
        moved = images.cuda()
        for run in later:
            run()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: getattr
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        getattr(images, "zero_")()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: getattr by halves
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        name = "zero" + "_"
        getattr(images, name)()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: an unbound method
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        torch.Tensor.zero_(images)
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a module in place
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        nn.ReLU(inplace=True)(images)
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a module in place by its place
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        nn.Dropout(1.0, True)(images)
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a module in place made before
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    clip = nn.Hardtanh(0.0, 0.001, True)
    for images, labels in loader:
        moved = images.cuda()
        clip(images)
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a sequential in place
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    clip = nn.Sequential(nn.Threshold(9.0, 0.0, inplace=True))
    for images, labels in loader:
        moved = images.cuda()
        clip(images)
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: dropout in place by its place
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        nn.functional.dropout(images, 1.0, True, True)
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: threshold in place by its place
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        nn.functional.threshold(images, 9.0, 0.0, True)
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: numpy of the same memory
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        images.numpy()[:] = 0
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: numpy by a function
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    import numpy as np
    for images, labels in loader:
        moved = images.cuda()
        np.asarray(images)[...] = 0
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: numpy copies into it
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    import numpy as np
    for images, labels in loader:
        array = images.numpy()
        moved = images.cuda()
        np.copyto(array, 0)
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a tensor of its array
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    import numpy as np
    for images, labels in loader:
        other = torch.from_numpy(images.numpy())
        moved = images.cuda()
        other.zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: data of it
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        images.data.zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: set by attribute
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        images.data[...] = 0
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a random fill of a module
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        nn.init.zeros_(images)
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a function of torch with out
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        torch.mul(images, 0, out=images)
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: out by a dict
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        torch.mul(images, 0, **{"out": images})
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: foreach
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        torch._foreach_zero_([images])
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a map
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        list(map(torch.Tensor.zero_, [images]))
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a lambda
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        wipe = lambda: images.zero_()
        moved = images.cuda()
        wipe()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: an operator module
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    import operator
    for images, labels in loader:
        moved = images.cuda()
        operator.imul(images, 0)
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a method caller
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    import operator
    for images, labels in loader:
        moved = images.cuda()
        operator.methodcaller("zero_")(images)
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a partial
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    import functools
    for images, labels in loader:
        wipe = functools.partial(torch.zero_, images)
        moved = images.cuda()
        wipe()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a deferred callback
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        with contextlib.ExitStack() as stack:
            stack.callback(images.zero_)
            moved = images.cuda()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a swap of a dict
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        held = dict(x=images)
        moved = images.cuda()
        held.pop("x").zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: an attribute of a namespace
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    import types
    for images, labels in loader:
        held = types.SimpleNamespace(x=images)
        moved = images.cuda()
        held.x.zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a view by unbind
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        rows = images.unbind(0)
        moved = images.cuda()
        for row in rows:
            row.zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a zip of rows
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        for row, _ in zip(images, labels):
            row.zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a walrus
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = (held := images).cuda()
        held.zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: next of an iterator
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        images, labels = batch
        parts = iter(batch)
        moved = images.cuda()
        next(parts).zero_()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a del that runs code
# simulate: late copies
class Wiping:
    def __init__(self, x):
        self.x = x

    def __del__(self):
        self.x.zero_()


def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        held = Wiping(images)
        moved = images.cuda()
        del held
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a context manager
# simulate: late copies
@contextlib.contextmanager
def wiping(x):
    yield
    x.zero_()


def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        with wiping(images):
            moved = images.cuda()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a context manager of a class
# simulate: late copies
class Wiping:
    def __init__(self, x):
        self.x = x

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.x.zero_()


def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        with Wiping(images):
            moved = images.cuda()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: closing
# simulate: late copies
class Holder:
    def __init__(self, x):
        self.x = x

    def close(self):
        self.x.zero_()


def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        holder = Holder(images)
        with contextlib.closing(holder):
            moved = images.cuda()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: kept by self and wiped
# simulate: late copies
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def wipe(self):
        self.images.zero_()

    def train(self, loader: DataLoader):
        for images, labels in loader:
            self.images = images
            moved = images.cuda()
            self.wipe()
            step(self.model, self.optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
Trainer(model).train(pairs())
print([round(value, 4) for value in model.weight[0].tolist()])
# program: kept in a global and wiped
# simulate: late copies
HELD = {}


def wipe():
    HELD["x"].zero_()


def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        HELD["x"] = images
        moved = images.cuda()
        wipe()
        step(model, optimizer, moved, labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, pairs(), torch.optim.SGD(model.parameters(), lr=0.1))
print([round(value, 4) for value in model.weight[0].tolist()])
# program: a collate function that refills its buffer
# expect: no safe fix
BUFFER = torch.empty(4, 4).pin_memory()


def joined(rows):
    torch.stack([row[0] for row in rows], out=BUFFER)
    return BUFFER, torch.stack([row[1] for row in rows])


def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        step(model, optimizer, images.cuda(), labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, DataLoader(pairs().dataset, batch_size=4, collate_fn=joined), torch.optim.SGD(model.parameters(), lr=0.1))
# program: a ring of buffers
# expect: no safe fix
class Joined:
    def __init__(self):
        self.ring = [torch.empty(4, 4).pin_memory() for _ in range(2)]
        self.turn = 0

    def __call__(self, rows):
        self.turn = (self.turn + 1) % 2
        buffer = self.ring[self.turn]
        for place, row in enumerate(rows):
            buffer[place] = row[0]
        return buffer, torch.stack([row[1] for row in rows])


def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        step(model, optimizer, images.cuda(), labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, DataLoader(pairs().dataset, batch_size=4, collate_fn=Joined()), torch.optim.SGD(model.parameters(), lr=0.1))
# program: a data set that hands out what stays
# expect: no safe fix
class Resident(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = torch.ones(2, 4, 4).pin_memory()

    def __len__(self):
        return 2

    def __getitem__(self, index):
        self.rows[index].mul_(0.5)
        return self.rows[index], torch.ones(4, dtype=torch.long)


def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        step(model, optimizer, images.cuda(), labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, DataLoader(Resident(), batch_size=None), torch.optim.SGD(model.parameters(), lr=0.1))
# program: an iterable data set that refills
# expect: no safe fix
class Refilling(torch.utils.data.IterableDataset):
    def __iter__(self):
        buffer = torch.empty(4, 4).pin_memory()
        for turn in range(3):
            buffer.fill_(float(turn))
            yield buffer, torch.ones(4, dtype=torch.long)


def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        step(model, optimizer, images.cuda(), labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, DataLoader(Refilling(), batch_size=None), torch.optim.SGD(model.parameters(), lr=0.1))
# program: a collate function that is a lambda
# expect: no safe fix
BUFFER = torch.empty(4, 4).pin_memory()


def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        step(model, optimizer, images.cuda(), labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, DataLoader(pairs().dataset, batch_size=4, collate_fn=lambda rows: (torch.stack([row[0] for row in rows], out=BUFFER), torch.stack([row[1] for row in rows]))), torch.optim.SGD(model.parameters(), lr=0.1))
# program: a loader class that refills
# expect: no safe fix
class Loader(DataLoader):
    def __iter__(self):
        buffer = torch.empty(4, 4).pin_memory()
        for images, labels in super().__iter__():
            buffer.copy_(images)
            yield buffer, labels


def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        step(model, optimizer, images.cuda(), labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, Loader(pairs().dataset, batch_size=4), torch.optim.SGD(model.parameters(), lr=0.1))
# program: a wrapper that refills
# expect: no safe fix
class Refilling:
    def __init__(self, loader):
        self.loader = loader
        self.buffer = torch.empty(4, 4).pin_memory()

    def __iter__(self):
        for images, labels in self.loader:
            self.buffer.copy_(images)
            yield self.buffer, labels


def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        step(model, optimizer, images.cuda(), labels)


torch.manual_seed(0)
model = nn.Linear(4, 2).cuda()
train(model, Refilling(pairs()), torch.optim.SGD(model.parameters(), lr=0.1))
