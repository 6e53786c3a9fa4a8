"""What fixes leave behind is tidy: tabs stay tabs, imports go with their last use, no gap or empty function stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.cli import app

LOOP = """{imports}
from torch.utils.data import DataLoader


def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        model(batch).backward()
        optimizer.step()

        gc.collect()

        optimizer.zero_grad()
{more}"""


def fixed(text: str, code: str, name: str = "train.py") -> str:
    Path("pyproject.toml").write_text("[tool.perflint]\n")
    Path(name).write_text(text)
    app.run(["fix", "--unsafe", "--apply", "--no-cache", "--select", code, name])
    return Path(name).read_text()


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_import_goes_with_its_last_use() -> None:
    text = fixed(LOOP.format(imports="import gc\nimport torch", more=""), "TPL303")
    assert "gc" not in text
    assert text.startswith("import torch\n")


def test_the_blank_lines_around_what_goes_do_not_add_up() -> None:
    text = fixed(LOOP.format(imports="import gc\nimport torch", more=""), "TPL303")
    assert "optimizer.step()\n\n        optimizer.zero_grad()\n" in text


@pytest.mark.parametrize(
    ("imports", "more"),
    [
        ("import gc", "\n\ndef clean():\n    return gc.get_count()\n"),
        ("import gc  # noqa: F401", ""),
        ("import gc", "\n\n__all__ = ['gc', 'train']\n"),
        ("import gc, torch", ""),
        ("import gc", "\n\nprint('gc')\n"),
    ],
)
def test_an_import_stays_where_somebody_may_want_it(imports: str, more: str) -> None:
    text = fixed(LOOP.format(imports=imports, more=more), "TPL303")
    assert "gc.collect" not in text
    assert imports in text


def test_a_package_hands_on_what_it_imports() -> None:
    text = fixed(LOOP.format(imports="import gc\nimport torch", more=""), "TPL303", "__init__.py")
    assert "gc.collect" not in text
    assert "import gc\n" in text


HELPER = """import gc
import torch
from torch.utils.data import DataLoader


def free():
    \"\"\"Free what is held.\"\"\"
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def train(model, loader: DataLoader, optimizer):
    for batch in loader:
        model(batch.cuda(non_blocking=True)).backward()
        optimizer.step()
        free()
"""


def test_a_function_is_not_gutted(capsys: pytest.CaptureFixture[str]) -> None:
    assert fixed(HELPER, "TPL304") == HELPER
    capsys.readouterr()
    app.run(["check", "--no-cache", "--select", "TPL304", "--output-format", "json", "train.py"])
    assert '"fix": null' in capsys.readouterr().out


TABS = """import torch.nn.functional as F


def distill(teacher, student, loader, optimizer, device):
\tfor batch in loader:
\t\timages = batch.to(device, non_blocking=True)
\t\twanted = teacher(images).softmax(-1).detach()
\t\tF.cross_entropy(student(images), wanted).backward()
\t\toptimizer.step()
"""


def test_tabs_stay_tabs() -> None:
    text = fixed(TABS, "TPL314")
    assert "\t\twith torch.no_grad():\n\t\t\twanted = teacher(images)" in text
    assert not any(line.startswith(" ") for line in text.splitlines())


FUSED = """import lightning
import torch
{above}

def build(model):
    {body}
    optimizer = torch.optim.{name}(model.parameters(), lr=0.1, {more})
    for images in model.loader:
        model(images).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("name", "body", "is_fixed"),
    [
        ("Adam", "pass", True),
        ("SGD", "pass", False),
        ("SGD", "fully_shard(model)", False),
        ("AdamW", "fully_shard(model)", True),
        ("AdamW", "lightning.Trainer(precision=16, gradient_clip_val=1.0)", False),
        ("AdamW", "lightning.Trainer(precision='16-mixed', gradient_clip_val=1.0)", False),
        ("AdamW", "lightning.Trainer(precision=model.precision, gradient_clip_val=1.0)", False),
        ("AdamW", "lightning.Trainer(precision='bf16-mixed', gradient_clip_val=1.0)", True),
        ("AdamW", "lightning.Trainer(precision=16)", True),
        ("AdamW", "lightning.Trainer(precision=16, gradient_clip_val=None)", True),
        ("AdamW", "lightning.Trainer(**model.options)", False),
    ],
)
def test_an_optimizer_is_fused_only_where_it_runs_so(name: str, body: str, *, is_fixed: bool) -> None:
    above = "from torch.distributed.fsdp import fully_shard\n" if "shard" in body else ""
    more = "momentum=0.9" if name == "SGD" else "weight_decay=0.1"
    text = FUSED.format(above=above, body=body, name=name, more=more)
    assert ("fused=True" in fixed(text, "TPL704")) is is_fixed


def test_errors_of_the_compiler_that_are_suppressed_are_no_debug_mode() -> None:
    text = "import torch\n\ntorch._dynamo.config.suppress_errors = True\n"
    assert fixed(text, "TPL901") == text
