"""Conditions of the fixes around models, their states, their losses and what runs beside them."""

from __future__ import annotations

from conditions import SILENT, STEP, Condition, Program

RULES: dict[str, Program] = {
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
    teacher = nn.Linear(4, 4)
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
                "teacher = nn.Linear(4, 4)",
                "class Kept(nn.Module):\n        def load_state_dict(self, state_dict, strict=True):\n"
                "            self.kept = state_dict\n    teacher = Kept()",
                "overrides `load_state_dict`",
            ),
            *(
                Condition(
                    "a part of the module keeps what it loads",
                    "def twin(",
                    f"class Part(nn.Module):\n    {does}\n\ndef twin(",
                    "overrides `load_state_dict`",
                )
                for does in (
                    "def _load_from_state_dict(self, state, prefix, *rest):\n        self.w = state[prefix + 'w']",
                    "def set_extra_state(self, state):\n        self.state = state",
                    "def __init__(self):\n        self.register_load_state_dict_pre_hook(print)",
                )
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
    student = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    student.load_state_dict({k: v.clone() for k, v in teacher.state_dict().items()})
""",
        (
            Condition("the module takes the tensors themselves", ".items()})", ".items()}, assign=True)", SILENT),
            Condition("an optimizer keeps the tensors", "student.load", "optimizer.load", SILENT),
            Condition("the target may be no module", "student.load", "network.load", "not known to be a module"),
            *(
                Condition(
                    "a part of the module keeps what it loads",
                    "def load(",
                    f"class Part(nn.Module):\n    {does}\n\ndef load(",
                    "overrides `load_state_dict`",
                )
                for does in (
                    "def _load_from_state_dict(self, state, prefix, *rest):\n        self.w = state[prefix + 'w']",
                    "def set_extra_state(self, state):\n        self.state = state",
                    "def __init__(self):\n        self.register_load_state_dict_pre_hook(print)",
                )
            ),
            Condition(
                "tensors of one module change places",
                "{k: v.clone() for k, v in teacher",
                "{rename(k): v.clone() for k, v in student",
                "under other keys",
            ),
            Condition(
                "the tensors may be the target's",
                "student.load_state_dict({k: v.clone() for k, v in teacher.state_dict()",
                "teacher.load_state_dict({k: v.clone() for k, v in state",
                "under other keys",
            ),
            Condition(
                "the dict may be another one",
                "student.load_state_dict({k: v.clone() for k, v in teacher.state_dict().items()})",
                "made = teacher.state_dict()\n    if rename:\n        made = state\n"
                "    teacher.load_state_dict({k: v.clone() for k, v in made.items()})",
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
                "not known to be torch's own",
            ),
            Condition(
                "the target is no new module",
                "student.load_state_dict({k: v.clone() for k, v in teacher.state_dict()",
                "model = cached()\n    model.load_state_dict({rename(k): v.clone() for k, v in state",
                "under other keys",
            ),
            Condition(
                "a module is part of the other",
                "in teacher.state_dict",
                "in student[0].state_dict",
                "not known to be torch's own",
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
            Condition(
                "objects tell when they go",
                "def release(",
                "class Told:\n    def __del__(self):\n        print(self)\n\ndef release(",
                "run code when they are collected",
            ),
            Condition("an argument is computed", "gc.collect()", "gc.collect(len(models))", "evaluated first"),
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
        loss.backward(){STEP}        total += loss
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
            *(
                Condition(
                    "the loss may be a number on some turns",
                    "loss = nn.functional.cross_entropy(model(inputs), labels)\n        loss.backward()",
                    given,
                    "may not be a tensor in every iteration",
                )
                for given in (
                    "loss = model.loss(inputs)\n        if torch.is_tensor(loss):\n            loss.backward()",
                    (
                        "loss = model.loss(inputs)\n        try:\n            loss.backward()\n"
                        "        except AttributeError: pass"
                    ),
                )
            ),
            Condition(
                "a class of the project has a `backward` of its own",
                "def train(",
                "class Value:\n    def backward(self): ...\n\ndef train(",
                "may not be a tensor in every iteration",
            ),
            Condition("others have what it begins as", "total = 0.0", "total = model.running", "other code may use"),
            Condition("the graph is retained, by place", "loss.backward()", "loss.backward(None, True)", SILENT),
            Condition("it is the very loss or not", "shown = total.item()", "shown = total is loss", SILENT),
            Condition("it is shown by `repr`", "shown = total.item()", 'shown = f"{total!r:>9}"', "grad_fn"),
            Condition("it is formatted by `str`", "shown = total.item()", 'shown = "{!s:>9}".format(total)', "grad_fn"),
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

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        return self.body(x)

def evaluate(model: Net, loader: torch.utils.data.DataLoader):
    model.eval()
    right = 0
    for inputs, labels in loader:
        out = model(inputs)
        right += (out.argmax(1) == labels).sum().item()
    return right
""",
        (
            Condition("the model may be none", "model: Net", "model", "not known to be a module"),
            Condition("the model may be any", "model: Net", "model: nn.Module", "class of `model` is not known"),
            Condition("a part of the model may be any", "nn.Linear(4, 4)", "make_body()", "what cannot be seen"),
            Condition(
                "a hook may keep what it is shown",
                "def evaluate",
                "def watch(model, seen):\n    model.register_forward_hook(seen)\n\ndef evaluate",
                "hooks",
            ),
            Condition(
                "the data asks for gradients",
                "def evaluate",
                "class Slopes(torch.utils.data.Dataset):\n    def __getitem__(self, index):\n"
                "        self.points.sum().backward()\n        return self.points.grad[index]\n\ndef evaluate",
                "the data asks",
            ),
            Condition("tensors are returned", "return right", "return out", "may return tensors"),
            Condition(
                "something unseen is fitted",
                "    right = 0",
                "    probe.fit(loader)\n    right = 0",
                "is unknown, and may enable",
            ),
            Condition(
                "something unseen gets the model",
                "    right = 0",
                "    prepare(model)\n    right = 0",
                "is unknown, and may enable",
            ),
            Condition(
                "the model asks whether gradients are on",
                "return self.body(x)",
                "return self.body(x) * torch.is_grad_enabled()",
                "behaves differently",
            ),
            Condition(
                "the model hangs a hook on its graph",
                "return self.body(x)",
                "x.register_hook(print)\n        return x",
                "behaves differently",
            ),
            *(
                Condition("the model keeps what it makes", "return", f"{does}\n        return", "keep what it computes")
                for does in (
                    "self.last = x * 2",
                    "setattr(self, 'last', x)",
                    "seen = self.seen\n        seen[0] = self.body(x)",
                    "Net.last = x",
                )
            ),
            Condition(
                "something unseen may keep it", "return", "self.seen.append(x)\n        return", "cannot be seen"
            ),
            Condition(
                "the model asks whether something has a graph",
                "return",
                "x = x * 2 if x.requires_grad else x\n        return",
                "something else without them",
            ),
            Condition(
                "a table is kept from the first call",
                "def evaluate",
                "from functools import lru_cache\n\n@lru_cache\ndef table(): ...\n\ndef evaluate",
                "behaves differently",
            ),
            Condition(
                "the model is compiled",
                "def evaluate",
                "def make():\n    return torch.compile(nn.Linear(4, 4))\n\ndef evaluate",
                "compiled",
            ),
            Condition(
                "autocast keeps weights without gradients",
                "def evaluate",
                "def run(model: Net, loader: torch.utils.data.DataLoader):\n    with torch.autocast('cpu'):\n"
                "        evaluate(model, loader)\n        model(torch.ones(1)).backward()\n\ndef evaluate",
                "autocast",
            ),
            Condition(
                "fused attention chooses by gradients",
                "def evaluate",
                "def attend(x):\n    return nn.functional.scaled_dot_product_attention(x, x, x)\n\ndef evaluate",
                "round differently",
            ),
            Condition(
                "whatever a caller wants is called",
                "DataLoader):\n    model.eval()\n",
                "DataLoader, on_end):\n    model.eval()\n    on_end()\n",
                "is unknown, and may enable",
            ),
            Condition(
                "a list that others have grows",
                "        right +=",
                "        kept = model.kept\n        kept += [out]\n        right +=",
                "adds to its arguments",
            ),
            Condition(
                "the source is compiled by a call",
                "    return right\n",
                "    return right\n\nSCRIPTED = torch.jit.script(evaluate)\n",
                "decorator",
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
                "yields results",
            ),
            Condition("others read a name", "    right = 0", "    global right\n    right = 0", "yields results"),
            Condition(
                "an argument grows",
                "DataLoader):\n    model.eval()\n",
                "DataLoader, kept: list):\n    model.eval()\n    kept += [model(torch.ones(1))]\n",
                "adds to its arguments",
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
                "def evaluate(model: Net",
                "class Forces(nn.Module):\n"
                "    def forward(self, x):\n"
                "        return torch.autograd.grad(x.square().sum(), x)[0]\n\n"
                "def evaluate(model: Forces",
                SILENT,
            ),
            Condition(
                "a helper asks for gradients",
                "def evaluate(",
                "def slope(x):\n    return torch.autograd.grad(x.square().sum(), x)[0]\n\ndef evaluate(",
                "enables gradients itself",
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
            Condition(
                "a star import may bind the name", "import torch\n", "import torch\nfrom texts import *\n", "`import *`"
            ),
            Condition(
                "the source runs elsewhere",
                "import torch\n",
                "import torch\nfrom inspect import getsource\n",
                "outside of its file",
            ),
            Condition("the cache is emptied", "        words", "        re.purge()\n        words", "clears the cache"),
            Condition(
                "the names are listed", "        words", "        print(globals())\n        words", "inspect the names"
            ),
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
