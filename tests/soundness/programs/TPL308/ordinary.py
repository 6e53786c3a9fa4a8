import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


def pairs(n=8):
    inputs = torch.linspace(-1, 1, n * 4).view(n, 4)
    return DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=4)


def train(model, loader, optimizer):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


def run(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        train(model, pairs(), optimizer)
        print(evaluate(model, pairs()))
    print([round(p.grad.sum().item(), 4) for p in model.parameters()])


# program: convolutions and pools
# expect: fixed
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 3, padding=1)
        self.norm = nn.BatchNorm1d(2)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        x = x.unsqueeze(1)
        x = F.relu(self.norm(self.conv(x)))
        x = F.max_pool1d(x, 2)
        x = torch.flatten(x, 1)
        x = self.drop(x)
        return self.fc(x)


def evaluate(model: Net, loader):
    model.eval()
    right = 0
    for inputs, targets in loader:
        right += (model(inputs).argmax(1) == targets).sum().item()
    return right


run(Net())
# program: residual blocks in place
# expect: fixed
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        identity = x
        out = self.fc(x)
        out += identity
        return self.relu(out)


class Net(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.stem = nn.Linear(4, 8)
        self.blocks = nn.Sequential(*[Block(8) for _ in range(depth)])
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.cross_entropy(model(inputs), targets).item()
    return total / len(loader)


run(Net())
# program: a list of layers
# expect: fixed
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        for index, layer in enumerate(self.layers):
            x = layer(x)
            if index < len(self.layers) - 1:
                x = torch.relu(x)
        return self.head(x)


def evaluate(model: Net, loader):
    model.eval()
    total, seen = 0.0, 0
    for inputs, targets in loader:
        outputs = model(inputs)
        total += F.cross_entropy(outputs, targets, reduction="sum").item()
        seen += targets.size(0)
    return total / seen


run(Net())
# program: a criterion that is made where it is called
# expect: fixed
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.fc2 = nn.Linear(8, 2)

    def forward(self, x):
        x = x.view(x.size(0), -1)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def evaluate(model: Net, loader):
    criterion = nn.NLLLoss()
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += criterion(model(inputs), targets).item()
    print("Average loss: {:.4f}".format(total / len(loader)))
    return total


run(Net())
# program: attention by hand
# expect: fixed
class Attend(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(4, 4)).view(1, 1, 4, 4))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.qkv(x).split(c, dim=2)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        y = (scores.softmax(dim=-1) @ v).transpose(1, 2).contiguous().view(b, t, c)
        return self.out(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(1, 8)
        self.attend = Attend(8, 2)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        x = self.embed(x.unsqueeze(-1))
        x = x + self.attend(self.norm(x))
        return self.head(x.mean(dim=1))


def evaluate(model: Net, loader):
    model.eval()
    right = 0
    for inputs, targets in loader:
        right += (model(inputs).argmax(1) == targets).sum().item()
    return right


run(Net())
# program: helper methods and functions
# expect: fixed
def scaled(x, by=2.0):
    return x * by


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 6)
        self.decoder = nn.Linear(6, 2)
        self.scale = nn.Parameter(torch.ones(6))

    def encode(self, x):
        return torch.tanh(self.encoder(x)) * self.scale

    def decode(self, h):
        return self.decoder(scaled(h))

    def forward(self, x):
        return self.decode(self.encode(x))


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.cross_entropy(model(inputs), targets).item()
    return total


run(Net())
# program: outputs collected and stacked
# expect: fixed
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(5, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        h = torch.zeros(x.size(0), 4, device=x.device)
        states = []
        for t in range(x.size(1)):
            h = torch.tanh(self.cell(torch.cat([x[:, t : t + 1], h], dim=1)))
            states.append(h)
        return self.head(torch.stack(states, dim=1).mean(dim=1))


def evaluate(model: Net, loader):
    model.eval()
    right, seen = 0, 0
    for inputs, targets in loader:
        outputs = model(inputs)
        _, predicted = torch.max(outputs, 1)
        right += (predicted == targets).sum().item()
        seen += len(targets)
    return 100.0 * right / seen


run(Net())
# program: a base class of the program
# expect: fixed
class Base(nn.Module):
    def forward(self, x):
        return self.head(self.features(x))


class Net(Base):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)

    def features(self, x):
        return self.body(x).relu()


def evaluate(model: Net, loader):
    model.eval()
    return sum(F.cross_entropy(model(inputs), targets).item() for inputs, targets in loader)


def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.cross_entropy(model(inputs), targets).item()
    return total


run(Net())
# program: any module, by its callers
# expect: fixed
def evaluate(model: nn.Module, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.cross_entropy(model(inputs), targets).item()
    return total


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    train(net, pairs(), optimizer)
    print(evaluate(net, pairs()))
# program: a data set of the program that keeps what it read
# expect: fixed
class Rows(Dataset):
    def __init__(self, n):
        self.n = n
        self.cache = {}

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = torch.arange(4.0) * (index - 3) / 4
        return self.cache[index], int(index > 3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)


def evaluate(model: Net, loader):
    model.eval()
    right = 0
    for inputs, targets in DataLoader(Rows(8), batch_size=4):
        right += (model(inputs).argmax(1) == targets).sum().item()
    return right


run(Net())
# program: the writer of a sequential
# expect: fixed
def evaluate(model: nn.Sequential, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += F.cross_entropy(model(inputs), targets).item()
    return total


run(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)))
# program: a method of a trainer
# expect: fixed
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)


class Trainer:
    def __init__(self, model):
        self.model = Net() if model is None else Net()
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, loader):
        self.model.train()
        for inputs, targets in loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(inputs), targets)
            loss.backward()
            self.optimizer.step()

    def evaluate(self, loader):
        self.model.eval()
        total = 0.0
        for inputs, targets in loader:
            total += self.criterion(self.model(inputs), targets).item()
        return total


trainer = Trainer(None)
for _ in range(2):
    trainer.train(pairs())
    print(trainer.evaluate(pairs()))
