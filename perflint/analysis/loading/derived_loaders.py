"""Loaders of a class that derives from torch's in the project: which of its options a call gives, by what the class's
own `__init__` hands on.
"""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import CLASS, INSTANCE, Ref, Scope
from perflint.ir.calls import has_unpacking
from perflint.ir.summary import CallFacts, FunctionFacts, Value
from perflint.torch_model.names import canonical

_BASE = "torch.utils.data.DataLoader"
#: The parameters of torch's loader that have a position, after the object itself.
_ORDER = (
    "dataset batch_size shuffle sampler batch_sampler num_workers collate_fn pin_memory drop_last timeout "
    "worker_init_fn"
).split()
#: Those that rules ask about: what sets them otherwise is not told by the call.
_ASKED = frozenset({"num_workers", "pin_memory", "persistent_workers"})
#: What they are where nobody gives them.
_UNSET = (("const", "NoneType", None), ("const", "bool", False), ("const", "int", 0), ("const", "int", 1))


def derived_options(call: ast.Call, ctx: FileFacts) -> dict[str, ast.expr] | None:
    """The options of torch's loader that a call of a derived class gives, by their names there. None for any other
    call, and for a class that goes through its batches in its own way or sets an option itself.
    """
    ref = ctx.project_target(call.func)
    if ref is None or ref.kind != CLASS or has_unpacking(call):
        return None
    resolver, instance = ctx.program.resolver, Ref(INSTANCE, ref.path, ref.name)
    if not any(canonical(base) == _BASE for base in resolver.base_names(ref)):
        return None
    made = resolver.method(instance, "__init__")
    if made is None or resolver.method(instance, "__iter__") is not None:
        return None
    facts = ctx.program.function(Scope(made.path, made.name))
    handed = _handed_on(facts)
    return None if handed is None else _given(call, handed, facts)


def _handed_on(facts: FunctionFacts) -> dict[str, Value] | None:
    """What `super().__init__(dataset, batch_size, ...)` is given, by the names of torch's parameters."""
    calls = [item for item in facts.calls if _is_init(item)]
    if len(calls) != 1 or len(calls[0].args) > len(_ORDER) or any(not name for name, _ in calls[0].keywords):
        return None
    return {**dict(zip(_ORDER, calls[0].args)), **dict(calls[0].keywords)}


def _is_init(call: CallFacts) -> bool:
    func = call.func
    return isinstance(func, tuple) and func[0] == "attr" and func[2] == "__init__" and _is_super(func[1])


def _is_super(value: Value) -> bool:
    return isinstance(value, tuple) and value[0] == "call" and value[1] == "super"


def _given(call: ast.Call, handed: dict[str, Value], facts: FunctionFacts) -> dict[str, ast.expr] | None:
    places = {param.name.lstrip("="): place for place, param in enumerate(facts.params[1:])}
    by_name = {item.arg: item.value for item in call.keywords}
    found: dict[str, ast.expr] = {}
    for option, value in handed.items():
        place = places.get(value) if isinstance(value, str) else None
        if place is None:
            if option in _ASKED and value not in _UNSET:
                return None  # the class sets it
        elif value in by_name:
            found[option] = by_name[value]
        elif place < len(call.args):
            found[option] = call.args[place]
        elif option in _ASKED and facts.params[place + 1].default not in _UNSET:
            return None
    return found
