"""TPL101: host batches moved to the device with a copy that waits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Claims,
    Confidence,
    Context,
    Device,
    Finding,
    Fix,
    Heat,
    Impact,
    Kind,
    Place,
    Rule,
    Tag,
    callee_name,
    has_unpacking,
    is_constant,
    keyword,
    last_name,
    pattern,
    tensors,
    walk,
)

from ._shared.callers import ways_in
from ._shared.device_branches import goes_to_xla, is_without_cuda
from ._shared.forwards import is_method_of_values
from ._shared.generating import beside_generation
from ._shared.loops import names_in
from ._shared.only_read import unread
from ._shared.sources import changes_later
from ._shared.transfers import (
    aligns,
    brought_down,
    constructor,
    has_unblocking_move,
    moves_in_its_own_way,
    only_converts,
)
from ._shared.waits import READ_NAMES, device_read, in_forward, uses_accelerator
from ._shared.wording import short_text

_MADE_THERE = tensors.CONSTRUCTORS | tensors.LIKE_CONSTRUCTORS
_CONSTRUCTORS = _MADE_THERE | frozenset(tensors.LEGACY_DTYPES)


class BlockingTransfer(Rule):
    """A host-to-device copy without `non_blocking=True` blocks the host until all queued GPU work has finished.

    What it does

    Reports `.to(device)` and `.cuda()` of a host tensor on the hot path that does not pass `non_blocking=True`.

    Why is this slow?

    A blocking copy synchronizes the current stream. The host cannot queue the next step until all earlier work has
    finished. With `non_blocking=True` the copy is queued like a kernel. It is asynchronous only from pinned memory:
    from pageable memory the driver stages the bytes and may still block. If the same call changes the dtype, a
    blocking copy also converts on the CPU first.

    What to do

    Write `batch.to(device, non_blocking=True)` and set `pin_memory=True` on the loader (see unpinned-loader).
    Prefetching the next batch on the same stream gains nothing more; overlap needs a second stream.

    If the tensor has the same values on every step, create it on the device once, or register it as a buffer.

    Fix safety

    Safe if the destination is certainly CUDA (`.cuda()`, a literal "cuda"), or one of CUDA and CPU (`"cuda" if
    torch.cuda.is_available() else "cpu"`), the value is certainly a tensor of a loader's batch, and nothing writes to
    it afterwards: same bits. Unsafe if the device comes from an option, because it may be MPS. Unsafe if the call
    also converts to an integer type in a project that uses its own streams.

    Not reported

    - Device-to-host copies: the host needs the values.
    - Modules, one-time moves, dtype conversions, and tensors that are already on the device.
    - Batches that Lightning, Trainer or accelerate move.
    - Inputs and results of steps that generate text or query a server.
    - Calls whose receiver may be of a project class with its own `to` or `cuda` that does not accept the option.

    Known limitations

    On MPS an asynchronous copy can corrupt data when the source is rebound (pytorch#189690); keep the blocking copy
    there. If the same loop also reads a value back on every step (`.item()`), the gain is small.

    References

    - `torch.Tensor.to`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html
    - A guide on good usage of non_blocking and pin_memory:
      https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
    """

    code, name = "TPL101", "blocking-transfer"
    impact = Impact.MEDIUM
    listens = (Calls("to", "cuda", "type"),)
    at_least = Heat.STEP
    needs_accelerator = True
    claims = Claims("to-device", adopts=("to-device",))

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or has_unpacking(node) or _asks_not_to_block(node):
            return
        put_off = _was_put_off(node, ctx)
        if not put_off and only_converts(node, ctx):
            return
        value = ctx.kind(node.func.value)
        if put_off or (value.place is Place.UNKNOWN and _is_batch_mover(node, ctx) and uses_accelerator(ctx)):
            value = value.but(tag=Tag.BATCH, place=Place.HOST, certainty=Confidence.MEDIUM)
        if not value.holds_tensors or value.place is not Place.HOST:
            return
        # Asked last: most of what is moved is on the device already, and where it is moved to takes long to find out.
        destination = Device.MAYBE if put_off else _destination(node, ctx)
        if destination is None or destination is Device.MPS or is_without_cuda(node, ctx) or _goes_to_xla(node, ctx):
            return
        if ctx.role(node) == "data" or _is_reported_elsewhere(node, ctx):
            return  # device-work-in-dataset and alloc-then-transfer say what is wrong there
        if ctx.role(node) == "texts":
            return  # the tokens of one text: a copy too small to gain anything, and what to do is to make batches
        if _moves_itself(node, ctx) or (aligns(node, ctx) and not _is_surely_host(node, value, ctx)):
            return
        if value.tag is Tag.BATCH and moves_in_its_own_way(node, ctx):
            return
        if not _is_sure_tensor(value) and has_unblocking_move(node, ctx):
            return  # a class of the project may be what is moved, whose method raises for the option
        if beside_generation(node, ctx) or _are_texts_as_a_convenience(node, ctx):
            return
        if _was_moved_in_place(node, ctx):
            return
        advice, movable = _advice(node, value, ctx)
        other = _other_wait(node, ctx)
        words = (
            f"`{ctx.text(node)}` {ctx.heat(node).phrase}, and the host waits there until the device has finished all "
            "that was queued."
        )
        if other is not None:
            words += f" Little is gained as long as `{short_text(other, ctx, 50)}` waits on every turn as well."
        yield self.finding(
            node,
            ctx,
            words,
            advice=advice,
            fix=self._fix(node, value, destination, ctx) if movable else None,
            confidence=min(self.confidence, max(value.certainty, Confidence.MEDIUM)),
            impact=Impact.LOW if other is not None else None,
        )

    @staticmethod
    def _fix(node: ast.Call, value: Kind, destination: Device, ctx: Context) -> Fix:
        assert isinstance(node.func, ast.Attribute)
        reason = ""
        if value.tag is Tag.BATCH and value.how == "made by a tokenizer":
            reason = "what a tokenizer gives knows the option from transformers 4.48 on"
        elif not destination.may_be_cuda:
            reason = "the device may be MPS, where an asynchronous copy can corrupt data"
        elif value.tag is not Tag.TENSOR or value.certainty is Confidence.LOW:
            reason = f"`{ctx.text(node.func.value)}` may be no plain tensor, and its `.to` may not know the option"
        elif _is_beside_streams(node, ctx):
            reason = "another stream may read the copy, or the host write to it, before it is done"
        elif _narrows(node, ctx):
            reason = "a value out of the range of the type becomes another one on the device than on the host"
        elif changes_later(node.func.value, node, ctx):
            reason = "the source is written to afterwards, while the copy may still be under way"
        elif (use := unread(node.func.value, node, ctx)) is not None:
            reason = f"what is done with `{ctx.text(use)}` may write into it, while the copy may still be under way"
        elif ctx.program.whole.pins_itself:
            reason = "the program pins memory itself, and may fill it anew while the copy is under way"
        return Fix(
            "Do not wait for the copy",
            Applicability.UNSAFE if reason else Applicability.SAFE,
            (ctx.edit.set_keyword(node, "non_blocking", "True"),),
            reason=reason,
            numerics="" if reason else "same bits",
        )


def _is_sure_tensor(value: Kind) -> bool:
    return value.is_tensor and value.certainty is Confidence.HIGH


def _goes_to_xla(call: ast.Call, ctx: Context) -> bool:
    return callee_name(call) == "to" and goes_to_xla(keyword(call, "device") or next(iter(call.args), None), ctx)


#: Types to which the host and the device convert alike; integers cut what is out of their range each in its own way.
_ALIKE = frozenset(
    f"torch.{name}"
    for name in "bool half float double float16 bfloat16 float32 float64 cfloat cdouble complex64 complex128".split()
)
_ALIKE_CLASSES = frozenset(f"torch.cuda.{name}Tensor" for name in "Bool Half BFloat16 Float Double".split())


def _narrows(call: ast.Call, ctx: Context) -> bool:
    """Whether the call converts to an integer type, or to one that cannot be told: a copy that waits does so on the
    host, any other there.
    """
    name = callee_name(call)
    if name == "type":
        return not all(ctx.target(item) in _ALIKE_CLASSES for item in call.args)
    types = [item.value for item in call.keywords if item.arg == "dtype"]
    types += call.args[1:2] if name == "to" else []
    types += [item for item in call.args[:1] if ctx.kind(item).tag is Tag.DTYPE]
    return any(ctx.target(item) not in _ALIKE and not isinstance(item, ast.Constant) for item in types)


_STREAMS = ("Stream", "ExternalStream", "set_stream")


def _is_beside_streams(call: ast.Call, ctx: Context) -> bool:
    """Whether code around, here or on the way here, has streams of its own: what they read does not wait for a copy
    that the host does not wait for.
    """
    paths = {ctx.path, *(edge.caller.path for edge in ways_in(ctx.scope(call), ctx))}
    return ctx.program.mentions(_STREAMS, paths)


#: Helpers that are called for what they do to a batch, not for what they give.
_IN_PLACE = pattern(r"(?:^|_)(?:to|2)_?(?:cuda|device|gpu)(?:_|$)|^_?(?:move|send|put)_\w*(?:batch|data|dict|inputs?)")
_MOVERS = pattern(
    r"(?:^|_)(?:to|2)_?(?:cuda|device|gpu)$|^_?(?:cast|move|send|copy|put)_(?:data|batch|samples?|inputs?)"
)


def _other_wait(node: ast.Call, ctx: Context) -> ast.Call | None:
    """What else reads the device in the same turn of the loop: the next copy finds little left to wait for."""
    loops = [loop for loop in ctx.loops(node) if ctx.body_heat(loop) >= Heat.STEP]
    reads = ctx.once(_device_reads, loops[0]) if loops else ()
    return next((part for part in reads if _runs_as_often(part, node, ctx)), None)


def _device_reads(loop: ast.AST, ctx: Context) -> list[ast.Call]:
    """The reads of the device in a loop, on every step."""
    return [
        part
        for part in ctx.walk(loop)
        if isinstance(part, ast.Call)
        and callee_name(part) in READ_NAMES
        and ctx.heat(part) >= Heat.STEP
        and device_read(part, ctx) is not None
    ]


def _runs_as_often(read: ast.Call, node: ast.Call, ctx: Context) -> bool:
    """Whether no test decides on a read that does not decide on the copy as well."""
    around = set(map(id, ctx.tree.ancestors(node)))
    for outer in ctx.tree.ancestors(read):
        if isinstance(outer, (ast.For, ast.AsyncFor, ast.While)) and id(outer) in around:
            return True
        if isinstance(outer, (ast.If, ast.IfExp)) and id(outer) not in around:
            return False
    return True


def _is_reported_elsewhere(node: ast.Call, ctx: Context) -> bool:
    """`torch.zeros(n).to(device)`, `x.pin_memory().to(device)`, `x.cpu().to(device)`: other rules say what is wrong."""
    assert isinstance(node.func, ast.Attribute)
    value = node.func.value
    if isinstance(value, ast.Call) and callee_name(value) == "pin_memory":
        return True
    made = constructor(value, _CONSTRUCTORS, ctx)
    if made is not None and (ctx.target(made.func) in _MADE_THERE or _is_empty(made)):
        return True
    return brought_down(node, ctx) is not None


def _is_empty(made: ast.Call) -> bool:
    """`torch.Tensor([])`: there is nothing to copy."""
    return not made.args or (isinstance(made.args[0], (ast.List, ast.Tuple)) and not made.args[0].elts)


def _is_batch_mover(call: ast.Call, ctx: Context) -> bool:
    """Whether the call moves the parameter of a helper that exists to move batches: `move_to_cuda(sample)`."""
    assert isinstance(call.func, ast.Attribute)
    function = ctx.tree.function_of(call)
    if function is not None and isinstance(call.func.value, ast.Subscript):
        return bool(_FETCHERS.search(function.name)) or _puts_back_itself(call, call.func.value, ctx)
    if isinstance(call.func.value, ast.Name) and _goes_through_batch(call, call.func.value, ctx):
        return True
    if function is None or not isinstance(call.func.value, ast.Name):
        return False
    names = {item.arg for item in (*function.args.posonlyargs, *function.args.args)}
    return call.func.value.id in names and bool(_MOVERS.search(function.name)) and "model" not in function.name


def _are_texts_as_a_convenience(call: ast.Call, ctx: Context) -> bool:
    """Whether a model that takes texts as well has made tokens of them: nothing that training does, and making them
    takes longer.
    """
    function = ctx.tree.function_of(call)
    if function is None or ctx.role(call) in ("train", "batches", "data") or not in_forward(call, ctx):
        return False
    return any(isinstance(part, ast.Call) and _is_tokenizer(part.func, ctx) for part in ctx.walk(function))


def _is_tokenizer(func: ast.expr, ctx: Context) -> bool:
    if last_name(func).endswith("tokenizer"):
        return True
    is_value = isinstance(func, (ast.Name, ast.Attribute)) and is_method_of_values(func)
    return not is_value and ctx.kind(func).tag is Tag.TOKENIZER


def _was_put_off(call: ast.Call, ctx: Context) -> bool:
    """Whether an autograd function's backward fetches what its forward copied to the host to save memory."""
    function = ctx.tree.function_of(call)
    cls = ctx.tree.parent(function) if function is not None else None
    if function is None or function.name != "backward" or not isinstance(cls, ast.ClassDef) or not call.args:
        return False
    kept = function.args.args[0].arg if function.args.args else ""
    if not ctx.text(call.args[0]).startswith(f"{kept}."):
        return False
    return any(
        isinstance(part, ast.Call) and callee_name(part) == "cpu"
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and method.name == "forward"
        for part in walk(method)
    )


#: Functions that cut the next batch out of what they hold.
_FETCHERS = pattern(r"^_?(?:get|next|fetch|load)_(?:mini)?batch$")
_BATCHES = pattern(r"^(?:mini_?)?batch(?:es|_data|_dict|_inputs?)?$|_batch$")


def _goes_through_batch(call: ast.Call, moved: ast.Name, ctx: Context) -> bool:
    """Whether all parts of something called a batch are moved: `{k: v.cuda() for k, v in batch.items()}`."""
    for outer in ctx.tree.ancestors(call):
        if isinstance(outer, (ast.ListComp, ast.DictComp, ast.GeneratorExp)):
            for generator in outer.generators:
                if moved.id in names_in(generator.target):
                    return _is_of_batch(generator.iter)
        elif isinstance(outer, ast.For) and moved.id in names_in(outer.target):
            return _is_of_batch(outer.iter)
        elif isinstance(outer, ast.stmt) and not _puts_back(outer):
            return False
    return False


def _is_of_batch(source: ast.expr) -> bool:
    """`batch`, or `batch.items()`."""
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
        source = source.func.value
    return isinstance(source, ast.Name) and bool(_BATCHES.search(source.id))


def _puts_back(statement: ast.stmt) -> bool:
    """Whether a statement is, or leads to, `batch[key] = ...`."""
    if not isinstance(statement, ast.Assign):
        return isinstance(statement, ast.If)
    target = statement.targets[0]
    return isinstance(target, ast.Subscript) and _is_of_batch(target.value)


def _puts_back_itself(call: ast.Call, moved: ast.Subscript, ctx: Context) -> bool:
    """Whether an entry of something called a batch is moved where it is: `batch[key] = batch[key].to(device)`."""
    statement = ctx.tree.parent(call)
    return (
        isinstance(statement, ast.Assign)
        and _puts_back(statement)
        and ctx.text(statement.targets[0]) == ctx.text(moved)
    )


def _was_moved_in_place(call: ast.Call, ctx: Context) -> bool:
    """Whether a helper has moved all that a batch holds before, where it is: `move_dict_to_device(batch, device)`."""
    assert isinstance(call.func, ast.Attribute)
    parts = [part.value for part in walk(call.func.value) if isinstance(part, ast.Subscript)]
    held = {part.id: part for part in parts if isinstance(part, ast.Name)}
    if not held:
        return False
    definitions = ctx.inference.flow.definitions
    return any(
        part.lineno < call.lineno
        # Not the batch of another loop, by the same name.
        and any(
            isinstance(item, ast.Name)
            and item.id in held
            and not set(definitions(item)).isdisjoint(definitions(held[item.id]))
            for item in part.args
        )
        for part in ctx.once(_moving_in_place, ctx.tree.function_of(call) or ctx.tree.module)
    )


def _moving_in_place(function: ast.AST, ctx: Context) -> list[ast.Call]:
    """The calls in a function that move what they are given where it is."""
    return [
        part.value
        for part in ctx.walk(function)
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) and _IN_PLACE.search(callee_name(part.value))
    ]


def _moves_itself(call: ast.Call, ctx: Context) -> bool:
    """`self.weights = self.weights.to(device)`: a copy the first time, nothing after that."""
    assert isinstance(call.func, ast.Attribute)
    parent = ctx.tree.parent(call)
    if not isinstance(parent, ast.Assign):
        return False
    moved = call.func.value
    # `self.mask = grown(self.mask, n).to(device)` gives back what it had, as long as that is enough.
    kept = {ctx.text(item) for item in (moved.args if isinstance(moved, ast.Call) else (moved,))}
    return any(isinstance(target, ast.Attribute) and ctx.text(target) in kept for target in parent.targets)


def _advice(node: ast.Call, value: Kind, ctx: Context) -> tuple[str, bool]:
    """What to do, and whether `non_blocking=True` is it: constants should not travel at all."""
    assert isinstance(node.func, ast.Attribute)
    moved = node.func.value
    if isinstance(moved, ast.Attribute) and isinstance(moved.value, ast.Name) and moved.value.id == "self":
        text = ctx.text(moved)
        if ctx.kind(moved.value).tag is not Tag.MODULE:
            return f"Move it once, where `{text}` is made.", False
        return f'Keep `{text}` on the device: `self.register_buffer("{moved.attr}", ..., persistent=False)`.', False
    maker = value.how.removeprefix("made by `").removesuffix("`")
    if maker in _CONSTRUCTORS - tensors.COPYING_CONSTRUCTORS:
        where = _maker_in_view(maker, moved, ctx)
        if where is not None and maker in tensors.LEGACY_DTYPES:
            return f"Make it on the device: {_legacy(maker)}.", False
        if where is not None:
            return f"Make it on the device: pass `device=` to `{maker}`{where}.", False
    if value.how.startswith("a batch of"):
        return f"Write `{_suggestion(node, ctx)}`, with `pin_memory=True` in the loader.", True
    if value.tag is Tag.BATCH:
        return f"Write `{_suggestion(node, ctx)}`.", True
    return f"Write `{_suggestion(node, ctx)}`, and pin it before (`.pin_memory()`) where it is large.", True


def _legacy(maker: str) -> str:
    """What to write for a constructor of a type: it converts what it is given, where `torch.tensor` takes its type."""
    dtype = f"dtype={tensors.LEGACY_DTYPES[maker]}, device=..."
    return f"`torch.tensor(values, {dtype})`, or `torch.empty(sizes, {dtype})` where it takes sizes"


def _maker_in_view(maker: str, moved: ast.expr, ctx: Context) -> str | None:
    """Where what is moved is made, in words: here or in a function of this file that is called for it. None when that
    is not to be seen, or when it is filled afterwards from the host: then one copy of the whole is right.
    """
    exprs = (moved, *ctx.inference.origins(moved))
    called = {callee_name(part) for expr in exprs for part in walk(expr) if isinstance(part, ast.Call)}
    places: list[tuple[ast.AST, str]] = [(ctx.tree.function_of(moved) or ctx.tree.module, "")]
    places += [
        (part, f" in `{part.name}`")
        for part in walk(ctx.tree.module)
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) and part.name in called
    ]
    for place, words in places:
        for part in ctx.walk(place):
            if isinstance(part, ast.Call) and ctx.target(part.func) == maker:
                return None if _is_filled(part, place, ctx) else words
    return None


def _is_filled(made: ast.Call, function: ast.AST, ctx: Context) -> bool:
    """`out = torch.zeros(n); out[i, :k] = row`, but not `out[:, 0] = 1`."""
    statement = ctx.tree.statement_of(made)
    names = {item.id for item in getattr(statement, "targets", ()) if isinstance(item, ast.Name)}
    return any(
        isinstance(part, ast.Assign)
        and not isinstance(part.value, ast.Constant)
        and isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Name)
        and target.value.id in names
        for part in ctx.walk(function)
        for target in getattr(part, "targets", ())
    )


def _is_surely_host(call: ast.Call, value: Kind, ctx: Context) -> bool:
    """Beside an alignment, elements of a batch are not sure enough: something may have moved the batch before. What is
    made here, or by what is called, is where it was made: in hot code, if it is neither kept nor instead of an argument
    that is given as a rule.
    """
    assert isinstance(call.func, ast.Attribute)
    moved = call.func.value
    if value.certainty is Confidence.HIGH and isinstance(moved, (ast.Attribute, ast.Call)):
        return True
    if not value.how.startswith("made by `torch.") or value.optional:
        return False
    if value.certainty is Confidence.HIGH:
        return not _is_kept(call, ctx)
    return value.certainty is Confidence.MEDIUM and isinstance(moved, ast.Call)


def _is_kept(call: ast.Call, ctx: Context) -> bool:
    """Whether what is moved stays for the turns that follow, or stands in for an argument: `self.table = table.to(d)`,
    `return table.to(d)` of a table that was handed in and had to grow, `if mask is None: mask = made.to(d)`.
    """
    parent, function = ctx.tree.parent(call), ctx.tree.function_of(call)
    if isinstance(parent, ast.Assign) and any(isinstance(target, ast.Attribute) for target in parent.targets):
        return True
    assert isinstance(call.func, ast.Attribute)
    moved = call.func.value
    if function is None or not isinstance(moved, ast.Name):
        return False
    if moved.id not in {item.arg for item in (*function.args.args, *function.args.kwonlyargs)}:
        return False
    tests = [outer.test for outer in ctx.tree.ancestors(call) if isinstance(outer, ast.If)]
    return isinstance(parent, ast.Return) or any(ctx.text(test) == f"{moved.id} is None" for test in tests)


def _asks_not_to_block(call: ast.Call) -> bool:
    """Whether `non_blocking` is given at all, by keyword or position: `.to(d, t, True)`, `.cuda(None, True)`. Its name
    was `async` before that was a keyword.
    """
    assert isinstance(call.func, ast.Attribute)
    if any(keyword(call, name) is not None for name in ("non_blocking", "async")):
        return True
    position = 2 if call.func.attr == "to" else 1
    return len(call.args) > position or any(is_constant(item, value=True) for item in call.args)


def _destination(call: ast.Call, ctx: Context) -> Device | None:
    """Where the copy goes, None when the call moves to the host, or that cannot be told."""
    result = ctx.kind(call)
    if not result.on_accelerator:
        return None
    return result.device or Device.MAYBE


def _suggestion(call: ast.Call, ctx: Context) -> str:
    text = ctx.text(call)
    return f"{text[:-1]}non_blocking=True)" if text.endswith("()") else f"{text[:-1].rstrip(', ')}, non_blocking=True)"
