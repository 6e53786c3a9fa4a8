"""Classes of a program that nothing in it refers to: what only a class's users would call does not run there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from perflint.ir.summary import Summary
from perflint.syntax.roles import is_test

#: What makes objects of classes that it finds by their names, and what exports names as texts.
_BY_TEXT = frozenset(
    "import_module instantiate instantiate_from_config build_from_cfg globals locate get_class __all__ __import__ "
    "entry_points".split()
)


class UnusedClasses:
    """Asked of one class at a time; the identifiers of all files are gone through once, when the first is asked for."""

    def __init__(self, summaries: Mapping[str, Summary]) -> None:
        self._summaries = summaries

    def is_unused(self, path: str, qualname: str) -> bool:
        """Whether no file but a test refers to a top-level class: by its name, an import, or a decorator on it.

        Never where the program finds classes by texts, and never for what a star import exports.
        """
        if "." in qualname or self._finds_by_text or self._is_star_imported(path):
            return False
        summary = self._summaries[path]
        if qualname not in summary.classes or summary.classes[qualname].decorators:
            return False
        name = qualname.partition("~")[0]
        places = self._files_with.get(name, frozenset()) | self._importers.get(name, frozenset())
        return places <= {path} and not _is_used_at_home(summary, qualname, name)

    @cached_property
    def _files_with(self) -> dict[str, frozenset[str]]:
        """By the name of a class, the files other than tests that use the identifier."""
        wanted = {name for summary in self._summaries.values() for name in summary.classes if "." not in name}
        found: dict[str, set[str]] = {}
        for path, summary in self._summaries.items():
            if not is_test(path):
                for name in wanted & summary.words():
                    found.setdefault(name, set()).add(path)
        return {name: frozenset(paths) for name, paths in found.items()}

    @cached_property
    def _importers(self) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for path, summary in self._summaries.items():
            if not is_test(path):
                for target in summary.imports.values():
                    found.setdefault(target.rpartition(".")[2], set()).add(path)
        return {name: frozenset(paths) for name, paths in found.items()}

    @cached_property
    def _finds_by_text(self) -> bool:
        files = self._summaries.items()
        return any(not _BY_TEXT.isdisjoint(summary.words()) for path, summary in files if not is_test(path))

    @cached_property
    def _starred(self) -> frozenset[str]:
        return frozenset(star.rpartition(".")[2] for summary in self._summaries.values() for star in summary.stars)

    def _is_star_imported(self, path: str) -> bool:
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        return parts[-1] in self._starred


def _is_used_at_home(summary: Summary, qualname: str, name: str) -> bool:
    """Whether another statement of its own file refers to a class."""
    home = summary.statement_at(summary.classes[qualname].line)
    return any(line != home and name in words for line, words in summary.words_by_statement().items())
