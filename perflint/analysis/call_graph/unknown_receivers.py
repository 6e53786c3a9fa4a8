"""Which methods a call of something unknown may run: told by the names of the method and of what it is called on."""

from __future__ import annotations

from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.analysis.naming.models import AVERAGES
from perflint.ir.summary import SPREAD, CallFacts, FunctionFacts, Param
from perflint.system.patterns import pattern

#: Methods too common to be guessed from their name alone, even when one class of the project defines them.
_COMMON = frozenset(
    "forward call run fit train eval step update reset close open read write load save get set add remove start "
    "stop build create init setup process apply parse format log print sample predict transform encode decode "
    "compute append extend insert pop clear copy items keys values join split strip to cpu cuda size view reshape "
    "mean sum max min item backward zero_grad state_dict load_state_dict parameters modules children register send "
    "recv get_config search match find replace count index sort reverse group flush seek tell next submit result "
    "put done wait".split()
)
#: Methods that torch or Python gives to most things, so that what they are called on need not be the project's.
_INHERITED = frozenset(
    "forward train eval step get set add remove append extend insert pop clear copy items keys values join split strip "
    "to cpu cuda size view reshape mean sum max min item backward zero_grad state_dict load_state_dict parameters "
    "modules children register close open read write load save count index sort reverse flush seek tell".split()
)
#: Past this many classes of one kind, a name says nothing about which of them runs.
_MOST_OF_A_KIND = 24
#: Past this many children a base class says nothing about which of them runs.
_MOST_CHILDREN = 40
_SHORTEST_WORD = 5
#: What networks are called.
_NETWORKS = frozenset({"model", "net", "network"})
#: What averages of a model's parameters are called, in code and as classes.
_AVERAGE = "ema"
_LAST_WORD = pattern(r"[A-Z]?[a-z]+$")


class Guesses:
    """Guesses for one program."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        #: Methods by their name and the last word of their class: `update` of `SoftActorCriticAgent` by `agent`.
        self._of_kind: dict[tuple[str, str], list[Scope]] = {}

    def targets(self, call: CallFacts, facts: FunctionFacts) -> list[Scope]:
        """A method that one class of the program defines, called on something unknown; or one class and those that
        derive from it, where a loop runs it for one after another, as hooks are run: any of them may be among them.
        """
        func = call.func
        owner = ""
        if isinstance(func, str):
            owner, _, name = func.rpartition(".")
            if not owner or owner in ("self", "cls"):
                return []
        elif func is not None and func[0] == "attr":
            name = func[2]
        else:
            return []
        if name in _COMMON or name.startswith("__") or ("_" not in name.strip("_") and len(name) < 10):
            return []
        found = [scope for scope, facts in self.resolver.nesting.by_name.get(name, ()) if facts.in_class]
        if len(found) > 1:
            loops = (facts.loops[index] for index in facts.loops_around(call.context))
            in_turn = any(owner in loop.targets for loop in loops)
            return found if in_turn and self._is_family(found) else []
        return found

    def of_its_family(self, call: CallFacts) -> list[Scope]:
        """The methods of a name that says much, where one class that defines it is a base of all others: whatever a
        call is of, it runs one of them.
        """
        name = _owner_and_name(call)[1]
        if name in _COMMON or name.startswith("__") or "_" not in name.strip("_"):
            return []
        found = [scope for scope, facts in self.resolver.nesting.by_name.get(name, ()) if facts.in_class]
        return found if len(found) > 1 and self._is_family(found) else []

    def of_its_kind(self, call: CallFacts, path: str) -> list[Scope]:
        """Methods of classes that are called as what a call in the file `path` is of: `self.agent.update(...)` of
        `DrQAgent`. Which of them it is, a configuration says; a file that defines one itself means that one.
        """
        owner, name = _owner_and_name(call)
        words = owner.split("_")
        # The last word alone tells: a `state_dict` is no `ConfigDict`.
        kind = _AVERAGE if _AVERAGE in words else words[-1]
        if name in _INHERITED or (len(kind) < _SHORTEST_WORD and kind != _AVERAGE) or not kind.islower():
            return []
        found = self._of_kind.get((kind, name))
        if found is None:
            found = self._of_kind[kind, name] = self._methods_of_kind(kind, name)
        taking = [scope for scope in found if self._takes(scope, call)]
        return [scope for scope in taking if scope.path == path] or taking

    def of_network(self, call: CallFacts) -> list[Scope]:
        """The method of a module of the program that is called on what goes by a network's name, where it is one
        class's, or one class's and those that derive from it: `self.model.track(image)`.
        """
        owner, name = _owner_and_name(call)
        if owner not in _NETWORKS or name in _INHERITED or name.startswith("__"):
            return []
        found = [
            scope
            for scope, facts in self.resolver.nesting.by_name.get(name, ())
            if facts.in_class and self.resolver.hierarchy.is_module(Ref(CLASS, scope.path, facts.in_class))
        ]
        if len(found) > 1 and not self._is_family(found):
            return []
        return [scope for scope in found if self._takes(scope, call)]

    def _methods_of_kind(self, kind: str, name: str) -> list[Scope]:
        found = [
            scope
            for scope, facts in self.resolver.nesting.by_name.get(name, ())
            if facts.in_class and _kind_of_class(facts.in_class) == kind
        ]
        return found if len(found) <= _MOST_OF_A_KIND else []

    def _takes(self, scope: Scope, call: CallFacts) -> bool:
        """Whether a method takes what a call gives, which must be something."""
        facts = self.resolver.summaries[scope.path].functions[scope.function]
        given = [name for name, _ in call.keywords]
        if "" in given or SPREAD in given or not (call.args or given):
            return False
        params = [param for param in facts.params if not param.name.startswith("*")]
        if len(params) < len(facts.params):
            return False  # it takes anything
        named = {param.name.lstrip("=") for param in params}
        by_place = [param for param in params if not param.name.startswith("=")]
        if "staticmethod" not in facts.decorators:
            by_place = by_place[1:]
        if len(call.args) > len(by_place) or not named.issuperset(given):
            return False
        return all(_has_default(param) or param.name in given for param in by_place[len(call.args) :])

    def _is_family(self, methods: list[Scope]) -> bool:
        """Whether one of the classes that define a method is a base of all others."""
        if len(methods) > _MOST_CHILDREN:
            return False
        owners = {
            Ref(CLASS, scope.path, self.resolver.summaries[scope.path].functions[scope.function].in_class)
            for scope in methods
        }
        shared = owners.intersection(*(self.resolver.mro(owner) for owner in owners))
        return len(owners) == len(methods) and bool(shared)


def _owner_and_name(call: CallFacts) -> tuple[str, str]:
    """`agent` and `update` of `self.agent.update(...)`; `ema` of `state["ema"].update(...)`."""
    func = call.func
    if isinstance(func, str):
        owner, _, name = func.rpartition(".")
        return owner.rpartition(".")[2], name
    if isinstance(func, tuple) and func[0] == "attr" and isinstance(func[1], tuple) and func[1][0] == "item":
        key = func[1][2]
        return (key, func[2]) if isinstance(key, str) else ("", "")
    return "", ""


def _kind_of_class(qualname: str) -> str:
    """`agent` of `SoftActorCriticAgent`; `ema` of `ModelEMA` and `ExponentialMovingAverage`."""
    if AVERAGES.search(qualname):
        return _AVERAGE
    word = _LAST_WORD.search(qualname.rpartition(".")[2])
    return word.group().lower() if word is not None else ""


def _has_default(param: Param) -> bool:
    return param.default is not None
