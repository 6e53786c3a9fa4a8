"""Calls that a step makes once for each of a list of what is to be done now, which most steps leave empty."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope


def goes_through_list(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether the route to a node goes through a loop over a list that is inside of the training loop: `for name in
    names: save(name)`. What is dear is not done several times on every step.
    """
    _, route, _ = ctx.heat_and_route(node)
    for hop in route[1:]:
        for name, facts in ctx.program.summaries[hop.path].functions.items():
            around = (facts.loops_around(call.context) for call in facts.calls if call.line == hop.line)
            for loops in around:
                if len(loops) < 2 or (Scope(hop.path, name), loops[0]) in ctx.program.roots.loops:
                    continue
                iterable = facts.loops[loops[0]].iterable
                if isinstance(iterable, str) and "." not in iterable:
                    return True
    return False
