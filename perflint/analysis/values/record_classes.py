"""Tuples whose places have names, by a class that a call makes: `State = namedtuple("State", ["mean", "std"])`."""

from __future__ import annotations

import ast

from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.kind import UNKNOWN, Kind, Tag, sequence
from perflint.syntax.tree import Tree

#: What the standard library makes them by; others are told by their form.
_MAKERS = frozenset({"collections.namedtuple", "typing.NamedTuple"})
#: Before the names of the fields in the name of such a class.
_RECORD = "record of "


def record_class(node: ast.Call, callee: Kind, tree: Tree) -> Kind | None:
    """The class that a call makes of a name and the names of fields; None for any other call. A library that is not
    known makes one where the text it is given is the name that the result is bound to.
    """
    if len(node.args) < 2 or not (isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)):
        return None
    fields = _fields(node.args[1])
    if not fields or not (callee.qualified in _MAKERS or _is_bound_to(node.args[0].value, node, tree)):
        return None
    return Kind(Tag.CLASS, qualified=_RECORD + " ".join(fields))


def record(callee: Kind, arguments: Arguments) -> Kind | None:
    """What calling such a class gives; None for any other class."""
    if callee.path or callee.tag is not Tag.CLASS or not callee.qualified.startswith(_RECORD):
        return None
    fields = callee.qualified.removeprefix(_RECORD)
    if not arguments.exact:
        return UNKNOWN
    given = (arguments.at(place, name) or UNKNOWN for place, name in enumerate(fields.split()))
    return sequence(items=(kind.but(fresh=False) for kind in given), qualified=fields)


def field(receiver: Kind, name: str) -> Kind | None:
    """What such a tuple holds under a name; None where it has no such field."""
    names = receiver.qualified.split()
    return receiver.item(names.index(name)) if name in names else None


def _fields(node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        names = node.value.replace(",", " ").split()
    else:
        elements = node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
        first = [item.elts[0] if isinstance(item, ast.Tuple) and item.elts else item for item in elements]
        texts = [item.value for item in first if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        names = texts if len(texts) == len(elements) else []
    return tuple(names) if all(name.isidentifier() for name in names) else ()


def _is_bound_to(name: str, node: ast.Call, tree: Tree) -> bool:
    assigned = tree.parent(node)
    targets = assigned.targets if isinstance(assigned, ast.Assign) else []
    return any(isinstance(item, ast.Name) and item.id == name for item in targets)
