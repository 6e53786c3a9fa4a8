"""TPL305: the cache emptied before the garbage that fills it is collected."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Context, Effect, Finding, Hop, Impact, Rule, is_wrapper

from ._fixes.collect_first import collect_first


class EmptyCacheBeforeGc(Rule):
    """Emptying the cache before a garbage collection keeps the memory that the collection frees reserved.

    What it does

    Reports `torch.cuda.empty_cache()` directly before `gc.collect()`.

    Why is this slow?

    `gc.collect()` frees tensors in reference cycles, and their blocks return to PyTorch's cache. A
    `torch.cuda.empty_cache()` that ran before does not release them.

    What to do

    Call `gc.collect()` first and `torch.cuda.empty_cache()` second.

    Fix safety

    Safe: the two are adjacent statements whose results are not used. Same bits. Unsafe if objects of the project run
    code when they are collected (`__del__`, weak references, `gc` callbacks), or if the argument of `gc.collect` is
    computed.

    Not reported

    - Calls that are not adjacent.
    - Calls on the hot path: gc-in-hot-loop and empty-cache-in-hot-loop report those.

    References

    - `torch.cuda.memory.empty_cache`:
      https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html
    - gc: https://docs.python.org/3/library/gc.html
    """

    code, name = "TPL305", "empty-cache-before-gc"
    numerics = "same bits"
    impact = Impact.LOW
    listens = (Calls("empty_cache", doing=(Effect.EMPTIES,)),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        statement = ctx.tree.statement_of(node)
        assert isinstance(node, ast.Call)
        if not (isinstance(statement, ast.Expr) and statement.value is node and _only(Effect.EMPTIES, statement, ctx)):
            return
        beside = ctx.tree.block_of(statement)
        at = beside.index(statement)
        before, after, last = (_at(beside, place) for place in (at - 1, at + 1, at + 2))
        if after is None or not _only(Effect.COLLECTS, after, ctx):
            return
        if _does(Effect.EMPTIES, last, ctx) or _does(Effect.COLLECTS, before, ctx):
            return  # emptied behind it as well, or collected before as well
        plain = all(_is_of_library(item, ctx) for item in (statement, after))
        yield self.finding(
            node,
            ctx,
            (
                f"`{ctx.text(node)}` runs before `{ctx.text(after)}`, so the memory that the collection frees stays "
                "reserved."
            ),
            advice=f"Call `{ctx.text(after)}` first.",
            fix=collect_first(statement, after, ctx, plain=plain),
            related=tuple(_sites(statement, after, ctx)),
        )


def _only(effect: Effect, statement: ast.stmt, ctx: Context) -> bool:
    """Whether a statement is a call that is there for one effect: of the library, or of a wrapper that does no more."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    effects = ctx.effects(statement.value)
    other = Effect.COLLECTS if effect is Effect.EMPTIES else Effect.EMPTIES
    return is_wrapper(effects, effect) and not effects.does(other)


def _does(effect: Effect, statement: ast.stmt | None, ctx: Context) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    return ctx.effects(statement.value).does(effect)


def _is_of_library(statement: ast.stmt, ctx: Context) -> bool:
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    return ctx.target(statement.value.func) is not None


def _sites(statement: ast.Expr, after: ast.stmt, ctx: Context) -> Iterator[Hop]:
    """Where wrappers free what they free."""
    for item, effect in ((statement, Effect.EMPTIES), (after, Effect.COLLECTS)):
        assert isinstance(item, ast.Expr)
        assert isinstance(item.value, ast.Call)
        witness = ctx.effects(item.value).witness(effect)
        if witness is not None and witness.depth:
            yield Hop(witness.path, witness.line, f"`{witness.text}` is called here")


def _at(block: list[ast.stmt], place: int) -> ast.stmt | None:
    return block[place] if 0 <= place < len(block) else None
