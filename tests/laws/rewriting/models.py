"""Other ways to make, to hold and to call models."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Callable

from . import keeps

#: Written bases that make a class a module.
_MODULES = frozenset(
    {"nn.Module", "torch.nn.Module", "Module", "pl.LightningModule", "L.LightningModule", "LightningModule"}
)
_LAYERS = frozenset(
    "Linear Conv1d Conv2d Sequential Embedding LSTM GRU TransformerEncoder CrossEntropyLoss MSELoss".split()
)
_MOVES = frozenset({"to", "cuda", "cpu", "eval", "train", "half", "requires_grad_"})
#: What only looks names up by their text, so that a name cannot be taken away.
_BY_TEXT = frozenset({"getattr", "setattr", "hasattr", "vars", "locals", "globals", "__dict__", "eval", "exec"})


@keeps
def models_of_a_factory(module: ast.Module) -> bool:
    """`make_net(...)`, which gives `Net(...)`."""

    def made(name: str) -> tuple[ast.expr, list[ast.stmt]]:
        factory = f"def made_{name}(*args, **kwargs):\n    return {name}(*args, **kwargs)"
        return ast.Name(f"made_{name}", ast.Load()), ast.parse(factory).body

    return _made_otherwise(module, made)


@keeps
def models_by_a_text(module: ast.Module) -> bool:
    """`eval("Net")(...)`, `globals()["Net"](...)` and `getattr(sys.modules[__name__], "Net")(...)`, in turn."""
    ways = itertools.cycle(("eval('{}')", "globals()['{}']", "getattr(sys.modules[__name__], '{}')"))

    def made(name: str) -> tuple[ast.expr, list[ast.stmt]]:
        return ast.parse(next(ways).format(name), mode="eval").body, ast.parse("import sys").body

    return _made_otherwise(module, made)


@keeps
def methods_in_a_base_between(module: ast.Module) -> bool:
    """`class Net(BaseOfNet)` with all methods but the constructor in `class BaseOfNet(nn.Module)`."""
    changed = False
    for cls in [*_module_classes(module).values()]:
        methods = [each for each in cls.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
        moved = [each for each in methods if each.name != "__init__"]
        is_plain = not cls.decorator_list and not cls.keywords and len(cls.bases) == 1
        if not is_plain or not moved or any(_names_super(each) or _is_private(each) for each in moved):
            continue
        rest = [each for each in cls.body if each not in moved] or [ast.copy_location(ast.Pass(), cls)]
        base = ast.ClassDef(f"BaseOf{cls.name}", cls.bases, [], [*moved], [])
        cls.bases, cls.body = [ast.Name(base.name, ast.Load())], rest
        module.body.insert(module.body.index(cls), ast.copy_location(base, cls))
        changed = True
    return changed


@keeps
def called_by_their_forward(module: ast.Module) -> bool:
    """`model.forward(x)`"""
    made, kept = _made_names(module), _made_attributes(module)
    changed = False
    for call in ast.walk(module):
        if not isinstance(call, ast.Call):
            continue
        func = call.func
        is_made = isinstance(func, ast.Name) and func.id in made
        if is_made or (isinstance(func, ast.Attribute) and ast.unparse(func) in kept):
            call.func = ast.Attribute(func, "forward", ast.Load())
            changed = True
    return changed


@keeps
def attributes_read_by_properties(module: ast.Module) -> bool:
    """`self._x = ...` in the constructor, and a property `x`."""
    if any(_name(node) in _BY_TEXT for node in ast.walk(module)):
        return False
    changed = False
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    stored = Counter(
        node.attr for node in ast.walk(module) if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    )
    for cls in classes:
        init = next((each for each in cls.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
        taken = {_name(each) for each in cls.body}
        if init is None or cls.decorator_list:
            continue
        own = Counter(
            target.attr
            for each in init.body
            if isinstance(each, ast.Assign)
            for target in each.targets
            if isinstance(target, ast.Attribute) and _name(target.value) == "self"
        )
        for name in [name for name, times in own.items() if times == 1 == stored[name] and name not in taken]:
            for target in ast.walk(init):
                if isinstance(target, ast.Attribute) and target.attr == name and isinstance(target.ctx, ast.Store):
                    target.attr = f"_{name}"
            read = ast.parse(f"@property\ndef {name}(self):\n    return self._{name}").body[0]
            cls.body.append(ast.copy_location(read, cls))
            changed = True
    return changed


def _made_otherwise(module: ast.Module, made: Callable[[str], tuple[ast.expr, list[ast.stmt]]]) -> bool:
    """Write what makes modules of the file's own classes anew, with statements that come after each class."""
    changed = False
    for name, cls in _module_classes(module).items():
        calls = [
            node
            for node in ast.walk(module)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        ]
        if not calls:
            continue
        for call in calls:
            call.func, before = made(name)
        at = module.body.index(cls) + 1
        module.body[at:at] = [ast.copy_location(each, cls) for each in before]
        changed = True
    return changed


def _module_classes(module: ast.Module) -> dict[str, ast.ClassDef]:
    """The classes of modules of a file, of names that stand for nothing else."""
    found: dict[str, ast.ClassDef] = {}
    stored = Counter(_name(node) for node in ast.walk(module) if isinstance(getattr(node, "ctx", None), ast.Store))
    for cls in module.body:
        if isinstance(cls, ast.ClassDef) and not stored[cls.name]:
            bases = {ast.unparse(base) for base in cls.bases}
            if bases & _MODULES or bases & found.keys():
                found[cls.name] = cls
    return found


def _makes(value: ast.expr, module: ast.Module) -> bool:
    """Whether a value is a module that is made there, moved or not."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES:
        value = value.func.value
    if not isinstance(value, ast.Call):
        return False
    written = ast.unparse(value.func)
    owner, _, last = written.rpartition(".")
    return written in _module_classes(module) or (owner in ("nn", "torch.nn") and last in _LAYERS)


def _made_names(module: ast.Module) -> set[str]:
    """Names of a file that stand for modules wherever they are bound."""
    stored = Counter(
        node.id if isinstance(node, ast.Name) else node.arg
        for node in ast.walk(module)
        if (isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)) or isinstance(node, ast.arg)
    )
    made = Counter(
        _name(node.targets[0])
        for node in ast.walk(module)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and _makes(node.value, module)
        if isinstance(node.targets[0], ast.Name)
    )
    return {name for name, times in made.items() if times == stored[name]}


def _made_attributes(module: ast.Module) -> set[str]:
    """`self.fc`, where every attribute of that name in the file is a module."""
    stored = Counter(
        node.attr for node in ast.walk(module) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    )
    made = Counter(
        node.targets[0].attr
        for node in ast.walk(module)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and _makes(node.value, module)
        if isinstance(node.targets[0], ast.Attribute) and _name(node.targets[0].value) == "self"
    )
    return {f"self.{name}" for name, times in made.items() if times == stored[name]}


def _name(node: ast.AST) -> str:
    for field in ("id", "attr", "name"):
        found = getattr(node, field, None)
        if isinstance(found, str):
            return found
    return ""


def _names_super(method: ast.AST) -> bool:
    """Whether a method asks for what comes after its own class."""
    return any(_name(node) in ("super", "__class__") for node in ast.walk(method))


def _is_private(method: ast.AST) -> bool:
    """Whether a method has names that are spelt by its class, or sets up the class."""
    names = {_name(node) for node in ast.walk(method)}
    return any(name.startswith("__") and not name.endswith("__") for name in names)
