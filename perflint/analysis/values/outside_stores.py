"""What others than its class store in an attribute of an object: `model.device = device`, `block.table = table`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.names.refs import Ref, Scope
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import Kind, Tag
from perflint.finding import Confidence
from perflint.ir.summary import MODULE
from perflint.syntax.bindings import Definition
from perflint.syntax.tree import FUNCTIONS

#: An attribute that more places than these set is one of settings, or of many classes.
_MOST = 4
_OBJECTS = (Tag.INSTANCE, Tag.MODULE, Tag.DATASET, Tag.LOADER)


def stored_from_outside(owner: Ref, name: str, found: Kind | None, inference: Evaluating) -> Iterator[Kind]:
    """The values that other functions store in an attribute of an object of a class: of one that is known to be such,
    and of one of unknown class where the class itself only says which device it is for.
    """
    places = inference.program.whole.writes_to_attribute(name)
    for scope, dotted in places if len(places) <= _MOST else ():
        other = inference.at(scope.path)
        for item in _definitions(scope.function, dotted, other) if other is not None else ():
            assert other is not None
            assert isinstance(item.target, ast.Attribute)
            base = other.eval(item.target.value, None)
            is_one = base.tag in _OBJECTS and owner in other.classes.mro(Ref(owner.kind, base.path, base.qualified))
            if not is_one and (base.known or found is None or found.device is None):
                continue
            held = other.definition_kind(item)
            if is_one or held.device is not None:
                yield held.but(fresh=False).at_most(Confidence.MEDIUM)


def ends_as_tensor(name: str, inference: Evaluating) -> bool:
    """Whether what the program's functions leave in an attribute of some object, of whatever class, is a tensor each
    time: `batch.sizes = []`, which is filled, and at the end `batch.sizes = torch.tensor(batch.sizes)`.
    """
    places = inference.program.whole.writes_to_attribute(name)
    return 0 < len(places) <= _MOST and all(_leaves_tensor(scope, dotted, inference) for scope, dotted in places)


def _leaves_tensor(scope: Scope, dotted: str, inference: Evaluating) -> bool:
    other = inference.at(scope.path)
    stores = _definitions(scope.function, dotted, other) if other is not None else ()
    last = max(stores, key=lambda item: getattr(item.node, "lineno", 0), default=None)
    return other is not None and last is not None and other.definition_kind(last).is_tensor


def _definitions(function: str, dotted: str, other: Evaluating) -> tuple[Definition, ...]:
    node = other.tree.module if function == MODULE else other.classes.function_node(function)
    if not isinstance(node, (*FUNCTIONS, ast.Module)):
        return ()
    return tuple(
        item for item in other.flow.bindings(node).by_key.get(dotted, ()) if isinstance(item.target, ast.Attribute)
    )
