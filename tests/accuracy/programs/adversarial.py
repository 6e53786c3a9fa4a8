"""Two networks against each other on points of a circle, with labels made anew each step."""

import math

import torch
from torch import nn


def real_points(count):
    angle = torch.rand(count) * 2 * math.pi
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def main():
    device = "cuda"
    generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
    critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)).to(device)
    loss_of = nn.BCEWithLogitsLoss()
    steps_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    steps_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
    for step in range(2000):
        real = real_points(16).to(device)
        ones = torch.ones(16, 1).to(device)
        zeros = torch.zeros(16, 1, device=device)

        fake = generator(torch.randn(16, 4).to(device))
        steps_c.zero_grad()
        loss_c = loss_of(critic(real), ones) + loss_of(critic(fake.detach()), zeros)
        loss_c.backward()
        steps_c.step()

        steps_g.zero_grad()
        loss_g = loss_of(critic(fake), ones)
        loss_g.backward()
        steps_g.step()
        if step % 10 == 0:
            print(f"{step} critic {loss_c.item():.3f} generator {loss_g.item():.3f}")


main()
