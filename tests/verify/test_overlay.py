"""Copies of a tree in which fixes are tried."""

from pathlib import Path

from perflint.verify.overlay import Overlay


def _tree(tmp_path: Path) -> Overlay:
    origin = tmp_path / "origin"
    (origin / "package").mkdir(parents=True)
    (origin / "package" / "a.py").write_text("a = 1\n")
    (origin / "b.py").write_text("b = 1\n")
    (origin / "data").mkdir()
    (origin / "data" / "large").write_text("x")
    overlay = Overlay(origin, tmp_path / "copy", ("data",))
    overlay.copy()
    return overlay


def test_changes_are_in_the_copy_only_and_go_with_the_next(tmp_path: Path) -> None:
    overlay = _tree(tmp_path)
    overlay.change({"b.py": b"b = 2\n"})
    overlay.change({"package/a.py": b"a = 2\n"})
    assert (overlay.tree / "package" / "a.py").read_text() == "a = 2\n"
    assert (overlay.tree / "b.py").read_text() == "b = 1\n"
    assert (overlay.origin / "package" / "a.py").read_text() == "a = 1\n"


def test_what_a_run_wrote_is_gone_before_the_next(tmp_path: Path) -> None:
    overlay = _tree(tmp_path)
    overlay.change({"b.py": b"b = 2\n"})
    (overlay.tree / "b.py").write_text("broken by the run")
    (overlay.tree / "package" / "a.py").unlink()
    (overlay.tree / "runs").mkdir()
    (overlay.tree / "runs" / "log").write_text("x")
    overlay.restore()
    assert (overlay.tree / "b.py").read_text() == "b = 2\n"
    assert (overlay.tree / "package" / "a.py").read_text() == "a = 1\n"
    assert not (overlay.tree / "runs").exists()


def test_folders_of_data_are_links(tmp_path: Path) -> None:
    overlay = _tree(tmp_path)
    assert (overlay.tree / "data").is_symlink()
    assert (overlay.tree / "data" / "large").read_text() == "x"
