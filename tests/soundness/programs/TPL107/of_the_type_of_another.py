import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(2)
device = torch.device("cuda")
model = nn.Linear(4, 4).double()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(torch.arange(32.0, dtype=torch.float64).view(8, 4), batch_size=4)


def show(tensor):
    print(tensor.dtype, tuple(tensor.shape), tensor.requires_grad, tensor.is_leaf, tensor.stride(), tensor.tolist())


def run(made):
    for batch in loader:
        x = batch.cuda()
        state = made(x)
        show(state)
        (model(x) + state.double().sum()).sum().backward()
        optimizer.step()


# program: zeros of the type of a batch
# expect: fixed
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.cuda() + 0
        state = torch.zeros(len(x), 4).to(x)
        show(state)
        (model(x) + state).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: type_as behind a change of shape
# expect: fixed
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.cuda() + 0
        state = torch.ones(8).view(2, 4).repeat(2, 1).type_as(x)
        show(state)
        (model(x) * state).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: a type that is given is replaced
# expect: fixed
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.cuda() + 0
        state = torch.eye(4, dtype=torch.int64).to(x)
        show(state)
        (model(x) @ state).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: whole numbers of the other
# expect: fixed
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.cuda()
        labels = x.long()
        state = torch.ones(len(x), 4).to(labels)
        show(state)
        (model(x) * state).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: a graph of the other is no graph of the result
# expect: fixed
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.cuda().requires_grad_()
        out = model(x)
        state = torch.zeros(4, 4).to(out)
        show(state)
        (out + state).sum().backward()
        print(x.grad is not None)
        optimizer.step()


train(model, loader, optimizer)
# program: the other is bound between the arguments
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.float().cuda()
        state = torch.zeros(len(x := batch.cuda()), 4).to(x)
        show(state)
        (model(x) + state).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: numbers that a type rounds
# expect: no safe fix
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.cuda().half()
        state = torch.arange(2046, 2052).to(x)
        show(state)
        (model(x.double()) + state.double().sum()).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: a number rounded twice
# expect: no safe fix
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.cuda().half()
        state = torch.full((4,), 0.1).to(x)
        show(state)
        (model(x.double()) + state.double()).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: random numbers of another type
# expect: no safe fix
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.cuda()
        state = torch.rand(4).to(x)
        show(state)
        (model(x) + state).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: a property that counts who reads it
# expect: no safe fix
class Holder:
    def __init__(self):
        self.read = 0
        self.batch = None

    @property
    def like(self) -> torch.Tensor:
        self.read += 1
        return self.batch


def train(model, loader: DataLoader, optimizer, holder: Holder):
    for batch in loader:
        x = batch.cuda()
        holder.batch = x
        state = torch.zeros(4).to(holder.like)
        show(state)
        (model(x) + state).sum().backward()
        optimizer.step()
    print(holder.read)


train(model, loader, optimizer, Holder())
# program: an element that is made anew at each look
# expect: no safe fix
class Rows:
    def __init__(self, rows):
        self.rows, self.read = rows, 0

    def __getitem__(self, at) -> torch.Tensor:
        self.read += 1
        return self.rows[at]


def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.cuda()
        rows = Rows(x)
        state = torch.zeros(4).to(rows[0])
        show(state)
        (model(x) + state).sum().backward()
        optimizer.step()
        print(rows.read)


train(model, loader, optimizer)
# program: a cast that cuts before the type of the other
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.cuda()
        state = torch.full((4,), 2.7).long().to(x)
        show(state)
        (model(x) + state).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: a leaf of its own
# expect: no safe fix
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.cuda()
        state = torch.zeros(4, requires_grad=True).to(x)
        show(state)
        (model(x) + state).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: complex numbers
# expect: fixed
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        x = batch.cuda()
        turned = torch.fft.fft(x)
        state = torch.zeros(4).to(turned)
        show(state.real)
        (model(x) + state.real).sum().backward()
        optimizer.step()


train(model, loader, optimizer)
# program: a type and a device by their names
# expect: no safe fix
def train(model, loader: DataLoader, optimizer, device):
    for batch in loader:
        x = batch.cuda()
        state = torch.zeros(4).to(device=device, dtype=x.dtype)
        show(state)
        (model(x) + state).sum().backward()
        optimizer.step()


train(model, loader, optimizer, torch.device("cuda"))
