"""Segmentation with a meter of intersections and a guard against losses that are not finite."""

import torch
from torch import nn
from torch.nn import functional as F


class Meter:
    def __init__(self, classes):
        self.classes = classes
        self.table = torch.zeros(classes, classes)

    def update(self, predicted, wanted):
        index = wanted.flatten() * self.classes + predicted.flatten()
        counts = torch.bincount(index, minlength=self.classes**2)
        self.table += counts.view(self.classes, self.classes).cpu()

    def value(self):
        common = self.table.diag()
        return (common / (self.table.sum(0) + self.table.sum(1) - common).clamp(min=1)).mean().item()


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def average(self):
        return self.sum / max(self.count, 1)


class Segmenter(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(8, classes, 2, stride=2)

    def forward(self, x):
        return self.up(F.relu(self.down(x)))


def train_epoch(model, optimizer, batches, device, meter, losses):
    for images, masks in batches:
        images, masks = images.to(device, non_blocking=True), masks.to(device, non_blocking=True)
        logits = model(images)
        loss = F.cross_entropy(logits, masks)
        if not torch.isfinite(loss):
            raise RuntimeError("loss is not finite")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), images.size(0))
        meter.update(logits.argmax(1), masks)


def main():
    device = torch.device("cuda")
    model = Segmenter(3).to(device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    batches = [(torch.rand(2, 3, 16, 16), torch.randint(0, 3, (2, 16, 16))) for _ in range(6)]
    for epoch in range(20):
        meter, losses = Meter(3), AverageMeter()
        train_epoch(model, optimizer, batches, device, meter, losses)
        print(epoch, losses.average, meter.value())


if __name__ == "__main__":
    main()
