"""Kinds of names that come from other modules."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.analysis.names.refs import CLASS, EXTERNAL, FUNCTION, MODULE_REF, Ref
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import UNKNOWN, Kind, join


def exported(path: str, name: str, inference: Evaluating) -> Kind:
    """A name of another module: what it is bound to there, or what it refers to."""
    other = inference.at(path)
    found = other.of_module(name) if other is not None else None
    if found is not None:
        return join([found, *_set_by_others(path, name, inference)])
    return inference.of_refs(inference.program.resolver.attribute(Ref(MODULE_REF, path, ""), name))


def _set_by_others(path: str, name: str, inference: Evaluating) -> Iterator[Kind]:
    """What other files make of a name of a module: `config.device = "cuda:1"`."""
    for scope, dotted in inference.program.whole.writes_to_module(path, name):
        other = inference.at(scope.path)
        given = other.bound_in(scope.function, dotted) if other is not None else None
        yield UNKNOWN if given is None else given


def imported(target: str, inference: Evaluating) -> Kind | None:
    """What `from module import name` (given as `module.name`) binds; None when nothing is known of it."""
    resolver = inference.program.resolver
    refs = resolver.imported(target, inference.path)
    if len(refs) == 1 and refs[0].kind in (CLASS, FUNCTION, EXTERNAL):
        return inference.of_refs(refs)
    module, _, name = target.rpartition(".")
    holders = resolver.imported(module, inference.path) if module.strip(".") else ()
    for holder in holders:
        if holder.kind == MODULE_REF:
            found = exported(holder.path, name, inference)
            if found.known:
                return found
    return inference.of_refs(refs) if refs else None
