"""What to do, said for the very line: the part of a finding that no fixture looks at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perflint.cli import app


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def findings(source: str, code: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    Path("train.py").write_text(source)
    app.run(["check", "--no-cache", "--select", code, "--output-format", "json", "train.py"])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return found


LOADED = """import torch
from torch.utils.data import DataLoader


def train(model, dataset, optimizer):
    for images in DataLoader(dataset, num_workers=4):
        images = images.to("cuda")
        model(images).sum().backward()
        optimizer.step()
"""


def test_what_a_loader_gives_is_pinned_by_the_loader(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = findings(LOADED, "TPL101", capsys)

    assert "`pin_memory=True` in the loader" in found["advice"]
    assert ".pin_memory()" not in found["advice"]


DRAWN = """import torch


def train(model, optimizer, size):
    for _ in range(1000):
        target = torch.LongTensor(size).random_(8).to("cuda")
        torch.nn.functional.cross_entropy(model(), target).backward()
        optimizer.step()
"""


def test_a_size_is_not_taken_for_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = findings(DRAWN, "TPL101", capsys)

    assert "torch.empty(sizes, dtype=torch.long, device=...)" in found["advice"]


TOKENS = """import torch
from transformers import AutoTokenizer


def train(model, loader, optimizer, device):
    tokenizer = AutoTokenizer.from_pretrained("some/model")
    for images, captions in loader:
        tokens = tokenizer(captions, return_tensors="pt").to(device)
        model(images, tokens).backward()
        optimizer.step()
"""


def test_what_a_tokenizer_gives_has_not_always_known_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = findings(TOKENS, "TPL101", capsys)
    assert "pin" not in found["advice"]

    app.run(["check", "--no-cache", "--select", "TPL101", "--output-format", "github", "train.py"])
    assert "transformers 4.48" in capsys.readouterr().out


COUNTED = """import torch


def train(model, loader, optimizer):
    right = 0
    for images, labels in loader:
        images, labels = images.cuda(), labels.cuda()
        output = model(images)
        right += torch.sum(output.argmax(1) == labels).item()
        torch.nn.functional.cross_entropy(output, labels).backward()
        optimizer.step()
    return right
"""


def test_a_count_stays_a_whole_number(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = findings(COUNTED, "TPL201", capsys)

    assert any("right = int(right)" in edit["text"] for edit in found["fix"]["edits"])


LONG = """import torch


def train(model, loader, optimizer, progress_bar_of_the_whole_training_run, something_else_that_is_needed):
    for images in progress_bar_of_the_whole_training_run(loader, something_else_that_is_needed, 1, 2):
        model(images).backward()
        optimizer.step()
        torch.cuda.empty_cache()
    for images in progress_bar_of_the_whole_training_run(
        loader
    ):
        model(images).backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""


def test_a_header_that_is_not_shown_to_its_end_shows_that(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (one["why_hot"][0]["text"] for one in findings(LONG, "TPL304", capsys))

    assert first.startswith("for images in progress_bar_of")
    assert first.endswith("...")
    assert second == "for images in progress_bar_of_the_whole_training_run(..."


UNTIL_ALL_ARE_DONE = """import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, state, done):
        while not done.all():
            state = self.layer(state)
            done = done | (state > 3)
        return state


def train(loader, optimizer):
    model = Policy().cuda()
    for state, done in loader:
        model(state.cuda(), done.cuda()).sum().backward()
        optimizer.step()
"""


def test_a_loop_is_not_told_to_do_its_work_always(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = findings(UNTIL_ALL_ARE_DONE, "TPL202", capsys)

    assert found["advice"].startswith("Test every few iterations")


SCALED_BEFORE = """import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        weights = ((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1)
        return (weights @ v).transpose(1, 2).reshape(b, n, c)
"""


def test_queries_that_are_scaled_are_not_scaled_again(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = findings(SCALED_BEFORE, "TPL606", capsys)

    assert "1.0 if the queries were" in found["advice"]
    assert "transpose" not in found["advice"]


@pytest.mark.parametrize(
    "product",
    [
        'torch.einsum("bhcq,bhck->bhqk", q * self.scale, k)',
        'torch.einsum("bqhc,bkhc->bhqk", q * self.scale, k)',
        "(q * self.scale).transpose(-2, -1) @ k",
    ],
)
def test_other_layouts_are_transposed_for_the_fused_attention(product: str, capsys: pytest.CaptureFixture[str]) -> None:
    turned = SCALED_BEFORE.replace("((q * self.scale) @ k.transpose(-2, -1))", f"({product})")
    value = "weights @ v"
    if "bhcq" in product:
        value = 'torch.einsum("bhqk,bhck->bhcq", weights, v)'
    elif "bqhc" in product:
        value = 'torch.einsum("bhqk,bkhc->bqhc", weights, v)'
    else:
        value = "v @ weights.transpose(-2, -1)"
    turned = turned.replace("weights @ v", value)

    (found,) = findings(turned, "TPL606", capsys)

    assert "It takes (..., tokens, width): transpose its inputs" in found["advice"]


DECODED = """import torch


@torch.no_grad()
def decode(model, tokens, end):
    tokens = tokens.cuda()
    for _ in range(256):
        chosen = torch.argmax(model(tokens)[:, -1], dim=-1)
        if chosen == end:
            {leaves}
        tokens = chosen
    return tokens


def train(model, loader, optimizer):
    for tokens in loader:
        decode(model, tokens, 2)
        model(tokens).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("leaves", "advice"),
    [
        ("break", "Test every few iterations"),
        ("raise ValueError", "check every N steps"),
        ("tokens = 0", "`torch.where`"),
    ],
)
def test_what_leaves_a_loop_cannot_be_chosen_on_the_device(
    leaves: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = findings(DECODED.format(leaves=leaves), "TPL202", capsys)

    assert advice in found["advice"]


EVALUATED = """import torch


@torch.no_grad()
def evaluate(model, loader, criterion, total):
    model.cuda()
    for images, labels in loader:
        out = model(images.cuda())
        {reads}
    return total
"""


@pytest.mark.parametrize(
    ("reads", "waits"),
    [
        ("total += criterion(out, labels.cuda(non_blocking=True)).item()", True),
        ("total += criterion(out, labels.cuda(non_blocking=True)).item() if criterion is not None else 0.0", False),
    ],
)
def test_a_copy_is_trifling_where_an_evaluation_reads_on_every_turn(
    reads: str, waits: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    found = findings(EVALUATED.format(reads=reads), "TPL101", capsys)

    assert len(found) == (0 if waits else 1)
