"""TPL703: float32 products at full precision on tensor cores."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Confidence,
    Context,
    Finding,
    Impact,
    Loops,
    Rule,
    Tag,
    Tier,
    callee_name,
    is_constant,
    keyword,
    precision,
    walk,
)
from perflint.api.names import CONVOLVES
from perflint.api.phases import (
    identifiers_below,
    identifiers_near,
    is_about_agents,
    is_training_loop,
    shares_on_the_host,
    trains_one_layer,
)

_LAST_LAYERS = frozenset({"Linear", "LazyLinear"})
_SILENT = precision.NEEDS_DIGITS | precision.TENSOR_CORES | precision.POLICIES | {"half"}


class Tf32Off(Rule):
    """float32 matmuls run without TF32, so tensor cores stay idle.

    What it does

    Reports training code with float32 matmuls in a program that never allows TF32. One finding per file.

    Why is this slow?

    Since torch 1.12, float32 matmuls do not use the tensor cores of Ampere and later devices by default:
    `torch.get_float32_matmul_precision()` is "highest". "high" allows them, with a mantissa of about 10 bits.
    Convolutions use TF32 by default.

    What to do

    Call `torch.set_float32_matmul_precision("high")` once at the start. Do not combine it with the newer
    `torch.backends.cuda.matmul.fp32_precision = "tf32"`, after which the older functions raise RuntimeError.

    Fix safety

    No fix: results change in the fourth digit.

    Not reported

    - Programs that name any of the switches, also Hugging Face's `tf32=`.
    - Files that enter `autocast`, and code that runs in bfloat16 or float16 throughout.
    - Convolutional networks whose only matmul is the last layer, and agents of reinforcement learning.
    - The CPU.

    Known limitations

    The source does not prove a gain, so this rule is off by default. Devices before Ampere gain nothing, and some
    numbers need all digits.

    References

    - `torch.set_float32_matmul_precision`:
      https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html
    - CUDA semantics, TensorFloat-32: https://docs.pytorch.org/docs/stable/notes/cuda.html#tf32-on-ampere
    """

    code, name = "TPL703", "tf32-off"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Loops(),)
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if not ctx.mentions("torch") or not _runs_a_model(node, ctx) or ctx.program.mentions(precision.TENSOR_CORES):
            return
        names = set(identifiers_near(node, ctx))
        if not names & precision.ACCELERATORS or names & _SILENT:
            return
        if any("mixed_precision" in name.lower() for name in names):
            return
        # By a name of its own, as `amp_autocast`, it is handed over, and may be no more than `nullcontext`.
        if "autocast" in identifiers_below(node, ctx):
            return
        # A function of the project's own by that name says nothing of what it makes.
        names -= {facts.name for facts in ctx.summary.functions.values()} & precision.PRODUCTS
        names -= _own_factories(names, ctx)
        if (
            not _multiplies(names)
            or is_about_agents(node, ctx)
            or trains_one_layer(node, ctx)
            or shares_on_the_host(ctx)
        ):
            return
        if _is_narrow(ctx) or _first(ctx) is not node:
            return
        yield self.finding(
            node,
            ctx,
            "float32 matmuls in this loop run without TF32, so tensor cores stay idle.",
            advice='Call `torch.set_float32_matmul_precision("high")` at the start, and compare the results.',
        )


def _multiplies(names: set[str]) -> bool:
    """Whether products are more than the last layer of a net of convolutions."""
    if names & precision.PRODUCTS:
        return True
    return bool(names & precision.HEADS) and not any(CONVOLVES.search(name) for name in names)


def _own_factories(names: set[str], ctx: Context) -> set[str]:
    """The makers of models that the program defines itself, in a program that multiplies nothing but last layers."""
    own = {name for name in precision.PRODUCTS.intersection(names) if ctx.program.named(name)}
    products = (precision.PRODUCTS | precision.HEADS) - own - _LAST_LAYERS
    return set() if ctx.program.mentions(products) else own


def _runs_a_model(node: ast.AST, ctx: Context) -> bool:
    """Whether a loop trains, or runs a module on every batch."""
    if not isinstance(node, (ast.For, ast.AsyncFor, ast.While)) or not ctx.is_root_loop(node):
        return False
    if is_training_loop(node, ctx):
        return True
    if ctx.role(node.body[0]) not in ("eval", "batches"):
        return False
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, (ast.Name, ast.Attribute))
        and ctx.kind(part.func).tag is Tag.MODULE
        for statement in node.body
        for part in walk(statement)
    )


def _first(ctx: Context) -> ast.AST | None:
    """The first loop of the file that runs a model: what is said holds for all of them."""
    loops = [part for part in walk(ctx.tree.module) if isinstance(part, (ast.For, ast.AsyncFor, ast.While))]
    loops.sort(key=lambda loop: loop.lineno)
    return next((loop for loop in loops if _runs_a_model(loop, ctx)), None)


def _is_narrow(ctx: Context) -> bool:
    """Whether the file enters autocast by its name, or makes its models narrower."""
    for part in walk(ctx.tree.module):
        if isinstance(part, (ast.With, ast.AsyncWith)):
            if any(isinstance(item.context_expr, ast.Call) and _is_autocast(item.context_expr) for item in part.items):
                return True
        elif isinstance(part, ast.keyword) and part.arg in ("dtype", "torch_dtype"):
            if ctx.text(part.value) in ("torch.bfloat16", "torch.float16"):
                return True
    return False


def _is_autocast(call: ast.Call) -> bool:
    return callee_name(call) == "autocast" and not is_constant(keyword(call, "enabled"), False)  # noqa: FBT003
