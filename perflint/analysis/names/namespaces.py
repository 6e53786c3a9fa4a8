"""What a namespace of a library holds under a name that it was made with: `nets = Munch(encoder=Encoder())`."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.names.refs import EXTERNAL_INSTANCE, Refs
from perflint.ir.summary import Summary, Value
from perflint.torch_model import structures
from perflint.torch_model.names import canonical

#: What holds its keyword arguments, by the names that it is called by.
_HOLDING = structures.HOLDING_BY_NAME | {"builtins.dict", "collections.OrderedDict"}
_PACKAGES = frozenset(name.partition(".")[0] for name in structures.HOLDING_BY_NAME)
_SHORT = frozenset(name.rpartition(".")[2] for name in structures.HOLDING_BY_NAME)


def names_in(summary: Summary) -> Iterator[str]:
    """The names under which a file puts something into a namespace by making it."""
    if any(target.partition(".")[0] in _PACKAGES for target in summary.imports.values()):
        for facts in summary.functions.values():
            for call in facts.calls:
                if len(call.keywords) and type(call.func) is str and call.func.rpartition(".")[2] in _SHORT:
                    yield from (name for name, _ in call.keywords if name)


def named(dotted: str, call: Value, index: object) -> Iterator[Value]:
    """What calling a library's class hands it by name, where that is what it holds from then on."""
    if canonical(dotted) in _HOLDING:
        for name, value in call[3]:
            if name and (index is None or name == index):
                yield value


def is_namespace(refs: Refs) -> bool:
    """Whether these are an object whose attributes are what it was made with."""
    made = [ref for ref in refs if ref.kind == EXTERNAL_INSTANCE]
    return bool(made) and any(canonical(ref.name) in structures.HOLDING_BY_NAME for ref in made)
