"""TPL306: losses summed or collected with their graphs, for numbers alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    KEEPING,
    Calls,
    Confidence,
    Context,
    Finding,
    Heat,
    Hop,
    Impact,
    Nodes,
    Rule,
    callee_name,
)
from perflint.api.aliases import (
    Accumulated,
    accumulated,
    is_read_for_numbers,
    outlives_iteration,
)
from perflint.api.gradients import (
    carries_graph,
    goes_back,
    holds_walked_back,
    is_part_of_walked_back,
    is_walked_back,
    kept_by_call,
    may_carry_graph,
)
from perflint.api.loops import names_in
from perflint.api.names import SWITCHES_GRADIENTS

from ._fixes.detached import detached, detached_argument


class GraphKeptByAccumulator(Rule):
    """A loss that is accumulated with its autograd graph keeps the graph of every step alive.

    What it does

    Reports sums and lists of losses that keep their autograd graph although only numbers are read from them.

    Why is this slow?

    The sum refers to each loss, and each loss to its graph. After a `backward` the graph's nodes remain in host
    memory. Without a `backward` all activations remain as well.

    What to do

    Accumulate the detached value: `total += loss.detach()`. `.item()` also works, but synchronizes each time.

    Fix safety

    Safe if the backward pass of each loss runs in the same iteration and the accumulated value is only read: same
    bits. Otherwise unsafe: the value may not be a tensor, and text made from the tensor itself, as by `print(total)`,
    contains `grad_fn=...`, which the fix removes.

    Not reported

    - Sums whose own backward pass runs: several losses in one, unrolled networks, returns of an episode.
    - Accumulated values with a use that perflint cannot see, or that is not a read of a number.
    - Code with gradients off.

    Measured

    A network of 20 layers: about 45 KiB of host memory per step (4.3 GB after 100,000 steps) after a `backward`, 2.5
    MiB per step without one (CPU, torch 2.13).

    References

    - FAQ, my model reports "cuda runtime error(2): out of memory":
      https://docs.pytorch.org/docs/stable/notes/faq.html
    - `torch.Tensor.detach`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
    """

    code, name = "TPL306", "graph-kept-by-accumulator"
    numerics = "same bits"
    impact = Impact.HIGH
    at_least = Heat.STEP
    listens = (Nodes(ast.AugAssign, ast.Assign, repeated=True), Calls("append", doing=(KEEPING,)))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Call) and callee_name(node) != "append":
            yield from self._handed_over(node, ctx)
            return
        kept = accumulated(node, ctx)
        if kept is None or not may_carry_graph(kept.value, ctx) or ctx.grad_off(node):
            return
        loop = ctx.loops(node)[0]
        # What the text alone tells comes first: nearly every list that grows is refused by it.
        if not outlives_iteration(kept, node, loop, ctx):
            return
        walked = holds_walked_back(kept.value, loop, ctx) if isinstance(node, ast.Call) else None
        if walked is not None:
            yield self._of_several(node, kept, walked, ctx)
            return
        if not is_read_for_numbers(kept, node, ctx):
            return
        walked_back = is_walked_back(kept.value, loop, ctx)
        if not walked_back and (goes_back(loop) or not carries_graph(kept.value, loop, ctx)):
            return
        # What was walked back had a graph, whatever is switched elsewhere.
        if not walked_back and _switches_gradients(node, ctx):
            return
        value, fix = ctx.text(kept.value), detached(kept, node, ctx)
        held = "its graph" if walked_back else "its graph and all activations"
        yield self.finding(
            node,
            ctx,
            f"`{kept.text}` keeps `{value}` of every iteration with {held}, but only numbers are read from it.",
            advice=f"Keep `{value}.detach()`."
            if isinstance(kept.value, ast.Name) and fix is not None
            else "Detach it before you keep it.",
            fix=fix,
        )

    def _of_several(self, node: ast.AST, kept: Accumulated, walked: ast.expr, ctx: Context) -> Finding:
        """`losses.append(parts)` after `parts["total"].backward()` or `sum(parts).backward()`: nobody can go back
        through the rest any more.
        """
        value = ctx.text(kept.value)
        is_tuple = isinstance(walked, ast.Call) and isinstance(walked.args[0], ast.Name)
        detached_parts = (
            f"[part.detach() for part in {value}]"
            if is_tuple
            else f"{{key: value.detach() for key, value in {value}.items()}}"
        )
        return self.finding(
            node,
            ctx,
            f"`{kept.text}` keeps the tensors of `{value}` of every iteration with their graphs, which `backward` has "
            "already used.",
            advice=f"Keep detached values: `{detached_parts}`.",
            confidence=Confidence.MEDIUM,
        )

    def _handed_over(self, call: ast.Call, ctx: Context) -> Iterator[Finding]:
        """`self.log.keep({"aux": aux})`, where `keep` appends what it is given to what outlives the step."""
        loops = ctx.loops(call)
        if not loops or ctx.grad_off(call):
            return
        for value, kept in kept_by_call(call, loops[0], ctx):
            if not is_walked_back(value, loops[0], ctx) and not is_part_of_walked_back(value, loops[0], ctx):
                continue
            yield self.finding(
                value,
                ctx,
                f"`{ctx.text(call.func)}` keeps `{ctx.text(value)}` of every step with its graph, which `backward` "
                "has already used.",
                advice=f"Pass `{ctx.text(value)}.detach()`.",
                fix=detached_argument(value, call, ctx),
                related=(Hop(kept.path, kept.line, "it is kept here"),),
            )


def _switches_gradients(node: ast.AST, ctx: Context) -> bool:
    """Whether something in the function around may switch gradients."""
    function = ctx.tree.function_of(node)
    return function is not None and any(SWITCHES_GRADIENTS.search(name) for name in names_in(function))
