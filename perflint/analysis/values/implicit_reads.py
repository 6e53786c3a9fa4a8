"""Which parts of an expression become numbers of the host, though nothing in the text reads one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.torch_model import counts
from perflint.torch_model.names import last

_MODULES = ("torch.nn.functional.", "torch.")


def numbers_in(call: ast.Call, dotted: str) -> Iterator[ast.expr]:
    """The arguments that a call turns into Python numbers, those in tuples and lists one by one. `dotted` is the name
    of the library function that is called; empty for a method.
    """
    name = last(dotted) if dotted else call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if dotted and not dotted.startswith(_MODULES):
        return
    taken = counts.CONSTRUCTORS.get(name) if dotted.startswith("torch.") else None
    tensor_first = bool(dotted) and taken is None
    taken = taken or counts.OPERATIONS.get(name)
    if taken is not None:
        yield from _given(call, taken, after=1 if tensor_first else 0)
    elif dotted and name in counts.OF_LISTS and call.args:
        # A number alone is copied on the device; of a list each is read.
        if isinstance(call.args[0], (ast.List, ast.Tuple)):
            yield from _flat(call.args[0])
        elif isinstance(call.args[0], ast.ListComp):
            yield from _flat(call.args[0].elt)


def _given(call: ast.Call, taken: counts.Counts, *, after: int) -> Iterator[ast.expr]:
    for item in call.args[taken.first + after : taken.last + after]:
        yield from _flat(item)
    for keyword in call.keywords:
        if keyword.arg in taken.keywords:
            yield from _flat(keyword.value)


def _flat(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, (ast.Tuple, ast.List)):
        for item in node.elts:
            yield from _flat(item)
    elif not isinstance(node, (ast.Constant, ast.Starred)):
        yield node
