"""Methods that nothing in a program calls or names: what they set is set where a user calls them."""

from __future__ import annotations

from functools import cached_property

from perflint.analysis.feasibility.parameters import Passing
from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.names.resolver import Resolver

#: Bases that call no methods but their own.
_CALLING_NOTHING = frozenset(
    {"object", "torch.nn.Module", "torch.nn.modules.module.Module", "torch.utils.data.Dataset"}
)


class Uncalled:
    """Those of one program."""

    def __init__(self, resolver: Resolver, passing: Passing) -> None:
        self._resolver = resolver
        self._passing = passing
        self._known: dict[Scope, bool] = {}

    def is_never_called(self, scope: Scope) -> bool:
        known = self._known.get(scope)
        if known is None:
            known = self._known[scope] = self._is_never_called(scope)
        return known

    def _is_never_called(self, scope: Scope) -> bool:
        facts = self._resolver.summaries[scope.path].functions.get(scope.function)
        if facts is None or not facts.in_class or facts.owner != facts.in_class:
            return False
        if facts.name.startswith("__") or facts.decorators or self._is_named(facts.name):
            return False
        bases = self._resolver.mro(Ref(CLASS, scope.path, facts.in_class))
        if any(not base.path and base.name not in _CALLING_NOTHING for base in bases):
            return False
        above = [base for base in bases if base.path and base.name != facts.in_class]
        is_own = all(f"{base.name}.{facts.name}" not in self._resolver.summaries[base.path].functions for base in above)
        return is_own and not self._passing.callers(scope)

    def _is_named(self, name: str) -> bool:
        """Whether any function, or call, of the program names it, in texts as well."""
        return name in self._resolver.nesting.calls or f" {name} " in self._identifiers or name in self._texts

    @cached_property
    def _identifiers(self) -> str:
        return f" {' '.join([facts.identifiers for _, facts in self._resolver.nesting.functions])} "

    @cached_property
    def _texts(self) -> frozenset[str]:
        return frozenset(
            [
                item[2]
                for _, facts in self._resolver.nesting.functions
                for call in facts.calls
                for item in call.args
                if type(item) is tuple and item[:2] == ("const", "str")
            ]
        )
