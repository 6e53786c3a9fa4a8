"""Which functions differentiate what they compute, themselves or in what they call: they raise where gradients are off.

Forces are gradients of energies, normals those of distances. A `backward` or `torch.autograd.grad` that enables
gradients around itself does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from perflint.analysis.evidence import is_backward
from perflint.analysis.frequency.grad_switches import grad_switch
from perflint.analysis.names.refs import Scope
from perflint.finding import Confidence
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts, FunctionFacts
from perflint.torch_model.names import canonical

if TYPE_CHECKING:
    from perflint.analysis.program import Program

#: What asks for gradients at something that has none by itself.
_ASKS_AT_INPUTS = frozenset({"requires_grad_", "requires_grad"})


def differentiating(program: Program, *, passes: bool = True, inputs: bool = False) -> frozenset[Scope]:
    """The functions that differentiate, and those that lead to one by calls that are not guessed. `passes`: a backward
    pass does so as well, by which a loss may train something. `inputs`: only those that ask for gradients at what they
    are given, not at parameters.
    """
    found = {
        scope
        for scope, facts in program.resolver.nesting.functions
        if any(
            _differentiates(call, facts, scope, program)
            for call in facts.calls
            if passes or last_name(call.func) == "grad"
        )
        and (not inputs or not _ASKS_AT_INPUTS.isdisjoint(_words(scope, facts, program)))
    }
    waiting = list(found)
    while waiting:
        for edge in program.graph.incoming.get(waiting.pop(), ()):
            if edge.confidence is not Confidence.LOW and edge.caller not in found:
                if grad_switch(program.function(edge.caller), edge.context) != "grad":
                    found.add(edge.caller)
                    waiting.append(edge.caller)
    return frozenset(found)


def _words(scope: Scope, facts: FunctionFacts, program: Program) -> Iterable[str]:
    """The identifiers of a function; those of a nested one are noted for the outermost."""
    if not facts.identifiers and facts.owner:
        return _words(Scope(scope.path, facts.owner), program.summaries[scope.path].functions[facts.owner], program)
    return facts.identifiers.split()


def _differentiates(call: CallFacts, facts: FunctionFacts, scope: Scope, program: Program) -> bool:
    name = last_name(call.func)
    if name == "grad":
        targets = {canonical(ref.name) for ref in program.refs(call.func, scope)}
        if "torch.autograd.grad" not in targets and not str(call.func).endswith("autograd.grad"):
            return False
    elif name != "backward" or not is_backward(call.func, call.args):
        return False
    return grad_switch(facts, call.context) != "grad"
