"""Where it is plain to see that a fix would change what a program does, there is none, not even an unsafe one."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_counter_examples import found

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

CASES = {
    "a buffer of the loop is joined": ("TPL309", _STEP, {"part": "buffer", "between": "buffer.copy_(batch)"}),
    "a view of a buffer is joined": ("TPL309", _STEP, {"part": "buffer[:1]", "between": "buffer[0] = batch"}),
    "what is joined is changed later": ("TPL309", _STEP, {"part": "batch", "between": "batch.add_(1)"}),
    "what is read is written to": ("TPL209", _STEP, {"between": "batch.zero_()"}),
    "what is read is a weight, which the step moves": ("TPL209", _STEP, {"read": "weight.norm()"}),
    "a number of numpy's gives its type": ("TPL310", _STEP, {"fill": "torch.tensor(np.log(2.0), device=device)"}),
    "each clone is another tensor": ("TPL312", _COPIES, {"what": "[first.clone() for _ in range(count)]"}),
    "a dict has no `detach`": ("TPL306", _LOSSES, {"walked": "sum(losses.values())"}),
    "an output has no `detach`": ("TPL306", _LOSSES, {"walked": "losses.loss"}),
}
FIXED = {
    "TPL309": (_STEP, _USUAL),
    "TPL209": (_STEP, _USUAL),
    "TPL310": (_STEP, _USUAL),
    "TPL312": (_COPIES, {"what": "first.clone()"}),
    "TPL306": (_LOSSES, {"walked": "losses"}),
}


@pytest.mark.parametrize(("code", "program", "parts"), CASES.values(), ids=CASES)
def test_no_fix_is_offered(
    code: str, program: str, parts: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = program.format(**{**FIXED[code][1], **parts})
    assert not [finding for finding in found(code, text, tmp_path, monkeypatch) if finding.fix is not None]


@pytest.mark.parametrize(("code", "program", "parts"), [(code, *of) for code, of in FIXED.items()], ids=FIXED)
def test_but_otherwise_there_is_one(
    code: str, program: str, parts: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [finding.fix for finding in found(code, program.format(**parts), tmp_path, monkeypatch) if finding.fix]


def test_what_is_moved_keeps_its_texts_and_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = _STEP.format(**{**_USUAL, "part": 'torch.relu(\n            batch["a  b"],  # two spaces\n        )'})
    (finding,) = found("TPL309", text, tmp_path, monkeypatch)
    assert finding.fix is not None
    assert any('batch["a  b"],  # two spaces\n' in edit.text for edit in finding.fix.edits)
