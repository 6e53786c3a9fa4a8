"""Made-up data in the places and formats where training programs look for theirs. Each function fills a folder."""

from __future__ import annotations

import gzip
import pickle
import random
import string
from collections.abc import Callable
from pathlib import Path

_WORDS = "the of and a to in is it that was for on are as with his they at be this".split()


def nothing(_folder: Path) -> None:
    """For programs that make their own."""


def shakespeare(folder: Path) -> None:
    """The two files of token ids that nanoGPT's character data consists of, and its table of characters."""
    import numpy as np

    target = folder / "data" / "shakespeare_char"
    target.mkdir(parents=True, exist_ok=True)
    tokens = np.random.default_rng(0).integers(0, 65, 20_000).astype(np.uint16)
    tokens.tofile(target / "train.bin")
    tokens.tofile(target / "val.bin")
    (target / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 65}))


def _text(words: int) -> str:
    chosen = random.Random(0)
    return "\n".join(" ".join(chosen.choice(_WORDS) for _ in range(10)) for _ in range(words // 10))


def text_file(name: str) -> Callable[[Path], None]:
    """A text of some thousand words, with every character that a prompt may have."""

    def fill(folder: Path) -> None:
        (folder / name).write_text(f"{string.ascii_letters} {string.punctuation}\n{_text(5000)}")

    return fill


def names_file(name: str) -> Callable[[Path], None]:
    """A name a line."""

    def fill(folder: Path) -> None:
        chosen = random.Random(0)
        letters = "abcdefghijklmnopqrstuvwxyz"
        made = ("".join(chosen.choice(letters) for _ in range(chosen.randint(3, 9))) for _ in range(3000))
        (folder / name).write_text("\n".join(made))

    return fill


def words(name: str) -> Callable[[Path], None]:
    """The three files of a corpus of words."""

    def fill(folder: Path) -> None:
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        for part in ("train", "valid", "test"):
            (target / f"{part}.txt").write_text(_text(6000))

    return fill


def mnist(name: str) -> Callable[[Path], None]:
    """Images and labels in the format of MNIST, where torchvision's data set looks for them."""

    def fill(folder: Path) -> None:
        target = folder / name / "MNIST" / "raw"
        target.mkdir(parents=True, exist_ok=True)
        chosen = random.Random(0)
        for part, count in (("train", 1024), ("t10k", 256)):
            images = (2051).to_bytes(4, "big") + b"".join(one.to_bytes(4, "big") for one in (count, 28, 28))
            (target / f"{part}-images-idx3-ubyte").write_bytes(images + chosen.randbytes(count * 28 * 28))
            labels = (2049).to_bytes(4, "big") + count.to_bytes(4, "big")
            (target / f"{part}-labels-idx1-ubyte").write_bytes(labels + bytes(at % 10 for at in range(count)))

    return fill


def enwik8(folder: Path) -> None:
    """A compressed text where programs for enwik8 read the first 95 million bytes of it."""
    target = folder / "data"
    target.mkdir(parents=True, exist_ok=True)
    with gzip.open(target / "enwik8.gz", "wb", compresslevel=1) as file:
        file.write(_text(100_000).encode() * 220)


def masks(folder: Path) -> None:
    """Pictures with a mask each."""
    from PIL import Image

    for part, suffix, mode in (("imgs", "", "RGB"), ("masks", "_mask", "L")):
        target = folder / "data" / part
        target.mkdir(parents=True, exist_ok=True)
        for number in range(40):
            Image.new(mode, (32, 32)).save(target / f"picture{number}{suffix}.png")
