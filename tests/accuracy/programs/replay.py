"""Q-learning in a corridor, with a replay buffer of numpy rows."""

import random
from collections import deque

import numpy as np
import torch
from torch import nn


class Corridor:
    def reset(self):
        self.at, self.steps = 0, 0
        return self.state()

    def state(self):
        return np.array([self.at / 5, self.steps / 20], dtype=np.float32)

    def step(self, action):
        self.at = max(0, self.at + (1 if action == 1 else -1))
        self.steps += 1
        done = self.at == 5 or self.steps == 20
        return self.state(), float(self.at == 5), done


class Agent:
    def __init__(self, device):
        self.device = device
        self.net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
        self.target = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.memory = deque(maxlen=200)

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(2)
        with torch.no_grad():
            values = self.net(torch.from_numpy(state).unsqueeze(0).to(self.device))
        return values.argmax(1).item()

    def learn(self, size=16):
        rows = random.sample(self.memory, size)
        states, actions, rewards, after, done = map(np.array, zip(*rows))
        states = torch.tensor(states, device=self.device)
        actions = torch.tensor(actions, dtype=torch.long, device=self.device)
        rewards = torch.tensor(rewards, dtype=torch.float32).to(self.device)
        after = torch.FloatTensor(after).to(self.device)
        done = torch.tensor(done, dtype=torch.float32, device=self.device)
        with torch.no_grad():
            best = self.target(after).max(1)[0]
            wanted = rewards + 0.99 * best * (1 - done)
        found = self.net(states).gather(1, actions[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(found, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    world, agent = Corridor(), Agent(torch.device("cuda"))
    state = world.reset()
    losses = []
    for step in range(5000):
        action = agent.act(state, epsilon=0.2)
        following, reward, done = world.step(action)
        agent.memory.append((state, action, reward, following, done))
        state = world.reset() if done else following
        if len(agent.memory) >= 16:
            losses.append(agent.learn())
    print(np.mean(losses))


if __name__ == "__main__":
    random.seed(0)
    main()
