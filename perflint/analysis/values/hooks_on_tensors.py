"""What a function is given that is registered on a tensor: its gradient, or the tensor itself once that is there."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import UNKNOWN, Kind, Place, join, tensor
from perflint.analysis.values.origin import Origin, Provenance
from perflint.finding import Confidence
from perflint.syntax.tree import FunctionNode
from perflint.torch_model import frameworks

if TYPE_CHECKING:
    from perflint.analysis.call_graph.edges import Edge


def given(func: ast.expr, inference: Evaluating) -> Kind:
    """`x.register_hook(lambda grad: ...)`: where the tensor is, and what is not known to be on the host is trained."""
    if not isinstance(func, ast.Attribute) or func.attr not in frameworks.TENSOR_HOOKS:
        return UNKNOWN
    receiver, origin = func.value, Origin(Provenance.FRAMEWORK, func.attr)
    made = tensor(Place.MODULE, certainty=Confidence.MEDIUM, origin=origin)
    definitions = inference.flow.definitions(receiver) if isinstance(receiver, ast.Name) else ()
    if any(isinstance(item.node, ast.arg) for item in definitions):
        return made  # a parameter: what it is given may be this gradient
    on = inference.eval(receiver, None)
    return made if on.place is Place.UNKNOWN else made.but(place=on.place, device=on.device)


def given_by_itself(edges: Sequence[Edge], function: FunctionNode, name: str, inference: Evaluating) -> Kind:
    """What a function is given by a lambda of its own: in `check(x)`, `x.register_hook(lambda grad: check(grad))`."""
    path, mine = inference.path, inference.tree.qualname(function)
    functions = inference.program.summaries[path].functions
    found = [
        inference.parameters.argument(edge, function, name) or UNKNOWN
        for edge in edges
        if edge.caller.path == path and functions[edge.caller.function].owner == mine and not edge.callback
        if edge.index >= 0 and edge.caller.function.startswith("<lambda")
    ]
    return join(found).but(fresh=False).at_most(Confidence.MEDIUM) if found else UNKNOWN
