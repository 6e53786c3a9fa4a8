"""Which lines of the working tree changed since a revision. Asks git, writes nothing into the repository."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from functools import cached_property
from pathlib import Path

from perflint.errors import PerflintError, SourceError
from perflint.finding import Finding, Report
from perflint.syntax.file import SourceFile
from perflint.syntax.read import decode_source

_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_RENAMES = frozenset("RC")
#: A repository's configuration may name programs: none is run, and nothing is fetched.
_HARMLESS = ("-c", "core.fsmonitor=false", "-c", "protocol.allow=never", "--no-pager")


class Changes:
    """What changed below `root`, a git root, since `revision`. Files that git does not know are new in every line."""

    def __init__(self, root: Path, revision: str) -> None:
        self.root = root
        found = self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if found is None:
            raise PerflintError(f"--changed-since: {revision!r} names no commit of the repository {root}")
        self._commit = found.decode("ascii", "replace").strip()
        self._lines: dict[tuple[str, str], frozenset[int] | None] = {}

    def narrow(self, report: Report) -> Report:
        """`report` with the findings that stand on changed lines, and what is wrong with files that have changed."""
        kept = tuple(one for one in report.findings if self._touches(one, report.texts.get(one.path, "")))
        errors = tuple(one for one in report.errors if one.detail or not self._is_as_it_was(one.path))
        return Report(kept, errors, report.files, report.texts, report.silenced, report.notes)

    def _is_as_it_was(self, path: str) -> bool:
        """Whether a file, which may be none that can be read as text, has not changed by a byte."""
        name, file = self._name(path), Path(path)
        if name is None or not file.is_file():
            return False
        then = self._ask("cat-file", "blob", f"{self._commit}:{self._old_names.get(name, name)}")
        try:
            return then is not None and then == file.read_bytes()
        except OSError:
            return False

    def _touches(self, finding: Finding, raw: str) -> bool:
        now = SourceFile(finding.path, raw)
        if finding.cell is not None:
            now = decode_source(raw.encode("utf-8", "surrogatepass"), finding.path)
        key = (finding.path, now.text)
        if key not in self._lines:
            self._lines[key] = self._changed(finding.path, now)
        changed = self._lines[key]
        span = now.unplaced(finding).span
        return changed is None or not changed.isdisjoint(range(span.line, span.end_line + 1))

    def _changed(self, path: str, now: SourceFile) -> frozenset[int] | None:
        """Lines of `now` that are new; None for all of them."""
        name = self._name(path)
        if name is None or (name not in self._tracked and name not in self._old_names):
            return None
        then = self._then(self._old_names.get(name, name), path)
        if then is None:
            return None
        return frozenset() if then.lines == now.lines else self._compare(then, now)

    def _name(self, path: str) -> str | None:
        """The path as git has it; None outside the repository."""
        absolute = Path(os.path.abspath(path))  # noqa: PTH100 - a link is tracked under its own name
        for file, root in ((absolute, self.root), (absolute.parent.resolve() / absolute.name, self.root.resolve())):
            if file.is_relative_to(root):
                return file.relative_to(root).as_posix()
        return None

    def _then(self, name: str, path: str) -> SourceFile | None:
        data = self._ask("cat-file", "blob", f"{self._commit}:{name}")
        if data is None:
            return None
        try:
            return decode_source(data, path)
        except SourceError:
            return None

    def _compare(self, then: SourceFile, now: SourceFile) -> frozenset[int]:
        """By git itself, which is fast where a file has changed as a whole."""
        with tempfile.TemporaryDirectory(prefix="perflint-") as name:
            files = [Path(name, side) for side in ("then", "now")]
            for file, source in zip(files, (then, now)):
                file.write_bytes("\n".join(source.lines).encode("utf-8", "surrogatepass"))
            options = ("--no-index", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--text")
            printed = self._ask("diff", *options, "--", *map(str, files), expected=(1,)) or b""
        changed: set[int] = set()
        for match in _HUNK.finditer(printed.decode("utf-8", "replace")):
            first, count = int(match[1]), int(match[2] or 1)
            changed.update(range(first, first + count))
        return frozenset(changed)

    @cached_property
    def _tracked(self) -> frozenset[str]:
        listed = self._ask("ls-files", "-z", "--full-name") or b""
        return frozenset(os.fsdecode(name) for name in listed.split(b"\0") if name)

    @cached_property
    def _old_names(self) -> dict[str, str]:
        """The names that changed files had at the revision."""
        # Of the index, not of the working tree: for that git would run the repository's own filters.
        listed = self._ask("diff", "--cached", "--name-status", "-z", "-M", "--no-ext-diff", self._commit, "--") or b""
        words = iter([os.fsdecode(word) for word in listed.split(b"\0") if word])
        names: dict[str, str] = {}
        for status in words:
            old = next(words, "")
            names[next(words, "") if status[0] in _RENAMES else old] = old
        return names

    def _ask(self, *arguments: str, expected: tuple[int, ...] = (0,)) -> bytes | None:
        """What git prints, None when it ends otherwise than expected."""
        command = ["git", "-C", str(self.root), *_HARMLESS, *arguments]
        environment = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
        try:
            done = subprocess.run(command, check=False, capture_output=True, env=environment)
        except OSError as error:
            raise PerflintError(f"--changed-since needs git: {error.strerror or error}") from error
        return done.stdout if done.returncode in expected else None
