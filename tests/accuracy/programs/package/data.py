"""Batches of made-up sentences."""

import random

import torch
from torch.utils.data import Dataset


class Sentences(Dataset):
    def __init__(self, count=2048, vocabulary=50):
        chosen = random.Random(0)
        self.rows = [[chosen.randrange(2, vocabulary) for _ in range(chosen.randint(4, 9))] for _ in range(count)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        return self.rows[at]


class Collate:
    def __init__(self, pad=0, mask=1, share=0.3):
        self.pad, self.mask, self.share = pad, mask, share

    def __call__(self, rows):
        longest = max(map(len, rows))
        ids = torch.full((len(rows), longest), self.pad)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = torch.tensor(row)
        labels = ids.clone()
        hidden = (torch.rand(ids.shape) < self.share) & (ids != self.pad)
        labels[~hidden] = -100
        ids[hidden] = self.mask
        return {"input_ids": ids, "labels": labels, "attention_mask": (ids != self.pad).long()}
