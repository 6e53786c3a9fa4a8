"""What a class's methods put into a list or a container of modules that it holds: `self.layers.append(Block(...))`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import Kind, Tag, join
from perflint.analysis.values.library import held_by_module
from perflint.finding import Confidence
from perflint.syntax.bindings import key_of
from perflint.syntax.tree import FunctionNode
from perflint.torch_model import modules

#: How many statements that fill one list are looked at.
_MOST_APPENDS = 4
#: Methods that put one item in, with its place among the arguments.
_PUTTING = {"append": 0, "insert": 1, "add_module": 1, "register_module": 1}


def with_appended(kind: Kind, name: str, methods: Sequence[tuple[FunctionNode, str]], inference: Evaluating) -> Kind:
    """The kind of the attribute `name`, an empty container, with what `methods` (and their texts) put into it."""
    if kind.tag is Tag.MODULE and kind.qualified not in (*modules.CONTAINER_MODULES, "torch.nn.Sequential"):
        return kind
    added = [item for method, text in methods for item in _put(name, method, text, inference)]
    if not added or len(added) > _MOST_APPENDS:
        return kind
    made = join(
        inference.iterate(inference.eval(item, None)) if is_several else inference.eval(item, None)
        for item, is_several in added
    )
    if not made.known:
        return kind
    made = made.but(fresh=False).at_most(Confidence.MEDIUM)
    if kind.tag is Tag.MODULE:
        return kind.but(element=held_by_module(made))
    return kind.but(element=made, qualified="")


def _put(name: str, method: FunctionNode, text: str, inference: Evaluating) -> Iterator[tuple[ast.expr, bool]]:
    """What a method puts into `self.name`, and whether that is several items in a container."""
    if f".{name}" not in text:
        return
    held = f"{method.args.args[0].arg}.{name}"
    for part in inference.tree.walk(method):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            place = 0 if part.func.attr == "extend" else _PUTTING.get(part.func.attr)
            if place is not None and len(part.args) > place and key_of(part.func.value) == held:
                yield part.args[place], part.func.attr == "extend"
        elif isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Add) and key_of(part.target) == held:
            yield part.value, True
        elif isinstance(part, ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Subscript) and key_of(target.value) == held:
                    yield part.value, False
