"""A training project of a dozen modules whose heat, kinds and names run from file to file."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "pyproject.toml": "[tool.perflint]\n",
    "requirements.txt": "torch==2.4.0\n",
    "net/__init__.py": "from .model import Net\nfrom .blocks import *\n",
    "net/model.py": """\
import torch
from torch import nn

from .blocks import Block, make_blocks
from .masks import causal


class Base(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.register_buffer("scale", torch.ones(width))

    def describe(self):
        return f"{self.scale.sum()}"


class Net(Base):
    def __init__(self, width=64, depth=4):
        super().__init__(width)
        self.blocks = make_blocks(width, depth)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        mask = causal(x.shape[1]).to(x.device)
        for block in self.blocks:
            x = block(x, mask)
        if x.isnan().any():
            print(self.describe())
        return self.head(x)
""",
    "net/blocks.py": """\
import torch
from torch import nn

from .attention import attend

__all__ = ["Block", "make_blocks"]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x, mask):
        x = attend(x, x, x, mask)
        noise = torch.randn(x.shape).cuda()
        return self.norm(self.conv(x.transpose(1, 2))).transpose(1, 2) + noise


def make_blocks(width, depth):
    return nn.ModuleList(Block(width) for _ in range(depth))
""",
    "net/attention.py": """\
import math

import torch


def attend(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(mask == 0, float("-inf"))
    return torch.softmax(scores, dim=-1) @ value
""",
    "net/masks.py": """\
import numpy as np
import torch


def causal(size):
    return torch.tensor(np.tril(np.ones((size, size))))
""",
    "data.py": """\
import torch
from torch.utils.data import DataLoader, Dataset

from settings import BATCH, DEVICE


class Words(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.tensor(self.rows[index]).to(DEVICE)


def make_loader(rows, shuffle=True):
    return DataLoader(Words(rows), batch_size=BATCH, shuffle=shuffle)
""",
    "settings.py": """\
import torch

BATCH = 32
EPOCHS = 4
DEVICE = torch.device("cuda")
""",
    "losses.py": """\
import torch
import torch.nn.functional as F

from meter import Meter

meter = Meter()


def loss_of(logits, target):
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
    meter.add(loss)
    weights = torch.tensor([1.0, 2.0]).cuda()
    return loss * weights.mean()
""",
    "meter.py": """\
class Meter:
    def __init__(self):
        self.total = 0
        self.values = []

    def add(self, value):
        self.total += value
        self.values.append(value.item())

    def report_mean_value(self):
        return self.total / len(self.values)
""",
    "steps.py": """\
import gc

import torch

from losses import loss_of
from settings import DEVICE


def train_step(model, batch, optimizer):
    inputs, target = prepare_batch(batch)
    optimizer.zero_grad()
    loss = loss_of(model(inputs), target)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    clean_after_step()
    return loss.item()


def prepare_batch(batch):
    return batch[0].to(DEVICE), batch[1].to(DEVICE)


def clean_after_step():
    gc.collect()
    torch.cuda.empty_cache()
""",
    "train.py": """\
import copy

import torch

from data import make_loader
from net import Net
from settings import DEVICE, EPOCHS
from steps import train_step
from validate import validate


def main():
    model = Net().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train_loader = make_loader(range(1000))
    best = None
    for epoch in range(EPOCHS):
        for step, batch in enumerate(train_loader):
            value = train_step(model, batch, optimizer)
            if step % 100 == 0:
                print(step, value)
        score = validate(model, make_loader(range(100), shuffle=False))
        if best is None or score > best:
            best = score
            state = copy.deepcopy(model.state_dict())
    torch.save(state, "best.pt")


if __name__ == "__main__":
    main()
""",
    "validate.py": """\
from losses import meter
from steps import prepare_batch


def validate(model, loader):
    model.eval()
    right = 0
    for batch in loader:
        inputs, target = prepare_batch(batch)
        logits = model(inputs)
        right += (logits.argmax(-1) == target).sum().item()
    return right / meter.report_mean_value()
""",
    "search.py": """\
import torch
from torch import nn

import train
from net.model import Net


class Small(Net):
    def forward(self, x):
        out = super().forward(x)
        return out.cpu().numpy()


def compiled():
    model = torch.compile(Small())
    for batch in train.make_loader(range(10)):
        model(batch[0])


class Holder:
    def __init__(self, factory=Small):
        self.model = factory()

    def run_the_model(self, batches):
        return [self.model(batch).tolist() for batch in batches]
""",
    "ring_one.py": """\
from ring_two import second, thing

other = thing


def first(x, depth=0):
    return second(x, depth + 1) if depth < 3 else other
""",
    "ring_two.py": """\
import torch

from ring_one import first, other

thing = other or torch.zeros(3).cuda()


def second(x, depth):
    while depth < 9:
        x = first(x, depth).item()
    return x or first(thing)
""",
}


def write_project(root: Path) -> None:
    for name, text in FILES.items():
        file = root / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
