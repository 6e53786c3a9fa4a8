"""What is not worth writing down: calls and reads that lead to nothing of the program's own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from perflint.ir.summary import Value

#: Calls that resolve to nothing a program defines and that carry nothing into it.
DULL_CALLS = frozenset(
    "len isinstance print range str int float bool abs type id repr hasattr format ord chr round hash divmod pow "
    "vars dir locals globals ValueError TypeError RuntimeError KeyError NotImplementedError AssertionError "
    "AttributeError ImportError IndexError dict list tuple set frozenset enumerate zip super getattr setattr slice "
    "bytes partial staticmethod classmethod property reversed callable".split()
)
DULL_METHODS = frozenset(
    "append extend insert join split strip lstrip rstrip startswith endswith lower upper replace format encode decode "
    "view reshape permute transpose contiguous unsqueeze squeeze flatten expand size dim numel sum mean max min float "
    "long half bool int item tolist detach clone fill_ zero_ mul_ add_ sub_ div_ copy_ masked_fill chunk keys values "
    "items get pop update setdefault add discard sort reverse index count type to cpu numpy warn warning "
    "info debug error exists repeat softmax sigmoid argmax argmin pow sqrt exp log abs cumsum gather scatter_ any "
    "all".split()
)
#: How many positional arguments the methods of lists, sets and dicts take that fill them, at least and at most.
TAKEN = {"append": (1, 1), "extend": (1, 1), "insert": (2, 2), "add": (1, 2), "update": (1, 1)}
#: Of these, the ones that only tensors, strings and lists have.
PLAIN_METHODS = frozenset(
    "append extend strip lstrip rstrip startswith endswith lower upper view reshape permute transpose contiguous "
    "unsqueeze squeeze flatten expand float long half tolist detach fill_ zero_ mul_ add_ sub_ div_ copy_ masked_fill "
    "chunk setdefault softmax cumsum gather scatter_".split()
)
#: Of these, the ones that classes of the project define as often as those of Python and torch do: what is called with
#: something may be theirs, `self.norm.update(values)`.
OF_CLASSES = frozenset("update add encode decode to log".split())
#: Modules whose plain arithmetic runs nothing of the program's, as written in imports.
DULL_MODULES = frozenset("torch torch.nn torch.nn.functional torch.nn.init numpy math os.path".split())
DULL_FUNCTIONS = frozenset(
    "zeros ones empty full arange linspace tensor zeros_like ones_like empty_like full_like randn rand randint stack "
    "matmul bmm einsum where sum mean sqrt log exp abs clamp maximum minimum sin cos floor ceil meshgrid device "
    "manual_seed array asarray zeros_ ones_ constant_ normal_ uniform_ trunc_normal_ xavier_uniform_ kaiming_normal_ "
    "kaiming_uniform_ xavier_normal_ relu gelu silu softmax log_softmax sigmoid linear dropout interpolate pad "
    "cross_entropy mse_loss join dirname basename Linear Conv2d Conv1d Conv3d BatchNorm2d BatchNorm1d LayerNorm "
    "Dropout ReLU GELU SiLU Identity Parameter Embedding MaxPool2d AvgPool2d AdaptiveAvgPool2d ConvTranspose2d".split()
)
MAYBE_DULL = DULL_METHODS | DULL_FUNCTIONS
#: Classes of libraries that are asked for most, which nothing of a program is told by.
_OF_LIBRARIES = frozenset("Tensor Number Parameter Module Mapping Sequence Iterable Path Dict List Tuple".split())
#: Libraries whose classes have the methods of lists and tensors.
_OF_CONTAINERS = frozenset({"collections", "numpy", "pandas", "queue", "torch"})
#: Attributes of tensors and modules that no property of a project is worth following for.
DULL_READS = frozenset(
    "shape device dtype ndim data grad T weight bias training requires_grad is_cuda __name__ __class__ __dict__ args "
    "in_channels out_channels in_features out_features name config cfg".split()
)


def is_dull(
    func: ast.Attribute, node: ast.Call, imports: Mapping[str, str], binds: Mapping[str, Iterable[Value]]
) -> bool:
    """Whether a call of a method, or of a module's function, is of no use to whoever links calls, by what the names of
    its function are bound to.
    """
    receiver = func.value
    if func.attr in TAKEN and _is_own(node, TAKEN[func.attr]):
        return False  # meters and buffers are told several values, or by their names
    if type(receiver) is ast.Name:
        if func.attr in DULL_FUNCTIONS and imports.get(receiver.id) in DULL_MODULES:
            return True
        if func.attr not in DULL_METHODS or receiver.id in ("self", "super"):
            return False
        return not node.args or (func.attr in PLAIN_METHODS and not is_of_class(binds.get(receiver.id, ()), imports))
    if func.attr in DULL_METHODS:
        return not node.args or func.attr not in OF_CLASSES
    return False


def is_of_class(made: Iterable[Value], imports: Mapping[str, str]) -> bool:
    """Whether what a name is bound to is an instance of some class of the program: `blob = Blob(mode=mode)`."""
    called = [value[1] for value in made if isinstance(value, tuple) and value[0] == "call"]
    return bool(called) and all(
        isinstance(func, str)
        and func.rpartition(".")[2][:1].isupper()
        and imports.get(func.partition(".")[0], "").partition(".")[0] not in _OF_CONTAINERS
        for func in called
    )


def _is_own(node: ast.Call, taken: tuple[int, int]) -> bool:
    """Whether a call gives what no method of a list or a dict takes, which has so many positional arguments."""
    least, most = taken
    if any(type(item) is ast.Starred for item in node.args):
        return False
    return not least <= len(node.args) <= most or bool(node.keywords and not node.args)


def may_tell_class(asked: tuple[Value, ...]) -> bool:
    """Whether `isinstance` asks whether a plain name is of one class that the program may define."""
    if len(asked) != 2 or not (type(asked[0]) is str and type(asked[1]) is str) or "." in asked[0]:
        return False
    name = asked[1].rpartition(".")[2]
    return name[:1].isupper() and name not in _OF_LIBRARIES
