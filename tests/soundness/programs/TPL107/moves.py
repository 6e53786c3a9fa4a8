import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(2)
device = torch.device("cuda")
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(torch.arange(32.0).view(8, 4), batch_size=4)


def show(tensor):
    print(tensor.dtype, tuple(tensor.shape), tensor.requires_grad, tensor.is_leaf, tensor.stride(), tensor.tolist())


# program: zeros
# expect: fixed
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        state = torch.zeros(len(batch), 4).to(device)
        loss = (model(batch.to(device)) + state).sum()
        loss.backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, device)

# program: ones by cuda
# expect: fixed
def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        state = torch.ones(len(batch), 4).cuda()
        (model(batch.cuda()) * state).sum().backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer)

# program: whole numbers counted up
# expect: fixed
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        n = batch.shape[0]
        places = torch.arange(n).unsqueeze(0).to(device)
        (model(batch.to(device)) + places.view(-1, 1)).sum().backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: in a forward
# expect: fixed
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        mask = torch.zeros(4, 4).bool().to(x.device)
        show(mask)
        return self.l(x).masked_fill(mask[: len(x)], 0.0)

def train(model: Net, loader: DataLoader, optimizer):
    for batch in loader:
        model(batch.cuda()).sum().backward()
        optimizer.step()

net = Net()
train(net, loader, torch.optim.SGD(net.parameters(), lr=0.1))

# program: a tensor is taken for a device
def train(model, loader: DataLoader, optimizer, dev):
    for batch in loader:
        state = torch.zeros(len(batch), 4).to(dev)
        (model(batch.cuda()) + state).sum().backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, torch.ones(2, dtype=torch.float64))

# program: a tensor in a place for a device
def train(model, loader: DataLoader, optimizer, gpu_tensor):
    for batch in loader:
        state = torch.zeros(len(batch), 4).to(gpu_tensor)
        (model(batch.cuda()) + state).sum().backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, torch.ones(2, dtype=torch.float64))

# program: an attribute that is a tensor
class Args:
    cuda = torch.ones(2, dtype=torch.float64)

def train(model, loader: DataLoader, optimizer, args):
    for batch in loader:
        state = torch.zeros(len(batch), 4).to(args.cuda)
        (model(batch.cuda()) + state).sum().backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, Args)

# program: a parameter called a device that is a tensor
def train(model, loader: DataLoader, optimizer, device):
    for batch in loader:
        state = torch.zeros(len(batch), 4).to(device)
        (model(batch.cuda()) + state).sum().backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, torch.ones(2, dtype=torch.float64))

# program: a parameter called a device that is a type
def train(model, loader: DataLoader, optimizer, device):
    for batch in loader:
        state = torch.zeros(len(batch), 4).to(device)
        (model(batch.cuda()) + state).sum().backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, torch.float64)

# program: the device of an element may be a tensor
def train(model, loader: DataLoader, optimizer, devices):
    for i, batch in enumerate(loader):
        state = torch.zeros(len(batch), 4).to(devices[i])
        (model(batch.cuda()) + state).sum().backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, [torch.device("cuda"), torch.ones(1, dtype=torch.float64)])

# program: device is None
def train(model, loader: DataLoader, optimizer, device=None):
    for batch in loader:
        state = torch.zeros(len(batch), 4).to(device)
        (model(batch.cuda()) + state).sum().backward()
        optimizer.step()
        show(state)

try:
    train(model, loader, optimizer)
except TypeError as error:
    print("TypeError")

# program: the order of arguments with effects
said = []

def told(what):
    said.append(str(what))
    return what

def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        state = torch.zeros(told(len(batch)), 4).unsqueeze(told(0)).to(told(device))
        (model(batch.to(device)) + state).sum().backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, device)
print(said)

# program: arguments between are evaluated first
said = []

def told(what):
    said.append(str(what))
    return what

class Place:
    @property
    def device(self):
        said.append("device")
        return torch.device("cuda")

def train(model, loader: DataLoader, optimizer, place):
    for batch in loader:
        state = torch.zeros(len(batch), 4).unsqueeze(told(0)).to(place.device)
        (model(batch.cuda()) + state).sum().backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, Place())
print(said)

# program: an argument changes the device
class Place:
    device = torch.device("cpu")

def count(batch):
    Place.device = torch.ones(2, dtype=torch.float64)
    return len(batch)

def train(model, loader: DataLoader, optimizer, place):
    for batch in loader:
        state = torch.zeros(count(batch), 4).to(place.device)
        (model(batch.cuda()) + state).sum().backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, Place)

# program: a walrus in the size
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        state = torch.zeros(n := len(batch), 4).repeat(n, 1).to(device)
        (model(batch.to(device))[:n].sum() + state.sum()).backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, device)

# program: an error is raised for the size first
def fails():
    raise KeyError("size")

class Place:
    @property
    def device(self):
        print("asked")
        return torch.device("cuda")

def train(model, loader: DataLoader, optimizer, place):
    for batch in loader:
        state = torch.zeros(fails(), 4).to(place.device)
        (model(batch.cuda()) + state).sum().backward()
        optimizer.step()

try:
    train(model, loader, optimizer, Place())
except KeyError as error:
    print(error)

# program: full of whole numbers
# expect: fixed
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        state = torch.full((len(batch), 4), 3).to(device)
        (model(batch.to(device)) * state).sum().backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, device)

# program: full by a keyword
# expect: fixed
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        state = torch.full(size=(len(batch), 4), fill_value=-0.5).to(device=device)
        (model(batch.to(device)) * state).sum().backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, device)

# program: of a tensor's values
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        state = torch.tensor([float(len(batch)), 2.0]).to(device)
        (model(batch.to(device)).sum() * state.sum()).backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, device)

# program: a tensor of tensors with gradients
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        w = model.weight.sum()
        state = torch.tensor([w, w * 2]).to(device)
        (model(batch.to(device)).sum() * state.sum()).backward()
        optimizer.step()
        show(state)

train(model, loader, optimizer, device)

# program: arange to a float
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.arange(len(batch) / 3).to(device)
        (model(batch.to(device)).sum() + places.sum()).backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: arange in half precision
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.arange(5, dtype=torch.float16).float().to(device)
        (model(batch.to(device)).sum() + places.sum()).backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: an empty tensor that is filled
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.empty(5).fill_(2.0).to(device)
        (model(batch.to(device)).sum() + places.sum()).backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: random numbers
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.rand(5).to(device)
        (model(batch.to(device)).sum() + places.sum()).backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: zeros that are filled with random numbers
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.zeros(5).normal_().to(device)
        (model(batch.to(device)).sum() + places.sum()).backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: gradients are asked for
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.zeros(5, requires_grad=True).to(device)
        (model(batch.to(device)).sum() + places.sum()).backward()
        optimizer.step()
        print(type(places.grad_fn).__name__ if places.grad_fn else None, places.is_leaf)

train(model, loader, optimizer, device)

# program: likeness to a host tensor
# expect: fixed
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.zeros_like(batch).to(device)
        (model(batch.to(device)) + places).sum().backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: likeness to a host tensor of another layout
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.ones_like(batch.t()).to(device)
        (model(batch.to(device)) + places).sum().backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: a subclass of tensors goes on
class Named(torch.Tensor):
    pass

def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        batch = batch.as_subclass(Named)
        places = torch.zeros_like(batch).to(device)
        print(type(places).__name__)
        (model(batch.to(device).as_subclass(torch.Tensor)) + places).sum().backward()
        optimizer.step()

train(model, loader, optimizer, device)

# program: what is repeated
# expect: fixed
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.eye(4).repeat(1, 1).to(device)
        (model(batch.to(device)) @ places).sum().backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: what is expanded is a view
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.zeros(4).expand(4, 4).to(device)
        places[0] += 1
        (model(batch.to(device)) @ places).sum().backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: a move with a type
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.arange(300).to(device, torch.uint8)
        (model(batch.to(device)).sum() + places.sum()).backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: a move that copies
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.ones(3).to(device, copy=True)
        (model(batch.to(device)).sum() + places.sum()).backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: the constructor is a function of the program
real = torch.zeros

def zeros(*sizes):
    return real(*sizes) + 1

torch.zeros = zeros

def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.zeros(3).to(device)
        (model(batch.to(device)).sum() + places.sum()).backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: truths
# expect: fixed
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.ones(len(batch), 4, dtype=torch.bool).to(device, non_blocking=True)
        model(batch.to(device))[places].sum().backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: sizes are spread
# expect: fixed
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        places = torch.zeros(*batch.shape).to(device)
        (model(batch.to(device)) + places).sum().backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)

# program: tril of indices
# expect: fixed
def train(model, loader: DataLoader, optimizer, device: torch.device):
    for batch in loader:
        n = batch.size(0)
        places = torch.tril_indices(n, n).to(device)
        model(batch.to(device))[places[0], places[1]].sum().backward()
        optimizer.step()
        show(places)

train(model, loader, optimizer, device)
