"""Whether a value is made by the very call that gives it, told from what functions return, for guards that fill it."""

from __future__ import annotations

from perflint.analysis.names.refs import CLASS, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import Value

_NONE = ("const", "NoneType")
#: How many functions a value is followed through that hand it on.
_DEEPEST = 4


class FreshResults:
    """Answers for one program whose names are resolved."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def is_made(self, value: Value, scope: Scope, depth: int = _DEEPEST) -> bool:
        """Whether nothing but the code that runs here can hold the value already."""
        if not depth:
            return False
        if isinstance(value, str):
            facts = self._resolver.summaries[scope.path].functions[scope.function]
            given = facts.binds.get(value, ())
            if any(param.name.lstrip("=*") == value for param in facts.params) or self._is_kept(value, scope):
                return False
            return bool(given) and all(self.is_made(item, scope, depth - 1) for item in given)
        if not isinstance(value, tuple):
            return False
        if value[0] in ("seq", "map"):
            return True
        return value[0] == "call" and self._is_made_by(value[1], scope, depth)

    def _is_kept(self, name: str, scope: Scope) -> bool:
        """`self.last = result`, `results[key] = result`"""
        stored = [value for _, value in self._resolver.summaries[scope.path].functions[scope.function].stores]
        owner = self._resolver.nesting.enclosing_class(scope)
        written = self._resolver.hierarchy.facts(owner) if owner.name else None
        if written is not None:
            stored += [value for values in written.attributes.values() for value, _ in values]
        return name in stored

    def _is_made_by(self, func: Value, scope: Scope, depth: int) -> bool:
        refs = self._resolver.refs(func, scope)
        return bool(refs) and all(self._makes(ref, depth) for ref in refs)

    def _makes(self, ref: Ref, depth: int) -> bool:
        if ref.kind == CLASS:
            return bool(ref.path)
        if ref.kind == INSTANCE:
            found = self._resolver.method(ref, "__call__") or self._resolver.method(ref, "forward")
            function = Scope(found.path, found.name) if found is not None else None
        else:
            function = Scope(ref.path, ref.name) if ref.kind == FUNCTION else None
        if function is None or function.path not in self._resolver.summaries:
            return False
        facts = self._resolver.summaries[function.path].functions.get(function.function)
        if facts is None or facts.is_generator:
            return False
        given = [value for value in facts.returns if not (isinstance(value, tuple) and value[:2] == _NONE)]
        return bool(given) and all(self.is_made(value, function, depth - 1) for value in given)
