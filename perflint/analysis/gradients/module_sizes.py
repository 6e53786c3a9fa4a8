"""Modules that hold no parameters, or a few: what a graph of them costs, and what a loop over them gains."""

from __future__ import annotations

import ast
from typing import Any

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.sources import parts_of
from perflint.analysis.gradients.parameter_counts import of_layer
from perflint.analysis.gradients.results import may_hold_parameters
from perflint.analysis.names.refs import EXTERNAL_INSTANCE, INSTANCE, Ref, Scope
from perflint.analysis.values.kind import Kind, Tag
from perflint.ir.callees import last_name as last_of
from perflint.ir.summary import Value
from perflint.torch_model import tensors
from perflint.torch_model.names import last

#: Parameters for which a loop of updates costs hardly more than one for all: some ten launches.
_FEW = 8
#: Layers whose forward is one operation.
_ONE_OPERATION = frozenset(
    f"torch.nn.{name}" for name in "Linear Embedding Identity Dropout LayerNorm Softmax Sigmoid ReLU GELU Tanh".split()
)
#: What makes whole networks.
NETWORKS = ("torchvision.models.",)
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


def holds_weights(path: str, name: str, ctx: FileFacts, depth: int = 3) -> bool:
    """Whether a class of the project is seen to make layers that have weights, itself or by other classes."""
    summary = ctx.program.summaries.get(path)
    facts = summary.classes.get(name) if summary is not None else None
    if summary is None or facts is None or depth == 0:
        return False
    for method in facts.methods:
        scope = Scope(path, f"{name}.{method}")
        waiting: list[Value] = [("call", *call[:3]) for call in summary.functions[scope.function].calls]
        while waiting:
            made = waiting.pop()
            if type(made) is not tuple:
                continue
            waiting += parts_of(made)
            for ref in ctx.program.refs(made, scope) if made[0] == "call" and made[1] is not None else ():
                if ref.kind == EXTERNAL_INSTANCE and (of_layer(ref.name, made) or ref.name.startswith(NETWORKS)):
                    return True
                if ref.kind == INSTANCE and ref.path and holds_weights(ref.path, ref.name, ctx, depth - 1):
                    return True
    return False


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
    """Whether a module is a single layer, or a class of the project that makes a handful of parameters."""
    if module.path:
        count = ctx.program.whole.most_parameters(module.path, module.qualified) if module.tag is Tag.MODULE else None
    else:
        count = of_layer(module.qualified) if module.qualified else None
    return count is not None and 0 < count <= _FEW


def holds_few_by_name(owner: ast.expr, ctx: FileFacts) -> bool:
    """Whether all modules hold so few which classes of the project keep under a name: of `parts.decoder.head`, where
    nobody can tell what the parts are, or how the layer of torch was made.
    """
    if not isinstance(owner, ast.Attribute) or ctx.kind(owner).path:
        return False
    count = ctx.program.whole.most_parameters_kept(owner.attr)
    return count is not None and 0 < count <= _FEW
