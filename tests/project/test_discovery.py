"""Which files are reported, which are analysed, and how they are named."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perflint.errors import PerflintError
from perflint.project.discovery import Discovery, FoundFile, discover, project_root
from perflint.project.settings import Settings


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project that is the working directory."""
    root = tmp_path / "project"
    root.mkdir()
    write(root, "pyproject.toml")
    monkeypatch.chdir(root)
    return root


def write(root: Path, *names: str, text: str = "") -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def names(files: tuple[FoundFile, ...]) -> list[str]:
    return [one.display for one in files]


def find(*paths: str, exclude: tuple[str, ...] = ()) -> Discovery:
    file = Path.cwd() / "pyproject.toml"
    return discover(list(paths), Settings(file, exclude=exclude))


def test_paths_are_reported_and_the_project_analysed(project: Path) -> None:
    write(project, "train.py", "pkg/model.py", "pkg/data.txt", "tools/run.sh")

    found = find("train.py")

    assert names(found.reported) == ["train.py"]
    assert names(found.analysed) == ["pkg/model.py", "train.py"]
    assert found.root == project
    assert found.file("pkg/model.py") == project / "pkg/model.py"


@pytest.mark.parametrize("path", [".", "./", "pkg/..", "../project"])
def test_names_are_relative_and_plain(project: Path, path: str) -> None:
    write(project, "b.py", "a/c.py")

    assert names(find(path).reported) == ["a/c.py", "b.py"]


def test_names_from_a_folder_inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, "a/b.py", "c.py")
    monkeypatch.chdir(project / "a")

    found = discover(["."], Settings())

    assert names(found.reported) == ["b.py"]
    assert names(found.analysed) == ["../c.py", "b.py"]


def test_a_file_given_twice_is_reported_once(project: Path) -> None:
    write(project, "a/b.py")

    assert names(find("a", "a/b.py", "./a/b.py", ".").reported) == ["a/b.py"]


def test_git_root_is_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "repo/.git/config", "repo/a.py", "repo/sub/b.py", "other.py")
    monkeypatch.chdir(tmp_path)

    assert names(discover(["repo/sub"], Settings()).analysed) == ["repo/a.py", "repo/sub/b.py"]


def test_a_project_within_one_is_a_part_of_it(project: Path) -> None:
    write(project, "inner/pyproject.toml", "inner/a.py", "b.py")

    assert find("inner/a.py").root == project
    assert find("inner/a.py", "b.py").root == project


def test_a_repository_within_one_is_a_project_of_its_own(project: Path) -> None:
    write(project, "inner/.git", "inner/deep/pyproject.toml", "inner/deep/a.py", "b.py")

    assert find("inner/deep/a.py").root == project / "inner"
    assert find("inner/deep/a.py", "b.py").root == project


def test_outside_any_project_only_the_paths_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.py", "b/c.py")
    monkeypatch.chdir(tmp_path)

    found = discover(["b"], Settings())

    assert found.root is None
    assert names(found.analysed) == ["b/c.py"]


def test_a_missing_path_is_named(project: Path) -> None:
    with pytest.raises(PerflintError, match=r"no such file or directory: nowhere/x\.py"):
        find("nowhere/x.py")


def test_nothing_to_read_is_nothing_found(project: Path) -> None:
    write(project, "docs/readme.md")

    assert find("docs").reported == ()


def test_a_file_given_by_name_is_read_whatever_it_is(project: Path) -> None:
    write(project, "script", "build/x.py", "no.py")
    write(project, ".gitignore", text="no.py\n")

    assert names(find("script", "build/x.py", "no.py", exclude=("no.py",)).reported) == [
        "build/x.py",
        "no.py",
        "script",
    ]


def test_a_folder_given_by_name_is_read_although_it_is_left_out_above(project: Path) -> None:
    write(project, "venv/lib/a.py", "out/gen/b.py", "out/gen/skip/c.py", ".gitignore", "d.py")
    write(project, ".gitignore", text="out/\nskip\n")

    assert names(find("venv/lib").reported) == ["venv/lib/a.py"]
    assert names(find("out/gen").reported) == ["out/gen/b.py", "out/gen/skip/c.py"]
    assert names(find(".").reported) == ["d.py"]


def test_what_tools_make_is_left_out(project: Path) -> None:
    write(
        project,
        *(f"{folder}/a.py" for folder in (".git", ".venv", "venv", "node_modules", "__pycache__", "build", "dist")),
        *(f"{folder}/a.py" for folder in ("x/site-packages", ".tox", ".eggs", "p.egg-info")),
        "envs/mine/pyvenv.cfg",
        "envs/mine/lib/a.py",
        "kept.py",
    )

    assert names(find(".").analysed) == ["kept.py"]


def test_files_of_attributes_beside_source_files_are_left_out_and_named(project: Path) -> None:
    write(project, "a.py", "._a.py", "sub/._b.ipynb")

    found = find(".")
    assert names(found.analysed) == ["a.py"]
    assert found.left_out == ("._a.py", "sub/._b.ipynb")
    assert names(find("._a.py").reported) == ["._a.py"]  # given by name, it is read


def test_a_package_called_dist_is_code(project: Path) -> None:
    write(project, "engine/dist/__init__.py", "engine/dist/utils.py", "dist/wheel.py")

    assert names(find(".").reported) == ["engine/dist/__init__.py", "engine/dist/utils.py"]


def test_gitignore_of_every_level(project: Path) -> None:
    write(project, "a.py", "gen_a.py", "sub/gen_b.py", "sub/gen_keep.py", "sub/deep/x.py", "sub/only.py", "only.py")
    write(project, ".gitignore", text="# generated\ngen_*.py\n/only.py\ndeep/\n")
    write(project, "sub/.gitignore", text="!gen_keep.py\n")

    assert names(find(".").reported) == ["a.py", "sub/gen_keep.py", "sub/only.py"]


@pytest.mark.parametrize("version", ["2", "3"])
def test_what_git_tracks_is_read_although_it_is_ignored(project: Path, version: str) -> None:
    write(project, "pkg/models/net.py", "pkg/models/scratch.py", "models/other.py", "new.py")
    write(project, ".gitignore", text="models/\nnew.py\n")

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", f"index.version={version}", *words], cwd=project, check=True, capture_output=True)

    git("init")
    git("add", "--force", "pkg/models/net.py")
    if version == "3":  # more flags stand before the name
        git("add", "--force", "--intent-to-add", "new.py")
    expected = ["new.py", "pkg/models/net.py"] if version == "3" else ["pkg/models/net.py"]
    assert names(find(".").reported) == expected
    git("add", "--force", "models/other.py")
    assert names(find(".").reported) == ["models/other.py", *expected]
    git("rm", "--cached", "--force", "models/other.py")
    assert not discover([project / "models/other.py"], Settings(), force_exclude=True).reported


def test_gitignore_above_the_walked_folder_counts(project: Path) -> None:
    write(project, ".git/info/exclude", text="mine.py\n")
    write(project, "pkg/a.py", "pkg/gen.py", "pkg/mine.py")
    write(project, ".gitignore", text="/pkg/gen.py\n")

    assert names(find("pkg").reported) == ["pkg/a.py"]


def test_gitignore_that_is_no_text_hides_nothing_else(project: Path) -> None:
    write(project, "a.py", "b.py")
    (project / ".gitignore").write_bytes(b"\xff\xfe\n!\nb.py\n[z-a]x\n")

    assert names(find(".").reported) == ["a.py"]


def test_exclude_patterns(project: Path) -> None:
    write(project, "a.py", "old/b.py", "new/old/c.py", "new/d_test.py")

    found = find(".", exclude=("/old", "*_test.py"))

    assert names(found.reported) == ["a.py", "new/old/c.py"]
    assert names(found.analysed) == ["a.py", "new/old/c.py"]


def test_a_loop_of_folders_is_one_problem(project: Path) -> None:
    write(project, "pkg/a.py")
    (project / "pkg/again").symlink_to(project / "pkg")
    (project / "pkg/up").symlink_to("..")
    (project / "self").symlink_to("self")

    found = find(".")

    assert names(found.reported) == ["pkg/a.py"]
    assert [one.path for one in found.problems] == ["pkg/again", "pkg/up", "self"]
    assert "directory loop" in found.problems[0].message


def test_links_give_a_file_no_second_name(project: Path, tmp_path: Path) -> None:
    write(project, "a.py", "sub/b.py")
    write(tmp_path, "outside.py")
    (project / "alias.py").symlink_to("a.py")
    (project / "linked").symlink_to("sub")
    (project / "broken.py").symlink_to("nowhere.py")
    (project / "there.py").symlink_to(tmp_path / "outside.py")

    found = find(".")

    assert names(found.reported) == ["a.py", "sub/b.py", "there.py"]
    assert found.problems == ()
    assert names(find("linked").reported) == ["linked/b.py"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_read_is_a_problem(project: Path) -> None:
    write(project, "a.py", "locked/b.py")
    (project / "locked").chmod(0)

    found = find(".")
    (project / "locked").chmod(0o700)

    assert names(found.reported) == ["a.py"]
    assert [one.path for one in found.problems] == ["locked"]


def cannot_be_read(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As for anybody but root: what lies in it can be neither listed nor asked about."""
    scandir, stat, lstat = os.scandir, os.stat, os.lstat

    def refuse(path: object) -> None:
        if isinstance(path, (str, Path)) and folder in Path(path).parents:
            raise PermissionError(13, "Permission denied", str(path))

    def refusing_scandir(path: str) -> Any:
        refuse(Path(path) / "entry")
        return scandir(path)

    def refusing_stat(path: Any, **options: Any) -> os.stat_result:
        refuse(path)
        return stat(path, **options)

    def refusing_lstat(path: Any, **options: Any) -> os.stat_result:
        refuse(path)
        return lstat(path, **options)

    monkeypatch.setattr(os, "scandir", refusing_scandir)
    monkeypatch.setattr(os, "lstat", refusing_lstat)
    monkeypatch.setattr(os, "stat", refusing_stat)


def test_a_folder_that_cannot_be_read_matters_where_it_is_asked_for(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, "a.py", "locked/b.py")
    cannot_be_read(monkeypatch, project / "locked")

    assert [one.path for one in find(".").problems] == ["locked"]
    assert [one.path for one in find("locked").problems] == ["locked"]
    assert find("a.py").problems == ()
    with pytest.raises(PerflintError, match=r"locked/b\.py: cannot be read: Permission denied"):
        find("locked/b.py")
    assert project_root([project / "locked/b.py"]) == project


def test_standard_input_takes_the_place_of_a_file(project: Path) -> None:
    write(project, "a.py", "pkg/b.py")

    found = discover([], Settings(), stdin="./pkg/new.py")

    assert names(found.reported) == ["pkg/new.py"]
    assert names(found.analysed) == ["a.py", "pkg/b.py", "pkg/new.py"]


def test_the_root_above_a_folder_named_by_way_of_its_parent(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, "a/perflint.toml")
    monkeypatch.chdir(project / "a")

    assert project_root([Path("..").absolute()]) == project
