"""Training code with something wrong in it: real programs in which a few things were changed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_ODD = (
    b"\0",
    b"\xff",
    b"\\",
    b'"""',
    b"\x1a",
    b"\xed\xa0\x80",
    b"'\\ud800'",
    b"\r",
    b"\x0c",
    b"\xef\xbb\xbf",
    b"f'{",
    b"#",
)


def mutants(files: Sequence[Path], dice: random.Random) -> Iterator[bytes]:
    """Without end."""
    while True:
        data = dice.choice(files).read_bytes()
        for _ in range(dice.choice((1, 1, 2, 5))):
            data = mutated(data, dice)
        yield data


def mutated(data: bytes, dice: random.Random) -> bytes:
    """`data` with one change."""
    lines = data.splitlines(keepends=True) or [b"\n"]
    place = dice.randrange(len(lines))
    way = dice.randrange(16)
    if way == 0:
        del lines[place]
    elif way == 1:
        lines.insert(place, lines[dice.randrange(len(lines))])
    elif way == 2:
        words = re.split(rb"(\W+)", lines[place])
        dice.shuffle(words)
        lines[place] = b"".join(words)
    elif way == 3:
        lines[place] = re.sub(rb"[()\[\]{}:]", b"", lines[place], count=1)
    elif way == 4:
        lines[place] = b"\x0c" + lines[place]
    elif way == 5:
        return data.replace(b"\n", dice.choice((b"\r", b"\r\n", b"\n\r")))
    elif way == 6:
        return b"\xef\xbb\xbf" + data
    elif way == 7:
        lines[place] = lines[place].replace(b"    ", b"\t")
    elif way == 8:
        lines[place] = lines[place].rstrip(b"\n") + "  # \U0001f525\u202e\u0301".encode() + b"\n"
    elif way == 9:
        lines[place] = re.sub(rb"\b[a-z]\w*", "\U00020000\u00e9".encode(), lines[place], count=1)
    elif way == 10:
        cut = dice.randrange(len(data) + 1)
        return data[:cut] + dice.choice(_ODD) + data[cut:]
    elif way == 11:
        return data[: dice.randrange(len(data) + 1)]
    elif way == 12:
        other = dice.randrange(len(lines))
        lines[place], lines[other] = _swapped(lines[place], lines[other], dice)
    elif way == 13:
        # Characters of more than one unit or byte before what is found on the line.
        lines[place] = re.sub(rb"^([ \t]*)(?=[a-z_])", '\\1"\U0001f525é"; '.encode(), lines[place], count=1)
    elif way == 14:
        lines[place] = re.sub(rb"^([ \t]*)(?=[a-z_])", rb"\1if x: ", lines[place], count=1)
    else:
        lines[place] = lines[place].rstrip(b"\n") + b"  # perflint: ignore[TPL" + b"%d" % dice.randrange(900) + b"]\n"
    return b"".join(lines)


def _swapped(one: bytes, other: bytes, dice: random.Random) -> tuple[bytes, bytes]:
    """Both lines with a word of each in the place of the other's."""
    ours, theirs = re.findall(rb"\w+", one), re.findall(rb"\w+", other)
    if not ours or not theirs:
        return other, one
    mine, yours = dice.choice(ours), dice.choice(theirs)
    return one.replace(mine, yours, 1), other.replace(yours, mine, 1)
