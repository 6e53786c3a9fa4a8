"""The arguments of one call, evaluated only as far as somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from perflint.analysis.values.kind import Kind, limited

Thunk = Callable[[], Kind]


@dataclass(slots=True)
class Arguments:
    """Positional arguments and keywords of a call. `constants` holds the values of literal ones, by position or
    keyword. `exact` is false when arguments are unpacked with a star, so that more may have been given, and `named`
    when some may have been given by a name that is not known.
    """

    positional: Sequence[Thunk] = ()
    keywords: Mapping[str, Thunk] = field(default_factory=dict)
    constants: Mapping[int | str, object] = field(default_factory=dict)
    exact: bool = True
    named: bool = True

    def __len__(self) -> int:
        return len(self.positional)

    def has(self, name: str) -> bool:
        return name in self.keywords

    def at(self, place: int, keyword: str = "") -> Kind | None:
        """The argument at a position or under a keyword, None when it is not given."""
        if keyword in self.keywords:
            return self.keywords[keyword]()
        if place < len(self.positional):
            return self.positional[place]()
        return None

    def constant(self, place: int, keyword: str = "", default: object = None) -> object:
        """The literal value of an argument, `default` when it is not given or no literal."""
        if keyword and keyword in self.constants:
            return self.constants[keyword]
        return self.constants.get(place, default)

    def is_true(self, keyword: str, place: int = 1_000) -> bool:
        return self.constant(place, keyword) is True

    def kinds(self) -> Iterator[Kind]:
        for thunk in self.positional:
            yield thunk()
        for thunk in self.keywords.values():
            yield thunk()

    def signature(self, depth: int) -> tuple[tuple[Kind, ...], tuple[tuple[str, Kind], ...]]:
        """All arguments, evaluated, so many containers deep: what tells one call of a helper from another."""
        return (
            tuple(limited(thunk(), depth) for thunk in self.positional),
            tuple((name, limited(thunk(), depth)) for name, thunk in self.keywords.items()),
        )


NO_ARGUMENTS = Arguments()


def given(*kinds: Kind) -> Arguments:
    """Arguments that are known already."""
    return signed(kinds)


def signed(
    positional: Iterable[Kind], keywords: Iterable[tuple[str, Kind]] = (), *, exact: bool = True, named: bool = True
) -> Arguments:
    """Arguments with a signature."""
    by_name = {name: _constantly(kind) for name, kind in keywords}
    return Arguments(tuple(map(_constantly, positional)), by_name, exact=exact, named=named)


def _constantly(kind: Kind) -> Thunk:
    return lambda: kind
