"""TPL313: forwards that keep the activations of every layer for the one that is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    FUNCTION,
    Applicability,
    Calls,
    Context,
    Definition,
    Finding,
    Fix,
    Heat,
    Impact,
    Nodes,
    Rule,
    Scope,
    callee_name,
    definition_of,
    has_unpacking,
    is_constant,
    keyword,
    walk,
)

#: Calls that are given the switch and run no single forward.
_OTHERS = frozenset({"generate", "from_pretrained", "from_config", "update", "dict"})
_FILTERS = ("names_filter", "stop_at_layer")
#: One of these stands near such a call: what is read, or what switches gradients off.
_SWITCH = "output_hidden_states"
_MENTIONED = ("hidden_states", "no_grad", "inference_mode")
#: So many reads can be named in a filter.
_FEW = 2
_DEPTH = 3


class UnfilteredActivations(Rule):
    """A forward pass keeps the activations of every layer, but only one of them is read.

    What it does

    Reports `run_with_cache` without a filter and `output_hidden_states=True` where one layer of the result is read.

    Why is this slow?

    `run_with_cache` keeps every activation of the model, including attention patterns. `output_hidden_states=True`
    keeps one tensor of batch x length x width per layer. All of it stays in memory with the result, instead of a
    larger batch. Layers after the one that is read are computed for nothing.

    What to do

    Write `model.run_with_cache(tokens, names_filter="blocks.5.hook_resid_post")`, with `stop_at_layer=6` if the
    logits are not needed. For transformers models use the base model's `last_hidden_state` instead of
    `hidden_states[-1]`, or a forward hook on the layer.

    Fix safety

    Unsafe for `run_with_cache`: a cache is also read by short names of activations, and a filter takes full names only.
    There is no fix for `output_hidden_states`: `hidden_states[-1]` comes after the last norm in some models and before
    it in others.

    Not reported

    - Results of which several layers are read, or that are passed on as a whole.
    - Results with a use that perflint cannot see.

    Known limitations

    With gradients enabled, autograd keeps the hidden states of the layers for the backward pass anyway.

    References

    - torch.nn.Module:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook
    - transformers, model outputs: https://huggingface.co/docs/transformers/main_classes/output
    """

    code, name = "TPL313", "unfiltered-activations"
    impact = Impact.MEDIUM
    listens = (Calls("run_with_cache"), Nodes(ast.keyword, mentioning=_MENTIONED, written=(_SWITCH,)))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Call):
            yield from self._cache(node, ctx)
        elif isinstance(node, ast.keyword) and node.arg == _SWITCH:
            call = ctx.tree.parent(node)
            if isinstance(call, ast.Call) and is_constant(node.value, value=True):
                yield from self._hidden_states(call, ctx)

    def _cache(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        if has_unpacking(node) or any(keyword(node, name) is not None for name in _FILTERS):
            return
        reads = _Reads(node, ctx)
        keys = reads.of_cache()
        if not keys or len(keys) > _FEW:
            return
        names = " and ".join(f"`{key}`" for key in keys)
        wanted = keys[0] if len(keys) == 1 else f"[{', '.join(keys)}]"
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}` keeps every activation of the model, but only {names} "
            f"{'is' if len(keys) == 1 else 'are'} read.",
            advice=f"Keep only these: `names_filter={wanted}`.",
            fix=_filtered(node, reads.items, ctx),
        )

    def _hidden_states(self, node: ast.Call, ctx: Context) -> Iterator[Finding]:
        if callee_name(node) in _OTHERS:
            return
        if not ctx.grad_off(node) or not _is_repeated(node, ctx):
            return
        layers = _Reads(node, ctx).of_output()
        if layers is None or len(layers) != 1:
            return
        last = layers[0] == "-1"
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}` keeps the hidden states of every layer, but only `hidden_states[{layers[0]}]` "
            "is read.",
            advice="Read `last_hidden_state` of the base model, and remove the argument."
            if last
            else "Read this layer's output with a forward hook, and remove the argument.",
        )


def _filtered(call: ast.Call, items: list[ast.expr], ctx: Context) -> Fix | None:
    """The call with a filter, where the keys can be written so that they mean the same before the call."""
    keys = [_before(item, call, ctx) for item in items]
    if not all(keys):
        return None
    return Fix(
        "Keep only the activations that are read",
        Applicability.UNSAFE,
        (ctx.edit.set_keyword(call, "names_filter", keys[0] if len(keys) == 1 else f"[{', '.join(keys)}]"),),
        reason="a cache is also read by short names of activations, and a filter takes full names only",
        numerics="same bits",
    )


def _before(key: ast.expr, call: ast.Call, ctx: Context) -> str:
    """A key as it can be written at the call: itself, or what a name is bound to behind it; empty where it cannot."""
    if isinstance(key, ast.Name) and not _is_known_before(key, call, ctx):
        definitions = ctx.inference.flow.definitions(key)
        value = definitions[0].value if len(definitions) == 1 and not definitions[0].path else None
        if not isinstance(value, (ast.Constant, ast.JoinedStr)):
            return ""
        key = value
    return ctx.text(key) if _is_full_name(key) and _is_known_before(key, call, ctx) else ""


def _is_full_name(key: ast.expr) -> bool:
    """`"blocks.5.hook_resid_post"`, `f"blocks.{layer}.hook_z"`, and names of such texts."""
    if isinstance(key, ast.Constant):
        return isinstance(key.value, str) and "hook_" in key.value
    return isinstance(key, (ast.Name, ast.JoinedStr))


def _is_known_before(key: ast.expr, call: ast.Call, ctx: Context) -> bool:
    """Whether the names in a key have the values at the call that they have where the cache is read."""
    flow, statement = ctx.inference.flow, ctx.tree.statement_of(call)
    return all(
        set(flow.definitions_before(part.id, statement)[0]) == set(flow.definitions(part))
        for part in walk(key)
        if isinstance(part, ast.Name)
    )


def _is_repeated(call: ast.Call, ctx: Context) -> bool:
    """Whether a model runs again and again here: in hot code, or in a loop that is none over several models."""
    if ctx.heat(call) >= Heat.EPOCH:
        return True
    model = {part.id for part in walk(call.func) if isinstance(part, ast.Name)}
    return any(
        not isinstance(loop, (ast.For, ast.AsyncFor))
        or model.isdisjoint(part.id for part in walk(loop.target) if isinstance(part, ast.Name))
        for loop in ctx.loops(call)
    )


class _Reads:
    """What is read of the result of a call, where every use can be seen."""

    def __init__(self, call: ast.Call, ctx: Context, found: list[str] | None = None) -> None:
        self.call, self.ctx = call, ctx
        self.found: list[str] = [] if found is None else found
        self.items: list[ast.expr] = []
        #: The loops around the call, of which a function that is called knows nothing.
        self.around = {id(loop) for loop in ctx.tree.ancestors(call)} if found is None else set()

    def of_cache(self) -> list[str]:
        """The keys read of the cache that `run_with_cache` gives; none where it may be read in other ways."""
        parent = self.ctx.tree.parent(self.call)
        if isinstance(parent, ast.Subscript) and is_constant(parent.slice, value=1):
            return self.found if self._is_item(parent) else []
        if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
            return []
        target = parent.targets[0]
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(target.elts[1], ast.Name):
            return []
        uses = self._uses(target.elts[1])
        return self.found if uses and all(self._is_item(use) for use in uses) else []

    def of_output(self) -> list[str] | None:
        """The layers read of a model's output, None where it may be read in other ways."""
        return self.found if self._is_output(self.call, _DEPTH) else None

    def _uses(self, target: ast.Name) -> list[ast.Name]:
        flow = self.ctx.inference.flow
        made = flow.definition_at(target)
        if made is None or isinstance(self.ctx.tree.scope_of(target), (ast.Module, ast.ClassDef)):
            return []
        uses = flow.uses_of(made)
        return uses if all(self._is_alike(other) for use in uses for other in flow.definitions(use)) else []

    def _is_alike(self, made: Definition) -> bool:
        """Whether another value of the same name comes from a forward of the same kind."""
        if made.value is None or made.path != ((1,) if callee_name(self.call) == "run_with_cache" else ()):
            return False
        if isinstance(made.value, ast.Call):
            name, switch = callee_name(self.call), keyword(made.value, "output_hidden_states")
            return switch is not None or callee_name(made.value) == name == "run_with_cache"
        return True

    def _is_item(self, value: ast.expr) -> bool:
        """Whether one item of a mapping or tuple is read, the same on every turn of what is around it."""
        parent = self.ctx.tree.parent(value)
        if not isinstance(parent, ast.Subscript) or parent.value is not value or not isinstance(parent.ctx, ast.Load):
            return False
        if isinstance(parent.slice, ast.Slice) or self._varies(parent.slice):
            return False
        text = self.ctx.text(parent.slice)
        if text not in self.found:
            self.found.append(text)
            self.items.append(parent.slice)
        return True

    def _varies(self, key: ast.expr) -> bool:
        """Whether a key depends on what a loop behind the call binds."""
        for part in walk(key):
            if not isinstance(part, ast.Name):
                continue
            for made in self.ctx.inference.flow.definitions(part):
                if isinstance(made.node, ast.comprehension) and id(made.node) not in self.around:
                    return True
                loops = [made.node] if isinstance(made.node, ast.For) else self.ctx.loops(made.node)
                if any(id(loop) not in self.around for loop in loops):
                    return True
        return False

    def _is_output(self, value: ast.expr, depth: int) -> bool:
        parent = self.ctx.tree.parent(value)
        if isinstance(parent, ast.Assign) and parent.value is value and len(parent.targets) == 1 and depth:
            target = parent.targets[0]
            uses = self._uses(target) if isinstance(target, ast.Name) else []
            return bool(uses) and all(self._is_output(use, depth - 1) for use in uses)
        if isinstance(parent, ast.Attribute):
            return parent.attr != "hidden_states" or self._are_states(parent, depth)
        if isinstance(parent, ast.Subscript) and parent.value is value:
            if is_constant(parent.slice, value="hidden_states"):
                return self._are_states(parent, depth)
            return isinstance(parent.slice, ast.Constant) and (
                isinstance(parent.slice.value, str) or is_constant(parent.slice, value=0)
            )
        if isinstance(parent, ast.Call) and value in parent.args:
            return callee_name(parent) in ("hasattr", "isinstance") or self._is_read_by(parent, value, depth)
        return False

    def _are_states(self, value: ast.expr, depth: int) -> bool:
        parent = self.ctx.tree.parent(value)
        if isinstance(parent, ast.IfExp) and value is not parent.test:
            value, parent = parent, self.ctx.tree.parent(parent)
        if isinstance(parent, ast.Assign) and parent.value is value and len(parent.targets) == 1 and depth:
            target = parent.targets[0]
            uses = self._uses(target) if isinstance(target, ast.Name) else []
            return bool(uses) and all(self._are_states(use, depth - 1) for use in uses)
        if isinstance(parent, ast.Compare):
            return all(isinstance(item, ast.Constant) and item.value is None for item in parent.comparators)
        return self._is_item(value)

    def _is_read_by(self, call: ast.Call, value: ast.expr, depth: int) -> bool:
        """Whether a function of the project reads one item of the output that it is given."""
        ref = self.ctx.project_target(call.func)
        found = definition_of(Scope(ref.path, ref.name), self.ctx) if ref is not None and ref.kind == FUNCTION else None
        position = call.args.index(value)
        if found is None or not depth or position >= len(found[0].args.args):
            return False
        function, there = found
        uses = there.inference.flow.uses(function, function.args.args[position].arg)
        inside = _Reads(self.call, there, self.found)
        return bool(uses) and all(inside._is_output(use, depth - 1) for use in uses)
