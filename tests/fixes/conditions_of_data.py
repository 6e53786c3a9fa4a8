"""Conditions of the fixes that make, load and move data."""

from __future__ import annotations

from conditions import SILENT, STEP, Condition, Program

RULES: dict[str, Program] = {
    "TPL101": Program(
        f"""
import torch
from torch.utils.data import DataLoader

def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        model(moved).backward(){STEP}
""",
        (
            Condition("the device may be MPS", "images.cuda()", "images.to(choose())", SILENT),
            Condition(
                "the device is chosen among CUDA and MPS",
                "images.cuda()",
                'images.to("cuda" if torch.cuda.is_available() else "mps")',
                "may be MPS",
            ),
            Condition("the device is MPS", "images.cuda()", 'images.to("mps")', SILENT),
            Condition("a copy to the host would be read too early", "images.cuda()", "images.cpu()", SILENT),
            Condition(
                "a small integer type is asked for",
                "images.cuda()",
                'images.to("cuda", torch.uint8)',
                "out of the dtype's range",
            ),
            Condition(
                "the source is filled",
                "optimizer.step()",
                "optimizer.step()\n        images.zero_()",
                "written to afterwards",
            ),
            Condition(
                "an element is written",
                "optimizer.step()",
                "optimizer.step()\n        images[0] = 0",
                "written to afterwards",
            ),
            Condition(
                "it is added to in place",
                "optimizer.step()",
                "optimizer.step()\n        images += 1",
                "written to afterwards",
            ),
            Condition(
                "an operation writes its result there",
                "optimizer.step()",
                "optimizer.step()\n        torch.add(images, 1, out=images)",
                "written to afterwards",
            ),
            Condition(
                "a view of the source is written to",
                "moved = images.cuda()",
                "first = images[0]\n        moved = images.cuda()\n        first.zero_()",
                "written to afterwards",
            ),
            Condition(
                "a function that cannot be seen gets the source afterwards",
                "optimizer.step()",
                "optimizer.step()\n        recycle(images)",
                "written to afterwards",
            ),
            *(
                Condition("integers out of range differ", "images.cuda()", f"images.{move}", "out of the dtype's range")
                for move in ('to("cuda", torch.long)', "type(torch.cuda.LongTensor)", 'to("cuda", labels.dtype)')
            ),
            *(
                Condition(
                    "another name has it",
                    "optimizer.step()",
                    f"optimizer.step()\n        {writes}",
                    "written to afterwards",
                )
                for writes in (
                    "a, b = images, labels\n        a.zero_()",
                    "both = {'a': images}\n        both['a'].zero_()",
                    "for part in images.chunk(2): part.zero_()",
                    "for part in (images, labels): part.zero_()",
                    "yield images",
                )
            ),
            Condition(
                "a function that is called later writes to it",
                "moved = images",
                "fill = lambda: images.zero_()\n        moved = images",
                "written to afterwards",
            ),
            Condition(
                "a stream of its own does not wait",
                "moved = images.cuda()",
                "with torch.cuda.stream(torch.cuda.Stream()): moved = images.cuda()",
                "another stream",
            ),
            Condition(
                "a class of batches knows no such option",
                "def train(",
                "class Nested:\n    def cuda(self):\n        return self\n\ndef train(",
                SILENT,
            ),
            Condition(
                "the batch is no tensor", "images, labels in loader", "images in loader", "may not be a plain tensor"
            ),
        ),
    ),
    "TPL102": Program(
        f"""
import torch
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder

def train(model, images, optimizer, count, join):
    loader = DataLoader(ImageFolder(images), batch_size=64, num_workers=4)
    for batch, labels in loader:
        model(batch.cuda(non_blocking=True)).backward(){STEP}
""",
        (
            Condition("without workers the main thread pins", ", num_workers=4", "", "main thread pins"),
            Condition("the number of workers is not known", "num_workers=4", "num_workers=count", "is unknown"),
            Condition("a batch may not know how to be pinned", "=4)", "=4, collate_fn=join)", "collate function"),
            Condition("the dataset is out of sight", "ImageFolder(images)", "images", "dataset is unknown"),
            Condition("the program never uses CUDA", "cuda(non_blocking=True)", "cpu()", SILENT),
            Condition(
                "a class says itself how it is pinned",
                "def train(",
                "class Kept(list):\n    def pin_memory(self):\n        return self\n\ndef train(",
                "`pin_memory` itself",
            ),
            Condition("pinning is chosen already", "=4)", "=4, pin_memory=False)", SILENT),
        ),
    ),
    "TPL114": Program(
        f"""
import torch
from torch import nn

def train(model: nn.Module, data: torch.Tensor, chosen: torch.Tensor, optimizer, steps, share):
    data, chosen = data.cuda(), chosen.cuda()
    for _ in range(steps):
        rows = data[torch.arange(len(chosen)), chosen]
        model(rows * 2).backward(){STEP}
""",
        (
            Condition("it is drawn", "torch.arange(len(chosen))", "torch.randperm(len(chosen))", "generator"),
            Condition("it may be in fractions", "arange(len(chosen))", "arange(0, len(chosen), share)", "rounding"),
            Condition(
                "the function is another one",
                "def train",
                "torch.arange = counted\n\ndef train",
                "replaced by something else",
            ),
            Condition("it stands on the device", "len(chosen))", "len(chosen), device='cuda')", SILENT),
            Condition(
                "it is a list",
                "rows = data[torch.arange(len(chosen)), chosen]",
                "rows = data[[0, 1]] + data.sum()",
                "a slice past the end",
            ),
            Condition("the data are on the host", "data, chosen = data.cuda()", "data, chosen = data.cpu()", SILENT),
        ),
    ),
    "TPL107": Program(
        f"""
import torch
from torch import nn

def train(model, loader, optimizer, device: torch.device, other: torch.Tensor, generator, fill, place):
    for batch in loader:
        n = len(batch)
        state = torch.zeros(n).to(device)
        model(batch, state).backward(){STEP}
""",
        (
            *(
                Condition("the device draws other numbers", "torch.zeros(n)", f"torch.{draw}", "generator")
                for draw in ("rand(n)", "randn(n)", "randint(4, (n,))", "randperm(n)", "normal(0.0, 1.0, (n,))")
            ),
            *(
                Condition("kernels may round differently", "torch.zeros(n)", f"torch.{call}", "rounding")
                for call in (
                    "linspace(0, 1, n)",
                    "logspace(0, 1, n)",
                    "arange(0, 1, 0.1)",
                    "arange(0, 1, step=0.1)",
                    "arange(0.5, n)",
                    "arange(*fill)",
                    "arange(start=0.5, end=n)",
                    "arange(0, n, fill)",
                    "arange(5000, dtype=torch.bfloat16)",
                    "hann_window(n)",
                )
            ),
            Condition(
                "a device is called for before the sizes",
                "torch.zeros(n).to(device)",
                "torch.zeros(n).repeat(fill()).to(place.device)",
                "something else",
            ),
            Condition("a name may be a tensor", ".to(device)", ".to(device_of_batch)", "something else than a device"),
            Condition("a value filled in may be a tensor", "torch.zeros(n)", "torch.full((n,), fill)", "rounding"),
            Condition("a type is asked for", ".to(device)", ".to(device, torch.float16)", "no fix"),
            Condition("a type is asked for between", ".to(device)", ".half().to(device)", "no fix"),
            Condition("a moved tensor is no leaf", "zeros(n)", "zeros(n, requires_grad=True)", "leaf"),
            Condition("a moved parameter is none", "torch.zeros(n)", "nn.Parameter(torch.zeros(n))", SILENT),
            Condition("a generator belongs to a device", "zeros(n)", "rand(n, generator=generator)", SILENT),
            Condition("the memory is pinned", "zeros(n)", "zeros(n, pin_memory=True)", SILENT),
            Condition(
                "the device is set by default",
                "for batch in",
                "torch.set_default_device(device)\n    for batch in",
                SILENT,
            ),
            Condition(
                "memory of an array cannot be made elsewhere", "torch.zeros(n)", "torch.from_numpy(fill)", SILENT
            ),
            Condition("joining has no device", "torch.zeros(n)", "torch.stack([other, other])", SILENT),
            Condition("what is expanded stays a view", ".to(device)", ".expand(2, n).to(device)", "no fix"),
            Condition("integers are cut", "torch.zeros(n)", "torch.full((n,), 1e10).int()", "no fix"),
            Condition("what is given may be a tensor", ".to(device)", ".to(place)", "no fix"),
            Condition("what is given may be a type", ".to(device)", ".to(place.gpu)", "something else than a device"),
        ),
    ),
    "TPL113": Program(
        """
import numpy as np
import torch

def edges(a, b):
    rows = np.asarray(a)
    columns = np.asarray(b)
    return torch.tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)])
""",
        (
            Condition("an array may have a mask", "np.asarray(a)", "np.ma.asarray(a)", "of a subclass"),
            Condition("an array may be of any class", "np.asarray(a)", "a", "of a subclass"),
            Condition(
                "another type is asked for",
                ".astype(np.int64)])",
                ".astype(np.int64)], dtype=torch.uint8)",
                "out of the dtype's range",
            ),
            Condition(
                "the types differ", "columns.ravel().astype(np.int64)", "columns.astype(np.float64)", "another dtype"
            ),
            Condition(
                "torch takes wide floats from a list alone",
                "rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)",
                "rows.ravel().astype(np.longdouble), columns.ravel().astype(np.longdouble)",
                "another dtype",
            ),
            Condition(
                "the type is given by a name",
                "rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)",
                "rows.ravel().astype(KIND), columns.ravel().astype(KIND)",
                "another dtype",
            ),
            Condition("arrays without rows", "columns.ravel()", "columns", "another shape"),
            Condition(
                "torch takes objects from a list alone",
                "rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)",
                "rows.ravel().astype(object), columns.ravel().astype(object)",
                "another dtype",
            ),
            Condition(
                "the types are not spelled",
                "rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)",
                "np.asarray(rows), np.asarray(columns)",
                "another dtype",
            ),
            Condition(
                "the list may be empty",
                "[rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)]",
                "[np.zeros(512, dtype=np.float32) for row in rows]",
                "another dtype",
            ),
        ),
    ),
}
