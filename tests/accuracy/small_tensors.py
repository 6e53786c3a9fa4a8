"""Small inputs, one after the other, for code whose needs are not known: the first that run are taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Inputs = Iterator[tuple[Any, ...]]


def pictures() -> Inputs:
    """For filters, augmentations and losses on pictures."""
    import torch

    picture, grey = torch.rand(4, 3, 32, 32), torch.rand(4, 1, 32, 32)
    scores = torch.randn(2, 4, 16, 16)
    yield (picture,)
    yield (grey,)
    yield (torch.rand(2, 4, 32, 32),)
    yield (torch.rand(2, 3, 8, 32, 32),)
    yield picture, picture.flip(0)
    yield scores, torch.randint(0, 4, (2, 16, 16))
    yield grey, (grey > 0.5).float()
    yield picture, torch.ones(3, 3)
    yield (torch.rand(2, 5, 2),)
    yield (torch.rand(2, 5, 3),)
    yield torch.rand(6, 128), torch.rand(6, 128)


def embeddings() -> Inputs:
    """For losses and miners of metric learning: what a network gave, and classes of it."""
    import torch

    vectors, labels = torch.randn(16, 8), torch.arange(16) % 5
    yield vectors, labels
    yield (vectors,)
    yield vectors, vectors.roll(1, 0)
    yield (torch.randn(5, 8),)


def measured() -> Inputs:
    """Predictions and what they are held against, in the forms of metrics and losses."""
    import torch

    classes, yes = torch.randint(0, 5, (16,)), torch.randint(0, 2, (16,))
    yield torch.rand(16, 5).softmax(1), classes
    yield torch.rand(16), yes
    yield torch.rand(16, 5), torch.randint(0, 2, (16, 5))
    yield torch.rand(16), torch.rand(16)
    yield torch.rand(16, 5), torch.rand(16, 5)
    yield torch.rand(16), yes, torch.arange(16) // 4
    yield torch.rand(16, 5), classes
    yield classes, classes.flip(0)
    yield yes, yes.flip(0), yes
    yield torch.rand(16), yes, yes
    yield (torch.rand(16),)
    yield torch.randint(0, 2, (2, 5, 16, 16)), torch.randint(0, 2, (2, 5, 16, 16))
    yield torch.rand(2, 3, 64, 64), torch.rand(2, 3, 64, 64)
    yield torch.rand(2, 3, 192, 192), torch.rand(2, 3, 192, 192)
    yield (torch.rand(2, 3, 64, 64),)
    yield torch.rand(2, 8000), torch.rand(2, 8000)
    yield torch.rand(2, 2, 8000), torch.rand(2, 2, 8000)
    yield torch.rand(2, 8, 5), torch.randint(0, 5, (2, 8))
    yield torch.rand(10, 3), torch.rand(10, 3)
    yield torch.rand(2, 10, 3), torch.rand(2, 10, 3)
    yield from _described()


def _described() -> Inputs:
    """Boxes with what is in them, and texts."""
    import torch

    corners = torch.tensor([[10.0, 10.0, 60.0, 60.0], [30.0, 20.0, 90.0, 80.0], [0.0, 0.0, 9.0, 9.0]])
    seen = {"boxes": corners, "scores": torch.rand(3), "labels": torch.tensor([0, 1, 1])}
    real = {"boxes": corners + 2, "labels": torch.tensor([0, 1, 0])}
    yield [seen, seen], [real, real]
    yield torch.randint(0, 2, (1, 8, 8, 2)), torch.randint(0, 2, (1, 8, 8, 2))
    yield ["the cat is here", "a dog"], ["the cat was here", "one dog"]
    yield ["the cat is here", "a dog"], [["the cat was here"], ["one dog"]]


def vectors() -> Inputs:
    """For layers over sequences of vectors or of tokens."""
    import torch

    tokens = torch.randint(0, 20, (2, 16))
    yield (torch.randn(2, 16, 32),)
    yield (tokens,)
    yield tokens, tokens.flip(1)
    yield torch.randn(2, 16, 32), torch.randn(2, 8, 32)
    yield (torch.randn(2, 3, 32, 32),)
    yield (torch.randn(2, 16, 4),)
    yield (torch.randn(2, 16, 3),)
    yield torch.rand(2, 3, 32, 32), tokens


def volumes() -> Inputs:
    """For networks and losses on pictures of one channel, and of more."""
    import torch

    one, mask = torch.rand(2, 1, 32, 32), torch.randint(0, 2, (2, 1, 32, 32)).float()
    scores, hot = torch.randn(2, 3, 32, 32), torch.eye(3)[torch.randint(0, 3, (2, 32, 32))].permute(0, 3, 1, 2)
    yield (one,)
    yield (torch.rand(2, 1, 64, 64),)
    yield (torch.rand(2, 3, 64, 64),)
    yield scores, hot.contiguous()
    yield scores, torch.randint(0, 3, (2, 1, 32, 32))
    yield scores, torch.randint(0, 3, (2, 32, 32))
    yield one.sigmoid(), mask
    yield torch.rand(2, 1, 16, 16, 16), torch.rand(2, 1, 16, 16, 16)
    yield torch.rand(16, 8), torch.rand(16, 8)
    yield torch.rand(16), torch.rand(16)
    yield (torch.rand(2, 2, 32, 32),)
    yield (torch.rand(2, 2, 16, 16, 16),)
    yield (torch.rand(2, 16, 32),)
    yield one, torch.tensor([1, 2])
    yield (torch.rand(1, 1, 32, 32, 32),)


def denoised() -> Inputs:
    """A noisy sample, noise of the same form, and when."""
    import torch

    noisy, states = torch.randn(2, 4, 16, 16), torch.randn(2, 6, 32)
    time = torch.tensor([3, 7])
    yield noisy, torch.randn(2, 4, 16, 16)
    yield noisy, time
    yield noisy, time, states
    yield (noisy,)
    yield torch.randn(2, 3, 32, 32), time
    yield (torch.randn(2, 3, 32, 32),)
    yield noisy, states, time
    yield (torch.randn(2, 4, 8, 16, 16),)
    yield torch.randn(2, 6, 32), time
    yield (torch.randn(2, 6, 32),)
