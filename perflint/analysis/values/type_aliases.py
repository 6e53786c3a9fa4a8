"""What an alias of a type stands for: `Data = Union[dict, Tensor]`, in this file or in the one it is imported from."""

from __future__ import annotations

import ast
from typing import NamedTuple

from perflint.analysis.names.refs import EXTERNAL, EXTERNAL_INSTANCE, MODULE_REF, Refs, Scope
from perflint.analysis.values.evaluating import Evaluating
from perflint.ir.notation import source_of
from perflint.ir.summary import MODULE
from perflint.syntax.bindings import Binding, Definition, key_of

#: Through how many aliases a type is followed: one that names itself has no end.
DEEPEST = 4
#: What takes types apart or puts them together, and is no type of a value itself.
_FORMS = ("typing.", "typing_extensions.", "collections.abc.", "builtins.", "jaxtyping.")


class Alias(NamedTuple):
    """The text of a type, and the file whose names it is written in."""

    text: str
    inference: Evaluating


def may_be(refs: Refs, scope: Scope, path: str) -> bool:
    """Whether a name that refers to `refs` may be an alias of this file: it names no class that values have."""
    return scope.path == path and all(
        ref.kind in (EXTERNAL, EXTERNAL_INSTANCE) and ref.name.startswith(_FORMS) for ref in refs
    )


def find(name: str, inference: Evaluating) -> Alias | None:
    """What a name of a file's module stands for, None where it is no alias."""
    holder, _, last = name.rpartition(".")
    if holder:
        return _in_modules(inference.program.resolver.refs(holder, Scope(inference.path, MODULE)), last, inference)
    bound = inference.flow.bindings(inference.tree.module).by_key.get(name, ())
    if len(bound) != 1:
        return None
    if bound[0].binding is Binding.IMPORT:
        module, _, last = bound[0].imported.rpartition(".")
        found = inference.program.resolver.imported(module, inference.path) if module.strip(".") else ()
        return _in_modules(found, last, inference)
    return _assigned(bound[0], inference)


def _in_modules(refs: Refs, name: str, inference: Evaluating) -> Alias | None:
    for ref in refs:
        other = inference.at(ref.path) if ref.kind == MODULE_REF and ref.path != inference.path else None
        found = find(name, other) if other is not None else None
        if found is not None:
            return found
    return None


def _assigned(definition: Definition, inference: Evaluating) -> Alias | None:
    value = definition.value
    if definition.binding is not Binding.ASSIGN or definition.path or value is None:
        return None
    if isinstance(value, ast.Call) and (key_of(value.func) or "").rpartition(".")[2] == "NewType":
        value = value.args[1] if len(value.args) == 2 else value
    is_union = isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)
    if not is_union and not isinstance(value, (ast.Subscript, ast.Name, ast.Attribute)):
        return None
    return Alias(source_of(value), inference)
