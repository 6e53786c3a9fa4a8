"""Contrastive pairs: a diagonal mask by hand, and similarities filtered by it."""

import torch
from torch import nn
from torch.nn import functional as F


class PairLoss(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, one, two):
        count = one.size(0)
        both = F.normalize(torch.cat([one, two]), dim=1)
        alike = both @ both.t() / self.temperature
        itself = torch.eye(2 * count, dtype=torch.bool).to(alike.device)
        others = alike[~itself].view(2 * count, -1)
        partner = torch.cat([torch.diag(alike, count), torch.diag(alike, -count)])
        return (torch.logsumexp(others, dim=1) - partner).mean()


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return self.layers(x)


def augment(x):
    return x + 0.1 * torch.randn_like(x)


def run(steps=1000):
    device = torch.device("cuda:0")
    encoder, criterion = Encoder().to(device), PairLoss()
    optimizer = torch.optim.Adam(encoder.parameters())
    history = []
    for _ in range(steps):
        batch = torch.randn(12, 10).cuda()
        loss = criterion(encoder(augment(batch)), encoder(augment(batch)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.detach())
    print(torch.stack(history).mean().item())


run()
