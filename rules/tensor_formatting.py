"""TPL203: device tensors made into text on every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Claims, Context, Finding, Heat, Impact, Nodes, Rule
from perflint.api.phases import is_empty_case, is_line_per_epoch, is_tried_out, runs_rarely
from perflint.api.waits import (
    PRINTING_NAMES,
    certainty_of_text,
    device_read,
    finds_nothing,
    first_of_block,
    formatter_around,
    impact_at,
    is_asked_for,
    is_exceptional,
    is_formatter,
    is_tracker,
    names_a_file,
    printed_in,
    works_on_host,
)

from ._fixes.text_advice import advice_for_text, message_of_text


class TensorFormatting(Rule):
    """Printing, logging or formatting a device tensor on every step synchronizes, often many times.

    What it does

    Reports `print`, f-strings, `%` formatting, logger calls and progress bars that turn a device tensor into text on
    the hot path.

    Why is this slow?

    Text needs the values, so the host blocks until all queued GPU work has finished. Some forms read the tensor many
    times. `logger.debug(f"{t}")` reads it even if the level is disabled.

    What to do

    Print every N steps. Read the value once, as one number (`loss.item()`), and only where it is shown. If the level
    is disabled, `logger.debug("%s", t)` costs nothing. A progress bar redraws on each `set_postfix` (194 us; with
    `refresh=False` only when it is due).

    Fix safety

    No fix: only the author knows how often a line is needed, and `print(t)` shows a tensor differently from a number.

    Not reported

    - Shapes, dtypes, devices, numbers that are already on the host, and tensors on the CPU.
    - Text under an every-N guard, in an error or warning, or once per epoch, also if an epoch is one step or
      evaluates.
    - Numbers that are read right after another synchronization, with no forward, backward or step queued in between.
    - Text that only a flag (`if verbose`), a test of the tensor's values or a checkpoint produces.

    Measured

    Reads per expression on torch 2.13: `f"{t}"`, `f"{t:.3f}"` and `"%.3f" % t` of a 0-d tensor: 1; `print(t)`,
    `str(t)`, `"%s" % t` and `tqdm.set_postfix(loss=t)`: 8, plus a selection by a mask; an f-string of 5 elements: 15;
    `print` of a 100 x 100 matrix: 77. `str(t)` takes 103 us even on the CPU, 340 times an `.item()`.

    References

    - `torch.Tensor.item`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html
    - `torch.set_printoptions`: https://docs.pytorch.org/docs/stable/generated/torch.set_printoptions.html
    """

    code, name = "TPL203", "tensor-formatting"
    minor_beside_reads = True
    impact = Impact.HIGH
    listens = (Calls(*PRINTING_NAMES), Nodes(ast.JoinedStr, ast.BinOp))
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("read", "to-host")

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Mod):
            return
        assert isinstance(node, ast.expr)
        tracks = isinstance(node, ast.Call) and is_tracker(node, ctx)
        if not (tracks or is_formatter(node, ctx)) or formatter_around(node, ctx) is not None:
            return
        if works_on_host(node, ctx) or is_exceptional(node, ctx) or names_a_file(node):
            return
        if is_asked_for(node, ctx) or is_empty_case(node, ctx) or runs_rarely(node, ctx) or is_tried_out(node, ctx):
            return
        if is_line_per_epoch(node, ctx):
            return
        printed = list(printed_in(node, ctx))
        if tracks:
            printed = [item for item in printed if device_read(item.value, ctx) is None]
        if not printed or (all(item.waits == 1 for item in printed) and finds_nothing(node, ctx)):
            return
        yield self.finding(
            node,
            ctx,
            message_of_text(node, printed, ctx, tracks=tracks),
            advice=advice_for_text(printed, ctx),
            confidence=min(self.confidence, *(certainty_of_text(item, ctx) for item in printed)),
            impact=impact_at(node, ctx),
            block=first_of_block(node, ctx),
        )
