import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(2)
device = torch.device("cuda")
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(torch.arange(32.0).view(8, 4), batch_size=4)


def show(tensor):
    print(tensor.dtype, tuple(tensor.shape), [round(value, 4) for value in tensor.flatten().tolist()])


# program: a grid that is also read on the host
# expect: no safe fix
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        steps = torch.arange(batch.shape[1])
        grid = steps.float().cos()
        print(steps.numpy().sum())
        moved = grid.cuda()
        show(moved)
        (model(batch.cuda(non_blocking=True)) + moved).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: numbers drawn in a row
# expect: no safe fix
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        noise = torch.rand(batch.shape[1])
        noise = noise * 2
        moved = noise.cuda()
        show(moved)
        print(round(torch.rand(()).item(), 4))
        (model(batch.cuda(non_blocking=True)) + moved).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: filled on the host while it travels
# expect: no safe fix
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        rows = torch.zeros(batch.shape[1])
        for at in range(batch.shape[1]):
            rows[at] = float(at)
        moved = rows.cuda()
        rows.zero_()
        show(moved)
        (model(batch.cuda(non_blocking=True)) + moved).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: a constant of the module, changed afterwards
# expect: no safe fix
# simulate: late copies
WEIGHTS = torch.ones(4)


def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        moved = WEIGHTS.cuda()
        WEIGHTS.mul_(0.5)
        show(moved)
        (model(batch.cuda(non_blocking=True)) * moved).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: a legacy constructor of sizes
# simulate: late copies
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        moved = torch.FloatTensor(4).fill_(0.5).to("cuda")
        show(moved)
        (model(batch.cuda(non_blocking=True)) * moved).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
