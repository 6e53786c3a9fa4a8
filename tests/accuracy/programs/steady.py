"""A loop that lets the device run: pinned batches, losses kept on the device, one read every twenty steps."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __init__(self, count=4096):
        generator = torch.Generator().manual_seed(0)
        self.x = torch.randn(count, 12, generator=generator)
        self.y = self.x.sum(1, keepdim=True)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, at):
        return self.x[at], self.y[at]


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.full((12,), 0.5))
        self.layers = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 1))

    def forward(self, x):
        return self.layers(x * self.scale)


def main():
    device = torch.device("cuda")
    loader = DataLoader(Numbers(), batch_size=8, shuffle=True, pin_memory=True, drop_last=True)
    model = Regressor().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    total = torch.zeros((), device=device)
    for step, (x, y) in enumerate(loader):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.detach()
        if (step + 1) % 20 == 0:
            print(step, (total / 20).item())
            total.zero_()


if __name__ == "__main__":
    main()
