"""Which host data an expression copies to the device, though nothing in the text moves a tensor."""

from __future__ import annotations

import ast

from perflint.analysis.call_graph.process_defaults import BY_TYPE
from perflint.ir.notation import is_text
from perflint.torch_model import tensors
from perflint.torch_model.names import last

#: Methods of a tensor that copy what they are given to where it is.
_LIKE_RECEIVER = frozenset({"new_tensor"})
#: Of one number these queue a kernel that fills.
_FILLED = frozenset({"torch.scalar_tensor"})
#: The method that writes a tensor over another one, wherever each is.
OVERWRITING = "copy_"
COPYING_NAMES = frozenset(name.rpartition(".")[2] for name in tensors.COPYING_CONSTRUCTORS - _FILLED) | {
    *_LIKE_RECEIVER,
    OVERWRITING,
    last(tensors.DEFAULT_TYPE),
}


def copied_data(call: ast.Call, dotted: str, default: str = "") -> ast.expr | None:
    """The data that a constructor copies to a device: `[w, h]` of `torch.tensor([w, h], device=d)`. `dotted` is the
    name of the library function that is called; empty for a method. `default` is the function by which the program
    has tensors made on a device where none is given.
    """
    given = {item.arg: item.value for item in call.keywords}
    if None in given or len(call.args) > 1 or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    if dotted in tensors.COPYING_CONSTRUCTORS - _FILLED:
        if "device" not in given and not default:
            return None
    elif dotted == tensors.DEFAULT_TYPE:
        if default != BY_TYPE:
            return None
    elif not isinstance(call.func, ast.Attribute) or call.func.attr not in _LIKE_RECEIVER:
        return None
    elif dotted and not dotted.startswith("torch."):  # of a tensor that is known by what made it
        return None
    return call.args[0] if call.args else given.get("data") or given.get("obj")


def written_element(statement: ast.Assign) -> ast.Subscript | None:
    """The place that `x[i, j] = value` writes, where every index is a single one by how it is written. If that takes
    all dimensions, the slot has none, and PyTorch copies a number there; a larger slot is filled by a kernel
    (`copy_to` in aten/src/ATen/TensorIndexing.h).
    """
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Subscript):
        return None
    several = (ast.Slice, ast.Starred, ast.List, ast.Tuple, ast.ListComp, ast.Compare)
    # A text is a key of something else than a tensor.
    if any(isinstance(item, several) or _adds_or_takes_all(item) or is_text(item) for item in indices_of(target)):
        return None
    return target


def indices_of(node: ast.Subscript) -> list[ast.expr]:
    """`i` and `j` of `x[i, j]`."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _adds_or_takes_all(index: ast.expr) -> bool:
    """`None` adds a dimension, `...` takes all that are left."""
    return isinstance(index, ast.Constant) and (index.value is Ellipsis or index.value is None)
