"""TPL407: hooks put on parts of a module after its compiled form has run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Finding, Heat, Impact, Rule, walk
from perflint.api.gradients import CompiledAround, compiled_around, module_path

_REGISTRARS = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
)
_LAYERS_DEEP = 6


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
        owner = module_path(node.func.value, ctx, _LAYERS_DEEP)
        if owner is None:
            return
        for compiled in compiled_around(node, ctx):
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


def _is_part(owner: str, compiled: CompiledAround) -> bool:
    """Whether the hook goes on what the compiled code calls; on the compiled object itself hooks do run."""
    if owner.startswith((f"{compiled.path}.", f"{compiled.bound}.")):
        return True
    return owner == compiled.path and not compiled.in_place


def _has_run(compiled: CompiledAround, node: ast.Call, ctx: Context) -> bool:
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


def _calls(region: ast.AST, compiled: CompiledAround) -> list[tuple[int, int]]:
    """Where a region calls the compiled object itself."""
    return [
        (part.lineno, part.col_offset)
        for part in walk(region)
        if isinstance(part, ast.Call)
        and isinstance(part.func, (ast.Name, ast.Attribute))
        and ast.unparse(part.func) == compiled.bound
    ]
