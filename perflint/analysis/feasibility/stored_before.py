"""Tests of an attribute to which the same function has given a literal before: `settings.debug = False`, far above
`if settings.debug`.
"""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.syntax.tree import FUNCTIONS

_Stores = dict[str, list[ast.Assign]]


def stored_before(test: ast.expr, ctx: FileFacts) -> ast.Constant | None:
    """The literal that an attribute of another object holds where it is tested; None where anything else may be there:
    it is stored more than once, the store need not have run, or the name of the object has been bound anew.
    """
    if not isinstance(test, ast.Attribute) or not isinstance(test.value, ast.Name) or test.value.id in ("self", "cls"):
        return None
    scope = ctx.tree.scope_of(test)
    stores = ctx.once(_stores, scope).get(ctx.text(test), [])
    if len(stores) != 1 or not isinstance(scope, FUNCTIONS) or not isinstance(stores[0].value, ast.Constant):
        return None
    flow, known = ctx.inference.flow, ctx.inference.flow.definitions(test.value)
    owners = [target.value for target in stores[0].targets if isinstance(target, ast.Attribute)]
    same = all(isinstance(owner, ast.Name) and flow.definitions(owner) == known for owner in owners)
    runs_first = ctx.control_flow(test).dominates(stores[0], ctx.tree.statement_of(test))
    return stores[0].value if same and runs_first else None


def _stores(scope: ast.AST, ctx: FileFacts) -> _Stores:
    """What stores in attributes of names, by the attribute as it is written."""
    found: _Stores = {}
    for part in ctx.body(scope) if isinstance(scope, FUNCTIONS) else ():
        if isinstance(part, ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Attribute):
                    found.setdefault(ctx.text(target), []).append(part)
    return found
