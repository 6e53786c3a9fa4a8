"""A mixture of experts whose tokens are gathered expert by expert."""

import torch
from torch import nn
from torch.nn import functional as F


class Experts(nn.Module):
    def __init__(self, width=16, count=4, chosen=2):
        super().__init__()
        self.gate = nn.Linear(width, count)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(count))
        self.chosen = chosen

    def forward(self, x):
        weights, which = self.gate(x).softmax(-1).topk(self.chosen, dim=-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, slot = torch.where(which == number)
            if rows.numel() == 0:
                continue
            out.index_add_(0, rows, expert(x[rows]) * weights[rows, slot, None])
        return out


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.mixture = Experts()
        self.last = nn.Linear(16, 3)

    def forward(self, x):
        return self.last(self.mixture(F.relu(self.first(x))))


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
x, y = torch.randn(64, 8).cuda(), torch.randint(0, 3, (64,)).cuda()
for step in range(1000):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(step, loss.item())
