"""TPL903: two context managers joined by `and`, of which only the last one is entered."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Applicability, Context, Edit, Finding, Fix, Impact, Nodes, Rule

_MANAGERS = frozenset(
    "torch.autocast torch.amp.autocast torch.cuda.amp.autocast torch.cpu.amp.autocast torch.no_grad torch.enable_grad "
    "torch.inference_mode torch.set_grad_enabled torch.autograd.no_grad torch.autograd.set_grad_enabled "
    "torch.autograd.grad_mode.no_grad torch.autograd.grad_mode.set_grad_enabled "
    "torch.autograd.profiler.record_function torch.profiler.record_function "
    "torch.cuda.stream torch.cuda.device torch.nn.attention.sdpa_kernel".split()
)


class ContextDroppedByAnd(Rule):
    """`with a() and b():` enters `b()` only, so mixed precision or `no_grad` is silently left off.

    What it does

    Reports a `with` statement whose expression joins context managers of torch by `and` or `or`.

    Why is this slow?

    An object of a context manager is true, so `a() and b()` is `b()`, and `a() or b()` is `a()`. The other one is
    created and never entered: the block runs in float32 although it asks for autocast, or records a graph although it
    asks for no gradients.

    What to do

    Write `with a(), b():`.

    Fix safety

    Unsafe: the dropped context manager takes effect, which is what the code asks for, but not what it did.

    Not reported

    - Operands that are no calls of torch's context managers, such as flags.

    References

    - Python, the `with` statement: https://docs.python.org/3/reference/compound_stmts.html#the-with-statement
    """

    code, name = "TPL903", "context-dropped-by-and"
    impact = Impact.HIGH
    lasting = True
    numerics = "the dropped context takes effect"
    listens = (Nodes(ast.With, mentioning=("autocast", "no_grad", "inference_mode", "set_grad_enabled", "stream")),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.With)
        for item in node.items:
            joined = item.context_expr
            if not isinstance(joined, ast.BoolOp) or not all(_is_manager(part, ctx) for part in joined.values):
                continue
            entered = joined.values[-1 if isinstance(joined.op, ast.And) else 0]
            dropped = next(part for part in joined.values if part is not entered)
            word = "and" if isinstance(joined.op, ast.And) else "or"
            yield self.finding(
                joined,
                ctx,
                f"`{ctx.text(dropped)}` is created but never entered: `{word}` evaluates to `{ctx.text(entered)}`.",
                advice=f"Write `with {', '.join(ctx.text(part) for part in joined.values)}:`.",
                fix=Fix(
                    "Enter both context managers",
                    Applicability.UNSAFE,
                    (Edit(ctx.tree.span(joined), ", ".join(ctx.tree.text(part) for part in joined.values)),),
                    reason="the block then runs under a context that had no effect before",
                )
                if item.optional_vars is None and not _is_bracketed(joined, ctx)
                else None,
            )


def _is_manager(node: ast.expr, ctx: Context) -> bool:
    return isinstance(node, ast.Call) and ctx.target(node.func) in _MANAGERS


def _is_bracketed(node: ast.expr, ctx: Context) -> bool:
    """Whether parentheses around the whole would make a tuple of it."""
    span = ctx.tree.span(node)
    return ctx.source.lines[span.line - 1][: span.column - 1].rstrip().endswith("(")
