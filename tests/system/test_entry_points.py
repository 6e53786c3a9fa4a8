"""Entry points read from folders are those that the standard library finds."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path

import pytest

from perflint.system.entry_points import entry_points

GROUP = "acme.rules"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    found = [tmp_path / "first", tmp_path / "second"]
    for folder in found:
        folder.mkdir()
    monkeypatch.setattr(sys, "path", [*map(str, found), str(tmp_path / "gone"), *sys.path])
    return found


def install(folder: Path, name: str, version: str, points: str, *, suffix: str = "dist-info") -> None:
    metadata = folder / f"{name.replace('-', '_')}-{version}.{suffix}"
    metadata.mkdir()
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (metadata / ("METADATA" if suffix == "dist-info" else "PKG-INFO")).write_text(text, encoding="utf-8")
    (metadata / "entry_points.txt").write_text(points, encoding="utf-8")


def told(group: str = GROUP) -> set[tuple[str, str]]:
    """What the standard library tells, with names as folders have them."""
    found = importlib.metadata.entry_points(group=group)
    return {(entry.value, entry.dist.name.replace("-", "_")) for entry in found if entry.dist is not None}


def test_groups_comments_and_both_kinds_of_metadata(folders: list[Path]) -> None:
    install(
        folders[0], "acme-rules", "1.0", f"# ours\n[other]\na = b\n\n[{GROUP}]\nrules = acme.rules [fast]\n#x = y\n"
    )
    install(folders[1], "more", "2", f"[{GROUP}]\none=more.one\n two = more.two\n", suffix="egg-info")

    assert entry_points(GROUP) == {("acme.rules [fast]", "acme_rules"), ("more.one", "more"), ("more.two", "more")}
    assert entry_points(GROUP) == told()


def test_the_first_of_two_versions_counts(folders: list[Path]) -> None:
    install(folders[0], "acme-rules", "2.0", f"[{GROUP}]\nrules = acme.new\n")
    install(folders[1], "Acme-Rules", "1.0", f"[{GROUP}]\nrules = acme.old\n")

    assert entry_points(GROUP) == {("acme.new", "acme_rules")} == told()


def test_archives_are_left_to_the_standard_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "rules.zip"
    archive.write_bytes(b"PK\x05\x06" + bytes(18))
    monkeypatch.setattr(sys, "path", [*sys.path, str(archive)])
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [FromArchive()] if group == GROUP else [])

    assert entry_points(GROUP) == {("archived", "an unknown distribution")}


class FromArchive:
    value, dist = "archived", None


def test_unreadable_metadata_is_passed_over(folders: list[Path]) -> None:
    (folders[0] / "odd.egg-info").write_text("Name: odd\n", encoding="utf-8")
    broken = folders[0] / "broken-1.dist-info"
    broken.mkdir()
    (broken / "entry_points.txt").write_bytes(b"\xff\xfe[x")

    assert entry_points(GROUP) == set()


def test_what_pip_left_behind_is_not_installed(folders: list[Path]) -> None:
    install(folders[0], "acme-rules", "2.0", f"[{GROUP}]\nrules = acme.rules\n")
    install(folders[0], "~cme-rules", "1.0", f"[{GROUP}]\nrules = acme.rules\n")

    assert entry_points(GROUP) == {("acme.rules", "acme_rules")}


def test_paths_that_are_no_texts_are_passed_over(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    install(folders[0], "acme-rules", "2.0", f"[{GROUP}]\nrules = acme.rules\n")
    monkeypatch.setattr(sys, "path", [*sys.path, folders[1]])

    assert entry_points(GROUP) == {("acme.rules", "acme_rules")}


def test_paths_that_may_not_be_looked_at_are_passed_over(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    install(folders[0], "acme-rules", "2.0", f"[{GROUP}]\nrules = acme.rules\n")
    closed = str(folders[1] / "closed")
    monkeypatch.setattr(sys, "path", [*sys.path, closed])
    look = os.stat

    def stat(path: str, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        if str(path) == closed:
            raise PermissionError(13, "Permission denied", closed)
        return look(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "stat", stat)

    assert entry_points(GROUP) == {("acme.rules", "acme_rules")}
