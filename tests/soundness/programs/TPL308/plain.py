import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def pairs(n=12):
    inputs = torch.linspace(-1, 1, n * 4).view(n, 4)
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1))

    def forward(self, x):
        return self.body(x)


def train(model, loader, optimizer):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()


# program: sums of losses
# expect: fixed
def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += nn.functional.mse_loss(model(inputs), targets).item()
    return total / len(loader)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train(model, pairs(), optimizer)
    print(evaluate(model, pairs()))
# program: hits counted
# expect: fixed
def validate(model: Net, loader):
    model.eval()
    right, seen = 0, 0
    for inputs, targets in loader:
        outputs = model(inputs)
        right += ((outputs > 0) == (targets > 0)).sum().item()
        seen += len(inputs)
    return right / seen


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train(model, pairs(), optimizer)
    print(validate(model, pairs()))
