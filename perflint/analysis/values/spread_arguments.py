"""What `f(*parts, **options)` hands over where the tuple and the dict are written out, in the call or before it."""

from __future__ import annotations

import ast

from perflint.syntax.bindings import Binding, key_of
from perflint.syntax.reaching import Reaching
from perflint.syntax.tree import Tree

_DEEPEST = 3
#: What makes a dict of the keywords that it is given.
_DICTS = ("dict", "builtins.dict")
#: Methods that leave a dict or a list as it is.
_READING = frozenset({"get", "items", "keys", "values", "copy", "index", "count"})


def written_out(call: ast.Call, flow: Reaching, tree: Tree) -> tuple[list[ast.expr], list[ast.keyword]]:
    """The arguments and keywords of a call, with what is handed over by a star in its place where it can be seen."""
    args: list[ast.expr] = call.args
    if ast.Starred in [type(item) for item in args]:
        args = []
        for item in call.args:
            parts = parts_of(item.value, flow, tree) if isinstance(item, ast.Starred) else None
            args += [item] if parts is None else parts
    keywords = call.keywords
    if None in [item.arg for item in keywords]:
        keywords = []
        for given in call.keywords:
            options = options_of(given.value, flow, tree) if given.arg is None else None
            keywords += [given] if options is None else [ast.keyword(*pair) for pair in options.items()]
    return args, keywords


def options_of(value: ast.expr, flow: Reaching, tree: Tree, depth: int = _DEEPEST) -> dict[str, ast.expr] | None:
    """The values of a dict by their keys, which are texts; None where some may be unseen."""
    written = _written(value, (ast.Dict, ast.Call), flow, tree)
    if not depth:
        return None
    found: dict[str, ast.expr] = {}
    if isinstance(written, ast.Dict):
        for key, item in zip(written.keys, written.values):
            if key is None:
                held = options_of(item, flow, tree, depth - 1)
                if held is None:
                    return None
                found |= held
            elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                found[key.value] = item
            else:
                return None
        return found
    if isinstance(written, ast.Call) and key_of(written.func) in _DICTS and not written.args:
        for given in written.keywords:
            if given.arg is None:
                return None
            found[given.arg] = given.value
        return found
    return None


def parts_of(value: ast.expr, flow: Reaching, tree: Tree) -> list[ast.expr] | None:
    """The items of a tuple or a list in their order; None where some may be unseen."""
    written = _written(value, (ast.Tuple, ast.List), flow, tree)
    if not isinstance(written, (ast.Tuple, ast.List)) or any(isinstance(item, ast.Starred) for item in written.elts):
        return None
    return written.elts


def _written(value: ast.expr, displays: tuple[type[ast.expr], ...], flow: Reaching, tree: Tree) -> ast.expr | None:
    """What a value is written as, through a name that is bound once and that nothing fills."""
    if isinstance(value, displays):
        return value
    made = flow.definitions(value) if isinstance(value, ast.Name) else ()
    if len(made) != 1 or made[0].binding is not Binding.ASSIGN or made[0].path or made[0].value is None:
        return None
    if not isinstance(made[0].value, displays) or tree.function_of(made[0].node) is not tree.function_of(value):
        return None
    assert isinstance(value, ast.Name)
    region = tree.function_of(value) or tree.module
    uses = (use for use in tree.named(value.id, region) if isinstance(use.ctx, ast.Load))
    return made[0].value if all(_leaves_it(use, tree) for use in uses) else None


def _leaves_it(use: ast.Name, tree: Tree) -> bool:
    """Whether a use of a name only reads what it holds, or hands over what is in it."""
    parent = tree.parent(use)
    if isinstance(parent, ast.keyword):
        return parent.arg is None
    if isinstance(parent, ast.Subscript):
        return parent.value is not use or isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _READING
    return isinstance(parent, (ast.Starred, ast.Dict, ast.Compare))
