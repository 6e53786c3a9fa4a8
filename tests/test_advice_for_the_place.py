"""Advice is true for the place it is given for: what it says to write runs there, and takes the wait away."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.engine import Options, check
from perflint.finding import Finding
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules

STEP = """import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

{above}
def train(model: torch.nn.Module, loader: DataLoader, optimizer, device, scores: torch.Tensor, debug=False):
    for images, labels in loader:
        x = model(images.cuda(non_blocking=True))
        loss = F.cross_entropy(x, labels.cuda(non_blocking=True))
        {body}
        loss.backward()
        optimizer.step()
"""


def found(text: str, code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    (folder / "train.py").write_text(text, encoding="utf-8")
    (folder / "pyproject.toml").write_text("[tool.perflint]\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    settings = load_settings(Path())
    report = check(discover(["."], settings), Options(settings, [rule() for rule in load_rules()], cache=False))
    assert not report.errors
    return [finding for finding in report.findings if finding.code == code]


def in_step(*body: str, above: str = "") -> str:
    return STEP.format(body="\n        ".join(body), above=above)


USES = {
    "an assertion": (("assert loss.item() < 100",), "torch._assert_async(loss < 100)", "steps that need the number"),
    "an assertion of a sum": (("assert (x + x).mean().item() < 9",), "torch._assert_async((x + x).mean() < 9)", "log"),
    "an assertion of each element": (
        ("assert all((x > 0) == (labels.cuda() > 0))",),
        "torch._assert_async(((x > 0) == (labels.cuda() > 0)).all())",
        "log",
    ),
    "an assertion by another name": (("value = loss.item()", "assert value < 100"), "torch._assert_async", "steps"),
    "a test that raises": (
        ("if loss.item() > 100:", "    raise ValueError('diverged')"),
        "torch._assert_async",
        "steps that need",
    ),
    "a slice": (("n = labels.cuda().max().item()", "x = x[:, :n]"), "A size has to be known", "Keep"),
    "a size that is checked": (
        ("n = int(x.argmax())", "assert n > 0", "x = x[:, :n]"),
        "A size has to be known",
        "_assert_async",
    ),
    "a shape": (("n = int(x.argmax())", "loss = loss + torch.zeros(n).sum()"), "A size has to be known", "Keep"),
    "a range": (("for i in range(x.argmax().item()):", "    loss = loss + i"), "A size has to be known", "Keep"),
    "a look-up": (("k = x.argmax().item()", "name = NAMES[k]"), "look-up", "Keep `x"),
    "cut points in a list": (
        (
            "cuts = (x > 0).nonzero().squeeze().cpu()",
            "cuts = [0] + (cuts + 1).tolist()",
            "loss = loss + x[cuts[0] : 9].sum()",
        ),
        "A size has to be known",
        "Keep",
    ),
    "a filled tensor": (
        ("n = (x > 0).sum().item()", "loss = loss + torch.full((4,), float(n), device='cuda').sum()"),
        "becomes a tensor again",
        "size",
    ),
    "a library of the host": (
        ("rows, columns = linear_sum_assignment(x.cpu())", "loss = loss + x[rows, columns].sum()"),
        "The host needs the values",
        "_assert_async",
    ),
    "an array whose shape is checked": (
        ("rows = x.cpu()", "assert rows.shape[0] > 1", "loss = loss * float(numpy.std(rows))"),
        "The host needs the values",
        "_assert_async",
    ),
    "a branch": (("n = loss.item()", "if n > 3:", "    loss = loss / n"), "decide", "Keep `loss`"),
    "a number that is kept": (("model.last = loss.item()",), "steps that need the number", "size"),
}


@pytest.mark.parametrize(("body", "said", "unsaid"), USES.values(), ids=USES)
def test_a_value_is_kept_on_the_device_where_its_use_allows_it(
    body: tuple[str, ...], said: str, unsaid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (finding,) = found(
        in_step(*body, above="NAMES = ['a', 'b']\nimport numpy\nfrom scipy.optimize import linear_sum_assignment\n"),
        "TPL201",
        tmp_path,
        monkeypatch,
    )
    assert said in finding.advice
    assert unsaid not in finding.advice


ROWS = {
    "rows that are dropped": (("x = x[scores > 0.5]",), "cannot drop rows"),
    "rows that are selected": (("loss = loss + model(scores.cuda().masked_select(scores > 0.5))",), "cannot drop rows"),
    "rows that are reduced": (("loss = loss + x[scores > 0.5].mean()",), "(values * mask).sum() / mask.sum()"),
    "rows that are reduced by a function": (("loss = loss + torch.sum(x[scores > 0.5])",), "weight them"),
    "rows under a name": (("kept = x[scores > 0.5]", "loss = loss + kept.sum()"), "weight them"),
    "rows that go on": (("kept = x[scores > 0.5]", "loss = loss + model(kept)"), "cannot drop rows"),
    "rows that go back": (("x[scores > 0.5] = x[scores > 0.5] * 2",), "choose with `torch.where`"),
}


@pytest.mark.parametrize(("body", "said"), ROWS.values(), ids=ROWS)
def test_where_is_not_said_to_drop_rows(
    body: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = in_step("scores = x.sigmoid()", *body)
    findings = found(text, "TPL205", tmp_path, monkeypatch)
    assert findings
    assert said in findings[-1].advice


BRANCHES = {
    "entries are written": (("if mask.any():", "    x[mask] = 0"), "it changes nothing"),
    "entries are filled": (("if mask.any():", "    x = x.masked_fill(mask, 0)"), "it changes nothing"),
    "something else is done": (("if mask.any():", "    x = x * 2"), "torch.where"),
    "something is counted": (("if mask.any():", "    x[mask] = 0", "    count += 1"), "torch.where"),
    "a module runs on the rows": (("if mask.any():", "    x[mask] = model(x[mask])"), "torch.where"),
    "the largest is taken": (("if mask.any():", "    x[mask] = x[mask].max()"), "torch.where"),
    "there is an else": (("if mask.any():", "    x[mask] = 0", "else:", "    x = x + 1"), "torch.where"),
    "another mask is written": (("if mask.any():", "    x[~mask] = 0"), "torch.where"),
    "a step is left out": (("if mask.any():", "    continue"), "does not select between values"),
    "a function is called": (("if mask.any():", "    optimizer.zero_grad()"), "does not select between values"),
}


@pytest.mark.parametrize(("body", "said"), BRANCHES.values(), ids=BRANCHES)
def test_an_empty_mask_changes_nothing_only_where_that_is_so(
    body: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = in_step("count, mask = 0, x > 3", *body)
    finding = found(text, "TPL202", tmp_path, monkeypatch)[-1]
    assert said in finding.advice
    assert ("changes nothing" in finding.advice) is (said == "it changes nothing")


MOVES = """import torch
from torch.utils.data import DataLoader


def train(model, loader: DataLoader, optimizer, device, args):
    {before}
    for images, labels in loader:
        {test}
            images = images.{move}
        model(images).sum().backward()
        optimizer.step()
"""
ONLY_MPS = {
    "the type is asked": 'if device.type == "mps":',
    "the name is asked": 'if args.device == "mps":',
    "it is part of a name": 'if "mps" in str(device):',
    "it begins a name": 'if str(device).startswith("mps"):',
    "the build is asked": "if torch.backends.mps.is_available():",
    "a tensor is asked": "if labels.is_mps:",
    "one of two": 'if device.type in ("mps", "cpu"):',
    "CUDA is not there": "if not torch.cuda.is_available():",
    "a flag says it": "if on_mac:",
    "both are asked": 'if args.move and device.type == "mps":',
    "XLA": 'if device.type == "xla":',
    "no CUDA device": 'if device.type != "cuda":',
}


@pytest.mark.parametrize("test", ONLY_MPS.values(), ids=ONLY_MPS)
def test_copies_that_only_other_devices_make_are_left_alone(
    test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = MOVES.format(before="on_mac = torch.backends.mps.is_available()", test=test, move="to(device)")
    assert not found(text, "TPL101", tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "test", ['if device.type == "cuda":', 'if device.type != "mps":', "if torch.cuda.is_available():", "if args.move:"]
)
def test_copies_that_cuda_makes_are_reported(test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = MOVES.format(before="pass", test=test, move="to(device)")
    assert len(found(text, "TPL101", tmp_path, monkeypatch)) == 1


def test_copies_behind_a_return_for_cuda_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = MOVES.format(before='if device.type == "cuda": return', test="if args.move:", move="to(device)")
    assert not found(text, "TPL101", tmp_path, monkeypatch)


def test_copies_to_xla_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = "import torch_xla.core.xla_model as xm; device = xm.xla_device()"
    text = MOVES.format(before=before, test="if args.move:", move="to(device)")
    assert not found(text, "TPL101", tmp_path, monkeypatch)


@pytest.mark.parametrize("method", ["to(self, device)", "cuda(self)"])
def test_a_move_of_a_class_of_the_project_is_left_alone(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = method.partition("(")[0]
    above = f"class Graph:\n    def {method}:\n        return self\n\n\n"
    move = f"{name}(device)" if name == "to" else "cuda()"
    text = MOVES.format(before="pass", test="if args.move:", move=move).replace("def train", f"{above}def train", 1)
    assert not found(text, "TPL101", tmp_path, monkeypatch)


@pytest.mark.parametrize("maker", ["FloatTensor", "DoubleTensor", "IntTensor", "ByteTensor", "Tensor"])
def test_a_legacy_constructor_keeps_its_type(maker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch.tensor(values, device=...)` would copy and wait just the same, and take another type."""
    text = in_step(f"w = torch.{maker}(model.weights).cuda()", "loss = loss + w.sum()")
    (finding,) = found(text, "TPL101", tmp_path, monkeypatch)
    assert f"torch.{maker}(model.weights).cuda(non_blocking=True)" in finding.advice


LOADERS = """import argparse
from torch.utils.data import DataLoader
from torchvision.datasets import MNIST


def main(args, model, optimizer):
    {before}
    loader = DataLoader(MNIST(args.root), num_workers={workers})
    for epoch in range(100):
        for x, y in loader:
            model(x).backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ("args.workers or 4", "(args.workers or 4) > 0"),
        ("4 if args.fast else args.workers", "(4 if args.fast else args.workers) > 0"),
        ("args.workers + 1", "args.workers + 1 > 0"),
        ("(n := args.workers)", "(n := args.workers) > 0"),
        ("args.workers", "args.workers > 0"),
    ],
)
def test_a_number_of_workers_is_put_in_parentheses(
    workers: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (finding,) = found(LOADERS.format(before="pass", workers=workers), "TPL104", tmp_path, monkeypatch)
    assert f"`persistent_workers={said}`" in finding.advice


FORWARD = """import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.rnn = nn.Linear(8, 8), nn.LSTM(8, 8)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor, count: int = 9):
        x = self.inner(x)
        {body}

def train(dataset, optimizer):
    model = Net().cuda()
    for images, lengths in DataLoader(dataset, batch_size=8, num_workers=4, pin_memory=True):
        model(images.cuda(non_blocking=True), lengths.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
"""
_COPIED = ("lengths = lengths.cpu().int()", "return self.rnn(x, self.shorter(lengths))")
_PACKED = ("lengths = lengths.cpu()", "return self.rnn(nn.utils.rnn.pack_padded_sequence(x, lengths))[0].data")
_COUNTED = ("least = x[x > 0].numel() // 16", "return x.topk(least)[0]")
_POSITIONS = "(x > 0).nonzero()"
_MASK = ("mask = torch.BoolTensor(x.size()).fill_(0)", "mask = mask.cuda()", "return x.masked_fill(mask, 0)")


@pytest.mark.parametrize(
    ("body", "code", "said", "unsaid"),
    [
        (_COPIED, "TPL201", "keep what it had before it went to the device", "read it later"),
        (_PACKED, "TPL201", "A size has to be known on the host", "read it later"),
        (_COUNTED, "TPL205", "count with `mask.sum()`", "nonzero_static"),
        ((f"return {_POSITIONS}[:count]",), "TPL205", "`torch.nonzero_static(mask, size=...)`", "mask itself"),
        ((f"return {_POSITIONS}",), "TPL205", "Work with the mask itself", "nonzero_static"),
        (("return x[x > 0]",), "TPL205", "cannot drop rows", "nonzero_static"),
        (_MASK, "TPL101", "Create it on the device: `torch.empty(sizes, dtype=torch.bool", "non_blocking"),
    ],
)
def test_advice_can_be_followed_in_a_forward(
    body: tuple[str, ...], code: str, said: str, unsaid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = found(FORWARD.format(body="\n        ".join(body)), code, tmp_path, monkeypatch)[0]
    assert said in finding.advice
    assert unsaid not in finding.advice


def test_what_is_computed_of_a_batch_on_the_host_is_not_pinned_by_its_loader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = in_step("y = F.interpolate(images, scale_factor=0.5)", "loss = loss + model(y.cuda()).mean()")
    (finding,) = found(text, "TPL101", tmp_path, monkeypatch)
    assert "call `F.interpolate` there" in finding.advice
    assert "pin_memory" not in finding.advice


def test_a_synchronization_and_the_reads_behind_it_are_one_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = (
        "loss.backward()",
        "optimizer.step()",
        "torch.cuda.synchronize()",
        "kept = loss.item()",
        "top = x.max().item()",
    )
    text = in_step(*body)
    (finding,) = found(text, "TPL204", tmp_path, monkeypatch)
    line = text.splitlines().index("        torch.cuda.synchronize()") + 1
    assert [hop.line for hop in finding.related] == [line + 1, line + 2]
    assert "read `loss.item()` and what else is read behind it only on the steps that need it" in finding.advice
    assert found(text.replace("torch.cuda.synchronize()", "pass"), "TPL204", tmp_path, monkeypatch) == []


NOT_FIXED = {
    "shown on every step": (("total += loss.item()", "print(step, total)"), "`total` is used on every step (line 14)"),
    "another wait": (("total += loss.item()", "best = min(best, x.max().item())"), "line 14 would wait instead"),
    "kept in an object": (("state.total += loss.item()",), "`state.total` is part of an object"),
    "a list of the caller's": (("history.append(loss.item())",), "`history` does not begin as an empty list here"),
    "nothing in the way": (("total += loss.item()",), ""),
}


@pytest.mark.parametrize(("body", "why"), NOT_FIXED.values(), ids=NOT_FIXED)
def test_a_sum_that_cannot_wait_says_why_it_is_not_fixed(
    body: tuple[str, ...], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\n"
        "def train(model: nn.Module, loader, optimizer, state, history):\n"
        "    model.cuda()\n    total, best = 0.0, 1e9\n    for step, images in enumerate(loader):\n"
        "        x = model(images.cuda(non_blocking=True))\n        loss = x.mean()\n        loss.backward()\n"
        "        optimizer.step()\n" + "".join(f"        {line}\n" for line in body) + "    return total\n"
    )
    first = min(found(text, "TPL201", tmp_path, monkeypatch), key=lambda finding: finding.span)
    assert (first.fix is None) == bool(why)
    assert why in first.advice
    assert ("Not fixed automatically" in first.advice) == bool(why)


PICKED = """import torch

def train(model: torch.nn.Module, points: torch.Tensor, optimizer, names):
    points = points.cuda()
    for _ in range(1000):
        {body}
        model(points[at]).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
INDICES = {
    "a range": (("at = torch.arange(0, 4)",), "slice"),
    "a range that the host reads": (("at = torch.arange(0, 4)", "names.append(int(at[-1]))"), "slice"),
    "a draw": (("at = torch.randperm(4)",), "Create `at` on the device"),
    "a draw that the host reads": (("at = torch.randperm(4)", "names.append(at.tolist())"), "copy of `at`"),
    "a draw that the host goes through": (("at = torch.randperm(4)", "for i in at: names[i] = i"), "copy of `at`"),
    "steps of two": (("at = torch.arange(0, 4, 2)",), "Create `at` on the device"),
}


@pytest.mark.parametrize(("body", "advised"), INDICES.values(), ids=INDICES)
def test_an_index_that_the_host_reads_stays_there(
    body: tuple[str, ...], advised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = found(PICKED.format(body="\n        ".join(body)), "TPL114", tmp_path, monkeypatch)

    assert advised in one.advice


@pytest.mark.parametrize(("beside", "advised"), [(":", "slice"), ("points.argmax(1)", "Create `at` on the device")])
def test_a_range_beside_another_index_of_places_is_no_slice(
    beside: str, advised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PICKED.format(body="at = torch.arange(0, 4)").replace("points[at]", f"points[at, {beside}]")
    (one,) = found(text, "TPL114", tmp_path, monkeypatch)

    assert advised in one.advice


def test_what_a_cast_makes_of_a_batch_is_not_said_to_be_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = STEP.replace("x = model(images.cuda(non_blocking=True))", "x = model(images.float().cuda())")
    [finding] = found(text.format(body="", above=""), "TPL101", tmp_path, monkeypatch)
    assert "what a cast makes is not pinned" in finding.advice
    assert finding.fix is None


HELPERS = """def rows(values, mask):
    return values[mask]


def spread(values, mask):
    whole = values.new_zeros(9)
    whole[mask] = values
    return whole


"""


def test_a_mask_that_is_handed_over_is_counted_where_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = in_step("mask = x > 0", "loss = loss + spread(rows(x, mask), mask).sum()", above=HELPERS)
    findings = found(text, "TPL205", tmp_path, monkeypatch)
    assert len(findings) == 2
    assert all("pass the positions instead of the mask" in finding.advice for finding in findings)


def test_a_look_up_in_an_index_is_not_said_to_leave_duplicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    above = "from torch_geometric.utils import remove_self_loops, to_dense_batch\n"
    body = ("dense, _ = to_dense_batch(x, labels.cuda())", "edges, _ = remove_self_loops(labels.cuda())")
    dense, edges = found(in_step(*body, above=above), "TPL205", tmp_path, monkeypatch)
    assert "Pass `batch_size`" in dense.advice
    assert "duplicates" not in dense.advice + edges.advice
