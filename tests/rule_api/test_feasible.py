"""The route that a finding is printed with is one that a run can take."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.engine import Options, check
from perflint.finding import Impact
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules

LIBRARY = """
import torch


def scaled(x, exact=False):
    if not exact:
        return x
    return x * x.max().item()


def plain(x):
    return scaled(x)


def strict(x, is_on=True):
    if is_on:
        return scaled(x, exact=True)
    return x


def train(model, loader, optimizer, strictly=False):
    model.cuda()
    for x in loader:
        loss = plain(model(x.cuda(non_blocking=True)))
        loss = LOSS
        loss.mean().backward()
        optimizer.step()


train(1, 2, 3)
"""


def routes(folder: Path, monkeypatch: pytest.MonkeyPatch, loss: str) -> list[tuple[Impact, list[str]]]:
    """Of the read in `scaled`, where a step ends with this."""
    (folder / "train.py").write_text(LIBRARY.replace("LOSS", loss))
    monkeypatch.chdir(folder)
    settings = load_settings(folder)
    rules = [rule() for rule in load_rules() if rule.code == "TPL201"]
    report = check(discover(["."], settings), Options(settings, rules, cache=False))
    return [(item.impact, [hop.text for hop in item.route]) for item in report.findings if item.span.line == 8]


def test_the_printed_route_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = routes(tmp_path, monkeypatch, "strict(loss)")
    assert [route for _, route in found] == [["for x in loader", "strict", "scaled"]]


@pytest.mark.parametrize(
    "loss", ["loss", "strict(loss, False)", "strict(loss, is_on=strictly)", "strict(loss) if strictly else loss"]
)
def test_no_open_route_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: str) -> None:
    assert not routes(tmp_path, monkeypatch, loss)
