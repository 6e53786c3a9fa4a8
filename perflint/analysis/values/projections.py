"""Linear layers behind values: which layer a value is the product of, seen through views, and how wide that is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.names.refs import CLASS, EXTERNAL_INSTANCE, INSTANCE, Ref, Refs, Scope
from perflint.analysis.program import Program
from perflint.ir.summary import Value
from perflint.torch_model import tensors

_LINEAR = "torch.nn.Linear"
_DEEPEST = 12


class Projection(NamedTuple):
    """A layer as it is written where it is called, that place, and how many numbers it gives for each position."""

    layer: str
    scope: Scope
    width: int


def projection_behind(value: Value, scope: Scope, program: Program) -> Projection | None:
    """The linear layer of known width whose product a value is, on every way that it may be set."""
    found = set(_behind(value, scope, program, _DEEPEST))
    return found.pop() if len(found) == 1 else None


def _behind(value: Value, scope: Scope, program: Program, depth: int) -> Iterator[Projection | None]:
    """The layer on each way, None for a way that leads elsewhere."""
    if depth < 0 or value is None:
        yield None
    elif isinstance(value, str):
        facts = program.function(scope)
        bound = facts.binds.get(value, ()) if value not in facts.unclear and value not in facts.computed else ()
        for item in bound or (None,):
            yield from _behind(item, scope, program, depth - 1)
    elif value[0] == "item":
        yield from _item(value[1], value[2], scope, program, depth - 1)
    elif value[0] == "call":
        yield from _call(value, scope, program, depth - 1)
    else:
        yield None


def _item(whole: Value, index: object, scope: Scope, program: Program, depth: int) -> Iterator[Projection | None]:
    """What stands at a place of a tuple that a module returns; some positions, where a tensor is indexed."""
    if not isinstance(index, int) or not isinstance(whole, tuple) or whole[0] != "call":
        yield from _behind(whole, scope, program, depth)
        return
    for returned, where in _returned(whole[1], scope, program):
        is_tuple = isinstance(returned, tuple) and returned[0] == "seq" and index < len(returned[1])
        yield from _behind(returned[1][index] if is_tuple else None, where, program, depth)


def _call(call: Value, scope: Scope, program: Program, depth: int) -> Iterator[Projection | None]:
    assert isinstance(call, tuple)
    func = call[1]
    base, method = (func[1], func[2]) if isinstance(func, tuple) and func[0] == "attr" else (None, "")
    if isinstance(func, str) and "." in func:
        base, _, method = func.rpartition(".")
    if method in tensors.SAME_NUMBERS_METHODS:
        yield from _behind(base, scope, program, depth)
        return
    refs = program.refs(func, scope)
    if isinstance(func, str) and refs and all(ref.kind == EXTERNAL_INSTANCE and ref.name == _LINEAR for ref in refs):
        width = _width(func, scope, program)
        yield Projection(func, scope, width) if width is not None else None
        return
    returned = list(_returned(func, scope, program))
    if not returned:
        yield None
    for value, where in returned:
        yield from _behind(value, where, program, depth)


def _returned(func: Value, scope: Scope, program: Program) -> Iterator[tuple[Value, Scope]]:
    """What the forward of a module of the project returns."""
    refs = program.refs(func, scope)
    forward = program.resolver.method(refs[0], "forward") if _is_one_instance(refs) else None
    if forward is not None and forward.path:
        where = Scope(forward.path, forward.name)
        yield from ((value, where) for value in program.function(where).returns)


def _is_one_instance(refs: Refs) -> bool:
    return len(refs) == 1 and refs[0].kind == INSTANCE and bool(refs[0].path)


def _width(layer: str, scope: Scope, program: Program) -> int | None:
    """The number of outputs that all makings of a layer are known to have."""
    widths: set[int | None] = set()
    for made, where in _makings(layer, scope, program):
        if not isinstance(made, tuple) or made[0] != "call":
            return None
        positional, named = made[2], dict(made[3])
        value = named.get("out_features", positional[1] if len(positional) > 1 else None)
        for literal in program.literals(value, where) or (None,):
            number = literal[2] if literal is not None else None
            widths.add(number if type(number) is int else None)
    return widths.pop() if len(widths) == 1 else None


def _makings(layer: str, scope: Scope, program: Program) -> Iterator[tuple[Value, Scope]]:
    facts = program.function(scope)
    if layer in facts.binds:
        yield from ((value, scope) for value in facts.binds[layer])
    elif layer.startswith("self.") and facts.in_class:
        holders = program.whole.setters_of(Ref(CLASS, scope.path, facts.in_class), layer.removeprefix("self."))
        for cls, attribute in holders:
            for value, where in program.summaries[cls.path].classes[cls.name].attributes.get(attribute, ()):
                yield value, Scope(cls.path, where)
