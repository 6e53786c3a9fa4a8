"""Loops that walk back to what a function is given, and not to weights: they refine a box, or spoil an image."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.ir.callees import last_name
from perflint.ir.summary import FunctionFacts, Value
from perflint.torch_model.tensors import FOLDABLE_CONSTRUCTORS, LIKE_CONSTRUCTORS, RANDOM_CONSTRUCTORS

#: What asks for the gradients of a tensor, as a method and as an attribute or keyword.
_ASKING = "requires_grad_"
_ASKED = "requires_grad"
_TRUE: Value = ("const", "bool", True)
#: What makes a leaf of its first argument.
_MAKING_LEAVES = frozenset({"Variable", "Parameter", "tensor", "as_tensor"})
_MAKING_LEAVES |= frozenset(name.rpartition(".")[2] for name in LIKE_CONSTRUCTORS)
#: What takes nothing but sizes and numbers.
_FROM_SIZES = frozenset(name.rpartition(".")[2] for name in FOLDABLE_CONSTRUCTORS | RANDOM_CONSTRUCTORS)
_FROM_SIZES -= _MAKING_LEAVES


def refines_input(facts: FunctionFacts, backward: set[int]) -> bool:
    """Whether a function that runs a backward pass in some loops, and takes no step, asks for the gradient of what it
    is given, or of what it makes of that: `box.requires_grad = True; score(box).backward(); box = box + rate *
    box.grad`. So it is where each turn makes anew what it asks the gradient of: weights outlast a turn.
    """
    if facts.identifiers and "grad" not in facts.identifiers.split():
        return False
    if _makes_anew(facts, backward):
        return True
    # What is called, or lists its parameters, is a network.
    networks = {str(call.func).removesuffix(".parameters") for call in facts.calls}
    given = {param.name.lstrip("=") for param in facts.params} - {"self"} - networks
    return bool(given) and any(_is_made_of(value, facts, given) for value in _asked(facts))


def _makes_anew(facts: FunctionFacts, backward: set[int]) -> bool:
    """Whether a turn that runs backward makes, by whatever function, a tensor that is to have a gradient:
    `changes = [leaf(item, requires_grad=True) for item in changes]`. Where it asks for gradients by `autograd.grad`,
    they are a part of a loss, as a penalty is.
    """
    if any(last_name(call.func) == "grad" for call in facts.calls):
        return False
    return any(
        (_ASKED, _TRUE) in call.keywords and not backward.isdisjoint(facts.loops_around(call.context))
        for call in facts.calls
    )


def _asked(facts: FunctionFacts) -> Iterator[Value]:
    """What a function asks for the gradients of."""
    for name, values in facts.binds.items():
        if name.endswith(f".{_ASKED}") and _TRUE in values:
            yield name.removesuffix(f".{_ASKED}")
    for call in facts.calls:
        if last_name(call.func) == _ASKING and (not call.args or call.args[0] == _TRUE):
            yield call.func.rpartition(".")[0] if isinstance(call.func, str) else call.func[1]
        elif (_ASKED, _TRUE) in call.keywords and call.args and last_name(call.func) in _MAKING_LEAVES:
            yield call.args[0]


def _is_made_of(value: Value, facts: FunctionFacts, given: set[str]) -> bool:
    """Whether a value is one of those given, or what is made of one: `boxes.clone().detach()`."""
    seen: set[str] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            name = value.partition(".")[0]
            if name in given:
                return True
            if name not in seen:
                seen.add(name)
                waiting += facts.binds.get(name, ())
        elif isinstance(value, tuple) and value[0] == "call":
            if last_name(value[1]) not in _FROM_SIZES:
                waiting += [value[1], *value[2][:1]]
        elif isinstance(value, tuple) and value[0] in ("attr", "item"):
            waiting.append(value[1])
        elif isinstance(value, tuple) and value[0] == "either":
            waiting += value[1]
    return False
