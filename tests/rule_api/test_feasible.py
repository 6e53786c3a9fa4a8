"""The route that a finding is printed with is one that a run can take."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.engine import Options, check
from perflint.finding import Finding, Impact
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
    return [(item.impact, _texts(item)) for item in _checked(folder, monkeypatch, LIBRARY.replace("LOSS", loss), 8)]


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> list[list[str]]:
    """The routes to the read on the line that divides by it."""
    line = next(number for number, said in enumerate(text.splitlines(), 1) if "/ x.max().item()" in said)
    return [_texts(item) for item in _checked(folder, monkeypatch, text, line)]


def _texts(finding: Finding) -> list[str]:
    return [hop.text for hop in finding.route]


def _checked(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: int) -> list[Finding]:
    (folder / "train.py").write_text(text)
    monkeypatch.chdir(folder)
    settings = load_settings(folder)
    rules = [rule() for rule in load_rules() if rule.code == "TPL201"]
    report = check(discover(["."], settings), Options(settings, rules, cache=False))
    return [item for item in report.findings if item.span.line == line]


def test_the_printed_route_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = routes(tmp_path, monkeypatch, "strict(loss)")
    assert [route for _, route in found] == [["for x in loader", "strict", "scaled"]]


@pytest.mark.parametrize(
    "loss", ["loss", "strict(loss, False)", "strict(loss, is_on=strictly)", "strict(loss) if strictly else loss"]
)
def test_no_open_route_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: str) -> None:
    assert not routes(tmp_path, monkeypatch, loss)


LOSSES = """
import torch


class Loss:
    def __init__(self, model):
        self.model = model

    def __call__(self, x):
        return self.reduced(self.model(x))

    def reduced(self, x):
        raise NotImplementedError


class Plain(Loss):
    def reduced(self, x):
        return x.mean()


class Scaled(Loss):
    def reduced(self, x):
        return x.mean() / x.max().item()


class Kept(Scaled):
    pass


def train(model, loader, optimizer):
    loss = MADE
    model.cuda()
    for x in loader:
        loss(x.cuda(non_blocking=True)).backward()
        optimizer.step()


train(1, 2, 3)
"""


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("Plain(model)", []),
        ("Scaled(model)", [["for x in loader", "Loss.__call__", "Scaled.reduced"]]),
        ("Kept(model)", [["for x in loader", "Loss.__call__", "Scaled.reduced"]]),
    ],
)
def test_one_object_runs_the_methods_of_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str, found: list[list[str]]
) -> None:
    assert told(tmp_path, monkeypatch, LOSSES.replace("MADE", made)) == found
