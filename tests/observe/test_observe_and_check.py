"""From a program to findings with evidence: observed, written, reported and compared, as a user would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perflint.cli import app

pytest.importorskip("torch", minversion="2.9")

PROGRAM = """\
import torch
from torch.utils.data import DataLoader, TensorDataset


def rare(value, step):
    if step == 1000:
        return value.item()
    return 0.0


def main():
    net = torch.nn.Linear(8, 2).to("cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=8)
    total = 0.0
    for step, (images,) in enumerate(loader):
        loss = net(images.to("cuda", non_blocking=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        rare(loss, step)


main()
"""


def test_a_program_is_observed_and_its_findings_are_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text(PROGRAM)
    arguments = ["observe", "--device", "simulated", "--steps", "2", "--warmup", "1", "--as", "t4", "--what-if"]
    assert app.run([*arguments, "--output", "seen.json", "--", "python", "train.py"]) == 0
    text = capfd.readouterr().out
    assert "simulated T4" in text
    assert "TPL201" in text
    assert "what removing waits gives on a T4 (modelled)" in text
    written = json.loads((tmp_path / "seen.json").read_text())
    [read] = [one for one in written["lines"] if one["kind"] == "read"]
    assert (read["path"], read["line"], read["per_step"], read["finding"]) == ("train.py", 21, 1, "TPL201")
    assert read["modelled_ms"] > 0

    assert app.run(["check", "--no-cache", "--observed", "seen.json", "--output-format", "json", "--exit-zero"]) == 0
    found = {one["line"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
    assert found[21]["observed"]["verdict"] == "confirmed"
    assert found[21]["observed"]["hardware"] == "T4"
    assert found[21]["observed"]["per_step"] == 1

    assert app.run([*arguments, "--output-format", "html", "--output", "page.html", "--", "python", "train.py"]) == 0
    page = (tmp_path / "page.html").read_text()
    assert 'class="clocks"' in page
    assert "train.py:21:18" in page
