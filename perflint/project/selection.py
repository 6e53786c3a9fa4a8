"""Which rules run: selectors of the configuration and of the command line, and what each matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from perflint.errors import SettingsError
from perflint.project.settings import Settings, nearest, place_of
from perflint.rule_api.rule import Rule


class Selection(NamedTuple):
    """Which rules run: what the file says, and above it what the command line says.

    Selectors are a code (`TPL101`), the beginning of one (`TPL3`), a rule's name, or `ALL`. The most specific one
    that matches a rule decides; between equals the command line goes before the file, and ignoring before selecting.
    A `select` of the command line replaces the file's.
    """

    settings: Settings = Settings()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extra: bool = False

    def resolve(self, rules: Sequence[type[Rule]]) -> list[type[Rule]]:
        """The rules to run, by code. Raises SettingsError for a selector that names no rule."""
        for key, where, selectors in self._sources():
            for selector in selectors:
                try:
                    check_selector(selector, rules, where)
                except SettingsError as error:
                    raise SettingsError(
                        f"{place_of(self.settings.file, key)}: {error}" if key else str(error)
                    ) from error
        return sorted((rule for rule in rules if self._runs(rule)), key=lambda rule: rule.code)

    def _sources(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """The key of the file, nothing for the command line; what it is called; and what it says."""
        settings = self.settings
        ours = [
            ("", "--select", self.select),
            ("", "--ignore", self.ignore),
            ("select", "select", settings.select or ()),
            ("ignore", "ignore", settings.ignore),
            ("extend-select", "extend-select", settings.extend_select),
        ]
        key = "per-file-ignores"
        return ours + [(key, f"{key}.{pattern}", names) for pattern, names in settings.per_file_ignores.items()]

    def _runs(self, rule: type[Rule]) -> bool:
        settings = self.settings
        extra = self.extra or settings.extra
        chosen = self.select or settings.select
        # (specificity, layer, ignoring): the greatest that matches decides.
        votes: list[tuple[int, int, bool]] = []
        if chosen is None:
            if extra or rule.tier.value == "core":
                votes.append((0, 0, False))
        else:
            layer = 1 if self.select else 0
            votes += [(rank, layer, False) for rank in _ranks(chosen, rule, extra=extra)]
        votes += [(rank, 0, False) for rank in _ranks(settings.extend_select, rule, extra=extra)]
        votes += [(rank, 0, True) for rank in _ranks(settings.ignore, rule, extra=True)]
        votes += [(rank, 1, True) for rank in _ranks(self.ignore, rule, extra=True)]
        return bool(votes) and not max(votes)[2]


_EXACT = 1000


def _ranks(selectors: Iterable[str], rule: type[Rule], *, extra: bool) -> list[int]:
    """How specific each selector is that matches `rule`. A prefix reaches an extra rule only when `extra`."""
    ranks = [rank_of(selector, rule.code, rule.name) for selector in selectors]
    reached = extra or rule.tier.value == "core"
    return [rank for rank in ranks if rank is not None and (reached or rank in {0, _EXACT})]


def rank_of(selector: str, code: str, name: str) -> int | None:
    """How specific `selector` is about the rule: 0 for `ALL`, more for longer prefixes; None when it does not match."""
    word = selector.strip()
    if word.upper() == code or word.lower() == name:
        return _EXACT
    if word == "ALL":
        return 0
    if word and code.startswith(word.upper()):
        return len(word)
    return None


def check_selector(selector: str, rules: Sequence[type[Rule]], where: str) -> None:
    """Raises SettingsError naming `where` and the nearest valid selector when `selector` matches no rule."""
    if selector == "ALL" or any(rank_of(selector, rule.code, rule.name) is not None for rule in rules):
        return
    codes = [rule.code for rule in rules]
    prefixes = {code[:length] for code in codes for length in range(3, len(code))}
    hint = nearest(selector, [*codes, *(rule.name for rule in rules), *sorted(prefixes)])
    raise SettingsError(f"{where}: no rule matches {selector!r}{hint}")
