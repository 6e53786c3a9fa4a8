"""What a loop over parameters does to each: updates by arithmetic, alike for all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.ir.calls import callee_name, keyword
from perflint.syntax.named import gives
from perflint.syntax.walk import walk

#: What changes parameters, or hands them on to what does.
_CHANGING = frozenset(
    "mul_ add_ sub_ div_ copy_ lerp_ addcmul_ addcdiv_ zero_ fill_ normal_ uniform_ clamp_ clip_ all_reduce broadcast "
    "reduce reduce_scatter all_gather set_ nan_to_num_ foreach step register_hook".split()
)
_UPDATES = frozenset(
    "mul_ add_ sub_ div_ lerp_ addcmul_ addcdiv_ clamp_ clamp_min_ clamp_max_ clip_ copy_ mul add sub lerp".split()
)
#: What an update may call besides: it neither computes statistics nor communicates.
_HARMLESS = frozenset(
    "detach to float data is_floating_point items values keys zip parameters named_parameters state_dict isinstance "
    "hasattr getattr no_grad type_as cpu cuda startswith replace removeprefix min max float int dtype clone view_as "
    "is_complex get append".split()
)
#: Methods by which classes of moving averages mix two values.
_MIXERS = frozenset("update_average".split())


class Update(NamedTuple):
    """One operation that changes what the loop walks over."""

    node: ast.AST
    method: str


def updates_of_each(node: ast.For) -> list[Update]:
    """Operations that change a tensor of the loop by arithmetic."""
    own = _own_names(node)
    found = []
    for part in _statements(node):
        if isinstance(part, ast.AugAssign) and _root(part.target) in own:
            found.append(Update(part, type(part.op).__name__))
        elif isinstance(part, ast.Assign) and len(part.targets) == 1 and _sets_tensor(part.targets[0], own):
            if _mixes(part.value, node):
                found.append(Update(part, "copy_"))
        elif isinstance(part, ast.Expr):
            found += _calls(part.value, own)
    return found


def _calls(node: ast.expr, own: set[str]) -> Iterator[Update]:
    """Updates of a chain such as `e.mul_(d).add_(p, alpha=1 - d)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    name = node.func.attr
    if name not in _UPDATES:
        return
    out = keyword(node, "out")
    if out is not None and _root(out) in own:
        yield Update(node, name)
    elif name.endswith("_"):
        yield from _calls(node.func.value, own)
        changed = _root(node.func.value)
        if changed in own and (name != "copy_" or any(_mixes(item, None) for item in node.args)):
            yield Update(node, name)


def _mixes(value: ast.expr, loop: ast.For | None) -> bool:
    """Whether a value is computed: by an operator, by a method that mixes two, or so in the loop before."""
    for part in walk(value):
        if isinstance(part, ast.BinOp) or (isinstance(part, ast.Call) and callee_name(part) in _MIXERS):
            return True
        if isinstance(part, ast.Name) and loop is not None:
            made = [item for item in _statements(loop) if isinstance(item, ast.Assign) and gives(item, part.id)]
            if any(_mixes(item.value, None) for item in made):
                return True
    return False


def _own_names(node: ast.For) -> set[str]:
    """The loop's names, and those bound in it."""
    names = {part.id for part in walk(node.target) if isinstance(part, ast.Name)}
    for part in _statements(node):
        if isinstance(part, ast.Assign):
            names |= {item.id for item in part.targets if isinstance(item, ast.Name)}
    # What is reached by the loop's key: `average[name]`.
    for item in walk(node):
        if isinstance(item, ast.Subscript) and isinstance(item.slice, ast.Name) and item.slice.id in names:
            base = _root(item.value)
            if base is not None:
                names.add(f"{base}[]")
    return names


def _statements(node: ast.For) -> Iterator[ast.stmt]:
    for statement in node.body:
        for part in walk(statement):
            if isinstance(part, ast.stmt):
                yield part


def _root(node: ast.expr) -> str | None:
    """The name an update starts from; `name[]` where it is an entry."""
    entry = False
    while True:
        if isinstance(node, ast.Subscript):
            entry, node = True, node.value
        elif isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            break
    return (f"{node.id}[]" if entry else node.id) if isinstance(node, ast.Name) else None


def _sets_tensor(target: ast.expr, own: set[str]) -> bool:
    """Whether an assignment gives a parameter other values: `p.data = ...`, `average[name] = ...`, or keeps with it
    what those are to be: `p.fast = ...`.
    """
    if isinstance(target, ast.Attribute):
        return _root(target) in own
    return isinstance(target, ast.Subscript) and _root(target) in own


def treats_alike(node: ast.For) -> bool:
    """Whether every parameter is treated the same way, by updates and nothing else."""
    for part in walk(ast.Module(body=node.body, type_ignores=[])):
        if isinstance(part, ast.Call) and callee_name(part) not in _UPDATES | _HARMLESS | _MIXERS:
            return False
        if isinstance(part, (ast.If, ast.IfExp)) and _tells_apart(part.test):
            return False
        if isinstance(part, (ast.For, ast.While, ast.Break, ast.Return, ast.Await, ast.Yield)):
            return False
    return True


def only_combines(value: ast.expr) -> bool:
    """Whether a value is arithmetic on tensors that treats all alike."""
    for part in walk(value):
        if isinstance(part, ast.Call) and callee_name(part) not in _UPDATES | _HARMLESS:
            return False
        if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.MatMult, ast.Mod)):
            return False
        if isinstance(part, ast.IfExp) and _tells_apart(part.test):
            return False
        if isinstance(part, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.JoinedStr)):
            return False
    return True


def _tells_apart(test: ast.expr) -> bool:
    """Whether a test asks for some parameters by name or shape."""
    return any(
        (isinstance(part, ast.Constant) and isinstance(part.value, str))
        or (isinstance(part, ast.Attribute) and part.attr in ("ndim", "shape"))
        for part in walk(test)
    )


def changes_parameters(parts: list[ast.AST]) -> bool:
    """Whether the loop changes the parameters: then it is no statistic."""
    for part in parts:
        for item in walk(part):
            if isinstance(item, ast.Call) and callee_name(item) in _CHANGING:
                return True
            if isinstance(item, (ast.Assign, ast.AugAssign)):
                targets = item.targets if isinstance(item, ast.Assign) else [item.target]
                if any(isinstance(at, ast.Attribute) and at.attr in ("data", "grad") for at in targets):
                    return True
    return False
