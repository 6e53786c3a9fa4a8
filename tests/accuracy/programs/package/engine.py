"""The loop, and what it reports."""

import torch


class Progress:
    def __init__(self):
        self.values = {}

    def update(self, **values):
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                value = value.item()
            self.values.setdefault(name, []).append(value)

    def last(self, name):
        return self.values[name][-1]


def gradient_norm(model):
    total = 0.0
    for parameter in model.parameters():
        if parameter.grad is not None:
            total += parameter.grad.norm(2).item() ** 2
    return total**0.5


def train(model, loader, optimizer, device, epochs=10):
    progress = Progress()
    for _ in range(epochs):
        for batch in loader:
            batch = {name: value.to(device) for name, value in batch.items()}
            loss = model(**batch)
            optimizer.zero_grad()
            loss.backward()
            norm = gradient_norm(model)
            optimizer.step()
            progress.update(loss=loss, norm=norm)
    return progress
