"""TPL408: a Python counter on the module, counted up inside compiled code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import CLASS, Context, Finding, Heat, Impact, Nodes, Ref, Rule
from perflint.api.compiled import compiled_at


class CounterInCompiledForward(Rule):
    """An integer attribute that a compiled forward increments causes a recompilation for every value.

    What it does

    Reports `self.counter += 1` on an `int` attribute in a compiled forward.

    Why is this slow?

    An `int` on a module is a constant of the compiled code, guarded by its value. The next call has another value, so
    the guard fails and the function is compiled again, up to the limit. After that it runs eagerly.

    What to do

    Count in the training loop, outside of the compiled code. If the model needs the number, make it a buffer:
    `self.register_buffer("step", torch.zeros((), dtype=torch.long), persistent=False)` and `self.step += 1`.

    Fix safety

    No fix: a buffer changes the type of the attribute, and the state dict if it is persistent.

    Not reported

    - Buffers and floats, code that is not compiled, and `__init__`.
    - Projects that set `allow_unspec_int_on_nn_module`.
    - An int passed as an argument, which causes two compilations only.

    Measured

    Eight compilations in the first eight calls, then eager (torch 2.13; the settings are
    `torch._dynamo.config.recompile_limit` and `allow_unspec_int_on_nn_module`). A float attribute causes two
    compilations, a tensor buffer one.

    References

    - `torch.compile`: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
    - torch.nn.Module:
      https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer
    """

    code, name = "TPL408", "counter-in-compiled-forward"
    impact = Impact.MEDIUM
    listens = (Nodes(ast.AugAssign, ast.Assign, mentioning=("self",)),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        counter = _counter(node)
        if counter is None or ctx.guards(node):
            return
        place = compiled_at(node, ctx)
        if place is None or not _is_int(counter, node, ctx) or ctx.program.mentions(("allow_unspec_int_on_nn_module",)):
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` changes a guarded constant: every call recompiles, up to the limit of 8, and then "
            "runs eagerly.",
            advice=f"Count outside of the compiled code, or make `self.{counter}` a buffer.",
            related=(place,),
        )


def _counter(node: ast.AST) -> str | None:
    """The attribute of `self.x += 1` and `self.x = self.x + 1`."""
    if isinstance(node, ast.AugAssign):
        return _attribute(node.target) if isinstance(node.op, (ast.Add, ast.Sub)) else None
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.BinOp):
        name = _attribute(node.targets[0])
        if name is not None and isinstance(node.value.op, (ast.Add, ast.Sub)) and _attribute(node.value.left) == name:
            return name
    return None


def _attribute(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None


def _is_int(attribute: str, node: ast.AST, ctx: Context) -> bool:
    """Whether the attribute starts as an int, in the class or one it derives from."""
    cls = ctx.tree.class_of(node)
    if cls is None:
        return False
    for ref, name in ctx.program.whole.setters_of(Ref(CLASS, ctx.path, ctx.tree.qualname(cls)), attribute):
        values = ctx.program.summaries[ref.path].classes[ref.name].attributes.get(name, ())
        starts = [value for value, _ in values if isinstance(value, tuple) and value[0] == "const"]
        if starts:
            return all(value[1] == "int" for value in starts)
    return False
