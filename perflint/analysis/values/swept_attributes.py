"""Attributes that a method of an object goes through all of, to move them:
`for name, value in self.__dict__.items(): setattr(self, name, torch.tensor(value).to(device))`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import Kind, Tag, tensor
from perflint.finding import Confidence
from perflint.syntax.bindings import key_of
from perflint.syntax.tree import FunctionNode
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

#: Of these the constructors of tensors make one: `torch.tensor(array)`.
_MAKERS = tensors.CONSTRUCTORS | tensors.HOST_CONSTRUCTORS


def swept(found: Kind, methods: Iterable[tuple[FunctionNode, str]], inference: Evaluating) -> Kind:
    """An array or a tensor that an object keeps, where its class moves all that are such."""
    if found.tag not in (Tag.ARRAY, Tag.TENSOR):
        return found
    for method, text in methods:
        if "setattr" not in text or not ("__dict__" in text or "vars(" in text):
            continue
        for value in _values(method):
            is_made = any(_makes(part, inference) for part in walk(value))
            made = inference.eval(value, None) if is_made is (found.tag is Tag.ARRAY) else None
            if made is not None and made.place.is_accelerator:
                return tensor(
                    made.place, device=made.device, rank=found.rank, certainty=Confidence.MEDIUM, origin=made.origin
                )
    return found


def _values(method: FunctionNode) -> Iterator[ast.expr]:
    """What a method puts back under each name of the object's own."""
    own = method.args.args[0].arg if method.args.args else ""
    for loop in walk(method):
        if not (isinstance(loop, ast.For) and _is_over_attributes(loop.iter, own)):
            continue
        for part in walk(loop):
            if isinstance(part, ast.Call) and key_of(part.func) == "setattr" and len(part.args) == 3:
                if key_of(part.args[0]) == own and not isinstance(part.args[1], ast.Constant):
                    yield part.args[2]


def _is_over_attributes(node: ast.expr, own: str) -> bool:
    """`self.__dict__.items()`, `list(vars(self).items())`"""
    return any(
        key_of(part) == f"{own}.__dict__" or (isinstance(part, ast.Call) and _are_vars(part, own))
        for part in walk(node)
        if isinstance(part, ast.expr)
    )


def _are_vars(call: ast.Call, own: str) -> bool:
    return key_of(call.func) == "vars" and [key_of(item) for item in call.args] == [own]


def _makes(node: ast.AST, inference: Evaluating) -> bool:
    return isinstance(node, ast.Call) and inference.eval(node.func, None).qualified in _MAKERS
