"""Whether a part of a model is frozen for good and stays in evaluation mode while the rest is trained."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.call_graph.given_arguments import given_arguments
from perflint.analysis.elsewhere import class_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import FORWARD_METHODS
from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import arguments_of, callee_name, is_constant
from perflint.syntax.walk import walk
from perflint.torch_model.modules import PARAMETER_ITERATORS
from perflint.torch_model.names import root

#: Libraries whose `from_pretrained` gives a model in evaluation mode.
_IN_EVALUATION = frozenset({"transformers", "diffusers", "pytorch_transformers"})


class Frozen(NamedTuple):
    """Where a part is frozen, and whether it is a pretrained network of a library."""

    node: ast.AST
    ctx: FileFacts
    is_large: bool


def stays_frozen_inside(
    call: ast.Call, there: FileFacts, owner: Ref, through: ast.Call, ctx: FileFacts
) -> Frozen | None:
    """What freezes the part that `call` runs in `there`, a method of the class `owner`, which the loop runs by
    `through`; None where it may be trained, or run in training mode.
    """
    part = _part(there.text(call.func))
    files = list(_files(there, through, ctx))
    if not part or any(_thaws(item) for item in files):
        return None
    frozen = next((found for item in files for found in _freezing(part, item, owner)), None)
    if frozen is None:
        return None
    made = list(_made(part, there, owner))
    pretrained = bool(made) and all(_is_pretrained(item, where) for item, where in made)
    if not (pretrained or _is_put_to_evaluation(part, there, owner)):
        return None
    if _keeps_own_mode(part, there, owner) or not any(_is_trained(part, owner, through, item, there) for item in files):
        return Frozen(*frozen, pretrained)
    return None


def stays_frozen_outside(call: ast.Call, ctx: FileFacts) -> Frozen | None:
    """As `stays_frozen_inside`, of a network that the loop itself runs: `vae.encode(x)`. It is looked at where it is
    made, in the function that the loop is in or the one that hands it over.
    """
    func = call.func
    model = func.value if isinstance(func, ast.Attribute) and func.attr in FORWARD_METHODS else func
    given = given_arguments(model, ctx)
    places = [*given, (model, ctx)]
    if len(given) > 1 or any(_thaws(there) for _, there in places):
        return None
    for value, there in places:
        around = ctx.tree.function_of(call) if there is ctx and value is model else there.tree.function_of(value)
        text = there.text(value)
        within = (there.tree.class_of(around) if around is not None and text.startswith("self.") else around) or (
            there.tree.module
        )
        parts = [part for part in walk(within) if isinstance(part, (ast.Call, ast.For))]
        if any(_puts_to_training(part, text, there) for part in parts):
            return None
        frozen = next((part for part in parts if _freezes_text(part, text, there)), None)
        if frozen is None:
            continue
        made = there.inference.origins(value)
        pretrained = all(_is_pretrained(item, there) for item in made)
        if pretrained or any(
            isinstance(part, ast.Call) and there.text(part.func) == f"{text}.eval" and not there.conditions(part)
            for part in parts
        ):
            return Frozen(frozen, there, pretrained)
    return None


def _freezes_text(part: ast.AST, text: str, ctx: FileFacts) -> bool:
    whole = _frozen_whole(part)
    return whole is not None and ctx.text(whole) == text and not ctx.conditions(part)


def _puts_to_training(part: ast.AST, text: str, ctx: FileFacts) -> bool:
    if not isinstance(part, ast.Call) or callee_name(part) != "train" or not isinstance(part.func, ast.Attribute):
        return False
    switched = ctx.text(part.func.value)
    return (switched == text or text.startswith(f"{switched}.")) and not _is_off(part)


def _part(text: str) -> str:
    """`self.encoder` of `self.encoder.transformer`."""
    names = text.split(".")
    return ".".join(names[:2]) if names[0] == "self" and len(names) > 1 and all(map(str.isidentifier, names)) else ""


def _files(there: FileFacts, through: ast.Call, ctx: FileFacts) -> Iterator[FileFacts]:
    """The files of the class, of the loop, and of those that call the loop's function."""
    paths = dict.fromkeys((there.path, ctx.path))
    waiting, seen = [ctx.scope(through)], set[Scope]()
    while waiting and len(seen) < 8:
        scope = waiting.pop()
        if scope in seen:
            continue
        seen.add(scope)
        for edge in ctx.program.callers(scope):
            paths[edge.caller.path] = None
            waiting.append(edge.caller)
    for path in paths:
        found = ctx.at(path)
        if found is not None:
            yield found


def _thaws(ctx: FileFacts) -> bool:
    """Whether a file gives gradients to any parameters, or may do so."""
    return ctx.mentions("requires_grad", "requires_grad_") and ctx.once(_gives_gradients, ctx.tree.module)


def _gives_gradients(module: ast.Module, _: FileFacts) -> bool:
    for item in walk(module):
        if isinstance(item, ast.Assign) and any(
            isinstance(target, ast.Attribute) and target.attr == "requires_grad" for target in item.targets
        ):
            if not is_constant(item.value, value=False):
                return True
        elif isinstance(item, ast.Call) and callee_name(item) == "requires_grad_" and not _is_off(item):
            return True
    return False


def _is_off(call: ast.Call) -> bool:
    return any(is_constant(item, value=False) for item in arguments_of(call))


def _freezing(part: str, ctx: FileFacts, owner: Ref) -> Iterator[tuple[ast.AST, FileFacts]]:
    """The statements that take the gradients from a part for good, whatever the options."""
    if not ctx.mentions("requires_grad", "requires_grad_"):
        return
    for item in walk(ctx.tree.module):
        whole = _frozen_whole(item)
        if whole is None or ctx.conditions(item) or ctx.program.never_runs(ctx.scope(item)):
            continue
        if _is_part(whole, part, ctx, owner):
            yield item, ctx


def _frozen_whole(item: ast.AST) -> ast.expr | None:
    """`m` of `m.requires_grad_(False)`, and of `for p in m.parameters(): p.requires_grad = False`."""
    if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute):
        return item.func.value if item.func.attr == "requires_grad_" and _is_off(item) else None
    if not isinstance(item, ast.For) or not isinstance(item.iter, ast.Call):
        return None
    func = item.iter.func
    if not isinstance(func, ast.Attribute) or func.attr not in PARAMETER_ITERATORS:
        return None
    # That what is bound is False, `_thaws` has told.
    off = any(
        (
            isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Attribute)
            and statement.targets[0].attr == "requires_grad"
        )
        or (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and callee_name(statement.value) == "requires_grad_"
        )
        for statement in item.body  # not under a test of the parameter's name
    )
    return func.value if off else None


def _is_part(whole: ast.expr, part: str, ctx: FileFacts, owner: Ref) -> bool:
    """Whether an expression is the part of the class: `self.encoder` in it, `model.encoder` elsewhere."""
    if not isinstance(whole, ast.Attribute) or whole.attr != part.partition(".")[2]:
        return False
    return _is_owner(whole.value, ctx, owner)


def _is_owner(value: ast.expr, ctx: FileFacts, owner: Ref) -> bool:
    if isinstance(value, ast.Name) and value.id == "self":
        around = ctx.tree.class_of(value)
        return around is not None and around.name == owner.name.rpartition(".")[2] and ctx.path == owner.path
    kind = ctx.kind(value)
    return (kind.path, kind.qualified) == (owner.path, owner.name)


def _made(part: str, there: FileFacts, owner: Ref) -> Iterator[tuple[ast.expr, FileFacts]]:
    """What the class binds to a part."""
    for node, where in class_of(Ref(CLASS, owner.path, owner.name), there):
        for item in walk(node):
            if isinstance(item, ast.Assign) and any(where.text(target) == part for target in item.targets):
                yield item.value, where


def _is_pretrained(made: ast.expr, ctx: FileFacts) -> bool:
    if not isinstance(made, ast.Call) or callee_name(made) != "from_pretrained":
        return False
    return root(ctx.target(made.func) or "") in _IN_EVALUATION


def _is_put_to_evaluation(part: str, there: FileFacts, owner: Ref) -> bool:
    return any(
        where.text(item.func) == f"{part}.eval" and not where.conditions(item)
        for node, where in class_of(Ref(CLASS, owner.path, owner.name), there)
        for item in walk(node)
        if isinstance(item, ast.Call)
    )


def _keeps_own_mode(part: str, there: FileFacts, owner: Ref) -> bool:
    """Whether the class's own `train` or `forward` puts the part to evaluation mode again."""
    return any(
        isinstance(item, ast.FunctionDef)
        and item.name in ("train", "forward")
        and any(isinstance(inner, ast.Call) and where.text(inner.func) == f"{part}.eval" for inner in walk(item))
        for node, where in class_of(Ref(CLASS, owner.path, owner.name), there)
        for item in node.body
    )


def _is_trained(part: str, owner: Ref, through: ast.Call, ctx: FileFacts, there: FileFacts) -> bool:
    """Whether a file may put the part, or what holds it, to training mode."""
    if not ctx.mentions("train"):
        return False
    text = ctx.text(through.func) if ctx is not there else ""
    for item in walk(ctx.tree.module):
        if not isinstance(item, ast.Call) or not isinstance(item.func, ast.Attribute) or item.func.attr != "train":
            continue
        if any(is_constant(given, value=False) for given in item.args):
            continue
        switched = item.func.value
        if _is_owner(switched, ctx, owner) or _is_part(switched, part, ctx, owner):
            return True
        kind = ctx.kind(switched)
        if not kind.known or (kind.tag is Tag.MODULE and not kind.qualified):
            return True
        if text and text.startswith(f"{ctx.text(switched)}."):
            return True
    return False
