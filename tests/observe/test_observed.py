"""`observed()` and the pytest plug-in: budgets for a library's tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.9")

from perflint.errors import PerflintError  # noqa: E402
from perflint.observe import observed  # noqa: E402


def test_block_counts_waits_of_the_whole_block() -> None:
    with observed() as seen:
        x = torch.ones(3, device=seen.device)
        assert x.is_cuda
        assert x.sum().item() == 3.0
        bool((x > 2).any())
    assert seen.waits == 2
    assert "test_observed.py" in seen.report()
    assert not torch.cuda.is_available() or torch.version.cuda is not None


def test_steps_count_what_is_inside_of_them_only() -> None:
    with observed() as seen:
        model = torch.nn.Linear(3, 3).to(seen.device)
        optimizer = torch.optim.SGD(model.parameters())
        for _ in range(2):
            batch = torch.randn(4, 3).to(seen.device)
            with seen.step():
                model(batch).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        model.weight.sum().item()
    assert seen.waits == 0
    assert [total.index for total in seen.observation.totals] == [0, 1]
    assert seen.launches > 3


def test_condition_of_several_parts_is_told_by_the_part_that_waited() -> None:
    with observed() as seen:
        x = torch.ones(3, device="cuda")
        if x is not None and x.any():
            pass
    site = seen.observation.sites[next(line.site for line in seen.observation.lines if line.waits)]
    text = Path(__file__).read_text(encoding="utf-8").splitlines()[site.line - 1]
    assert text[site.column - 1 : site.end_column - 1] == "x.any()"


def test_backward_of_a_write_into_a_view_is_of_the_line_that_wrote() -> None:
    with observed() as seen:
        x = torch.ones(4, 6, device="cuda", requires_grad=True)
        value = torch.ones(2, device="cuda", requires_grad=True)
        view = (x * 2).view(2, 12)
        mask = torch.zeros(2, 12, dtype=torch.bool, device="cuda")
        mask[0, :2] = True
        view[mask] = value
        (view.t().exp() * 3).sum().backward()
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    waited = [line for line in seen.observation.lines if line.waits and line.in_backward]
    assert {text[seen.observation.sites[one.site].line - 1].strip() for one in waited} == {"view[mask] = value"}


def test_nothing_to_copy_is_no_wait() -> None:
    with observed() as seen:
        torch.tensor([], device="cuda")
        torch.zeros(0, 3).to("cuda").cpu()
    assert (seen.waits, seen.launches) == (0, 0)


def test_block_inside_a_block_is_refused() -> None:
    with observed(), pytest.raises(PerflintError, match="nested"), observed():
        pass


def test_device_is_gone_after_the_block() -> None:
    before = torch.cuda.is_available()
    with observed():
        assert torch.cuda.is_available()
        assert torch.cuda.get_device_name() == "NVIDIA H100 80GB HBM3"
    assert torch.cuda.is_available() is before


_CAPTURED: dict[str, Any] = {"capture_output": True, "text": True}
_SUITE = """
import pytest
import torch


@pytest.fixture
def model(perflint_device):
    return torch.nn.Linear(3, 3).to(perflint_device)


@pytest.mark.perflint(max_waits=0, max_launches=2)
def test_forward_never_waits(perflint_device, model):
    model(torch.randn(2, 3, device=perflint_device))


@pytest.mark.perflint(max_waits=0)
def test_forward_waits(perflint_device, model):
    assert model(torch.randn(2, 3, device=perflint_device)).sum() != 7


@pytest.mark.perflint(max_waits=1)
def test_each_step_is_held_to_the_budget(perflint_observed):
    x = torch.ones(2).cuda()
    for _ in range(3):
        with perflint_observed.step():
            x.sum().item()


@pytest.mark.perflint(max_wait=1)
def test_budget_that_there_is_not():
    pass


def test_without_it():
    assert not torch.cuda.is_available() or torch.version.cuda
"""


def test_plugin_holds_tests_to_their_budgets(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(_SUITE)
    plugin = ["-p", "no:perflint", "-p", "perflint.observe.pytest_plugin", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, str(tmp_path)], check=False, **_CAPTURED, cwd=tmp_path
    )
    assert "3 passed" in run.stdout, run.stdout + run.stderr
    assert "1 failed, 3 passed, 1 error" in run.stdout
    assert "1 waits, more than max_waits=0" in run.stdout
    line = 1 + _SUITE[: _SUITE.index("sum() != 7")].count("\n")
    assert f"test_suite.py:{line}:" in run.stdout
    assert "read (aten::_local_scalar_dense), 1 times" in run.stdout
    assert "pytest.mark.perflint has no max_wait" in run.stdout


def test_plugin_imports_no_torch_by_itself(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text("import sys\n\ndef test_it():\n    assert 'torch' not in sys.modules\n")
    plugin = ["-p", "no:perflint", "-p", "perflint.observe.pytest_plugin", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, str(tmp_path)], check=False, **_CAPTURED, cwd=tmp_path
    )
    assert run.returncode == 0, run.stdout + run.stderr
