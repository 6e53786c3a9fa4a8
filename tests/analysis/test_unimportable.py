"""Files that cannot be imported: what is surely not there ends a program; what may be there after all does not."""

from __future__ import annotations

import ast
import contextlib
from pathlib import Path

import pytest

from perflint.analysis.program import Program
from perflint.cli.app import run
from perflint.ir.survey import survey
from perflint.project.configured import Configured
from perflint.project.discovery import discover
from perflint.project.settings import Settings

NET = "from torch import nn\n\nclass Net(nn.Module):\n    pass\n"


def faults(folder: Path, monkeypatch: pytest.MonkeyPatch, **texts: str) -> dict[str, str]:
    """What files lack of which `pkg__net` stands for `pkg/net.py`, and `pkg` for its `__init__.py`."""
    for name, text in texts.items():
        file = folder / (f"{name.replace('__', '/')}.py" if "__" in name or name[0] == "_" else f"{name}/__init__.py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return faults_in(folder, monkeypatch)


def faults_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(folder)
    found = discover(["."], Settings())
    summaries = {}
    for one in found.analysed:
        text = one.file.read_text()
        with contextlib.suppress(SyntaxError):
            summaries[one.display] = survey(ast.parse(text), text.splitlines())
    configured = Configured(found.configured)
    return Program(summaries, configured=configured, beside=found.beside).unimportable.faults


def test_a_module_that_a_program_takes_out_of_its_package_cannot_import_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = "\nif __name__ == '__main__':\n    print(Net)\n"
    found = faults(
        tmp_path,
        monkeypatch,
        pkg="",
        pkg__parts="class Part:\n    pass\n",
        pkg__net="from .parts import Part\n\nclass Net(Part):\n    pass\n",
        pkg__detect=f"from net import Net\n{run}",
        pkg__own=f"from parts import Part\n{run}",
        pkg__inside=f"from .net import Net\n{run}",
        pkg__other="from net import Net\n",
        pkg__whole=f"from pkg.net import Net\n{run}",
        models="",
        models__deep="from ..helpers import help\n",
        models__near="from . import blocks\n",
        models__blocks="",
        _helpers="def help():\n    pass\n",
        _train="from models.deep import help\n",
        _show="from models.near import blocks\n",
    )
    assert found == {
        "pkg/detect.py": "pkg/net.py imports of a package around it, and is in none as `net`",
        "_train.py": "models/deep.py imports of a package around it, and is in none as `models.deep`",
    }


def test_a_module_or_a_name_that_is_not_there_ends_the_file_and_those_that_import_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = faults(
        tmp_path,
        monkeypatch,
        pkg="",
        pkg__net=NET,
        pkg__core="from .minions import *\nfrom .net import Net\n",
        pkg__heads="from .net import Head\n",
        pkg__deep__far="from ..net import Net\nfrom .. import core\n",
        pkg__whole="from .net import Net\n",
        pkg__inside="from .net.more import Net\n",
        tools__main="from pkg.net import Net\nfrom pkg.heads import Head\n",
        tools__other="from pkg.net import Net, Tail\nfrom pkg.whole import Net\n",
    )
    assert found == {
        "pkg/core.py": "pkg has no module `minions`",
        "pkg/heads.py": "pkg/net.py has no `Head`",
        "pkg/inside.py": "pkg/net.py is no package",
        "pkg/deep/far.py": "pkg/core.py cannot be imported",
        "tools/main.py": "pkg/heads.py cannot be imported",
        "tools/other.py": "pkg/net.py has no `Tail`",
    }


@pytest.mark.parametrize(
    "importing",
    [
        "try:\n    from .gone import Net\nexcept ImportError:\n    Net = None\n",
        "import os\nif os.name == 'nt':\n    from .gone import Net\n",
        "def load():\n    from .gone import Net\n    return Net\n",
        "for x in range(3):\n    print(x)\nfrom .gone import Net\n",
        "from . import net\nfrom . import below\nfrom .below import deep\nfrom .below.elsewhere import Net\n",
        "from .version import __version__\nfrom .step_pb2 import Step\n",
        "from .net import __file__\n",
        "import torch.gone\nfrom numpy import absent\nimport queue\nfrom pkgs import Net\n",
    ],
)
def test_what_need_not_be_there_is_no_fault(importing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not faults(tmp_path, monkeypatch, pkg="", pkg__net=NET, pkg__below__deep=NET, pkg__core=importing)


@pytest.mark.parametrize(
    "binding",
    [
        "for Head in (1, 2):\n    pass\n",
        "with open('x') as Head:\n    pass\n",
        "try:\n    Head = 1\nexcept OSError:\n    pass\n",
        "def make():\n    global Head\n    Head = 1\nmake()\n",
        "if (Head := 1):\n    pass\n",
        "import torch as Head\n",
        "from torch.nn import *\n",
        "from .more import *\n",
        "first, (second, *Head) = 1, (2, 3)\n",
        "Head: int = 3\n",
        "class Head: ...\n",
        "async def Head(): ...\n",
        "type_of = 3\nmatch type_of:\n    case Head:\n        pass\n",
        "globals()['He' + 'ad'] = 1\n",
        "globals().update(Head=1)\n",
        "exec('Head = 1')\n",
        "def __getattr__(name):\n    return 1\n",
        "import sys\nsetattr(sys.modules[__name__], 'He' + 'ad', 1)\n",
        "import sys\nsys.modules[__name__] = object()\n",
        "vars()['Head'] = 1\n",
        "locals()['Head'] = 1\n",
        "import sys\nsys.modules[__name__].__dict__['Head'] = 1\n",
    ],
)
def test_a_name_that_a_module_may_be_given_is_there(
    binding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = "from .heads import Head\n"
    assert faults(tmp_path, monkeypatch, pkg="", pkg__heads="", pkg__core=core)
    assert not faults(tmp_path, monkeypatch, pkg__heads=binding, pkg__more="Head = 1\n")


@pytest.mark.parametrize(
    ("beside", "text"),
    [
        ("pkg/ops.cpython-312-x86_64-linux-gnu.so", ""),
        ("pkg/ops.pyx", ""),
        ("pkg/ops.cu", ""),
        ("pkg/ops.proto", ""),
        ("pkg/ops/weights.bin", ""),
        (".gitignore", "ops\n"),
        (".gitignore", "/pkg/ops.py\n"),
        (".gitignore", "pkg/ops/\n"),
        (".gitmodules", '[submodule "ops"]\n\tpath = pkg/ops\n\turl = ../ops.git\n'),
        (".gitmodules", '[submodule "ops"]\n\tpath = pkg/ops/far\n\turl = ../ops.git\n'),
        ("README.md", "Clone the operators and `cp -r far/ops ./pkg/`\n"),
        ("setup.py", "from setuptools import setup\nsetup(ext_modules=[])\n"),
        ("pkg/net.py", "import pkg\nimport torch\npkg.ops = torch.ops\n"),
    ],
)
def test_what_is_no_source_may_be_a_module(
    beside: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    assert faults(tmp_path, monkeypatch, pkg="", pkg__core="from . import ops\n")
    file = tmp_path / beside
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    assert not faults_in(tmp_path, monkeypatch)


def test_a_file_that_does_not_parse_is_there_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    core = "from .old import net\nfrom . import old\n"
    assert not faults(tmp_path, monkeypatch, pkg="", pkg__old="print 'x'\n", pkg__core=core)


def test_an_installed_package_may_be_meant_by_the_name_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = "from datasets import load\nfrom space.tools import draw\nimport sys\n"
    found = faults(
        tmp_path,
        monkeypatch,
        datasets="",
        datasets__net=NET,
        space__tools="",
        scripts__main=main,
        lib__main="import sys\nsys.path.insert(0, '..')\nfrom datasets.net import Net, Tail\n",
    )
    assert not found


TRAINING = """\
import torch
from torch.utils.data import DataLoader

{importing}

def train(net, data, optimizer):
    total = 0.0
    for x in DataLoader(data):
        loss = net(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


def test_nothing_is_reported_until_what_is_lacking_comes_into_being(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").write_text("")
    (tmp_path / "pkg/tools.py").write_text(TRAINING.format(importing="from .heads import Head"))
    (tmp_path / "pkg/train.py").write_text(TRAINING.format(importing="from .tools import train as inner"))

    def found() -> set[str]:
        run(["check", ".", "--impact", "low", "--output-format", "concise", "--exit-zero"])
        said = capsys.readouterr().out
        return {name for name in ("pkg/tools.py", "pkg/train.py") if f"{name}:" in said}

    assert found() == set()
    for options in ([], ["--statistics"]):
        run(["check", ".", "--exit-zero", *options])
        said = capsys.readouterr().out
        assert "pkg/tools.py cannot be imported, so nothing in it is reported: pkg has no module `heads`" in said
        assert "pkg/train.py cannot be imported, so nothing in it is reported: pkg/tools.py cannot be imported" in said
    run(["check", ".", "--explain-heat", "pkg/tools.py:9"])
    assert "cannot be imported" in capsys.readouterr().out
    (tmp_path / "pkg/heads.py").write_text("Tail = 1\n")
    assert found() == set()
    (tmp_path / "pkg/heads.py").write_text("Head = 1\n")
    assert found() == {"pkg/tools.py", "pkg/train.py"}
    (tmp_path / "pkg/heads.py").unlink()
    assert found() == set()
    (tmp_path / "pkg/heads.so").write_text("")
    assert found() == {"pkg/tools.py", "pkg/train.py"}


def test_one_file_given_alone_knows_nothing_of_those_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAINING.format(importing="from .heads import Head"))
    run(["check", "train.py", "--impact", "low", "--output-format", "concise", "--exit-zero"])
    assert "train.py:" in capsys.readouterr().out


def test_a_module_named_after_the_library_that_it_uses_stands_for_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = faults(
        tmp_path,
        monkeypatch,
        pkg="",
        pkg__torch="import torch\nfrom torch import distributions\n",
        pkg__shapes="from torch import distributions\nfrom torch.distributions.utils import broadcast_all\n",
        pkg__wandb="import wandb\nfrom wandb.sdk.lib import RunDisabled\n",
        pkg__logs="from wandb import Artifact\nfrom wandb.sdk import Run\n",
        pkg__parts="from .wandb import Tracker\n",
    )
    assert found == {"pkg/parts.py": "pkg/wandb.py has no `Tracker`"}
