"""What a mapping gets from others: `losses.update(head_losses)`, as far as that has run before it is looked at."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.kind import Kind, Tag, by_key, join
from perflint.finding import Confidence

_MOST = 8


def with_updates(node: ast.Name, kind: Kind, frame: Frame | None, inference: Evaluating) -> Kind:
    """A mapping with the keys of those that it was updated with. One whose key is looked up has it: nobody asks for
    what may not be there, so that a branch that has not been taken tells nothing.
    """
    if f"{node.id}.update(" not in inference.tree.source.text:
        return kind
    calls = [*_updates(node, inference)]
    if not 0 < len(calls) <= _MOST:
        return kind
    items, held = dict(kind.items), [kind.element] if kind.element is not None else []
    for call in calls:
        given = [(keyword.arg or "", inference.eval(keyword.value, frame)) for keyword in call.keywords]
        for argument in call.args:
            other = inference.eval(argument, frame)
            if other.tag is not Tag.MAPPING:
                continue
            given += [(key, each) for key, each in other.items if isinstance(key, str)]
            held += [other.element] if other.element is not None else []
        for key, each in given:
            before = [items[key]] if key in items else []
            items[key] = join([*before, each]).but(fresh=False).at_most(Confidence.MEDIUM)
            held.append(each)
    return kind.but(element=join(held), items=tuple(sorted(items.items(), key=by_key))) if held else kind


def _updates(node: ast.Name, inference: Evaluating) -> Iterator[ast.Call]:
    """The calls on lines before a use that update what its name is bound to there."""
    for definition in inference.flow.definitions(node):
        for use in inference.flow.uses_of(definition):
            method = inference.tree.parent(use)
            if not isinstance(method, ast.Attribute) or method.attr != "update" or use.lineno >= node.lineno:
                continue
            call = inference.tree.parent(method)
            if isinstance(call, ast.Call) and call.func is method and all(item.arg for item in call.keywords):
                yield call
