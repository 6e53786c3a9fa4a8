"""What may need gradients, or tell that they are off, behind the calls of a function that is to run without them."""

from __future__ import annotations

import ast

from perflint.api import Context, Tag, callee_name, pattern

from ._evaluating import evaluated
from ._gradients import is_model_call

#: Names that only code has which walks a graph back where none may be recorded around it.
ASKING = frozenset({"enable_grad", "jacrev", "jacfwd", "jacobian", "hessian", "vjp", "jvp", "hvp"})
#: Names of code that does something else without gradients, or fails there: a hook needs a graph to hang on.
_TELLING = frozenset({"is_grad_enabled", "is_inference_mode_enabled", "register_hook", "retain_grad"})
#: Modules of torch that take another way in evaluation mode when nothing asks for gradients.
_FAST_PATHS = frozenset(
    (
        "MultiheadAttention TransformerEncoder TransformerEncoderLayer TransformerDecoder TransformerDecoderLayer LSTM "
        "LSTMCell"
    ).split()
)
#: Names of calls that may fit something, in code that cannot be seen.
_LEARNS = pattern(r"^_?(?:fit|adapt|train|tune|fine_?tune|learn|optimi[sz]e|calibrate|invert)(?:_|$)")
#: Functions that read what they are given, and learn nothing.
_READERS = frozenset("hasattr id isinstance getattr len print repr str type tqdm".split())


def is_scripted(function: ast.FunctionDef, ctx: Context) -> bool:
    decorators = (item.func if isinstance(item, ast.Call) else item for item in function.decorator_list)
    return any((ctx.target(item) or "").startswith("torch.jit.") for item in decorators)


def files_in_reach(parts: list[ast.AST], ctx: Context) -> set[str]:
    """The files that hold this function, its model's class or what it calls."""
    paths = {ctx.path}
    for part in parts:
        if isinstance(part, ast.Call):
            paths.update(ref.path for ref in ctx.refs(part.func) if ref.path)
            paths.update({ctx.kind(part.func).path} - {""})
    return paths


def gradients_in_reach(parts: list[ast.AST], ctx: Context) -> bool:
    """Whether a file in reach asks for gradients by itself."""
    paths = files_in_reach(parts, ctx)
    asks = any(ctx.program.mentions({name}, paths) for name in ASKING)
    return asks or (ctx.program.mentions({"autograd"}, paths) and ctx.program.mentions({"grad"}, paths))


def tells_of_gradients(parts: list[ast.AST], ctx: Context) -> bool:
    """Whether a file in reach does something else where gradients are off, or hangs a hook on a graph."""
    return ctx.program.mentions(_TELLING, files_in_reach(parts, ctx))


def may_learn(part: ast.AST, ctx: Context) -> bool:
    """Whether a call that cannot be followed is named for fitting something, or is given the model."""
    if not isinstance(part, ast.Call) or ctx.project_target(part.func) is not None:
        return False
    if (ctx.target(part.func) or "").startswith("torch.") or callee_name(part) in _READERS:
        return False
    if is_model_call(part, ctx) or evaluated(part):
        return False
    given = [*part.args, *(keyword.value for keyword in part.keywords)]
    return bool(_LEARNS.search(callee_name(part))) or any(ctx.kind(item).tag is Tag.MODULE for item in given)


def has_fast_path(ctx: Context) -> bool:
    """Whether the program has modules that compute in another way where gradients are off."""
    own = any("Transformer" in summary.classes for summary in ctx.program.summaries.values())
    return ctx.program.mentions(_FAST_PATHS) or (not own and ctx.program.mentions({"Transformer"}))
