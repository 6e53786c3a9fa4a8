import torch
from torch import nn

torch.manual_seed(4)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def show(tensor):
    print(tensor.dtype, tuple(tensor.shape), tensor.requires_grad, tensor.stride(), tensor.tolist())


def step(rows):
    model(rows).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


# program: counted up beside another index
# expect: fixed
def train(data: torch.Tensor, chosen: torch.Tensor, steps):
    data, chosen = data.cuda(), chosen.cuda()
    for _ in range(steps):
        picked = data[torch.arange(len(chosen)), chosen]
        show(picked)
        step(data)

train(torch.arange(12.0).view(4, 3), torch.tensor([2, 0, 1]), 2)

# program: counted up in steps
# expect: fixed
def train(data: torch.Tensor, steps):
    data = data.cuda()
    for _ in range(steps):
        show(data[torch.arange(0, len(data), 2)])
        step(data)

train(torch.arange(12.0).view(4, 3), 2)

# program: past the end it raises as before
# expect: fixed
def train(data: torch.Tensor, steps):
    data = data.cuda()
    for number in range(steps):
        try:
            show(data[torch.arange(3 + number)])
        except IndexError as error:
            print("IndexError", number)
        step(data)

train(torch.arange(12.0).view(4, 3), 3)

# program: gradients flow through what is picked
# expect: fixed
def train(data: torch.Tensor, steps):
    data = data.cuda().requires_grad_()
    for _ in range(steps):
        data[torch.arange(2)].pow(2).sum().backward()
        show(data.grad)
        step(data.detach())

train(torch.arange(12.0).view(4, 3), 2)

# program: draws of the host go on as before
# expect: no safe fix
def train(data: torch.Tensor, steps):
    data = data.cuda()
    for _ in range(steps):
        show(data[torch.randperm(len(data))])
        step(data)

train(torch.arange(12.0).view(4, 3), 2)
print(torch.rand(1).item())

# program: a list past the end raises, a slice would not
# expect: no safe fix
def train(data: torch.Tensor, steps):
    data = data.cuda()
    for _ in range(steps):
        try:
            show(data[[2, 3, 4]] + 1)
        except IndexError:
            print("IndexError")
        step(data)

train(torch.arange(12.0).view(4, 3), 2)

# program: fractions as positions raise as before
def train(data: torch.Tensor, steps, share):
    data = data.cuda()
    for _ in range(steps):
        try:
            show(data[torch.arange(0, 3, share)])
        except IndexError:
            print("IndexError")
        step(data)

train(torch.arange(12.0).view(4, 3), 2, 0.5)

# program: a property is read once
class Holder:
    reads = 0

    @property
    def data(self) -> torch.Tensor:
        Holder.reads += 1
        return torch.arange(12.0).view(4, 3).cuda()

def train(holder: Holder, steps):
    for _ in range(steps):
        show(holder.data[torch.arange(2)])
        step(torch.ones(1, 3))
        print(holder.reads)

train(Holder(), 2)
