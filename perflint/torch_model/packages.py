"""The words that stand, among those of a project's configurations, for what they say of it as a whole."""

from __future__ import annotations

from collections.abc import Container, Iterable

#: Before the folder of a project that can be installed: others import of it what it exports.
INSTALLED = "@package:"
#: Before what a configuration sets, in the words of configurations: `:17 model.depth=4`; what stands for what it is set
#: to where nobody can tell.
SET, UNTOLD = ":", "?"
#: Before a command that a project writes down.
RUN = ">"


def is_installed(path: str, words: Container[str]) -> bool:
    """Whether a file lies in a project that can be installed. One in a folder says nothing of what lies beside it."""
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        if f"{INSTALLED}{folder}" in words:
            return True
    return False


def holds_installed(words: Iterable[str]) -> bool:
    """Whether any project among the files can be installed."""
    return any(word.startswith(INSTALLED) for word in words)
