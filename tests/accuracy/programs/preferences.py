"""Ratings with negatives drawn by numpy for every batch."""

import numpy as np
import torch
from torch import nn


class Factors(nn.Module):
    def __init__(self, users, items, width=8):
        super().__init__()
        self.users = nn.Embedding(users, width)
        self.items = nn.Embedding(items, width)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(-1)


class Sampler:
    def __init__(self, items, seed=0):
        self.items = items
        self.random = np.random.default_rng(seed)

    def draw(self, count):
        return self.random.integers(0, self.items, count)


def main():
    users, items, device = 20, 50, torch.device("cuda")
    model, sampler = Factors(users, items).to(device), Sampler(items)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    seen = np.random.default_rng(1).integers(0, [users, items], (16000, 2))
    total = 0.0
    for start in range(0, len(seen), 16):
        rows = seen[start : start + 16]
        user = torch.LongTensor(rows[:, 0]).to(device)
        liked = torch.as_tensor(rows[:, 1]).to(device)
        other = torch.from_numpy(sampler.draw(len(rows))).to(device)
        loss = -nn.functional.logsigmoid(model(user, liked) - model(user, other)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    print(total.item())


if __name__ == "__main__":
    main()
