"""Messages along edges, where the number of nodes is read from the edges themselves."""

import torch
from torch import nn
from torch.nn import functional as F


def degree(index, count):
    return torch.zeros(count, device=index.device).scatter_add_(0, index, torch.ones_like(index, dtype=torch.float))


class Layer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x, edges):
        source, target = edges
        count = int(edges.max()) + 1
        norm = degree(target, count).clamp(min=1).rsqrt()
        messages = self.linear(x)[source] * norm[source].unsqueeze(1)
        out = torch.zeros(count, messages.size(1), device=x.device)
        return out.index_add(0, target, messages) * norm.unsqueeze(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Layer(6, 16), Layer(16, 3)

    def forward(self, x, edges):
        return self.two(F.relu(self.one(x, edges)), edges)


def main():
    device = torch.device("cuda")
    x = torch.randn(30, 6, device=device)
    edges = torch.cat([torch.randint(0, 30, (2, 90)), torch.arange(30).repeat(2, 1)], dim=1).to(device)
    labels = torch.randint(0, 3, (30,), device=device)
    known = torch.rand(30, device=device) < 0.6
    net = Net().to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(200):
        optimizer.zero_grad()
        out = net(x, edges)
        loss = F.cross_entropy(out[known], labels[known])
        loss.backward()
        optimizer.step()
        accuracy = (out.argmax(1)[known] == labels[known]).float().mean()
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
