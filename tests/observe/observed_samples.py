"""A small observation, made by hand: a training script with one read in the step, one in the middle of the model."""

from __future__ import annotations

from perflint.observe.functions import lines_of, regions_of
from perflint.observe.trace import Event, Frame, LineCount, Observation, Phase, Site, Step, StepTotal

MODEL = """\
import torch
class Net(torch.nn.Module):
    layer = torch.nn.Linear(8, 8)
    def forward(self, x, mask):
        x = self.layer(x)
        kept = x[mask]
        return self.layer(kept)
"""

TRAIN = """\
import torch
from torch.utils.data import DataLoader

from model import Net


def train(net, loader: DataLoader, optimizer, device):
    for images, mask in loader:
        images = images.to(device)
        loss = net(images, mask.to(device)).sum()
        loss.backward()
        optimizer.step()
        print(loss.item())
    torch.cuda.synchronize()


train(Net(), DataLoader([]), None, torch.device("cuda"))
"""

TEXTS = {"model.py": MODEL, "train.py": TRAIN}

_TOP = Frame("train.py", 17, "<module>")
_STEP = Frame("train.py", 10, "train")
_TORCH = Frame("/lib/torch/nn/modules/module.py", 1773, "_wrapped_call_impl", library=True)
TO_DEVICE = Site("train.py", 9, 18, 9, 35, (_TOP, Frame("train.py", 9, "train")))
MASK = Site("model.py", 6, 16, 6, 23, (_TOP, _STEP, _TORCH, Frame("model.py", 6, "forward")))
LAYER = Site("model.py", 7, 16, 7, 32, (_TOP, _STEP, _TORCH, Frame("model.py", 7, "forward")))
ITEM = Site("train.py", 13, 15, 13, 26, (_TOP, Frame("train.py", 13, "train")))
ITEM_TEXT = "loss.item()"


def _products(phase: Phase, count: int) -> Event:
    flops, moved = 4e10 * count, count << 20
    return Event("aten::mm", "launch", False, 2, phase, flops, moved, launches=count, dtype="float32")


def events() -> list[Event]:
    return [
        Event("aten::_to_copy", "to-device", waits=True, site=0, phase="data", bytes=4 << 20),
        _products("forward", 1),
        Event("aten::nonzero", "shape", waits=True, site=1, phase="forward", bytes=4096, launches=3),
        _products("forward", 1),
        _products("backward", 2),
        Event("aten::_local_scalar_dense", "read", waits=True, site=3, phase="forward", bytes=4),
    ]


def observation() -> Observation:
    sites = [TO_DEVICE, MASK, LAYER, ITEM]
    ran = {"train.py": frozenset({8, 9, 10, 11, 12, 13}), "model.py": frozenset({6, 7})}
    return Observation(
        device="simulated",
        torch="2.13.0",
        hardware="h100",
        steps=3,
        warmup=1,
        sites=sites,
        lines=[
            LineCount(0, "to-device", True, "data", {1: 1, 2: 1, 3: 1}, 12 << 20, operation="aten::_to_copy"),
            LineCount(1, "shape", True, "forward", {1: 1, 2: 1, 3: 1}, 12288, operation="aten::nonzero"),
            LineCount(2, "launch", False, "forward", {1: 2, 2: 2, 3: 2}, 6 << 20, operation="aten::mm"),
            LineCount(2, "launch", False, "backward", {1: 2, 2: 2, 3: 2}, 6 << 20, True, "aten::mm"),
            LineCount(3, "read", True, "forward", {1: 1, 3: 1}, 8, operation="aten::_local_scalar_dense"),
        ],
        step=Step(1, events()),
        totals=[
            StepTotal(1, 3, 7, 4 << 20, 4),
            StepTotal(2, 2, 7, 4 << 20, 0),
            StepTotal(3, 3, 7, 4 << 20, 4),
        ],
        ran=ran,
        regions=regions_of(TEXTS, lines_of(sites, ran)),
        program=("python", "train.py"),
        python="3.11.7",
    )
