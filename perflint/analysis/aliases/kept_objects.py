"""Objects that are collected, or become part of one that is being built."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.ir.calls import callee_name


def is_kept_object(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the modules are collected, or belong to one that is being built."""
    function = ctx.tree.function_of(node)
    if function is not None and function.name in ("__init__", "__post_init__", "build", "setup", "configure_model"):
        return True
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.Yield, ast.Return, ast.List, ast.Dict)):
            return True
        if isinstance(outer, ast.Call) and outer is not node:
            name = callee_name(outer)
            if name in ("append", "add_module", "extend", "insert", "setattr", "register_module"):
                return True
        if isinstance(outer, (ast.Assign, ast.AnnAssign)):
            targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target]
            if any(isinstance(target, (ast.Subscript, ast.Attribute)) for target in targets):
                return True
            return _is_collected([target.id for target in targets if isinstance(target, ast.Name)], outer, ctx)
        if isinstance(outer, ast.stmt):
            return isinstance(outer, ast.Return)
    return False


def _is_collected(names: list[str], statement: ast.stmt, ctx: FileFacts) -> bool:
    """Whether the module is put into a container or stored by what follows."""
    for name in names:
        for use in ctx.inference.flow.uses_after(statement, name):
            parent = ctx.tree.parent(use)
            if isinstance(parent, (ast.Tuple, ast.List, ast.Dict, ast.Yield, ast.Return)):
                return True
            if isinstance(parent, ast.Assign) and any(not isinstance(item, ast.Name) for item in parent.targets):
                return True
            if isinstance(parent, ast.Call) and callee_name(parent) in ("append", "add_module", "setattr", "extend"):
                return True
    return False
