"""What of a program that trains counts as used: who constructs it, who exports it, who names it in a text."""

from __future__ import annotations

import ast

from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.ir.survey import survey

TRAIN = """
from torch.utils.data import DataLoader
{imports}

def train(model, data, optimizer):
    loss = {made}
    for x, y in DataLoader(data):
        loss(model(x), y).backward()
        optimizer.step()

if __name__ == "__main__":
    train(None, None, None)
"""


def module(*names: str) -> str:
    return "from torch import nn\n" + "".join(
        f"class {name}(nn.Module):\n    def forward(self, x, y):\n        return (x - y).mean()\n" for name in names
    )


def program(**files: str) -> Program:
    texts = {name.replace("__", "/") + ".py": text for name, text in files.items()}
    texts = {path.replace("/INIT", "/__init__"): text for path, text in texts.items()}
    return Program({path: survey(ast.parse(text), text.split("\n")) for path, text in texts.items()})


def heats(linked: Program, *functions: str) -> list[str]:
    found = []
    for function in functions:
        [scope] = [scope for scope, _ in linked.resolver.nesting.functions if scope.function == function]
        found.append(linked.heat(scope).label)
    return found


def test_an_inner_package_exports_to_its_neighbours_only() -> None:
    linked = program(
        train=TRAIN.format(imports="from seg.losses import Used", made="Used()"),
        seg__INIT="__version__ = '1.0'\n",
        seg__losses__INIT="from .dice import Exported, Listed, Used\n__all__ = ['Exported', 'Listed', 'Used']\n",
        seg__losses__dice="__all__ = ['Listed']\n" + module("Used", "Exported", "Listed"),
    )
    assert heats(linked, "Used.forward", "Exported.forward", "Listed.forward") == ["step", "once", "once"]


def test_what_a_package_brings_in_itself_is_public() -> None:
    linked = program(
        train=TRAIN.format(imports="from zoo.parts import Used", made="Used()"),
        zoo__INIT="from . import parts\n",
        zoo__parts__INIT="from .layers import Used, Offered\n",
        zoo__parts__layers=module("Used", "Offered", "Kept"),
    )
    assert heats(linked, "Offered.forward", "Kept.forward") == ["step", "once"]


RUNNER = """
from mmcv.runner import BaseModule, build_runner
from torch import nn

class Segmentor(BaseModule):
    def forward(self, image):
        return image

    def train_step(self, batch, optimizer):
        return parse(self(**batch))

    def val_step(self, batch):
        return self(**batch)

class Head(BaseModule):
    def forward(self, x):
        return left_over(x)

def parse(losses):
    return losses

def left_over(x):
    return x

def train(config, loaders):
    runner = build_runner(config, default_args={"model": Segmentor()})
    runner.run(loaders, config.workflow)

if __name__ == "__main__":
    train(None, [])
"""


def test_the_runner_of_mmcv_takes_the_steps() -> None:
    linked = program(main=RUNNER)
    hot = heats(linked, "Segmentor.forward", "Segmentor.train_step", "Segmentor.val_step", "parse")
    assert hot == ["step"] * 4
    assert linked.role(Scope("main.py", "Segmentor.val_step"), -1) == "eval"
    assert heats(linked, "Head.forward", "left_over") == ["once", "once"]
