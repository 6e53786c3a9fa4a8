"""Whether the graph of a loss is walked back more than once: in its function, around it, or by what either calls."""

from __future__ import annotations

import ast

from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import FUNCTION, Ref
from perflint.ir.calls import callee_name
from perflint.syntax.walk import walk
from perflint.torch_model.effects import Effect

#: What goes through the graph of a loss.
_WALKS = ("backward", "manual_backward", "grad", "jacobian", "hessian")


def walks_back_elsewhere(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the function, one that leads to it, or one that either runs, goes through a graph as well."""
    scope = ctx.scope(node)
    ways = [edge.caller for edge in ctx.program.callers(scope)]
    homes = [found for at in ways if (found := definition_of(at, ctx)) is not None]
    regions = [(ctx.tree.function_of(node) or ctx.tree.module, ctx), *homes]
    return any(
        isinstance(part, ast.Call)
        and part is not node
        and (callee_name(part) in _WALKS or there.effects(part).does(Effect.BACKWARD))
        and there.project_target(part.func) != Ref(FUNCTION, scope.path, scope.function)
        for region, there in regions
        for part in walk(region)
    )
