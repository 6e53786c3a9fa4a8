"""What is one layer, one operation, or a module of a few of them."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import arguments_by_name
from perflint.analysis.names.refs import EXTERNAL, EXTERNAL_INSTANCE, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.values.kind import Kind, Tag
from perflint.ir.summary import LoopFacts
from perflint.torch_model import compiling, modules, tensors
from perflint.torch_model.names import canonical, last

#: Modules of torch.nn that are no single operation, and losses, which are large over a vocabulary.
_NOT_SINGLE = ("Sequential", "Transformer", "LSTM", "GRU", "RNN", "Loss", "Module", "DataParallel", "Softmax")
#: A forward of this many calls, of which as many are of layers, is a handful of operations.
_CALLS, _LAYERS = 6, 2


def single_operation(node: ast.expr, ctx: FileFacts) -> str | None:
    """What is compiled, in words, when it is one layer, one operation, or a project's module of a few of them."""
    target = ctx.target(node)
    if target is not None and (target in tensors.FUNCTIONS or target.startswith(tensors.FUNCTIONAL_MODULES)):
        vocabulary = "loss" in target or "entropy" in target or "softmax" in target
        return None if target in compiling.MADE_FOR_COMPILING or vocabulary else f"the operation `{target}`"
    kind = ctx.kind(node)
    if kind.tag is not Tag.MODULE or not kind.qualified:
        return None
    if kind.path and ("Loss" in kind.qualified or _is_derived_from(kind, ctx)):
        return None
    if kind.path:
        made = Ref(INSTANCE, kind.path, kind.qualified)
        return f"`{kind.qualified}` (a few operations)" if _is_small(made, ctx, held=_held(node, made, ctx)) else None
    return f"one `{last(kind.qualified)}`" if _is_layer(kind.qualified) else None


def _is_derived_from(kind: Kind, ctx: FileFacts) -> bool:
    """Whether other classes of the project have this one as a base: what is compiled may be any of them."""
    return ctx.program.whole.has_derived(last(kind.qualified or ""))


def _is_layer(dotted: str) -> bool:
    name = canonical(dotted)
    return (
        modules.is_torch_module(name)
        and name not in modules.CONTAINER_MODULES
        and not any(word in name for word in _NOT_SINGLE)
    )


def _held(node: ast.expr, made: Ref, ctx: FileFacts) -> frozenset[str]:
    """The attributes of a wrapper for which it is given a layer, or a module of a few operations, where it is made."""
    origins = ctx.inference.origins(node)
    init = ctx.program.resolver.method(made, "__init__")
    if len(origins) != 1 or not isinstance(origins[0], ast.Call) or init is None or not init.path:
        return frozenset()
    summary = ctx.program.summaries[init.path]
    facts = summary.functions[init.name]
    given = arguments_by_name(origins[0], facts)
    set_once = {
        name: settings[0][0]
        for name, settings in summary.classes[facts.in_class].attributes.items()
        if len(settings) == 1 and settings[0][1] == init.name
    }
    return frozenset(
        f"self.{name}"
        for name, value in set_once.items()
        if isinstance(value, str) and value in given and _is_small_kind(ctx.kind(given[value]), ctx)
    )


def _is_small_kind(kind: Kind, ctx: FileFacts) -> bool:
    if kind.tag is not Tag.MODULE or not kind.qualified:
        return False
    return _is_small(Ref(INSTANCE, kind.path, kind.qualified), ctx, 1) if kind.path else _is_layer(kind.qualified)


def _is_small(ref: Ref, ctx: FileFacts, depth: int = 2, held: frozenset[str] = frozenset()) -> bool:
    """Whether a class of the project has a forward of a few calls, of single layers or of modules as small. The
    attributes in `held` are known to be such.
    """
    forward = ctx.program.resolver.method(ref, "forward")
    if forward is None or not forward.path:
        return False
    scope = Scope(forward.path, forward.name)
    facts = ctx.program.function(scope)
    if len(facts.calls) > _CALLS or not all(_is_bookkeeping(loop) for loop in facts.loops):
        return False
    layers = set()
    for call in facts.calls:
        if not (isinstance(call.func, str) and call.func.startswith("self.")):
            continue
        if call.func in held:
            layers.add(call.func)
            continue
        refs = ctx.program.refs(call.func, scope)
        if not refs or not all(_is_small_part(item, ctx, depth) for item in refs):
            return False
        if any(item.kind != FUNCTION for item in refs):
            layers.add(call.func)
    return len(layers) <= _LAYERS


def _is_bookkeeping(loop: LoopFacts) -> bool:
    """A loop through a dict."""
    made = loop.iterable
    return isinstance(made, tuple) and made[0] == "call" and isinstance(made[1], str) and made[1].endswith(".items")


def _is_small_part(ref: Ref, ctx: FileFacts, depth: int) -> bool:
    if ref.kind == FUNCTION:
        facts = ctx.program.function(Scope(ref.path, ref.name))
        return not facts.calls and not facts.loops
    if ref.kind == INSTANCE:
        return depth > 0 and _is_small(ref, ctx, depth - 1)
    return ref.kind in (EXTERNAL, EXTERNAL_INSTANCE) and _is_layer(ref.name)
