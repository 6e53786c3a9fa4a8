"""Denoising with a schedule that stays on the host and is looked up for each batch."""

import torch
from torch import nn
from torch.nn import functional as F


def extract(table, steps, shape):
    picked = table.to(steps.device)[steps]
    return picked.view(steps.shape[0], *([1] * (len(shape) - 1)))


class Schedule:
    def __init__(self, steps=50):
        betas = torch.linspace(1e-4, 0.02, steps)
        kept = torch.cumprod(1 - betas, dim=0)
        self.steps = steps
        self.signal = kept.sqrt()
        self.noise = (1 - kept).sqrt()

    def add_noise(self, clean, noise, steps):
        return extract(self.signal, steps, clean.shape) * clean + extract(self.noise, steps, clean.shape) * noise


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(50, 8)
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.last = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x, steps):
        hidden = self.first(x) + self.time(steps)[:, :, None, None]
        return self.last(F.silu(hidden))


def main():
    device = "cuda"
    schedule, model = Schedule(), Denoiser().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    average = [p.detach().clone() for p in model.parameters()]
    for step in range(1000):
        clean = torch.rand(4, 1, 8, 8).to(device)
        steps = torch.randint(0, schedule.steps, (4,), device=device)
        noise = torch.randn_like(clean)
        loss = F.mse_loss(model(schedule.add_noise(clean, noise, steps), steps), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(average, model.parameters()):
                old.lerp_(new, 0.01)
        if step % 4 == 3:
            print(step, loss.item())


if __name__ == "__main__":
    main()
