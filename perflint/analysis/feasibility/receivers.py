"""What the attributes of the object are that a way runs a method of: told by the call that makes it, if one does."""

from __future__ import annotations

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.feasibility.parameters import own_parameters
from perflint.analysis.names.refs import CLASS, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import MODULE, SPREAD, Value


class Receivers:
    """The objects of one program."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def attribute(self, dotted: str, edge: Edge) -> tuple[Value, Scope] | None:
        """What `self.attribute` is in a method that the call of `edge` runs, with where it is written; None where that
        is not plain to see: the constructor keeps a parameter in it, and the object is made by one call.
        """
        call = self._resolver.summaries[edge.caller.path].functions[edge.caller.function].calls[edge.index]
        base, _, _ = call.func.rpartition(".") if type(call.func) is str else ("", "", "")
        made = self._resolver.written.definitions(base, edge.caller) if base and base != "self" else []
        if len(made) != 1:
            return None
        making, where = made[0]
        if type(making) is not tuple or making[0] != "call":
            return None
        refs = self._resolver.refs(making[1], where)
        if len(refs) != 1 or refs[0].kind != CLASS or not refs[0].path:
            return None
        return self._kept(dotted.removeprefix("self."), refs[0], making, where)

    def _kept(self, attribute: str, cls: Ref, making: Value, where: Scope) -> tuple[Value, Scope] | None:
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
