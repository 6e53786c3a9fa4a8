"""Which definitions the texts of a program name: its string literals, and the words of its configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from perflint.analysis.names.imports import folders_in
from perflint.ir.summary import Summary
from perflint.torch_model.packages import INSTALLED

_SEPARATORS = str.maketrans(dict.fromkeys("./:-", " "))
#: Shorter beginnings and ends of names say nothing.
_SHORTEST = 3


class Texts:
    """`configured` gives the words of configurations; they are read when the first name is asked for."""

    def __init__(self, summaries: Mapping[str, Summary], configured: Callable[[], frozenset[str]]) -> None:
        self._summaries = summaries
        self._configured = configured
        self._known: dict[str, bool] = {}

    def name(self, name: str) -> bool:
        """Whether a text names a definition, in whatever case, or is the beginning or the end of one that does. Where
        no configuration lies beside the program, those that it is run with are not known, and may name any.
        """
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._is_bare or self._is_told(_plain(name))
        return known

    @cached_property
    def _is_bare(self) -> bool:
        return all(word.startswith(INSTALLED) for word in self._configured())

    def _is_told(self, name: str) -> bool:
        whole, begins, ends = self._words
        return name in whole or name.startswith(begins) or name.endswith(ends)

    @cached_property
    def _words(self) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
        plain: list[str] = []
        begins: set[str] = set()
        ends: set[str] = set()
        for word in self._all():
            if word[0] == "}":
                ends.add(_plain(word[1:]))
            elif word[-1] == "{":
                *parts, last = word.translate(_SEPARATORS).split()
                plain += parts
                begins.add(_plain(last[:-1]))  # ends with the brace
            else:
                plain.append(word)
        # By far most are whole words: taken apart together, they cost a third.
        whole = map(_plain, set(" ".join(plain).translate(_SEPARATORS).split()))
        return (
            frozenset(whole),
            tuple(word for word in begins if len(word) >= _SHORTEST),
            tuple(word for word in ends if len(word) >= _SHORTEST),
        )

    def _all(self) -> Iterable[str]:
        found: set[str] = set(self._configured())
        for summary in self._summaries.values():
            found.update(summary.texts.split())
        return found

    def folders(self, path: str) -> list[str]:
        """The packages below which a file may look for modules."""
        return folders_in(self._summaries[path].texts)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
