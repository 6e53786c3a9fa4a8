"""Match anchors to boxes picture by picture, and train on those that matched."""

import torch
from torch import nn
from torch.nn import functional as F


def overlap(a, b):
    low = torch.max(a[:, None, :2], b[None, :, :2])
    high = torch.min(a[:, None, 2:], b[None, :, 2:])
    common = (high - low).clamp(min=0).prod(2)
    area_a = (a[:, 2:] - a[:, :2]).prod(1)
    area_b = (b[:, 2:] - b[:, :2]).prod(1)
    return common / (area_a[:, None] + area_b[None] - common)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.scores = nn.Conv2d(8, 1, 1)
        self.places = nn.Conv2d(8, 4, 1)

    def forward(self, images):
        x = F.relu(self.body(images))
        scores = self.scores(x).flatten(1)
        places = self.places(x).flatten(2).transpose(1, 2)
        return scores, places


class Criterion(nn.Module):
    def __init__(self, threshold=0.2):
        super().__init__()
        self.threshold = threshold

    def forward(self, scores, places, anchors, targets):
        total = scores.new_zeros(())
        for score, place, boxes in zip(scores, places, targets):
            best, which = overlap(anchors, boxes).max(dim=1)
            matched = best > self.threshold
            labels = torch.zeros_like(score)
            labels[matched] = 1.0
            loss = F.binary_cross_entropy_with_logits(score, labels)
            if matched.any():
                chosen = torch.nonzero(matched).squeeze(1)
                loss = loss + F.smooth_l1_loss(place[chosen], boxes[which[matched]])
            total = total + loss
        return total / len(targets)


def main():
    device = torch.device("cuda")
    grid = torch.stack(torch.meshgrid(torch.arange(8), torch.arange(8), indexing="xy"), -1).reshape(-1, 2) * 4.0
    anchors = torch.cat([grid, grid + 8.0], dim=1).to(device)
    model, criterion = Detector().to(device), Criterion()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(900):
        images = torch.rand(3, 3, 16, 16, device=device)
        targets = [torch.tensor([[2.0, 2.0, 10.0, 12.0], [9.0, 8.0, 18.0, 15.0]], device=device) for _ in images]
        loss = criterion(*model(images), anchors, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
