"""The source texts that a report may quote, packed: few are ever looked at, and unpacked they are an eighth of the
memory of a large run."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping


class ShownTexts(Mapping[str, str]):
    """Texts by path. The one that was read last is kept as it is."""

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self._last: tuple[str, str] | None = None

    def add(self, path: str, text: str) -> None:
        self._packed[path] = zlib.compress(text.encode("utf-8", "surrogatepass"), 1)

    def update(self, others: ShownTexts) -> None:
        self._packed.update(others._packed)

    def __getitem__(self, path: str) -> str:
        last = self._last
        if last is None or last[0] != path:
            last = self._last = (path, zlib.decompress(self._packed[path]).decode("utf-8", "surrogatepass"))
        return last[1]

    def __contains__(self, path: object) -> bool:
        return path in self._packed

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)
