"""What a class's methods append to a list or a container of modules that it holds: `self.layers.append(Block(...))`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import Kind, Place, Tag, join
from perflint.finding import Confidence
from perflint.syntax.bindings import key_of
from perflint.syntax.tree import FunctionNode
from perflint.torch_model import modules

#: How many calls that append to one list are looked at.
_MOST_APPENDS = 4


def with_appended(kind: Kind, name: str, methods: Sequence[tuple[FunctionNode, str]], inference: Evaluating) -> Kind:
    """The kind of the attribute `name`, an empty container, with what `methods` (and their texts) append to it."""
    if kind.tag is Tag.MODULE and kind.qualified not in modules.CONTAINER_MODULES:
        return kind
    added = [item for method, text in methods for item in _appended(name, method, text, inference)]
    if not added or len(added) > _MOST_APPENDS:
        return kind
    made = join(inference.eval(item, None) for item in added)
    if not made.known:
        return kind
    made = made.but(fresh=False).at_most(Confidence.MEDIUM)
    if kind.tag is Tag.MODULE:
        inside = made.tag is Tag.MODULE and made.place is Place.UNKNOWN
        return kind.but(element=made.but(place=Place.MODULE) if inside else made)
    return kind.but(element=made, qualified="")


def _appended(name: str, method: FunctionNode, text: str, inference: Evaluating) -> Iterator[ast.expr]:
    if f".{name}.append(" not in text:
        return
    written = f"{method.args.args[0].arg}.{name}.append"
    for part in inference.tree.walk(method):
        if isinstance(part, ast.Call) and part.args and key_of(part.func) == written:
            yield part.args[0]
