"""TPL403: a single layer or operation compiled on its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    EXTERNAL,
    EXTERNAL_INSTANCE,
    FUNCTION,
    INSTANCE,
    Calls,
    Context,
    Finding,
    Impact,
    Kind,
    LoopFacts,
    Ref,
    Rule,
    Scope,
    Tag,
    Tier,
    canonical,
    compiling,
    last,
    modules,
    tensors,
)

from ._shared.compiling import is_compile_call
from ._shared.forwards import arguments_by_name

#: Modules of torch.nn that are no single operation, and losses, which are large over a vocabulary.
_NOT_SINGLE = ("Sequential", "Transformer", "LSTM", "GRU", "RNN", "Loss", "Module", "DataParallel", "Softmax")
#: A forward of this many calls, of which as many are of layers, is a handful of operations.
_CALLS, _LAYERS = 6, 2


class CompileTinyModule(Rule):
    """`torch.compile` around one layer or one operation costs more than it saves.

    Why it is slow
    Every call of compiled code checks its guards and goes through a wrapper: 30 to 40 us. One layer has nothing to be
    fused with. Measured on a CPU with torch 2.13: a compiled `nn.Linear(32)` is 4.6 times slower than the layer itself,
    `torch.compile(torch.relu)` 22 times slower than `torch.relu`, a chain of pointwise operations on at most ten
    thousand numbers 1.3 times slower; a chain on a million numbers is 3.2 times faster, and six blocks of an MLP 1.2
    times. Compiling takes 2 to 30 seconds on top. A matrix product, a mask and another product gain nothing: both
    products are library calls already.

    What to write instead
    Compile the whole model, or its repeated blocks, and let the operation be fused with what stands around it.

    When to leave it
    `flex_attention`, which must be compiled to be fast, pointwise work on millions of numbers, losses and softmax over
    a vocabulary, an optimizer's step, repeated blocks: perflint is silent there. Code that asks for a module's class
    (`isinstance`, `match`) no longer finds it in what `torch.compile` gives back. Sizes cannot be seen in the source,
    which is why this rule is not on by default. A benchmark that compares the two on purpose is right to compile it.

    Fix safety
    There is no automatic fix: what to compile instead is for the author to say.
    """

    code, name = "TPL403", "compile-tiny-module"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    listens = (Calls("compile"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        compiled = _compiled(node, ctx)
        what = None if compiled is None else _single(compiled, ctx)
        if compiled is None or what is None:
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` compiles {what} on its own: checking the compiled code takes longer than there is to "
            "gain.",
            advice="Compile the model, or the block, that it is a part of.",
        )


def _compiled(node: ast.Call, ctx: Context) -> ast.expr | None:
    if is_compile_call(node, ctx):
        return node.args[0]
    if isinstance(node.func, ast.Attribute) and not node.args and ctx.kind(node.func.value).tag is Tag.MODULE:
        return node.func.value
    return None


def _single(node: ast.expr, ctx: Context) -> str | None:
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
        return f"`{kind.qualified}`, a few operations," if _is_small(made, ctx, held=_held(node, made, ctx)) else None
    return f"one `{last(kind.qualified)}`" if _is_layer(kind.qualified) else None


def _is_derived_from(kind: Kind, ctx: Context) -> bool:
    """Whether other classes of the project have this one as a base: what is compiled may be any of them."""
    return ctx.program.whole.has_derived(last(kind.qualified or ""))


def _is_layer(dotted: str) -> bool:
    name = canonical(dotted)
    return (
        modules.is_torch_module(name)
        and name not in modules.CONTAINER_MODULES
        and not any(word in name for word in _NOT_SINGLE)
    )


def _held(node: ast.expr, made: Ref, ctx: Context) -> frozenset[str]:
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


def _is_small_kind(kind: Kind, ctx: Context) -> bool:
    if kind.tag is not Tag.MODULE or not kind.qualified:
        return False
    return _is_small(Ref(INSTANCE, kind.path, kind.qualified), ctx, 1) if kind.path else _is_layer(kind.qualified)


def _is_small(ref: Ref, ctx: Context, depth: int = 2, held: frozenset[str] = frozenset()) -> bool:
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


def _is_small_part(ref: Ref, ctx: Context, depth: int) -> bool:
    if ref.kind == FUNCTION:
        facts = ctx.program.function(Scope(ref.path, ref.name))
        return not facts.calls and not facts.loops
    if ref.kind == INSTANCE:
        return depth > 0 and _is_small(ref, ctx, depth - 1)
    return ref.kind in (EXTERNAL, EXTERNAL_INSTANCE) and _is_layer(ref.name)
