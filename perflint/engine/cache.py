"""One cache a project: summaries by content, whole results by everything they depend on.

A cache can only ever save time: whatever is wrong with it, it is left aside or rebuilt, and the run goes on. It holds
JSON in an SQLite file, which several runs may share; nothing in it is ever run, and no path in it is ever followed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from perflint import __version__

FOLDER = ".perflint_cache"
_FILES = ("cache.sqlite", "cache.sqlite-journal", "cache.sqlite-wal", "cache.sqlite-shm")
_LAYOUT = 2
_MOST_BYTES = 256 * 1024 * 1024
_IGNORE_ALL = "# Made by perflint; safe to delete.\n*\n"
_BATCH = 500
_AT_ONCE = 200

Key = TypeVar("Key")


class Cache:
    """An open cache; one that cannot be used knows nothing and keeps nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._connection: sqlite3.Connection | None = None
        self._touched: set[bytes] = set()
        with contextlib.suppress(OSError, sqlite3.Error):
            self._connection = _open(folder)

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Any]:
        """The values there are for `keys`; what does not read is not there."""
        found: dict[bytes, Any] = {}
        wanted = list(keys)
        for start in range(0, len(wanted), _BATCH):
            part = wanted[start : start + _BATCH]
            marks = ",".join("?" * len(part))
            for key, text in self._run(f"SELECT key, value FROM entries WHERE key IN ({marks})", part):  # noqa: S608
                with contextlib.suppress(ValueError, RecursionError):
                    found[bytes(key)] = json.loads(text)
                    self._touched.add(bytes(key))
        return found

    def put(self, entries: Mapping[bytes, Any]) -> None:
        now = int(time.time())
        rows = [(key, json.dumps(value, separators=(",", ":")), now) for key, value in entries.items()]
        self._many("INSERT OR REPLACE INTO entries (key, value, used) VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        """Note what was used, drop what has not been for longest where the cache is too large, and close."""
        if self._connection is None:
            return
        now = int(time.time())
        self._many(
            "UPDATE entries SET used = ? WHERE key = ? AND used < ? - 86400", [(now, key, now) for key in self._touched]
        )
        self._shrink()
        with contextlib.suppress(sqlite3.Error):
            self._connection.commit()
            self._connection.close()
        self._connection = None

    def _shrink(self) -> None:
        pages = next(iter(self._run("PRAGMA page_count", ())), (0,))[0]
        size = next(iter(self._run("PRAGMA page_size", ())), (0,))[0]
        if pages * size > _MOST_BYTES:
            oldest = "SELECT key FROM entries ORDER BY used LIMIT (SELECT count(*) / 2 FROM entries)"
            self._run(f"DELETE FROM entries WHERE key IN ({oldest})", ())  # noqa: S608
            with contextlib.suppress(sqlite3.Error):
                if self._connection is not None:
                    self._connection.commit()
                    self._connection.execute("VACUUM")

    def _run(self, statement: str, values: Iterable[Any]) -> list[Any]:
        if self._connection is None:
            return []
        try:
            return self._connection.execute(statement, tuple(values)).fetchall()
        except sqlite3.Error as error:
            self._give_up(error)
            return []

    def _many(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        if self._connection is None or not rows:
            return
        try:
            with self._connection:
                self._connection.executemany(statement, rows)
        except sqlite3.Error as error:
            self._give_up(error)

    def _give_up(self, error: sqlite3.Error) -> None:
        """Stop using a cache that fails. One that is damaged is deleted, so that the next run makes a new one."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            _remove(self.folder)


def keep_out_of_git(folder: Path) -> None:
    """Have git overlook a folder of ours. Raises OSError."""
    ignore = folder / ".gitignore"
    if not os.path.lexists(ignore):
        ignore.write_text(_IGNORE_ALL, encoding="utf-8")


def _open(folder: Path) -> sqlite3.Connection:
    if folder.is_symlink():
        raise OSError("it is a symbolic link")
    for name in _FILES:
        # Through a link in a repository of somebody else, another program's database would be written.
        if (folder / name).is_symlink():
            raise OSError(f"{name} is a symbolic link")
    folder.mkdir(parents=True, exist_ok=True)
    keep_out_of_git(folder)
    try:
        return _connect(folder)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        _remove(folder)
        return _connect(folder)


def _connect(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "cache.sqlite", timeout=5.0)
    try:
        layout = connection.execute("PRAGMA user_version").fetchone()[0]
        if layout not in (0, _LAYOUT):
            connection.execute("DROP TABLE IF EXISTS entries")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value TEXT NOT NULL, used INTEGER NOT NULL)"
        )
        connection.execute(f"PRAGMA user_version = {_LAYOUT}")
        connection.commit()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _remove(folder: Path) -> None:
    for name in _FILES:
        with contextlib.suppress(OSError):
            (folder / name).unlink()


def clean(folder: Path) -> bool:
    """Delete a project's cache, and nothing that perflint did not put there. False when there was none."""
    if folder.is_symlink() or not (folder / "cache.sqlite").exists():
        return False
    _remove(folder)
    if [entry.name for entry in folder.iterdir()] == [".gitignore"]:
        # Measurements that are kept beside the cache stay, and stay out of version control.
        with contextlib.suppress(OSError):
            (folder / ".gitignore").unlink()
            folder.rmdir()
    return True


def in_parts(keys: Iterable[Key]) -> Iterator[list[Key]]:
    """`keys`, as many at a time as may have their values in memory: as JSON they are many times what they stand for."""
    waiting = list(keys)
    for start in range(0, len(waiting), _AT_ONCE):
        yield waiting[start : start + _AT_ONCE]


def key_of(*parts: object) -> bytes:
    """A key of 20 bytes from everything a value depends on."""
    digest = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()


def engine_fingerprint() -> str:
    """What the tool itself adds to every key: its version, the interpreter's, and the state of its own files."""
    package = Path(__file__).parent
    folders = [package, package.parent / "rules" if not (package / "rules").exists() else package / "rules"]
    stamps = []
    for folder in folders:
        for where, names, files in os.walk(folder):
            names[:] = [name for name in names if name != "__pycache__"]
            for name in files:
                if name.endswith(".py"):
                    state = os.stat(os.path.join(where, name))  # noqa: PTH116, PTH118 - some 150 files at every start
                    stamps.append(f"{name}:{state.st_size}:{state.st_mtime_ns}")
    return f"{__version__} {sys.version_info[:3]} {hashlib.blake2b('|'.join(sorted(stamps)).encode()).hexdigest()[:24]}"
