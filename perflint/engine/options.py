"""How one run goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from perflint.engine.cluster import RayExecutor
    from perflint.engine.governing import Governed
    from perflint.ir.summary import Summary
    from perflint.project.settings import Settings
    from perflint.rule_api.rule import Rule


class Memory:
    """Summaries that a process which checks again and again keeps, with the state of the file each was made from."""

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[object, Summary]] = {}

    def get(self, file: Path, state: object) -> Summary | None:
        """The summary of a file that is still in that state."""
        kept = self._kept.get(file)
        return kept[1] if kept is not None and kept[0] == state else None

    def put(self, file: Path, state: object, summary: Summary) -> None:
        self._kept[file] = (state, summary)


@dataclass(frozen=True)
class Options:
    """How one run goes. `rules` are the selected rules, one instance each; `stdin` replaces the file of that name.

    `nested` says by folder what holds there instead of `settings`, of whose rules only `codes` run elsewhere.

    `everything` says that `rules` are all there are. A `memory` is asked before the cache. An `executor` does what
    otherwise `jobs` processes do. `progress` is told how many files of how many are done, which may end the run by
    raising. A reported file that is only surveyed counts as half of one. When the process `ends` with
    the run, what is large is not freed first.
    """

    settings: Settings
    rules: Sequence[Rule]
    stdin: tuple[str, bytes] | None = None
    jobs: int = 1
    progress: Callable[[int, int], None] | None = None
    cache: bool = True
    everything: bool = False
    memory: Memory | None = None
    executor: RayExecutor | None = None
    ends: bool = False
    codes: frozenset[str] | None = None
    nested: Mapping[Path, Governed] = field(default_factory=dict)
