"""Rules with safe fixes: a program in which the fix is safe, and each condition under which it is not.

A condition is a change of that program, so that nothing but the condition can be the reason. What is listed as
`SILENT` is not reported at all once the condition holds.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ALWAYS_UNSAFE", "RULES", "SILENT", "Condition", "Program"]

#: In place of a reason: nothing is reported, so nothing is offered.
SILENT = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """`old` in the program becomes `new`; `reason` is a part of what the fix then says, or `SILENT`."""

    why: str
    old: str
    new: str
    reason: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program with one finding, whose fix is safe."""

    text: str
    conditions: tuple[Condition, ...]


_STEP = """
        optimizer.step()
        optimizer.zero_grad()
"""

RULES: dict[str, Program] = {
    "TPL101": Program(
        f"""
import torch
from torch.utils.data import DataLoader

def train(model, loader: DataLoader, optimizer):
    for images, labels in loader:
        moved = images.cuda()
        model(moved).backward(){_STEP}
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
                "out of the range",
            ),
            Condition("the source is filled", "optimizer.step()", "images.zero_()", "written to afterwards"),
            Condition("an element is written", "optimizer.step()", "images[0] = 0", "written to afterwards"),
            Condition("it is added to in place", "optimizer.step()", "images += 1", "written to afterwards"),
            Condition(
                "an operation writes its result there",
                "optimizer.step()",
                "torch.add(images, 1, out=images)",
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
                "recycle(images)",
                "written to afterwards",
            ),
            Condition("the batch is no tensor", "images, labels in loader", "images in loader", "no plain tensor"),
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
        model(batch.cuda(non_blocking=True)).backward(){_STEP}
""",
        (
            Condition("without workers the main thread pins", ", num_workers=4", "", "main thread pins"),
            Condition("the number of workers is not known", "num_workers=4", "num_workers=count", "not known here"),
            Condition("a batch may not know how to be pinned", "=4)", "=4, collate_fn=join)", "collate function"),
            Condition("the dataset is out of sight", "ImageFolder(images)", "images", "dataset is not known"),
            Condition("the program never uses CUDA", "cuda(non_blocking=True)", "cpu()", SILENT),
            Condition("pinning is chosen already", "=4)", "=4, pin_memory=False)", SILENT),
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
        model(batch, state).backward(){_STEP}
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
                    "arange(end=0.5)",
                    "arange(5000, dtype=torch.bfloat16)",
                    "hann_window(n)",
                )
            ),
            Condition("a value filled in may be a tensor", "torch.zeros(n)", "torch.full((n,), fill)", "rounding"),
            Condition("a type is asked for", ".to(device)", ".to(device, torch.float16)", "no fix"),
            Condition("a type is asked for between", ".to(device)", ".half().to(device)", "no fix"),
            Condition("a moved tensor is no leaf", "zeros(n)", "zeros(n, requires_grad=True)", "leaf"),
            Condition("a moved parameter is none", "torch.zeros(n)", "nn.Parameter(torch.zeros(n))", SILENT),
            Condition("another tensor gives its type too", ".to(device)", ".to(other)", "no fix"),
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
            Condition("what is given may be a type", ".to(device)", ".to(place)", "something else than a device"),
        ),
    ),
    "TPL113": Program(
        """
import numpy as np
import torch

def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)])
""",
        (
            Condition(
                "the types differ", "columns.ravel().astype(np.int64)", "columns.astype(np.float64)", "another dtype"
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
                "[np.zeros(3, dtype=np.float32) for row in rows]",
                "another dtype",
            ),
        ),
    ),
    "TPL301": Program(
        """
import copy
import torch
from torch import nn

def twin(
    student: nn.Sequential,
    teacher: nn.Module,
    network,
    optimizer: torch.optim.Optimizer,
    state_dict: dict[str, torch.Tensor],
):
    teacher.load_state_dict(copy.deepcopy(student.state_dict()))
""",
        (
            Condition(
                "the module takes the tensors themselves", "state_dict()))", "state_dict()), assign=True)", SILENT
            ),
            Condition(
                "an optimizer keeps the tensors",
                "teacher.load_state_dict(copy.deepcopy(student.state_dict()))",
                "optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))",
                SILENT,
            ),
            Condition("the target may be no module", "teacher.load", "network.load", "not known to be a module"),
            Condition("the dict may be the target's", "student.state_dict()", "state_dict", "the target's own tensors"),
            Condition(
                "the module takes the tensors themselves, as the third argument says",
                "state_dict()))",
                "state_dict()), True, True)",
                SILENT,
            ),
            Condition(
                "the dict is made by another method",
                "student.state_dict()",
                "student.swapped_state_dict()",
                SILENT,
            ),
            Condition(
                "the class keeps what it loads",
                "def twin(",
                "class Kept(nn.Module):\n    def load_state_dict(self, state_dict, strict=True):\n"
                "        self.kept = state_dict\n\ndef twin(",
                "of its own",
            ),
            Condition("a module is part of the other", "teacher.load", "student[0].load", "part of"),
            Condition(
                "a name stands for a part of the other",
                "teacher.load",
                "teacher = student[0]\n    teacher.load",
                "part of",
            ),
            Condition(
                "a module is built around the other",
                "teacher.load",
                "teacher = nn.Sequential(student)\n    teacher.load",
                "part of",
            ),
            Condition("source and target are the same", "teacher.load", "student.load", "same module"),
            Condition(
                "the copy outlives the step",
                "teacher.load_state_dict(copy.deepcopy(student.state_dict()))",
                "return copy.deepcopy(student.state_dict())",
                SILENT,
            ),
        ),
    ),
    "TPL302": Program(
        """
import torch
from torch import nn

CACHED = nn.Linear(4, 4)

def cached():
    return CACHED

def load(student: nn.Sequential, teacher: nn.Linear, network, optimizer: torch.optim.Optimizer, state, rename):
    student.load_state_dict({k: v.clone() for k, v in teacher.state_dict().items()})
""",
        (
            Condition("the module takes the tensors themselves", ".items()})", ".items()}, assign=True)", SILENT),
            Condition("an optimizer keeps the tensors", "student.load", "optimizer.load", SILENT),
            Condition("the target may be no module", "student.load", "network.load", "not known to be a module"),
            Condition(
                "tensors of one module change places",
                "{k: v.clone() for k, v in teacher",
                "{rename(k): v.clone() for k, v in student",
                "under other keys",
            ),
            Condition("the tensors may be the target's", "teacher.state_dict()", "state", "under other keys"),
            Condition(
                "the dict may be another one",
                "student.load_state_dict({k: v.clone() for k, v in teacher.state_dict().items()})",
                "made = teacher.state_dict()\n    if rename:\n        made = state\n"
                "    student.load_state_dict({k: v.clone() for k, v in made.items()})",
                "under other keys",
            ),
            Condition(
                "entries of the dict change places",
                "student.load_state_dict({k: v.clone() for k, v in teacher.state_dict().items()})",
                "made = student.state_dict()\n    made['a'], made['b'] = made['b'], made['a']\n"
                "    student.load_state_dict({k: v.clone() for k, v in made.items()})",
                "under other keys",
            ),
            Condition(
                "entries of the dict are the target's",
                "student.load_state_dict({k: v.clone() for k, v in teacher.state_dict().items()})",
                "made = teacher.state_dict()\n    made['a'] = student[0].weight\n"
                "    student.load_state_dict({k: v.clone() for k, v in made.items()})",
                "under other keys",
            ),
            Condition(
                "a module is built around the other",
                "student.load_state_dict({k",
                "student = nn.Sequential(teacher)\n    student.load_state_dict({rename(k)",
                "part of",
            ),
            Condition(
                "the target is no new module",
                "student.load_state_dict({k: v.clone() for k, v in teacher.state_dict()",
                "model = cached()\n    model.load_state_dict({rename(k): v.clone() for k, v in state",
                "under other keys",
            ),
            Condition(
                "a module is part of the other", "in teacher.state_dict", "in student[0].state_dict", "under other keys"
            ),
            Condition("more is done than copying", "v.clone()", "v.clone().half()", SILENT),
            Condition(
                "the dict is kept",
                "student.load_state_dict({k: v.clone() for k, v in teacher.state_dict().items()})",
                "kept = {k: v.clone() for k, v in teacher.state_dict().items()}\n"
                "    student.load_state_dict(kept)\n    return kept",
                SILENT,
            ),
        ),
    ),
    "TPL305": Program(
        """
import gc
import torch

def release(models):
    torch.cuda.empty_cache()
    gc.collect()
""",
        (
            Condition("something runs between", "    gc.collect", "    models.clear()\n    gc.collect", SILENT),
            Condition("the number is used", "gc.collect()", "return gc.collect()", SILENT),
            Condition("there was a collection before", "    torch.cuda", "    gc.collect()\n    torch.cuda", SILENT),
        ),
    ),
    "TPL306": Program(
        f"""
import logging
import torch
from torch import nn

def train(model: nn.Module, loader: torch.utils.data.DataLoader, optimizer: torch.optim.Optimizer):
    total = 0.0
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward(){_STEP}        total += loss
    shown = total.item()
    logging.info("%f", shown)
""",
        (
            Condition("the sum is walked back", "shown = total.item()", "shown = total\n    total.backward()", SILENT),
            Condition(
                "gradients of the sum are asked for",
                "shown = total.item()",
                "shown = torch.autograd.grad(total, list(model.parameters()))",
                SILENT,
            ),
            Condition("the sum is returned", 'logging.info("%f", shown)', "return total", SILENT),
            Condition("the sum is kept in an attribute", "shown = total.item()", "model.shown = total", SILENT),
            Condition("the sum is given away", "shown = total.item()", "shown = keep(total)", SILENT),
            Condition("the sum is yielded", "shown = total.item()", "shown = yield total", SILENT),
            Condition("others read the sum", "    total = 0.0", "    global total\n    total = 0.0", SILENT),
            Condition("the graph is retained", "loss.backward()", "loss.backward(retain_graph=True)", SILENT),
            Condition(
                "gradients are off", "    for inputs", "    torch.set_grad_enabled(False)\n    for inputs", SILENT
            ),
            Condition(
                "the loss may be a number",
                "loss = nn.functional.cross_entropy(model(inputs), labels)\n        loss.backward()",
                "loss = loss_function(model(inputs), labels)",
                "not known to be a tensor",
            ),
            Condition(
                "what is walked back is a part of it",
                "loss = nn.functional.cross_entropy(model(inputs), labels)\n        loss.backward()",
                "loss = model(inputs, labels)\n        sum(loss.values()).backward()",
                "no fix",
            ),
            Condition("its graph is asked for", "shown = total.item()", "shown = total.grad_fn is None", SILENT),
            Condition("it is printed as it is", "shown = total.item()", "shown = 1.0\n    print(total)", "grad_fn"),
            Condition("it is shown as it is", "shown = total.item()", 'shown = f"{total}"', "grad_fn"),
            Condition("it is logged as it is", '"%f", shown', '"%s", total', "grad_fn"),
        ),
    ),
    "TPL308": Program(
        """
import torch
from torch import nn

def evaluate(model: nn.Module, loader: torch.utils.data.DataLoader):
    model.eval()
    right = 0
    for inputs, labels in loader:
        out = model(inputs)
        right += (out.argmax(1) == labels).sum().item()
    return right
""",
        (
            Condition("the model may be none", "model: nn.Module", "model", "not known to be a module"),
            Condition("tensors are returned", "return right", "return out", "may return tensors"),
            Condition(
                "something unseen is fitted", "    right = 0", "    probe.fit(loader)\n    right = 0", "cannot be seen"
            ),
            Condition(
                "something unseen gets the model",
                "    right = 0",
                "    prepare(model)\n    right = 0",
                "cannot be seen",
            ),
            Condition(
                "the model asks whether gradients are on",
                "def evaluate",
                "class Net(nn.Module):\n    def forward(self, x):\n        return x * torch.is_grad_enabled()\n"
                "\ndef evaluate",
                "does something else",
            ),
            Condition(
                "the model hangs a hook on its graph",
                "def evaluate",
                "class Net(nn.Module):\n    def forward(self, x):\n        x.register_hook(print)\n        return x\n"
                "\ndef evaluate",
                "does something else",
            ),
            Condition(
                "attention takes another way",
                "def evaluate",
                "ENCODER = nn.TransformerEncoderLayer(8, 2)\n\ndef evaluate",
                "round differently",
            ),
            Condition("tensors are kept", "right = 0", "right = model.last = 0", "stores results"),
            Condition(
                "tensors are handed out in between",
                "        right +=",
                "        yield out\n        right +=",
                "as it goes",
            ),
            Condition("others read a name", "    right = 0", "    global right\n    right = 0", "as it goes"),
            Condition(
                "an argument grows",
                "DataLoader):\n    model.eval()\n",
                "DataLoader, kept: list):\n    model.eval()\n    kept += [model(torch.ones(1))]\n",
                "adds to what it was given",
            ),
            Condition(
                "a call may keep a tensor",
                "        right +=",
                "        keep(out)\n        right +=",
                "may keep a tensor",
            ),
            Condition("it is printed as it is", "        right +=", "        print(out)\n        right +=", "grad_fn"),
            Condition(
                "it is shown as it is", "        right +=", '        show(f"{out}")\n        right +=', "grad_fn"
            ),
            Condition(
                "gradients are asked for", "        right +=", "        out.sum().backward()\n        right +=", SILENT
            ),
            Condition(
                "inputs want gradients", "        out =", "        inputs.requires_grad_()\n        out =", SILENT
            ),
            Condition(
                "the model asks for gradients inside",
                "def evaluate(model: nn.Module",
                "class Forces(nn.Module):\n"
                "    def forward(self, x):\n"
                "        return torch.autograd.grad(x.square().sum(), x)[0]\n\n"
                "def evaluate(model: Forces",
                "asks for gradients",
            ),
            Condition(
                "a helper asks for gradients",
                "def evaluate(",
                "def slope(x):\n    return torch.autograd.grad(x.square().sum(), x)[0]\n\ndef evaluate(",
                "asks for gradients",
            ),
            Condition(
                "scripts take no such decorator", "def evaluate(", "@torch.jit.script\ndef evaluate(", "decorator"
            ),
        ),
    ),
    "TPL501": Program(
        """
import re
import torch
from torch.utils.data import Dataset

class Captions(Dataset):
    def __getitem__(self, index):
        words = re.compile("[a-z]+", re.I)
        return words.findall(self.lines[index])
""",
        (
            Condition("the pattern varies", '"[a-z]+"', 'f"[a-z]+{index}"', "no fix"),
            Condition("the flags vary", "re.I)", "self.flags)", "no fix"),
            Condition("the pattern shows itself each time", "re.I)", "re.DEBUG)", "no fix"),
            Condition("the pattern depends on the locale", '"[a-z]+", re.I)', 'b"[a-z]+", re.LOCALE)', "no fix"),
            Condition("the pattern is wrong: the import would fail", '"[a-z]+"', '"[a-z"', "no fix"),
            Condition("the flags do not fit the pattern", '"[a-z]+", re.I)', 'b"[a-z]+", re.U)', "no fix"),
            Condition(
                "`re` is there for a script alone",
                "import re\nimport torch",
                "import torch\nif __name__ == '__main__':\n    import re",
                "no fix",
            ),
            Condition(
                "`re` is there for type checkers alone",
                "import re\nimport torch",
                "import torch\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import re",
                "no fix",
            ),
            Condition("the function imports it", "        words", "        import re\n        words", "no fix"),
            Condition("another `re` is meant", "words = re", "re = self\n        words = re", SILENT),
            Condition(
                "`re` is not there at module level",
                "import re\nimport torch",
                "import torch",
                SILENT,
            ),
        ),
    ),
}

#: Rules whose fixes RULES never calls safe: whatever the conditions, they are a person's choice.
ALWAYS_UNSAFE = frozenset(
    "TPL103 TPL104 TPL106 TPL116 TPL201 TPL209 TPL210 TPL303 TPL304 TPL307 TPL309 TPL310 TPL312 TPL314 TPL402 TPL502 "
    "TPL504 TPL605 TPL607 TPL609 TPL610 TPL702 TPL703 TPL704 TPL706 TPL901".split()
)
