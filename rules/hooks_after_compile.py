"""TPL407: hooks put on parts of a module after its compiled form has run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, walk

from ._shared.compiling import is_compile_call

_REGISTRARS = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
)
#: Methods that hand out the parts of a module.
_PARTS = frozenset("get_submodule modules named_modules children named_children items values _modules".split())
_LAYERS_DEEP = 6


class _Compiled(NamedTuple):
    """`path` is compiled by `call`; `bound` is the name of what runs compiled (the path itself where in place)."""

    call: ast.Call
    path: str
    bound: str

    @property
    def in_place(self) -> bool:
        return self.path == self.bound


class HooksAfterCompile(Rule):
    """A hook that is registered on a submodule after the compiled module has run is silently ignored.

    What it does

    Reports hooks on a part of a compiled module that are registered after its first call.

    Why is this slow?

    It is worse than slow: the hook is never called. Compiled code calls only the hooks that existed at compilation,
    that is, at the first call (`torch._dynamo.config.skip_nnmodule_hook_guards`). If the hooks vary between calls,
    values are wrong without a message.

    What to do

    Register hooks before the first call of the compiled model, and let them read a flag. To inspect one layer
    sometimes, return its output from `forward`, or call the uncompiled model.

    Fix safety

    No fix: the registration must move.

    Not reported

    - Hooks that are registered before the first call, also after `torch.compile` itself: compilation is lazy.
    - Hooks on the object that `torch.compile` returns: they run outside of the compiled code.
    - Hooks on a module that is compiled in place itself, and on tensors.

    Measured

    On torch 2.13 a forward hook that was registered after the first call was called 0 times in the next two calls,
    for `torch.compile(model)` and `model.compile()`. Registered before, it was called each time.

    References

    - `torch.compile`: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
    - torch.nn.Module:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook
    """

    code, name = "TPL407", "hooks-after-compile"
    impact = Impact.HIGH
    lasting = True
    listens = (Calls(*_REGISTRARS),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or ctx.program.mentions(("skip_nnmodule_hook_guards",)):
            return
        owner = _path(node.func.value, ctx, _LAYERS_DEEP)
        if owner is None:
            return
        for compiled in _compiled_around(node, ctx):
            if _is_part(owner, compiled) and _has_run(compiled, node, ctx):
                yield self.finding(
                    node,
                    ctx,
                    f"`{ctx.text(node.func)}(...)` comes after the first call of the compiled `{compiled.path}`, "
                    "which never calls this hook.",
                    advice=f"Register it before the first call of `{compiled.bound}`, or call the uncompiled model.",
                    related=(ctx.hop(compiled.call, "compiled here"),),
                )
                return


def _path(node: ast.expr, ctx: Context, depth: int) -> str | None:
    """The path a module is reached by: `self.net.layers[0]`, through names that stand for parts and through loops."""
    if depth == 0:
        return None
    if isinstance(node, ast.Name):
        made = ctx.inference.flow.definitions(node)
        if len(made) == 1 and made[0].value is not None and not is_compile_call(made[0].value, ctx):
            found = _path(made[0].value, ctx, depth - 1)
            return f"{node.id}" if found is None else found
        return node.id
    if isinstance(node, ast.Attribute):
        owner = _path(node.value, ctx, depth - 1)
        return None if owner is None else f"{owner}.{node.attr}"
    if isinstance(node, ast.Subscript):
        owner = _path(node.value, ctx, depth - 1)
        return None if owner is None else f"{owner}.[]"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PARTS:
        owner = _path(node.func.value, ctx, depth - 1)
        return None if owner is None else f"{owner}.[]"
    return None


def _compiled_around(node: ast.AST, ctx: Context) -> Iterator[_Compiled]:
    """What the same function compiles, and what any method of the same class compiles under a path of `self`."""
    around: ast.AST = ctx.tree.function_of(node) or ctx.tree.module
    own = {id(part) for part in walk(around)}
    cls = ctx.tree.class_of(node)
    for part in walk(cls or around):
        if not isinstance(part, ast.Call):
            continue
        found = _compiling(part, ctx)
        if found is not None and (id(part) in own or found.path.startswith("self.")):
            yield found


def _compiling(call: ast.Call, ctx: Context) -> _Compiled | None:
    if is_compile_call(call, ctx):
        path, parent = ctx.text(call.args[0]), ctx.tree.parent(call)
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            return _Compiled(call, path, ctx.text(parent.targets[0]))
        return None
    if isinstance(call.func, ast.Attribute) and call.func.attr == "compile" and not call.args:
        path = ctx.text(call.func.value)
        return None if ctx.target(call.func) is not None and path in ("re", "regex") else _Compiled(call, path, path)
    return None


def _is_part(owner: str, compiled: _Compiled) -> bool:
    """Whether the hook goes on what the compiled code calls; on the compiled object itself hooks do run."""
    if owner.startswith((f"{compiled.path}.", f"{compiled.bound}.")):
        return True
    return owner == compiled.path and not compiled.in_place


def _has_run(compiled: _Compiled, node: ast.Call, ctx: Context) -> bool:
    """Whether the compiled code has been called by the time the hook comes."""
    inside = ctx.tree.function_of(node)
    if inside is not ctx.tree.function_of(compiled.call):
        # Another method, run again and again: from its second run on at the latest.
        return ctx.heat(node) >= Heat.EPOCH
    after = (compiled.call.lineno, compiled.call.col_offset)
    loops = ctx.loops(node)
    if loops and loops[-1].lineno > compiled.call.lineno and _calls(loops[-1], compiled):
        return True
    before = (node.lineno, node.col_offset)
    return any(after < place < before for place in _calls(inside or ctx.tree.module, compiled))


def _calls(region: ast.AST, compiled: _Compiled) -> list[tuple[int, int]]:
    """Where a region calls the compiled object itself."""
    return [
        (part.lineno, part.col_offset)
        for part in walk(region)
        if isinstance(part, ast.Call)
        and isinstance(part.func, (ast.Name, ast.Attribute))
        and ast.unparse(part.func) == compiled.bound
    ]
