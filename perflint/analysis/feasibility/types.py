"""Of which types values are: what the calls give that make them, and what `isinstance` says of that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from perflint.analysis.feasibility.lattice import BOOL, BOTTOM, NO, SOMETHING, YES, Possible, of
from perflint.analysis.names.refs import CLASS, EXTERNAL, Ref, Refs, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import Value
from perflint.torch_model import tensors
from perflint.torch_model.names import canonical

TENSOR = "Tensor"
PARAMETER = "Parameter"
TENSOR_TYPES = frozenset({TENSOR, PARAMETER})
A_TENSOR = SOMETHING.typed(TENSOR)
#: What gives one tensor, however it is called.
_MAKERS = (tensors.FUNCTIONS | tensors.CONSTRUCTORS | tensors.LIKE_CONSTRUCTORS | tensors.COPYING_CONSTRUCTORS) - {
    f"torch.{name}" for name in (*tensors.DIMENSIONED, "where", "repeat_interleave")
}
#: Methods of a tensor that give one, and its attributes that are one.
GIVING_TENSORS = (
    tensors.VIEW_METHODS | tensors.CAST_METHODS | tensors.FRESH_METHODS | tensors.TO_DEVICE_METHODS
    | tensors.NEW_METHODS | {"to", "cpu"}
) - tensors.DIMENSIONED - {"type", "nonzero", "unique", "where", "values", "indices"}  # fmt: skip
#: What classes are called in `isinstance`, by the types of values that are of them.
_KNOWN: Mapping[str, frozenset[str]] = {
    "torch.Tensor": TENSOR_TYPES,
    "torch.nn.Parameter": frozenset({PARAMETER}),
    "torch.nn.Module": frozenset(),
    "numpy.ndarray": frozenset(),
}
_BUILTINS = frozenset("int bool str float list tuple dict set bytes".split())
_REGISTERING = frozenset({"register_buffer", "register_parameter"})
#: Bases that no library class but these, and what stands above them, is one of.
_PLAIN_BASES = frozenset({"object", "Module", "ABC", "Generic", "Protocol"})


class Types:
    """The types of one program's values."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def made(self, refs: Refs) -> Possible:
        """What calling something gives, as far as it is told by what makes it."""
        found = BOTTOM
        for ref in refs:
            if ref.kind == CLASS and ref.path:
                found |= SOMETHING.typed(_type_of(ref))
            elif ref.kind == EXTERNAL and canonical(ref.name) in _MAKERS:
                found |= A_TENSOR
            elif ref.kind == EXTERNAL and canonical(ref.name) == "torch.nn.Parameter":
                found |= SOMETHING.typed(PARAMETER)
            else:
                return SOMETHING
        return found if refs else SOMETHING

    def is_instance(self, found: Possible, classes: Value, scope: Scope) -> Possible:
        """`isinstance(value, classes)`"""
        if found == BOTTOM:
            return BOTTOM
        names = classes[1] if type(classes) is tuple and classes[0] == "seq" else (classes,)
        if found.sorts == {"None"}:
            is_told = all(type(item) is str and item.rpartition(".")[2] not in ("object", "NoneType") for item in names)
            return NO if is_told else BOOL
        answers = {self._is_of(item, names, scope) for item in found.types or ()}
        if not answers or None in answers or len(answers) > 1:
            return BOOL
        return YES if answers.pop() else NO

    def _is_of(self, kind: str, classes: tuple[Value, ...], scope: Scope) -> bool | None:
        """Whether what is of a type is of one of some classes; None where nobody can tell."""
        answers = [self._is_of_one(kind, item, scope) for item in classes]
        return True if True in answers else None if None in answers else False

    def _is_of_one(self, kind: str, cls: Value, scope: Scope) -> bool | None:
        if cls in _BUILTINS:
            return kind == cls or (kind == "bool" and cls == "int")
        refs = self._resolver.refs(cls, scope)
        if len(refs) != 1:
            return None
        wanted = refs[0]
        own = self._class_of(kind)
        if wanted.kind == CLASS and wanted.path:
            return own is not None and wanted in self._resolver.mro(own)
        if wanted.kind != EXTERNAL or canonical(wanted.name) not in _KNOWN:
            return None
        if own is None:
            return kind in _KNOWN[canonical(wanted.name)]
        bases = [base for base in self._resolver.mro(own) if base.kind == EXTERNAL]
        if any(canonical(base.name) == canonical(wanted.name) for base in bases):
            return True
        return False if all(base.name.rpartition(".")[2] in _PLAIN_BASES for base in bases) else None

    def _class_of(self, kind: str) -> Ref | None:
        path, colon, name = kind.rpartition(":")
        return Ref(CLASS, path, name) if colon else None

    def registered(self, owner: Ref, name: str) -> Iterator[Possible]:
        """What a module registers as a buffer or a parameter of a name."""
        for value in self._registered.get((owner.path, owner.name, name), ()):
            yield of(None) if value == ("const", "NoneType", None) else A_TENSOR

    @cached_property
    def _registered(self) -> Mapping[tuple[str, str, str], list[Value]]:
        found: dict[tuple[str, str, str], list[Value]] = {}
        for item in self._resolver.nesting.calls_of(_REGISTERING):
            args, cls = item.call.args, self._resolver.nesting.enclosing_class(item.scope)
            if str(item.call.func).startswith("self.") and len(args) > 1 and cls.name and _is_text(args[0]):
                found.setdefault((cls.path, cls.name, args[0][2]), []).append(args[1])
        return found


def _type_of(cls: Ref) -> str:
    return f"{cls.path}:{cls.name}"


def _is_text(value: Value) -> bool:
    return type(value) is tuple and value[:2] == ("const", "str") and bool(value[2])
