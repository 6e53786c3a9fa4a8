"""A variational autoencoder in a package-like layout: options, model, trainer."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Autoencoder(nn.Module):
    def __init__(self, inputs=20, hidden=16, latent=4):
        super().__init__()
        self.encode = nn.Linear(inputs, hidden)
        self.mean, self.spread = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decode = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, inputs))

    def forward(self, x):
        hidden = F.relu(self.encode(x))
        mean, spread = self.mean(hidden), self.spread(hidden)
        noise = torch.randn(mean.shape).to(mean.device)
        return self.decode(mean + noise * (spread / 2).exp()), mean, spread


class Trainer:
    def __init__(self, options):
        self.options = options
        self.device = torch.device("cuda" if options.gpu else "cpu")
        self.model = Autoencoder().to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.rate)
        self.history = {"reconstruction": [], "divergence": []}

    def losses(self, x):
        again, mean, spread = self.model(x)
        reconstruction = F.mse_loss(again, x, reduction="sum")
        divergence = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
        return reconstruction, divergence

    def fit(self, batches):
        for number, x in enumerate(batches):
            x = x.to(self.device)
            reconstruction, divergence = self.losses(x)
            loss = reconstruction + self.options.weight * divergence
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.history["reconstruction"].append(reconstruction.item())
            self.history["divergence"].append(divergence.detach().cpu().numpy())
            if self.options.verbose:
                print(f"batch {number}: {loss.item():.3f}")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--weight", type=float, default=0.5)
    parser.add_argument("--gpu", action="store_true", default=True)
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args([])


if __name__ == "__main__":
    trainer = Trainer(parse())
    trainer.fit([torch.rand(8, 20) for _ in range(400)])
    print(trainer.history["reconstruction"][-1])
