"""An encoder whose attention may look at what is near, and at all that is marked."""

import torch
from torch import nn
from torch.nn import functional as F


class RelativeBias(nn.Module):
    def __init__(self, heads, reach=8):
        super().__init__()
        self.reach = reach
        self.table = nn.Embedding(2 * reach + 1, heads)

    def forward(self, length):
        places = torch.arange(length)
        distance = (places[None, :] - places[:, None]).clamp(-self.reach, self.reach) + self.reach
        return self.table(distance.to(self.table.weight.device)).permute(2, 0, 1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.bias = RelativeBias(heads)

    def forward(self, x, mask):
        q, k, v = self.project(x).chunk(3, dim=-1)
        split = (x.size(0), x.size(1), self.heads, -1)
        q, k, v = q.view(split), k.view(split), v.view(split)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) + self.bias(x.size(1))
        if mask is not None and not mask.all():
            scores = scores.masked_fill(~mask[:, None, None, :], -1e4)
        return self.out(torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2))


class Encoder(nn.Module):
    def __init__(self, vocabulary=50, width=16, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.layers = nn.ModuleList(Attention(width, 2) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    def forward(self, input_ids, attention_mask):
        x = self.embedding(input_ids)
        for layer, norm in zip(self.layers, self.norms):
            x = norm(x + layer(x, attention_mask.bool()))
        return x


class MaskedModel(nn.Module):
    def __init__(self, encoder, vocabulary=50):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(16, vocabulary)

    def forward(self, input_ids, attention_mask, labels=None):
        hidden = self.encoder(input_ids, attention_mask)
        if labels is None:
            return self.head(hidden)
        wanted = labels != -100
        return F.cross_entropy(self.head(hidden[wanted]), labels[wanted])
