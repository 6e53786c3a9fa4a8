"""What may need gradients, or tell that they are off, behind the calls of a function that is to run without them."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.mode_switches import evaluated
from perflint.analysis.gradients.model_calls import is_loss_function, is_model_call
from perflint.analysis.names.refs import INSTANCE, Ref, Refs, Scope
from perflint.analysis.naming.models import FITS
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import arguments_of, callee_name
from perflint.syntax.walk import walk

#: Names that only code has which walks a graph back where none may be recorded around it.
ASKING = frozenset({"enable_grad", "jacrev", "jacfwd", "jacobian", "hessian", "vjp", "jvp", "hvp"})
#: Names of code that does something else without gradients, or fails there: a hook needs a graph to hang on.
_TELLING = frozenset(
    (
        "is_grad_enabled is_inference_mode_enabled register_hook retain_grad grad_fn is_leaf lru_cache cached_property"
    ).split()
)
#: Modules of torch that take another way in evaluation mode when nothing asks for gradients.
_FAST_PATHS = frozenset(
    (
        "MultiheadAttention TransformerEncoder TransformerEncoderLayer TransformerDecoder TransformerDecoderLayer LSTM "
        "LSTMCell scaled_dot_product_attention matrix_norm svdvals eigvalsh"
    ).split()
)
#: Functions that read what they are given, and learn nothing.
_READERS = frozenset("hasattr id isinstance getattr len print repr str type tqdm".split())


def is_scripted(function: ast.FunctionDef, ctx: FileFacts) -> bool:
    decorators = (item.func if isinstance(item, ast.Call) else item for item in function.decorator_list)
    if any((ctx.target(item) or "").startswith("torch.jit.") for item in decorators):
        return True
    return any(
        isinstance(part, ast.Call)
        and any(isinstance(item, ast.Name) and item.id == function.name for item in part.args)
        and (ctx.target(part.func) or "").startswith("torch.jit.")
        for part in walk(ctx.tree.module)
    )


def files_in_reach(parts: list[ast.AST], ctx: FileFacts) -> set[str]:
    """The files that hold this function or what it calls, and what that calls; and those of the project's modules, of
    any of which the model may be made.
    """
    paths = {ctx.path, *ctx.program.whole.files_of_modules}
    for part in parts:
        if isinstance(part, ast.Call):
            paths.update(ref.path for ref in ctx.refs(part.func) if ref.path)
            paths.update({ctx.kind(part.func).path} - {""})
    calls = [part for part in parts if isinstance(part, ast.Call)]
    return paths | {scope.path for scope in _behind({ctx.scope(call) for call in calls}, ctx)}


def _behind(scopes: set[Scope], ctx: FileFacts) -> set[Scope]:
    """Functions, and all that they lead to."""
    seen, waiting = set(scopes), list(scopes)
    while waiting:
        for edge in ctx.program.graph.outgoing.get(waiting.pop(), ()):
            if edge.callee not in seen:
                seen.add(edge.callee)
                waiting.append(edge.callee)
    return seen


def outlasting(parts: list[ast.AST], ctx: FileFacts) -> str:
    """Why something that is computed there may outlive the function, or be none without gradients; empty when all that
    is run is known, and known to be harmless.
    """
    started: set[tuple[str, str, str]] = set()
    for part in parts:
        if not isinstance(part, ast.Call):
            continue
        refs = ctx.refs(part.func)
        if is_model_call(part, ctx) or is_loss_function(part.func, ctx):
            refs = _runs(part.func, ctx)
            if not refs:
                return f"the class of `{ctx.text(part.func)}` is not known, and may keep what it computes"
        elif not part.keywords and part.args and all(ctx.kind(item).tag in _PLAIN for item in part.args):
            continue  # `meter.update(loss.item(), n)`: numbers have no graph
        refs = tuple(ref for ref in refs if not ctx.program.is_subclass(ref, *_DATA))
        started.update((ref.kind, ref.path, ref.name) for ref in refs if ref.path)
    if ctx.program.whole.data_asks:
        return "the data asks for gradients as it is read"
    return _FAULTS[ctx.program.whole.outlasting(tuple(sorted(started)))]


_PLAIN = frozenset({Tag.NUMBER, Tag.STRING, Tag.NONE})
#: What is made of these is asked for data alone.
_DATA = ("Dataset", "IterableDataset", "Sampler", "BatchSampler", "DataLoader")
#: Classes of which a module is derived.
_BASES = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module", "torch.nn.modules.loss._Loss"})
#: Libraries whose modules keep nothing of what they compute.
_LIBRARIES = frozenset({"torch", "torchvision", "timm"})
_FAULTS = {
    "": "",
    "keeps": "what is run there may keep what it computes, which may be wanted with its graph",
    "asks": "what is run there asks for gradients, or does something else without them",
    "unseen": "what is run there calls what cannot be seen, and may keep what is computed",
    "hooks": "hooks run beside the modules of the program, and may keep what is computed",
}


def _runs(func: ast.expr, ctx: FileFacts) -> Refs:
    """The functions and the classes of the modules that may be called, empty where any other may be as well."""
    found = _told(ctx.refs(func))
    if found:
        return found
    kind = ctx.kind(func)
    told = _told((Ref(INSTANCE, kind.path, kind.qualified),)) if kind.qualified else ()
    return told or _passed(func, ctx)


def _passed(func: ast.expr, ctx: FileFacts) -> Refs:
    """The same of a parameter that is declared to be any module, by who calls the function."""
    function = ctx.tree.function_of(func)
    if not isinstance(func, ast.Name) or function is None or not _is_argument(func, ctx):
        return ()
    found: Refs = ()
    for edge in ctx.program.callers(ctx.own_scope(function)):
        told = _told(ctx.program.refs(ctx.program.argument(edge, func.id), edge.caller))
        if not told:
            return ()
        found += told
    return found


def _told(refs: Refs) -> Refs:
    """Those refs, if each says all of what is called."""
    told = all(ref.name not in _BASES and (ref.path or _is_of_library(ref)) for ref in refs)
    return refs if told else ()


def _is_of_library(ref: Ref) -> bool:
    return ref.name.partition(".")[0] in _LIBRARIES


def is_under_autocast(function: ast.FunctionDef, ctx: FileFacts) -> bool:
    """Whether a caller speaks of autocast, which keeps the weights that it casts until its region ends."""
    callers = (ctx.program.function(edge.caller) for edge in ctx.program.callers(ctx.own_scope(function)))
    return ctx.program.mentions({"autocast"}) and any("autocast" in caller.identifiers.split() for caller in callers)


def gradients_in_reach(parts: list[ast.AST], ctx: FileFacts) -> bool:
    """Whether a file in reach asks for gradients by itself."""
    paths = files_in_reach(parts, ctx)
    asks = any(ctx.program.mentions({name}, paths) for name in ASKING)
    return asks or (ctx.program.mentions({"autograd"}, paths) and ctx.program.mentions({"grad"}, paths))


def tells_of_gradients(parts: list[ast.AST], ctx: FileFacts) -> bool:
    """Whether a file in reach does something else where gradients are off, or hangs a hook on a graph."""
    return ctx.program.mentions(_TELLING, files_in_reach(parts, ctx))


def may_learn(part: ast.AST, ctx: FileFacts) -> bool:
    """Whether a call that cannot be followed is named for fitting something, or is given the model."""
    if not isinstance(part, ast.Call) or ctx.project_target(part.func) is not None:
        return False
    if (ctx.target(part.func) or "").startswith("torch.") or callee_name(part) in _READERS:
        return False
    if is_model_call(part, ctx) or evaluated(part):
        return False
    given = arguments_of(part)
    if isinstance(part.func, ast.Name) and not given and _is_argument(part.func, ctx):
        return True  # `on_end()`: whatever a caller wants done
    return bool(FITS.search(callee_name(part))) or any(ctx.kind(item).tag is Tag.MODULE for item in given)


def _is_argument(name: ast.Name, ctx: FileFacts) -> bool:
    function = ctx.tree.function_of(name)
    return function is not None and any(
        isinstance(item, ast.arg) and item.arg == name.id for item in walk(function.args)
    )


def has_fast_path(ctx: FileFacts) -> bool:
    """Whether the program has modules that compute in another way where gradients are off."""
    own = ctx.program.whole.has_class("Transformer")
    if ctx.program.mentions({"linalg"}) and ctx.program.mentions({"norm", "cond"}):
        return True  # norms of matrices by their singular values
    return ctx.program.mentions(_FAST_PATHS) or (not own and ctx.program.mentions({"Transformer"}))
