"""TPL402: `torch.compile` called again on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Calls, Context, Finding, Fix, Heat, Impact, Rule, arguments_of
from perflint.api.compiled import is_compile_call


class CompileInHotPath(Rule):
    """`torch.compile` on every step creates a new wrapper and checks the compiled code again each time.

    What it does

    Reports `torch.compile(...)` calls on the hot path.

    Why is this slow?

    Compiled code is cached per code object, so a second `torch.compile(f)` does not compile again on current torch.
    The cost is the new wrapper. It does recompile if the function closes over a number that changes, if mode or
    options change, and on older torch.

    What to do

    Compile once, before the loop or in `__init__`, and call the result. `module.compile()` compiles in place and
    keeps the keys of the state dict; `torch.compile(module)` adds the prefix `_orig_mod.`.

    Fix safety

    Unsafe: the call moves before its loop and runs even if the loop has no iterations. Same bits.

    Not reported

    - Set-up loops that compile the layers of a model one by one (regional compilation is recommended).
    - Decorators at module level.
    - Lazy compilation whose result is cached.
    - Benchmarks that compare configurations.

    Measured

    The wrapper takes 555 us per call for a function and 783 us for a module, against 14 and 58 us for a kept compiled
    object. Five calls in a row cause one compilation, with a new module or inner function each time as well; closing
    over five different numbers causes five (torch 2.13, CPU).

    References

    - `torch.compile`: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
    """

    code, name = "TPL402", "compile-in-hot-path"
    numerics = "same bits"
    impact = Impact.MEDIUM
    listens = (Calls("compile", "optimize"),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not is_compile_call(node, ctx) or ctx.guards(node) or _is_kept(node, ctx):
            return
        compiled = ctx.text(node.args[0])
        yield self.finding(
            node,
            ctx,
            (
                f"`{ctx.text(node)}` {ctx.heat(node).phrase}: each call creates a new wrapper and checks the compiled "
                "code again."
            ),
            advice=f"Compile `{compiled}` once, before the loop, and call the result."
            if compiled.isidentifier()
            else "Compile once, before the loop, and call the result.",
            fix=_before_the_loop(node, ctx),
        )


def _is_kept(node: ast.Call, ctx: Context) -> bool:
    """Whether the result is stored for later steps: in an attribute, an item, or a container."""
    parent = ctx.tree.parent(node)
    if isinstance(parent, ast.Assign):
        return any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in parent.targets)
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "append"


def _before_the_loop(node: ast.Call, ctx: Context) -> Fix | None:
    loop = _outermost(node, ctx)
    if loop is None:
        return None
    name = ctx.edit.free_name("compiled")
    return Fix(
        "Compile once before the loop",
        Applicability.UNSAFE,
        (ctx.edit.insert_before(loop, f"{name} = {ctx.tree.text(node)}"), ctx.edit.replace(node, name)),
        reason="it is compiled even if the loop has no iterations",
    )


def _outermost(node: ast.Call, ctx: Context) -> ast.stmt | None:
    """The outermost loop of the function in which everything the call is given stays the same."""
    found: ast.stmt | None = None
    given = arguments_of(node)
    for loop in ctx.loops(node):
        if not all(ctx.inference.flow.is_invariant(item, loop) for item in given):
            break
        found = loop
    return found
