"""What a class's methods put into a list or a container of modules that it holds: `self.layers.append(Block(...))`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeAlias

from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import Kind, Tag, join
from perflint.analysis.values.placing import held_by_module
from perflint.finding import Confidence
from perflint.syntax.bindings import key_of
from perflint.syntax.tree import FunctionNode
from perflint.syntax.walk import outline_below, walk
from perflint.torch_model import modules

#: How many statements that fill one list are looked at.
_MOST_APPENDS = 4
#: Methods that put one item in, with its place among the arguments.
_PUTTING = {"append": 0, "insert": 1, "add_module": 1, "register_module": 1}


#: By what they are put into, the items that a method puts somewhere, and whether each is several in a container.
Put: TypeAlias = "dict[str, list[tuple[ast.expr, bool]]]"


def with_appended(
    kind: Kind, name: str, methods: Sequence[tuple[FunctionNode, str]], inference: Evaluating, known: dict[int, Put]
) -> Kind:
    """The kind of the attribute `name`, an empty container, with what `methods` (and their texts) put into it. `known`
    has what methods of the file put where, by their ids.
    """
    if kind.tag is Tag.MODULE and kind.qualified not in (*modules.CONTAINER_MODULES, "torch.nn.Sequential"):
        return kind
    added: list[tuple[ast.expr, bool]] = []
    for method, text in methods:
        if f".{name}" in text:
            put = known.get(id(method))
            if put is None:
                calls = any(word in text for word in (*_PUTTING, "extend"))
                put = known[id(method)] = _put(walk(method) if calls else outline_below(method, {}))
            added += put.get(f"{method.args.args[0].arg}.{name}", ())
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


def _put(parts: Sequence[ast.AST]) -> Put:
    """What is put somewhere by what stands in a method; by its statements alone, where it calls nothing that does."""
    found: Put = {}
    for part in parts:
        kind = part.__class__
        if kind is ast.Call and isinstance(func := part.func, ast.Attribute):  # type: ignore[attr-defined]
            place = 0 if func.attr == "extend" else _PUTTING.get(func.attr)
            args = part.args  # type: ignore[attr-defined]
            if place is not None and len(args) > place:
                _note(found, func.value, args[place], is_several=func.attr == "extend")
        elif kind is ast.AugAssign and isinstance(part.op, ast.Add):  # type: ignore[attr-defined]
            _note(found, part.target, part.value, is_several=True)  # type: ignore[attr-defined]
        elif kind is ast.Assign:
            for target in part.targets:  # type: ignore[attr-defined]
                if isinstance(target, ast.Subscript):
                    _note(found, target.value, part.value, is_several=False)  # type: ignore[attr-defined]
    return found


def _note(found: Put, held: ast.expr, item: ast.expr, *, is_several: bool) -> None:
    key = key_of(held)
    if key:
        found.setdefault(key, []).append((item, is_several))
