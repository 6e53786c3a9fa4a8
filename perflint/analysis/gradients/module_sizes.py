"""Modules that hold no parameters, or a few: what a graph of them costs, and what a loop over them gains."""

from __future__ import annotations

import ast
from typing import Any

from perflint.analysis.evidence import last_name as last_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.results import may_hold_parameters
from perflint.analysis.names.refs import EXTERNAL_INSTANCE, INSTANCE, Ref, Scope
from perflint.analysis.values.kind import Kind, Tag
from perflint.torch_model import tensors
from perflint.torch_model.names import last

#: Layers of one or two parameters.
_LAYERS = frozenset(f"torch.nn.{name}" for name in "Linear Conv1d Conv2d Conv3d Embedding LayerNorm Bilinear".split())
#: Parameters for which a loop of updates costs as much as one for all.
_FEW = 2
_OF_NUMBERS = frozenset("int float bool len max min round".split())
#: By which a module may hold more than its attributes say.
_ADD_UNSEEN = frozenset("setattr add_module register_module register_parameter".split())
#: Layers whose forward is one operation.
_ONE_OPERATION = frozenset(
    f"torch.nn.{name}" for name in "Linear Embedding Identity Dropout LayerNorm Softmax Sigmoid ReLU GELU Tanh".split()
)
#: Calls of constructors that add no parameters, and names by which they may be added unseen.
_SETTING_UP = frozenset("super __init__ register_buffer".split())
_HIDING = frozenset("setattr add_module register_module register_parameter Parameter UninitializedParameter".split())
_LIBRARIES_OF_NUMBERS = ("math.", "numpy.", "scipy.", "librosa.")


def holds_nothing(forward: ast.Call, ctx: FileFacts) -> bool:
    """Whether what is called is a single layer of torch, or a module that holds nothing: its graph is one node or two,
    and gone with its result.
    """
    refs = ctx.refs(forward.func) if isinstance(forward.func, (ast.Name, ast.Attribute)) else ()
    return bool(refs) and all(ref.name in _ONE_OPERATION if not ref.path else _holds_nothing(ref, ctx) for ref in refs)


def _holds_nothing(ref: Ref, ctx: FileFacts) -> bool:
    """Whether objects of a class of the project hold no parameters, nor modules that do: buffers are no parameters."""
    summary = ctx.program.summaries.get(ref.path)
    facts = summary.classes.get(ref.name) if summary is not None and ref.kind == INSTANCE else None
    if summary is None or facts is None or [last_of(base) for base in facts.bases] != ["Module"]:
        return False
    if "forward" not in facts.methods or ctx.program.whole.has_derived(last(ref.name)):
        return False  # what is derived from it holds more
    own = [summary.functions[f"{ref.name}.{method}"] for method in facts.methods]
    run = {call.func for method in own for call in method.calls if type(call.func) is str}
    for name, values in facts.attributes.items():
        for value, place in values:
            if type(value) is tuple and not _is_no_module(value, Scope(ref.path, place), ctx):
                return False
            if type(value) is str and f"self.{name}" in run:
                return False  # a module that it is given
    made = summary.functions.get(f"{ref.name}.__init__")
    if made is None:
        return True
    scope = Scope(ref.path, made.qualname)
    return not _HIDING & set(made.identifiers.split()) and all(
        last_of(call.func) in _SETTING_UP or _is_no_module(("call", *call[:3]), scope, ctx) for call in made.calls
    )


def _is_no_module(value: tuple[Any, ...], scope: Scope, ctx: FileFacts) -> bool:
    """Whether a value holds no parameters: a constant, a number, a tensor, a layer that has none."""
    if value[0] == "const":
        return True
    refs = ctx.program.refs(value, scope) if value[0] == "call" else ()
    return bool(refs) and all(ref.kind == EXTERNAL_INSTANCE and _is_number_or_layer(ref.name) for ref in refs)


def _is_number_or_layer(name: str) -> bool:
    if name.startswith("torch.nn."):
        return not may_hold_parameters(name)
    if name in ("torch.from_numpy", "torch.as_tensor"):
        return True
    return name in tensors.CONSTRUCTORS | tensors.FUNCTIONS or name.startswith(_LIBRARIES_OF_NUMBERS)


def holds_few(module: Kind, ctx: FileFacts) -> bool:
    """Whether a module is a single layer, or a class of the project with a parameter or two and no layers, as losses
    that learn their centers are.
    """
    if module.qualified in _LAYERS:
        return True
    summary = ctx.program.summaries.get(module.path) if module.tag is Tag.MODULE and module.path else None
    facts = summary.classes.get(module.qualified) if summary is not None else None
    if summary is None or facts is None or [last_of(base) for base in facts.bases] != ["Module"]:
        return False  # what it is derived from holds more
    own = [summary.functions[f"{module.qualified}.{method}"] for method in facts.methods]
    if any(_ADD_UNSEEN & set(method.identifiers.split()) for method in own):
        return False
    run = {call.func for method in own for call in method.calls if isinstance(call.func, str)}
    parameters = 0
    for name, values in facts.attributes.items():
        made = [last_of(value[1]) if isinstance(value, tuple) and value[0] == "call" else "" for value, _ in values]
        if made and set(made) == {"Parameter"}:
            parameters += 1
        elif f"self.{name}" in run or not all(
            call in _OF_NUMBERS if call else _is_plain(value) for call, (value, _) in zip(made, values)
        ):
            return False  # may be a module that it makes or is given
    return 0 < parameters <= _FEW


def _is_plain(value: object) -> bool:
    """Whether a value is written as a name, a literal or arithmetic, which has no notation."""
    return not isinstance(value, tuple) or value[0] in ("const", "seq", "map")
