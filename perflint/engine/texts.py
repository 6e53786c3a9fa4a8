"""What files hold: on disk, on standard input, in an editor, or as it was carried here. Also their states and trees."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Mapping, Sequence

from perflint.project.discovery import FoundFile
from perflint.syntax.file import SourceFile
from perflint.syntax.read import decode_source, read_bytes

#: Some 240 MB of trees.
_KEPT_BYTES = 6_500_000
#: By how much less text trees are kept of for each byte of a project above that: its summaries take as much memory.
_LESS_BY = 0.14


class Texts:
    """The texts of one run's files. `overlay` holds, by display path, those that stand in for what is on disk.

    `reported` are the files whose findings are wanted.
    """

    def __init__(
        self, reported: Sequence[FoundFile], stdin: tuple[str, bytes] | None, overlay: Mapping[str, str]
    ) -> None:
        self.overlay = overlay
        self._stdin = stdin
        #: Hashes of what files held when the run began, of those that are to be kept.
        self.digests: dict[str, bytes] = {}
        #: Files whose content is not what `digests` says, because they changed during the run.
        self.moved: set[str] = set()
        #: What files hold, where this process may not read them itself.
        self.carried: Mapping[str, bytes] = {}
        #: What the disk said of each file before any was read.
        self._seen = {file.display: _state(file) for file in reported}
        kept = self._kept(reported)
        self.trees = KeptTrees(kept, whole=len(kept) == len(reported))

    def _kept(self, reported: Sequence[FoundFile]) -> Sequence[FoundFile]:
        """The files whose trees are to be kept: the first ones of a large project, which are inspected first."""
        size = sum(state[1] for state in self._seen.values() if state is not None)
        if size <= _KEPT_BYTES:
            return reported
        left = _KEPT_BYTES - _LESS_BY * (size - _KEPT_BYTES)
        kept: list[FoundFile] = []
        for file in reported:
            left -= self.size(file)
            if left < 0:
                break
            kept.append(file)
        return kept

    def source(self, file: FoundFile) -> SourceFile:
        """The file's text. Notes when it is not what it was before. Raises SourceError when it cannot be read."""
        if file.display in self.overlay:
            return SourceFile(file.display, self.overlay[file.display])
        if self._stdin is not None and self._stdin[0] == file.display:
            return decode_source(self._stdin[1], file.display)
        data = self.carried[file.display] if file.display in self.carried else read_bytes(file.file)
        known = self.digests.get(file.display)
        if known is not None and known != _digest(data):
            self.moved.add(file.display)
        return decode_source(data, file.display)

    def data(self, file: FoundFile) -> bytes:
        """What a file holds that no editor's text stands in for. Raises SourceError when it cannot be read."""
        return self._stdin[1] if self._stdin is not None and self._stdin[0] == file.display else read_bytes(file.file)

    def stands_in(self, file: FoundFile) -> bool:
        """Whether another text is read in the place of what is on disk."""
        here = file.display in self.overlay or file.display in self.carried
        return here or (self._stdin is not None and self._stdin[0] == file.display)

    def has_changed(self, file: FoundFile) -> bool:
        """Whether a reported file is another one on disk than when the run began."""
        return not self.stands_in(file) and _state(file) != self._seen.get(file.display)

    def size(self, file: FoundFile) -> int:
        """In bytes, on disk, of a reported file; 0 of one that is not known."""
        state = self._seen.get(file.display)
        return state[1] if state is not None else 0

    def states(self, files: Iterable[FoundFile]) -> dict[str, object]:
        """What each file's summary depends on: its text where there is one to stand in, else what the disk says."""
        states: dict[str, object] = {}
        for file in files:
            if file.display in self.overlay:
                states[file.display] = self.overlay[file.display]
                continue
            if self._stdin is not None and self._stdin[0] == file.display:
                states[file.display] = self._stdin[1]
                continue
            state = _state(file)
            if state is not None:
                states[file.display] = state
        return states


class KeptTrees:
    """Syntax trees of a project's files from their survey to their inspection.

    Reading a file twice costs as much as all else that is done with it, but a tree takes 37 times the memory of its
    text, so of larger projects only the first ones are kept, and of the largest none. What a worker of a pool surveys
    is inspected by another one: nothing is kept there.
    """

    def __init__(self, files: Sequence[FoundFile], *, whole: bool) -> None:
        self._process = os.getpid()
        self._wanted = {file.display for file in files}
        self._trees: dict[str, tuple[SourceFile, ast.Module | None]] = {}
        #: Whether those of all files are kept.
        self.keeps_all = whole and bool(files)

    def keep_here(self) -> None:
        """Keep them in this process, which will inspect what it surveys."""
        self._process = os.getpid()

    def put(self, source: SourceFile, module: ast.Module | None) -> None:
        """Keep a file's text, and its tree where that will be looked at."""
        if source.path in self._wanted and os.getpid() == self._process:
            self._trees[source.path] = (source, module)

    def take(self, path: str) -> tuple[SourceFile, ast.Module | None] | None:
        """The text and tree of a file, which are not kept any longer."""
        return self._trees.pop(path, None)


def _digest(data: bytes) -> bytes:
    # Imported late: a run without a cache hashes nothing.
    from perflint.engine.cache import key_of

    return key_of(data)


def _state(file: FoundFile) -> tuple[int, int, int] | None:
    """Changes with the content of a file. None where it cannot be asked, which is reported when the file is read."""
    try:
        status = file.file.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
