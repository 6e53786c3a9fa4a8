import contextlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

F = nn.functional


def pairs(n=12):
    inputs = torch.linspace(-1, 1, n * 4).view(n, 4)
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=4)


def made():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


# program: a sum that is shown
# expect: fixed
def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total.item()


print(train(*(lambda m, o: (m, pairs(), o))(*made())))
# program: a list that is averaged
# expect: fixed
def train(model, loader, optimizer):
    losses = []
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    print(f"{torch.stack(losses).mean():.4f}")


model, optimizer = made()
train(model, pairs(), optimizer)
# program: a mean over the length
# expect: fixed
def train(model, loader, optimizer):
    running = 0.0
    for step, (inputs, targets) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        running += loss / len(loader)
        if step % 2 == 1:
            print("%.4f" % running)


model, optimizer = made()
train(model, pairs(), optimizer)
# program: a criterion that is an object
# expect: fixed
def train(model, loader, optimizer):
    criterion = nn.MSELoss()
    total = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss * inputs.size(0)
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: a continue guards the backward
def objective(out, target):
    return F.mse_loss(out, target) if target.sum() > 0 else 0.0


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        if not isinstance(loss, torch.Tensor):
            total += loss
            continue
        loss.backward()
        optimizer.step()
        total += loss
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: a continue stands after what is kept
def objective(out, target):
    return F.mse_loss(out, target) if target.sum() > 0 else 0.0


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        total += loss
        if loss == 0.0:
            continue
        loss.backward()
        optimizer.step()
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: a flag says to go on
def objective(out, target):
    return (F.mse_loss(out, target), True) if target.sum() > 0 else (0.0, False)


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss, real = objective(model(inputs), targets)
        total += loss
        if not real:
            continue
        loss.backward()
        optimizer.step()
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: match guards the backward
def objective(out, target):
    return F.mse_loss(out, target) if target.sum() > 0 else 0.0


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        match loss:
            case float():
                pass
            case _:
                loss.backward()
                optimizer.step()
        total += loss
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: suppress guards the backward
def objective(out, target):
    return F.mse_loss(out, target) if target.sum() > 0 else 0.0


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        with contextlib.suppress(AttributeError):
            loss.backward()
            optimizer.step()
        total += loss
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: try guards the backward
def objective(out, target):
    return F.mse_loss(out, target) if target.sum() > 0 else 0.0


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        try:
            loss.backward()
        except AttributeError:
            pass
        total += loss
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: and guards the backward
def objective(out, target):
    return F.mse_loss(out, target) if target.sum() > 0 else 0.0


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        loss != 0.0 and loss.backward()
        optimizer.step()
        total += loss
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: a while that runs at most once
def objective(out, target):
    return F.mse_loss(out, target) if target.sum() > 0 else 0.0


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        left = 1 if isinstance(loss, torch.Tensor) else 0
        while left:
            loss.backward()
            left -= 1
        total += loss
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: a for that runs at most once
def objective(out, target):
    return F.mse_loss(out, target) if target.sum() > 0 else 0.0


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        for _ in [0] * isinstance(loss, torch.Tensor):
            loss.backward()
        total += loss
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: an early break
def objective(out, target, step):
    return F.mse_loss(out, target) if step < 2 else 0.0


def train(model, loader, optimizer):
    total = 0.0
    for step, (inputs, targets) in enumerate(loader):
        loss = objective(model(inputs), targets, step)
        total += loss
        if step == 2:
            break
        loss.backward()
        optimizer.step()
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: an assertion is caught around
def objective(out, target):
    return F.mse_loss(out, target) if target.sum() > 0 else 0.0


def step(total, model, optimizer, inputs, targets):
    return total


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        try:
            loss = objective(model(inputs), targets)
            total += loss
            assert loss
            loss.backward()
        except AssertionError:
            pass
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: a lambda walks back
def objective(out, target):
    return F.mse_loss(out, target) if target.sum() > 0 else 0.0


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        later = lambda: loss.backward()
        if loss:
            later()
        total += loss
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: a function inside walks back
def objective(out, target):
    return F.mse_loss(out, target) if target.sum() > 0 else 0.0


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)

        def closure():
            loss.backward()
            return loss

        if isinstance(loss, torch.Tensor):
            optimizer.step(closure)
        total += loss
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: a loss with a name of its own
class Named(torch.Tensor):
    pass


def objective(out, target):
    loss = F.mse_loss(out, target).as_subclass(Named)
    loss.title = "mse"
    return loss


def train(model, loader, optimizer):
    losses = []
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    print([loss.title for loss in losses], len(losses))


model, optimizer = made()
train(model, pairs(), optimizer)
# program: a loss with parts that are read later
def objective(out, target):
    loss = F.mse_loss(out, target)
    loss.parts = {"mse": 1}
    return loss


def train(model, loader, optimizer):
    losses = []
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    for loss in losses:
        print(loss.parts["mse"], "%.3f" % loss.item())


model, optimizer = made()
train(model, pairs(), optimizer)
# program: a subclass whose sum counts
class Counting(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


seen = []


def objective(out, target):
    return F.mse_loss(out, target).as_subclass(Counting)


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss
    return total.item()


model, optimizer = made()
print(train(model, pairs(), optimizer), len(seen))
# program: a loss of a class of its own
class Loss:
    def __init__(self, value):
        self.value = value

    def backward(self):
        self.value.backward()

    def __radd__(self, other):
        return other + self.value.item()


def objective(out, target):
    return Loss(F.mse_loss(out, target))


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: a loss of a class that hands on what it is asked
class Loss:
    def __init__(self, value):
        self.value = value

    def __getattr__(self, name):
        if name == "detach":
            raise AttributeError(name)
        return getattr(self.value, name)

    def __radd__(self, other):
        return other + self.value.item()


def objective(out, target):
    return Loss(F.mse_loss(out, target))


def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = objective(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss
    return float(total)


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: the accumulator comes from a call
class Total:
    def __init__(self):
        self.all = []

    def __iadd__(self, value):
        self.all.append(value)
        kept.append(value)
        return self

    def item(self):
        return sum(value.item() for value in self.all)


kept = []


def begin():
    return Total()


def train(model, loader, optimizer):
    total = begin()
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss
    return total.item()


model, optimizer = made()
print(train(model, pairs(), optimizer), [value.grad_fn is None for value in kept])
# program: the list comes from a call
kept = []


def rows():
    return kept


def train(model, loader, optimizer):
    losses = rows()
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    print(f"{torch.stack(losses).mean():.4f}")


model, optimizer = made()
train(model, pairs(), optimizer)
print([value.grad_fn is None for value in kept])
# program: the list is a default
def train(model, loader, optimizer, losses=[]):
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    print(f"{torch.stack(losses).mean():.4f}")


model, optimizer = made()
train(model, pairs(), optimizer)
print([value.grad_fn is None for value in train.__defaults__[0]])
# program: the list has two names by unpacking
def train(model, loader, optimizer, box):
    (losses,) = box
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    print(f"{torch.stack(losses).mean():.4f}")


model, optimizer = made()
box = [[]]
train(model, pairs(), optimizer, box)
print([value.grad_fn is None for value in box[0]])
# program: the list is what a with gives
def train(model, loader, optimizer, box):
    with contextlib.nullcontext(box) as losses:
        for inputs, targets in loader:
            loss = F.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss)
        print(f"{torch.stack(losses).mean():.4f}")


model, optimizer = made()
box = []
train(model, pairs(), optimizer, box)
print([value.grad_fn is None for value in box])
# program: a sum in place of what others have
def train(model, loader, optimizer, sums):
    total = sums["loss"]
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss
    print(f"{total:.4f}")


model, optimizer = made()
sums = {"loss": torch.zeros(())}
train(model, pairs(), optimizer, sums)
print(sums["loss"].grad_fn is None)
# program: locals are looked at
def train(model, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss
    print(locals()["total"].grad_fn is None, f"{total:.4f}")


model, optimizer = made()
train(model, pairs(), optimizer)
# program: a function inside reads the sum
def train(model, loader, optimizer):
    total = 0.0

    def said():
        return total.grad_fn is None

    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss
    print(said(), f"{total:.4f}")


model, optimizer = made()
train(model, pairs(), optimizer)
# program: a loss that is its own parameter
def train(model, loader, optimizer):
    total = 0.0
    scale = torch.ones((), requires_grad=True)
    for inputs, targets in loader:
        loss = scale
        loss.backward()
        total += loss
        with torch.no_grad():
            scale += 1
    return total.item()


model, optimizer = made()
print(train(model, pairs(), optimizer))
# program: a loss that is written into later
def train(model, loader, optimizer):
    losses = []
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss)
        loss.data.mul_(2)
    print(f"{torch.stack(losses).mean():.4f}")


model, optimizer = made()
train(model, pairs(), optimizer)
