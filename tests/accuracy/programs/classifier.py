"""Train a small classifier with running accuracy and a validation pass an epoch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self, width=32, classes=5):
        super().__init__()
        self.first = nn.Linear(16, width)
        self.norm = nn.BatchNorm1d(width)
        self.second = nn.Linear(width, classes)

    def forward(self, x):
        return self.second(F.relu(self.norm(self.first(x))))


def evaluate(model, loader):
    model.eval()
    right, total = 0, 0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            right += (model(x).argmax(1) == y).sum().item()
            total += y.size(0)
    return right / total


def main():
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(4096, 16), torch.randint(0, 5, (4096,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(30):
        model.train()
        running, right = 0.0, 0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            out = model(x)
            loss = F.cross_entropy(out, y)
            loss.backward()
            optimizer.step()
            running += loss.item() * x.size(0)
            right += (out.argmax(1) == y).sum().item()
        print(epoch, running / len(data), right / len(data), evaluate(model, loader))


if __name__ == "__main__":
    main()
