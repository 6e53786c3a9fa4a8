"""Tags for sequences of different lengths, packed for a recurrent layer."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader


def collate(rows):
    words, tags = zip(*rows)
    lengths = torch.tensor([len(one) for one in words])
    return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True, padding_value=-1), lengths


class Tagger(nn.Module):
    def __init__(self, vocabulary=30, tags=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 16)
        self.layers = nn.LSTM(16, 16, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, tags)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(
            self.embedding(words), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        out, _ = pad_packed_sequence(self.layers(packed)[0], batch_first=True)
        return self.head(out)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    rows = [(torch.randint(0, 30, (n,)), torch.randint(0, 4, (n,))) for n in torch.randint(3, 9, (960,)).tolist()]
    loader = DataLoader(rows, batch_size=8, collate_fn=collate)
    model = Tagger().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss(ignore_index=-1)
    for epoch in range(20):
        for words, tags, lengths in loader:
            words, tags, lengths = words.to(device), tags.to(device), lengths.to(device)
            scores = model(words, lengths)
            loss = criterion(scores.reshape(-1, 4), tags.reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, float(loss))


if __name__ == "__main__":
    main()
