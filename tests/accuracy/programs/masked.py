"""Fill masked words, with the parts of the program in a package."""

import torch
from torch.utils.data import DataLoader

from package.data import Collate, Sentences
from package.engine import train
from package.model import Encoder, MaskedModel


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = MaskedModel(Encoder()).to(device)
    loader = DataLoader(Sentences(), batch_size=8, collate_fn=Collate())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    progress = train(model, loader, optimizer, device)
    print(progress.last("loss"))


if __name__ == "__main__":
    main()
