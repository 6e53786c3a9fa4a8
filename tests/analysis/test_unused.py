"""What of a program that trains counts as used: who constructs it, who exports it, who names it in a text."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

import pytest

from perflint.analysis.call_graph.unused import Unused
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


def program(*, configured: frozenset[str] = frozenset({"readme"}), **files: str) -> Program:
    texts = {name.replace("__", "/") + ".py": text for name, text in files.items()}
    texts = {path.replace("/INIT", "/__init__"): text for path, text in texts.items()}
    summaries = {path: survey(ast.parse(text), text.split("\n")) for path, text in texts.items()}
    return Program(summaries, configured=lambda: configured)


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


FITTING = """
class Model:
    def fit(self, loader, optimizer):
        for batch in loader:
            self.forward(batch).backward()
            optimizer.step()

    def forward(self, x):
        return x

"""


@pytest.mark.parametrize(("told", "heat"), [("classifiers=['Topic :: Scientific/Engineering']", "step"), ("", "once")])
def test_what_trains_by_itself_is_there_for_users_where_an_inner_package_is_published(told: str, heat: str) -> None:
    linked = program(
        setup=f"from setuptools import find_packages, setup\nsetup(name='seg', packages=find_packages(), {told})\n",
        train=TRAIN.format(imports="from seg.losses import Used", made="Used()"),
        seg__INIT="name = 'seg'\n",
        seg__losses__INIT="from .dice import Exported, Model, Used\n",
        seg__losses__dice=FITTING + module("Used", "Exported", "Kept"),
    )
    assert heats(linked, "Model.forward", "Exported.forward", "Kept.forward") == [heat, "once", "once"]


@pytest.mark.parametrize(
    ("configured", "heat"),
    [({"readme"}, "once"), ({"readme", "@package:"}, "step"), ({"readme", "@package:tools"}, "once"), (set(), "step")],
)
def test_what_a_package_brings_in_itself_is_public_where_others_can_install_it(configured: set[str], heat: str) -> None:
    linked = program(
        configured=frozenset(configured),
        train=TRAIN.format(imports="from zoo.parts import Used", made="Used()"),
        zoo__INIT="from . import parts\n",
        zoo__parts__INIT="from .layers import Used, Offered\n",
        zoo__parts__layers=module("Used", "Offered", "Kept"),
    )
    assert heats(linked, "Offered.forward", "Kept.forward") == [heat, "once"]


@pytest.mark.parametrize(("setup", "heat"), [("zoo__ops__setup", "once"), ("setup", "step")])
def test_what_builds_an_extension_installs_nothing_of_what_lies_around_it(setup: str, heat: str) -> None:
    files: dict[str, Any] = {setup: "from setuptools import setup\nsetup(name='ops')\n"}
    linked = program(
        train=TRAIN.format(imports="from zoo.layers import Used", made="Used()"),
        zoo__INIT="from .layers import Used, Offered\n",
        zoo__layers=module("Used", "Offered", "Kept"),
        **files,
    )
    assert heats(linked, "Offered.forward", "Kept.forward") == [heat, "once"]


SPEECH = """
import pytorch_lightning as pl
from torch import nn

class Net(pl.LightningModule):
    def training_step(self, batch, index):
        return self.decode(batch)

    def decode(self, x):
        return x

    def search_in_beams(self):
        self.decode = Beams()

    def configure_optimizers(self):
        return make(self)

class Beams(nn.Module):
    def forward(self, x):
        return x

def make(net):
    return net

def train():
    net = Net()MORE
    pl.Trainer().fit(net)

if __name__ == "__main__":
    train()
"""


@pytest.mark.parametrize(("more", "heat"), [("", "once"), ("\n    net.search_in_beams()", "step")])
def test_a_framework_calls_the_methods_of_its_own_and_no_others(more: str, heat: str) -> None:
    linked = program(train=SPEECH.replace("MORE", more))
    assert heats(linked, "Beams.forward", "Net.training_step") == [heat, "step"]


BY_NAME = """
import importlib
import os
import sys
from torch.utils.data import DataLoader

sys.path.append(os.path.join(os.path.dirname(__file__), "nets"))

def train(name, data, optimizer):
    model = importlib.import_module(name).get_model()
    for x in DataLoader(data):
        model(x, x).backward()
        optimizer.step()

if __name__ == "__main__":
    train("points", None, None)
"""


def test_what_is_imported_by_a_computed_name_lies_in_a_folder_that_is_on_the_path() -> None:
    linked = program(
        train=BY_NAME, nets__points=module("get_model", "Points"), log__run__points=module("Kept", "get_model")
    )
    found = {
        scope.path: linked.heat(scope).label
        for scope, _ in linked.resolver.nesting.functions
        if scope.function == "get_model.forward"
    }
    assert found == {"nets/points.py": "step", "log/run/points.py": "once"}


def test_what_a_file_does_where_it_is_run_itself_is_not_done_by_those_who_import_it() -> None:
    tried = "\nif __name__ == '__main__':\n    print(Kept()(1, 2))\n"
    linked = program(
        train=TRAIN.format(imports="from parts import Used", made="Used()"), parts=module("Used", "Kept") + tried
    )
    assert heats(linked, "Used.forward", "Kept.forward") == ["step", "once"]


@pytest.mark.parametrize(("called", "heat"), [("main", "once"), ("parts.main", "step")])
def test_a_function_of_its_own_is_not_that_of_another_file_by_the_same_name(called: str, heat: str) -> None:
    tried = "\ndef main():\n    print(Kept()(1, 2))\n\nif __name__ == '__main__':\n    main()\n"
    text = TRAIN.format(imports="import parts\ndef main():\n    train(1, 2, 3)\n", made="parts.Used()")
    linked = program(
        train=text.replace("train(None, None, None)", f"main()\n    {called}()"), parts=module("Used", "Kept") + tried
    )
    assert heats(linked, "Used.forward", "Kept.forward") == ["step", heat]


@pytest.mark.parametrize(
    ("asked", "heat"), [("show(vars(options).items())", "once"), ("vars(parts)[options.name]()", "step")]
)
def test_asking_for_all_attributes_finds_those_of_what_is_asked(asked: str, heat: str) -> None:
    text = TRAIN.format(imports="import parts", made="parts.Used()").replace(
        "loss = ", f"options = data; {asked}; loss = "
    )
    linked = program(train=text, parts=module("Used", "Kept"))
    assert heats(linked, "Used.forward", "Kept.forward") == ["step", heat]


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


LOOKED_UP = """
import argparse
import nets
from torch.utils.data import DataLoader

def train(name, data, optimizer):
    model = getattr(nets, name)()
    for x, y in DataLoader(data):
        model(x, y).backward()
        optimizer.step()

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--net", default="Small")
    train(parser.parse_args().net, None, None)
"""


@pytest.mark.parametrize(
    "look_up",
    [
        "getattr(nets, name)()",
        "nets.__getattribute__(getattr(nets, name).__name__)",
        "getattr(nets, f'{name}')()",
    ],
)
def test_a_text_opens_what_it_names_of_the_module_that_it_is_looked_up_in(look_up: str) -> None:
    linked = program(main=LOOKED_UP.replace("getattr(nets, name)()", look_up), nets=module("Small", "Large"))
    assert heats(linked, "Small.forward", "Large.forward") == ["step", "once"]


def test_configurations_of_the_tree_name_what_is_used() -> None:
    files = {"main": LOOKED_UP, "nets": module("Small", "Large", "Huge")}
    linked = program(configured=frozenset({"nets.Large", "model"}), **files)
    assert heats(linked, "Large.forward", "Huge.forward") == ["step", "once"]


def test_what_is_listed_is_all_open() -> None:
    listing = LOOKED_UP.replace("nets, name", "nets, sorted(name for name in nets.__dict__)[0]")
    linked = program(main=listing, nets=module("Small", "Large"))
    assert heats(linked, "Large.forward") == ["step"]


def test_the_attributes_of_an_object_are_no_look_up_of_classes() -> None:
    text = TRAIN.format(imports="from losses import Used", made="Used()")
    kept = "class Kept:\n    def state(self):\n        return dict(self.__dict__), vars(self)\n"
    linked = program(
        train=text.replace("loss = ", "Kept().state()\n    loss = ") + kept, losses=module("Used", "Other")
    )
    assert heats(linked, "Other.forward") == ["once"]


REGISTRY = """
from mmcv.utils import Registry
LOSSES = Registry("losses")
"""


def test_a_registry_that_is_built_by_configuration_makes_what_is_named() -> None:
    registered = module("Dice", "Focal").replace("class ", "@LOSSES.register_module()\nclass ")
    linked = program(
        train=TRAIN.format(imports="import losses\nfrom registry import LOSSES", made="LOSSES.build(cfg)"),
        registry=REGISTRY,
        losses="from registry import LOSSES\n" + registered,
        config="model = dict(loss=dict(type='Dice'))\n",
    )
    assert heats(linked, "Dice.forward", "Focal.forward") == ["step", "once"]


DYNAMIC = """
import importlib
import sys
from torch.utils.data import DataLoader

def main(name, data, optimizer):
    module = importlib.import_module({path})
    net = module.build()
    for x, y in DataLoader(data):
        net(x, y).backward()
        optimizer.step()

if __name__ == "__main__":
    main(sys.argv[1], None, None)
"""


@pytest.mark.parametrize(("path", "found"), [("f'zoo.{name}'", "once"), ("'zoo.' + name", "once"), ("name", "step")])
def test_a_module_that_is_imported_by_a_text_is_of_the_package_that_it_begins_with(path: str, found: str) -> None:
    build = "\ndef build():\n    return Net()\n"
    linked = program(
        main=DYNAMIC.format(path=path),
        zoo__INIT="",
        zoo__small=module("Net").replace("Net", "Small") + build.replace("Net", "Small"),
        other__INIT="",
        other__large=module("Net").replace("Net", "Large") + build.replace("Net", "Large"),
    )
    assert heats(linked, "Small.forward", "Large.forward") == ["step", found]


def test_instantiate_makes_what_a_target_names() -> None:
    linked = program(
        main="import hydra\n" + TRAIN.format(imports="import nets", made="hydra.utils.instantiate(cfg.loss)"),
        nets=module("Small", "Large"),
        configured=frozenset({"_target_:", "nets.Large"}),
    )
    assert heats(linked, "Small.forward", "Large.forward") == ["once", "step"]


REGISTERS = """
import importlib

class Register(dict):
    def register(self, alias):
        def add(made):
            self[alias] = made
            return made
        return add

LOSSES = Register()
TRAINERS = Register()

def import_all(base, names):
    for name in names:
        importlib.import_module(".".join([base, name]))

def get_trainer(kind):
    import_all("kit.trainers", ["plain"])
    return TRAINERS[kind]

def get_loss(kind):
    import_all("kit.losses", ["tokens"])
    return LOSSES[kind]()
"""
TRAINER = """
from torch.utils.data import DataLoader
from kit.libs import TRAINERS

@TRAINERS.register("plain")
class Plain:
    def run(self, model, loss, data, optimizer):
        for x, y in DataLoader(data):
            loss(model(x), y).backward()
            optimizer.step()
"""
LOSS = """
from torch import nn
from kit.libs import LOSSES

@LOSSES.register("tokens")
class Tokens(nn.Module):
    def forward(self, x, y):
        return (x - y).mean()
"""


def test_what_a_module_registers_that_is_imported_by_a_computed_name_trains_for_whoever_asks_for_it() -> None:
    linked = program(
        main="""
from kit.libs import get_loss, get_trainer

def main(options):
    get_trainer(options.trainer)().run(options.model, get_loss(options.loss), options.data, options.optimizer)

if __name__ == "__main__":
    main(read())
""",
        other="""
from torch.utils.data import DataLoader

def train(model, data, optimizer):
    for x, y in DataLoader(data):
        model(x).sum().backward()
        optimizer.step()

if __name__ == "__main__":
    train(None, None, None)
""",
        kit__libs=REGISTERS,
        kit__trainers__plain=TRAINER,
        kit__losses__tokens=LOSS,
    )
    assert heats(linked, "Tokens.forward") == ["step"]


def test_without_a_configuration_in_the_tree_what_a_text_makes_may_be_anything() -> None:
    files = {"main": LOOKED_UP, "nets": module("Small", "Large")}
    assert heats(program(configured=frozenset({"readme"}), **files), "Large.forward") == ["once"]
    assert heats(program(configured=frozenset(), **files), "Large.forward") == ["step"]


def test_what_is_imported_by_computed_names_has_nothing_followed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[tuple[str, str]] = []
    follow = Unused._follow

    def noted(self: Unused, node: tuple[str, str], found: Any) -> None:
        followed.append(node)
        follow(self, node, found)

    monkeypatch.setattr(Unused, "_follow", noted)
    names = [f"Net{number}" for number in range(20)]
    program(
        train=TRAIN.format(imports="import importlib\nfrom nets import find", made="find('Net3')()"),
        nets="import importlib\ndef find(name):\n    return getattr(importlib.import_module(name), name)\n",
        zoo=module(*names),
    )
    # Once from all that is run, and once from what trains.
    assert followed
    assert max(Counter(followed).values()) <= 2


def test_a_program_that_is_run_where_it_stands_says_which_methods_of_others_it_runs() -> None:
    learner = (
        "class Learner:\n    def __init__(self, loader, model, optimizer):\n"
        "        self.loader, self.model, self.optimizer = loader, model, optimizer\n"
        "    def fit(self):\n        self.through()\n"
        "    def find_rate(self):\n        self.rising()\n"
        "    def infer(self, x):\n        return self.model(x)\n"
    )
    for name in ("through", "rising"):
        learner += (
            f"    def {name}(self):\n        for x in self.loader:\n            self.model(x).sum().backward()\n"
            f"            self.optimizer.step()\n            noted_{name}(x)\n"
        )
    learner += "def noted_through(x): ...\ndef noted_rising(x): ...\n"
    linked = program(
        learner=learner,
        train="from learner import Learner\ndef main():\n    Learner(None, None, None).fit()\n\n"
        "if __name__ == '__main__':\n    main()\n",
        look="from learner import Learner\n\nif __name__ == '__main__':\n"
        "    print(Learner(None, None, None).infer(None))\n",
    )
    assert heats(linked, "noted_through", "noted_rising") == ["step", "once"]


TRAINER = """
from torch.utils.data import DataLoader
from .losses import Other

def fit(model, data, optimizer):
    for x, y in DataLoader(data):
        Other()(model(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("folder", "configured", "heat"),
    [
        ("seg", {"readme"}, "once"),
        ("seg", set(), "step"),
        ("seg", {"readme", "@package:"}, "step"),
        ("", {"readme"}, "step"),
    ],
)
def test_what_nothing_imports_of_a_package_is_a_part_that_nobody_took(
    folder: str, configured: set[str], heat: str
) -> None:
    losses = module("Used", "Other")
    inside = {f"{folder}__INIT": "", f"{folder}__engine": TRAINER, f"{folder}__losses": losses}
    loose = {"engine": TRAINER.replace(".losses", "losses"), "losses": losses}
    linked = program(
        configured=frozenset(configured),
        train=TRAIN.format(imports=f"from {f'{folder}.'.lstrip('.')}losses import Used", made="Used()"),
        **(inside if folder else loose),
    )
    assert heats(linked, "Used.forward", "Other.forward") == ["step", heat]


@pytest.mark.parametrize(
    ("importing", "heat"),
    [("import_module('seg.' + name)", "step"), ("util.spec_from_file_location('x', name)", "once")],
)
def test_what_is_imported_by_a_computed_name_is_imported(importing: str, heat: str) -> None:
    finding = f"\n\ndef find(name):\n    return importlib.{importing}\n"
    linked = program(
        train=TRAIN.format(imports="import importlib\nfrom seg.losses import Used", made="find('engine') or Used()")
        + finding,
        seg__INIT="",
        seg__engine=TRAINER,
        seg__losses=module("Used", "Other"),
    )
    assert heats(linked, "Other.forward") == [heat]


@pytest.mark.parametrize(
    ("finding", "heat"),
    [
        ("def find(run_path):\n    return getattr(run_path, 'Other')", "once"),
        ("from runpy import run_path\ndef find(name):\n    return getattr(run_path(name), 'Other')", "step"),
        ("def find(rows):\n    names = rows.items()\n    return names, locals()", "once"),
        ("def find(rows):\n    names = rows.items()\n    return names, globals()", "step"),
    ],
)
def test_a_variable_by_the_name_of_what_imports_or_lists_does_neither(finding: str, heat: str) -> None:
    linked = program(
        train=TRAIN.format(imports="from losses import Used\nfrom others import *", made="find(data) or Used()")
        + f"\n{finding}\n",
        losses=module("Used"),
        others=module("Other") + "def fit(loader, optimizer):\n    loss = Other()\n    for x in loader:\n"
        "        loss(x, x).backward()\n        optimizer.step()\n",
    )
    assert heats(linked, "Used.forward", "Other.forward") == ["step", heat]


def test_what_is_imported_by_its_name_is_not_that_of_another_file_which_is_called_as_its_own() -> None:
    loop = "def fit(loader, loss, optimizer):\n    for x in loader:\n        loss(x).backward()\n        "
    linked = program(
        train=TRAIN.format(imports="from losses import Used\nfrom near.steps import fit, steps", made="Used() or steps")
        + "    fit(data, loss, optimizer)\n",
        losses=module("Used"),
        near__INIT="",
        near__steps=f"steps = 1\n{loop}optimizer.step()\n",
        far__INIT="",
        far__steps=f"{loop.replace('loss(x)', 'lost(loss(x))')}optimizer.step()\n\ndef lost(x):\n    return x\n",
    )
    assert heats(linked, "lost") == ["once"]


def test_a_hub_file_of_a_project_that_was_taken_over_runs_nothing() -> None:
    hub = "from torch.utils.data import DataLoader\nfrom {0}parts import Hub\n"
    hub += "def hub(data):\n    for x in DataLoader(data):\n        Hub()(x, x).backward()\n"
    linked = program(
        train=TRAIN.format(imports="from vendor.parts import Used", made="Used()"),
        vendor__INIT="",
        vendor__parts=module("Used", "Hub"),
        vendor__hubconf=hub.format("vendor."),
    )
    assert heats(linked, "Used.forward", "Hub.forward") == ["step", "once"]
    linked = program(
        train=TRAIN.format(imports="from parts import Used", made="Used()"),
        parts=module("Used", "Hub"),
        hubconf=hub.format(""),
    )
    assert heats(linked, "Used.forward", "Hub.forward") == ["step", "step"]
