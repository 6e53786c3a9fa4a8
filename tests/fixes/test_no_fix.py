"""Where it is plain to see that a fix would change what a program does, there is none, not even an unsafe one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from test_counter_examples import found

from perflint.finding import Finding, Fix
from perflint.fixes.layout import NOWHERE

_STEP = """
import numpy as np
import torch

def train(model, loader, optimizer, device, weight):
    joined = torch.zeros(0, 3)
    buffer = torch.zeros(1, 3)
    for step, batch in enumerate(loader):
        batch = batch.to(device)
        loss = torch.where(batch > 1.0, {fill}, model(batch)).mean()
        value = {read}.item()
        loss.backward()
        optimizer.step()
        {between}
        if step % 100 == 0:
            print(value)
        joined = torch.cat([joined, {part}])
    return joined
"""
_USUAL = {
    "fill": "torch.tensor(1.0, device=device)",
    "read": "batch.mean()",
    "between": "print(step)",
    "part": "torch.relu(batch)",
}
_COPIES = "import torch\n\ndef copies(count):\n    first = torch.zeros(3)\n    return {what}\n"
_LOSSES = """
import torch

def train(model: torch.nn.Module, loader: torch.utils.data.DataLoader, optimizer):
    history = []
    for images, targets in loader:
        losses = model(images, targets)
        {walked}.backward()
        optimizer.step()
        history.append(losses)
    print(history[-1].mean().item())
"""
_TEACHER = """
import torch

def train(teacher, student, loader, optimizer):
    for x in loader:
        {line}
        loss = (student(x) - aim).sum()
        loss.backward()
        optimizer.step()
"""
_CAST = """
import torch
from torch.utils.data import DataLoader

def train(model, loader: DataLoader, optimizer, device):
    for images, labels in loader:
        wide = images.double().to({given})
        model(wide).backward()
        optimizer.step()
"""
_COMPILED = """
import torch

def train(model, loader, optimizer):
    for epoch in range(3):
        for x in loader:
            out = torch.compile(model, {given})(x)
            out.sum().backward()
            optimizer.step()
"""
_SUM = """
import torch

{above}
def train(model, loader, optimizer):
    {first}
    model.cuda()
    total = 0.0
    {header}
        for x in loader:
            loss = model(x.cuda()).sum()
            loss.backward()
            optimizer.step()
            total += loss.item()
    {behind}
    return total
"""
_SUMMED = {"above": "", "first": "", "header": "if model:", "behind": ""}
_TABLE = """
import torch

class Net(torch.nn.Module):
    def forward(self, x, name):
        table = {{"a": [1], "b": [2], "c": [3], "d": [4], "e": [5], "f": [6]}}
        row = table[name]
        {use}
        return x + len(row)

def train(net: Net, loader, optimizer):
    for x in loader:
        net(x, "a").sum().backward()
        optimizer.step()
"""
_GATHERED = """
import torch

class Kept:
    def gather(self, loader):
        joined = torch.zeros(0, 3)
        for x in loader:
            {line}
            joined = torch.cat([joined, self.buffer[:1]])
        return joined
"""

CASES = {
    "a buffer of the loop is joined": ("TPL309", _STEP, {"part": "buffer", "between": "buffer.copy_(batch)"}),
    "a view of a buffer is joined": ("TPL309", _STEP, {"part": "buffer[:1]", "between": "buffer[0] = batch"}),
    "a view of a buffer on the device is joined": (
        "TPL309",
        _STEP.replace("zeros(1, 3)", "zeros(1, 3).cuda()"),
        {"part": "buffer[:1]", "between": "buffer[0] = batch"},
    ),
    "what is joined is changed later": ("TPL309", _STEP, {"part": "batch", "between": "batch.add_(1)"}),
    "what is read is written to": ("TPL209", _STEP, {"between": "batch.zero_()"}),
    "what is read is a weight, which the step moves": ("TPL209", _STEP, {"read": "weight.norm()"}),
    "a number of numpy's gives its type": ("TPL310", _STEP, {"fill": "torch.tensor(np.log(2.0), device=device)"}),
    "each clone is another tensor": ("TPL312", _COPIES, {"what": "[first.clone() for _ in range(count)]"}),
    "gradients of what stands behind it go too": (
        "TPL314",
        _TEACHER,
        {"line": "aim = teacher(x).detach(); y = student(x)"},
    ),
    "others run meanwhile": ("TPL314", _TEACHER, {"line": "aim = teacher((yield x)).detach()"}),
    "the move gives a type": ("TPL116", _CAST, {"given": "device, torch.float16"}),
    "a text is no code to indent": ("TPL402", _COMPILED, {"given": 'mode="""max-\\\nautotune"""'}),
    "an exception shows the sum": ("TPL201", _SUM, {"header": "try:", "behind": "finally: print(total)"}),
    "others see the sum": ("TPL201", _SUM, {"first": "global total"}),
    "a list of the table grows": ("TPL502", _TABLE, {"use": "row += [1]"}),
    "a dict has no `detach`": ("TPL306", _LOSSES, {"walked": "sum(losses.values())"}),
    "an output has no `detach`": ("TPL306", _LOSSES, {"walked": "losses.loss"}),
}
FIXED = {
    "TPL309": (_STEP, _USUAL),
    "TPL209": (_STEP, _USUAL),
    "TPL310": (_STEP, _USUAL),
    "TPL312": (_COPIES, {"what": "first.clone()"}),
    "TPL306": (_LOSSES, {"walked": "losses"}),
    "TPL201": (_SUM, _SUMMED),
    "TPL502": (_TABLE, {"use": "print(row)"}),
    "TPL314": (_TEACHER, {"line": "aim = teacher(x).detach()"}),
    "TPL116": (_CAST, {"given": "device"}),
    "TPL402": (_COMPILED, {"given": 'mode="max-autotune"'}),
}


def _offered(findings: Sequence[Finding]) -> list[Fix]:
    """The fixes that can be made: one without a place for its edit is none."""
    return [one.fix for one in findings if one.fix is not None and NOWHERE not in one.fix.edits]


@pytest.mark.parametrize(("code", "program", "parts"), CASES.values(), ids=CASES)
def test_no_fix_is_offered(
    code: str, program: str, parts: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = program.format(**{**FIXED[code][1], **parts})
    assert not _offered(found(code, text, tmp_path, monkeypatch))


@pytest.mark.parametrize(("code", "program", "parts"), [(code, *of) for code, of in FIXED.items()], ids=FIXED)
def test_but_otherwise_there_is_one(
    code: str, program: str, parts: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _offered(found(code, program.format(**parts), tmp_path, monkeypatch))


@pytest.mark.parametrize(("line", "fixes"), [("self.buffer.copy_(x)", 0), ("self.count += 1", 1)])
def test_attributes_of_self_are_told_apart(
    line: str, fixes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _GATHERED.format(line=line)
    assert len(_offered(found("TPL309", text, tmp_path, monkeypatch))) == fixes


def test_what_is_moved_keeps_its_texts_and_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = _STEP.format(**{**_USUAL, "part": 'torch.relu(\n            batch["a  b"],  # two spaces\n        )'})
    (finding,) = found("TPL309", text, tmp_path, monkeypatch)
    assert finding.fix is not None
    assert any('batch["a  b"],  # two spaces\n' in edit.text for edit in finding.fix.edits)
