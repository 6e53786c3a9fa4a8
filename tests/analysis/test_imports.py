"""What an import means, in the layouts that people keep their programs in: all heat rests on it."""

# ruff: noqa: E501 - one layout a line

from __future__ import annotations

import ast

import pytest

from perflint.analysis.names.module_names import ModuleTable
from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.finding import Heat
from perflint.ir.survey import survey

WORK = "def work():\n    pass\n"


def train(importing: str, called: str = "work") -> str:
    return f"{importing}\ndef train(model, loader, opt):\n    for batch in loader:\n        opt.step()\n        {called}()\n"


def heats(files: dict[str, str], base: str = "/home/me/repo") -> dict[str, Heat]:
    """How often each `work` runs, by file."""
    program = Program({path: survey(ast.parse(text), text.split("\n")) for path, text in files.items()}, base=base)
    return {path: program.heat(Scope(path, "work")) for path, text in files.items() if "def work" in text}


@pytest.mark.parametrize(
    "files",
    [
        # A script in a folder that is a package too, which is run in its folder.
        {"pkg/__init__.py": "", "pkg/train.py": train("from helper import work"), "pkg/helper.py": WORK},
        {"pkg/__init__.py": "", "pkg/train.py": train("import helper", "helper.work"), "pkg/helper.py": WORK},
        {
            "pkg/__init__.py": "",
            "pkg/train.py": train("from lib.helper import work"),
            "pkg/lib/__init__.py": "",
            "pkg/lib/helper.py": WORK,
        },
        {
            "pkg/__init__.py": "",
            "pkg/train.py": train("from lib import work"),
            "pkg/lib/__init__.py": "from lib.helper import work",
            "pkg/lib/helper.py": WORK,
        },
        {
            "pkg/train.py": train("from lib.deep import work"),
            "pkg/lib/deep.py": "from helper import work",
            "pkg/helper.py": WORK,
        },
        # The function, not the submodule of the same name.
        {"train.py": train("from ops import work"), "ops/__init__.py": "from .work import work", "ops/work.py": WORK},
        {"train.py": train("from ops import work"), "ops/__init__.py": "from ops.work import work", "ops/work.py": WORK},
        {"train.py": train("from ops import work"), "ops/__init__.py": "from .work import *", "ops/work.py": WORK},
        {"train.py": train("import ops", "ops.work"), "ops/__init__.py": "from .work import work", "ops/work.py": WORK},
        {"train.py": train("from ops import *"), "ops/__init__.py": "from .work import work", "ops/work.py": WORK},
        {
            "pkg/__init__.py": "from .work import work",
            "pkg/train.py": train("from . import work"),
            "pkg/work/__init__.py": "from .work import work",
            "pkg/work/work.py": WORK,
        },
        {
            "pkg/__init__.py": "",
            "pkg/train.py": train("from .work import work"),
            "pkg/work/__init__.py": "from .work import work",
            "pkg/work/work.py": WORK,
        },
        # The submodule, where the package makes nothing else of its name.
        {"train.py": train("from ops import area", "area.work"), "ops/__init__.py": "", "ops/area.py": WORK},
        {
            "train.py": train("from ops import area", "area.work"),
            "ops/__init__.py": "from . import area",
            "ops/area.py": WORK,
        },
        {"train.py": train("from ops import area", "area.work"), "ops/area.py": WORK},
        {
            "pkg/__init__.py": "",
            "pkg/train.py": train("from . import area", "area.work"),
            "pkg/area.py": WORK,
        },
        {"pkg/__init__.py": "from . import area as a", "pkg/area.py": WORK, "train.py": train("import pkg", "pkg.a.work")},
        # Several roots.
        {"scripts/train.py": train("from ops.area import work"), "ops/area.py": WORK},
        {"src/ops/area.py": WORK, "scripts/train.py": train("from ops.area import work")},
        {
            "packages/a/src/a/__init__.py": "",
            "packages/a/src/a/area.py": WORK,
            "packages/b/src/b/__init__.py": "",
            "packages/b/src/b/train.py": train("from a.area import work"),
        },
    ],
)  # fmt: skip
@pytest.mark.parametrize("base", ["/home/me/repo", "/"])
def test_finds_what_is_imported(files: dict[str, str], base: str) -> None:
    assert set(heats(files, base).values()) == {Heat.STEP}


@pytest.mark.parametrize(
    ("files", "meant"),
    [
        # A script's own folder, and what goes by the name elsewhere.
        (
            {"a/train.py": train("from helper import work"), "a/helper.py": WORK, "helper.py": WORK, "b/helper.py": WORK},
            "a/helper.py",
        ),
        (
            {
                "pkg/__init__.py": "",
                "pkg/train.py": train("from helper import work"),
                "pkg/helper.py": WORK,
                "a/helper.py": WORK,
            },
            "pkg/helper.py",
        ),
        # Through the package, where both could be meant; but not where only one has it.
        (
            {
                "pkg/__init__.py": "",
                "pkg/train.py": train("from helper import work"),
                "pkg/helper.py": WORK,
                "helper.py": WORK,
            },
            "helper.py",
        ),
        (
            {
                "pkg/__init__.py": "",
                "pkg/train.py": train("from helper import work"),
                "pkg/helper.py": WORK,
                "helper.py": "def other():\n    pass\n",
            },
            "pkg/helper.py",
        ),
        # The nearest of those that have the same name.
        (
            {
                "a/src/common/tools.py": WORK,
                "b/src/common/tools.py": WORK,
                "b/scripts/train.py": train("from common.tools import work"),
            },
            "b/src/common/tools.py",
        ),
        (
            {
                "a/pkg/__init__.py": "",
                "a/pkg/tools.py": WORK,
                "b/pkg/__init__.py": "",
                "b/pkg/tools.py": WORK,
                "b/pkg/train.py": train("from pkg.tools import work"),
            },
            "b/pkg/tools.py",
        ),
    ],
)  # fmt: skip
def test_of_several_the_one_that_is_meant(files: dict[str, str], meant: str) -> None:
    assert heats(files) == {path: Heat.STEP if path == meant else Heat.ONCE for path in heats(files)}


def test_what_a_package_defines_itself_goes_before_its_submodule() -> None:
    files = {"train.py": train("from ops import work"), "ops/__init__.py": WORK, "ops/work.py": WORK}
    assert heats(files) == {"ops/__init__.py": Heat.STEP, "ops/work.py": Heat.ONCE}


@pytest.mark.parametrize(
    ("base", "shown"),
    [
        ("/repo", lambda path: path),
        ("/repo/pkg", lambda path: path.removeprefix("pkg/") if path.startswith("pkg/") else f"../{path}"),
        ("/elsewhere", lambda path: f"../repo/{path}"),
        ("/repo/other/deep", lambda path: f"../../{path}"),
        ("/repo", lambda path: f"/repo/{path}"),
    ],
)
def test_the_working_directory_makes_no_difference(base: str, shown: object) -> None:
    assert callable(shown)
    files = {
        "pkg/__init__.py": "",
        "pkg/train.py": train("from pkg.helper import work"),
        "pkg/helper.py": "from tools import work as work\n",
        "tools.py": WORK,
    }
    assert heats({shown(path): text for path, text in files.items()}, base) == {shown("tools.py"): Heat.STEP}


def test_circles_end() -> None:
    files = {
        "train.py": train("from ops import work"),
        "ops/__init__.py": "from .work import work",
        "ops/work.py": "from . import work\nfrom ops import *\nfrom .work import work\n",
        "ops/other.py": WORK,
    }
    assert heats(files) == {"ops/other.py": Heat.ONCE}


def test_a_library_is_not_looked_for_in_the_project() -> None:
    table = ModuleTable(["torch/pkg/train.py", "torch/pkg/__init__.py"], "/home/torch")
    assert table.is_library("numpy.random")
    assert table.find("torch.nn", "torch/pkg/train.py") is None


def test_a_part_of_a_package_does_not_hide_the_library_of_its_name() -> None:
    files = ["pkg/__init__.py", "pkg/torch/__init__.py", "pkg/torch/nn.py", "pkg/torch/sac/train.py", "main.py"]
    table = ModuleTable(files, "/repo")
    assert table.find("torch", "pkg/torch/nn.py") is None
    assert table.find("torch.nn", "pkg/torch/sac/train.py") is None
    assert table.find("pkg.torch.nn", "pkg/torch/sac/train.py") == "pkg/torch/nn.py"
    # The library's own repository holds it.
    assert ModuleTable(["torch/__init__.py", "torch/nn.py"], "/repo").find("torch.nn", "torch/nn.py") == "torch/nn.py"


def test_the_folder_of_all_files_is_a_part_of_their_names() -> None:
    files = ["nets/digits/run.py", "nets/digits/data.py", "nets/words/data.py", "nets/shared.py"]
    table = ModuleTable(files, "/repo")
    assert table.find("nets.digits.data", "nets/digits/run.py") == "nets/digits/data.py"
    assert table.find("nets.shared", "nets/words/data.py") == "nets/shared.py"
    assert not table.is_library("nets.digits.data")
