"""What the attributes of the object are that a way runs a method of: told by the call that makes it, if one does."""

from __future__ import annotations

from typing import TypeAlias

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.feasibility.parameters import own_parameters
from perflint.analysis.names.refs import CLASS, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import MODULE, SPREAD, Value

#: What something is, in the notation of summaries, and where that is written.
Written: TypeAlias = "tuple[Value, Scope]"
#: What calling an object runs.
_CALLED = ("forward", "__call__")
#: From how many functions out an object is handed over.
_DEEPEST = 4


class Receivers:
    """The objects of one program."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def attribute(self, dotted: str, edge: Edge) -> list[Written]:
        """What `self.attribute` is in a method that the call of `edge` runs, with where it is written; nothing where
        that is not plain to see: the constructor keeps a parameter in it, and all calls that make the object are seen.
        """
        func = self._resolver.summaries[edge.caller.path].functions[edge.caller.function].calls[edge.index].func
        name = edge.callee.function.rpartition(".")[2]
        if type(func) is not str or func in ("self", f"self.{name}"):
            return []
        base = func.removesuffix(f".{name}") if func.endswith(f".{name}") or name not in _CALLED else func
        found: list[Written] = []
        for making, where in self._makings(base, edge.caller, _DEEPEST) or ():
            refs = self._resolver.refs(making[1], where)
            is_told = len(refs) == 1 and refs[0].kind == CLASS and bool(refs[0].path)
            kept = self._kept(dotted.removeprefix("self."), refs[0], making, where) if is_told else None
            if kept is None:
                return []
            found.append(kept)
        return found

    def _makings(self, dotted: str, scope: Scope, deepest: int) -> list[Written] | None:
        """The calls that make what goes by a name, here or where it is handed over from; None where it may be more."""
        facts = self._resolver.nesting.function(scope)
        given = self._resolver.written.definitions(dotted, scope)
        if not given and dotted in self._resolver.nesting.positions(facts) and self._resolver.param_values is not None:
            given = self._resolver.param_values(scope, dotted)
        found: list[Written] = []
        for value, where in given:
            if type(value) is tuple and value[0] == "call":
                found.append((value, where))
            elif type(value) is str and (value, where) != (dotted, scope) and deepest > 0:
                further = self._makings(value, where, deepest - 1)
                if further is None:
                    return None
                found += further
            else:
                return None
        return found or None

    def _kept(self, attribute: str, cls: Ref, making: Value, where: Scope) -> Written | None:
        """What a call that makes an object gives for the parameter that the constructor keeps in an attribute."""
        method = self._resolver.method(Ref(INSTANCE, cls.path, cls.name), "__init__")
        facts = self._resolver.hierarchy.facts(cls)
        if method is None or facts is None or attribute in (*facts.unclear, *facts.computed):
            return None
        kept = facts.attributes.get(attribute, ())
        if len(kept) != 1 or kept[0][1] != method.name or type(kept[0][0]) is not str or method.path != cls.path:
            return None
        _, _, args, keywords = making
        given = dict(keywords)
        params = own_parameters(self._resolver.summaries[method.path].functions[method.name])
        for place, param in enumerate(params):
            if param.name.lstrip("=") == kept[0][0] and "" not in given and SPREAD not in given:
                name = param.name.lstrip("=")
                if name in given:
                    return given[name], where
                if place < len(args) and name == param.name:
                    return args[place], where
                return (param.default, Scope(method.path, MODULE)) if param.default is not None else None
        return None
