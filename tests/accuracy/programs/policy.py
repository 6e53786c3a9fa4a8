"""A policy gradient over whole episodes, with rewards summed from the end on the host."""

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, state):
        return Categorical(logits=self.layers(state))


class Balance:
    def __init__(self):
        self.random = np.random.default_rng(0)

    def reset(self):
        self.state = self.random.normal(size=3).astype(np.float32)
        return self.state

    def step(self, action):
        push = 0.1 if action else -0.1
        self.state = (self.state * 0.9 + push).astype(np.float32)
        return self.state, -float(abs(self.state).sum())


def episode(world, policy, device, length=6):
    logs, rewards, state = [], [], world.reset()
    for _ in range(length):
        chosen = policy(torch.from_numpy(state).float().to(device))
        action = chosen.sample()
        logs.append(chosen.log_prob(action))
        state, reward = world.step(action.item())
        rewards.append(reward)
    return logs, rewards


def returns_of(rewards, discount=0.95):
    found, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + discount * total
        found.insert(0, total)
    return found


def main():
    device = torch.device("cuda")
    world, policy = Balance(), Policy().to(device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for update in range(500):
        logs, rewards = episode(world, policy, device)
        returns = torch.tensor(returns_of(rewards), device=device)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(torch.stack(logs) * returns).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(update, sum(rewards))


if __name__ == "__main__":
    main()
