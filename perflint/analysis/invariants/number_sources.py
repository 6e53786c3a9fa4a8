"""What a tensor that is sent to the device is made of: constants, sizes, data of the host, or numbers of the device."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from perflint.analysis.elsewhere import bound, definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.invariants.disjoint_columns import are_disjoint
from perflint.analysis.invariants.step_constants import is_step_constant
from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.analysis.naming.phases import SETS_UP
from perflint.analysis.own_attributes import is_refilled, stores_of
from perflint.analysis.transfers.moves import names_no_device, only_converts
from perflint.analysis.values.kind import Tag
from perflint.analysis.values.origin import Provenance, is_from
from perflint.analysis.waits.reads import device_read
from perflint.finding import Heat
from perflint.ir.calls import arguments_of, callee_name, keyword
from perflint.ir.summary import MODULE
from perflint.syntax.bindings import Binding, Definition
from perflint.syntax.named import one_target
from perflint.syntax.walk import children
from perflint.torch_model import arrays, tensors


class Source(enum.IntEnum):
    """What the numbers of a value depend on. A chain: of a value's parts the greatest counts."""

    CONSTANT = 0  # nothing that changes while a program runs
    SIZES = 1  # shapes and counts, and random numbers
    DATA = 2  # what the host has: samples, texts, counters
    DEVICE = 3  # numbers that were fetched from the device


class Origin(NamedTuple):
    """The source of a value, and how it came from there.

    `made`: constructors of torch's that make it on the host, in this file. `fetched`: the calls
    that brought numbers of the device to the host. `foreign`: code that is no operation on arrays has had a hand in it,
    which nobody can move to the device. `drawn`: it holds random numbers.
    """

    source: Source
    made: tuple[ast.Call, ...] = ()
    fetched: tuple[ast.Call, ...] = ()
    foreign: bool = False
    drawn: bool = False


_CONSTANT = Origin(Source.CONSTANT)
_SIZES = Origin(Source.SIZES)
_DATA = Origin(Source.DATA)
_CALLS = 2  # how many calls deep functions of the file are looked into
_MADE = tensors.CONSTRUCTORS | tensors.LIKE_CONSTRUCTORS | frozenset(tensors.LEGACY_DTYPES) | {"torch.from_numpy"}
_DRAWS = tensors.RANDOM_CONSTRUCTORS
#: Libraries whose functions compute with arrays and numbers, and with nothing else.
_ARITHMETIC = ("torch.", "numpy.", "math.", "einops.", "itertools.", "operator.", "random.")
_READS_FILES = frozenset("load loadtxt genfromtxt fromfile memmap read_image imread from_file".split())
_BUILTINS = frozenset(
    "abs bool complex dict divmod enumerate float int len list map max min pow range reversed round set slice sorted "
    "sum tuple zip".split()
)
#: Functions of torch's and numpy's whose numbers are no others than those that they are told the number of.
_SIZED = frozenset(
    "zeros ones empty full rand randn randperm eye identity arange linspace logspace tril_indices triu_indices".split()
)
_SIZE_METHODS = frozenset({"size", *tensors.NUMBER_METHODS})
_SIZE_ATTRIBUTES = frozenset({"shape", "ndim", "size", "nbytes", "itemsize"})
_FIXED_ATTRIBUTES = frozenset({"device", "dtype", "type"})
#: Methods of arrays, tensors and lists that give numbers of their receiver's and their arguments'.
_METHODS = (
    tensors.VIEW_METHODS
    | tensors.CAST_METHODS
    | tensors.FRESH_METHODS
    | tensors.TUPLE_METHODS
    | tensors.NEW_METHODS
    | arrays.NUMBER_METHODS
    | frozenset(
        "astype copy item tolist cpu numpy to cuda pin_memory fill_ zero_ normal_ uniform_ random_ bernoulli_ items "
        "values keys get ptp dot searchsorted partition take put choose compress swapaxes nonzero flatten index "
        "count exponential_ tile repeat".split()
    )
)
_PLAIN = (Tag.DEVICE, Tag.DTYPE, Tag.STRING, Tag.NONE, Tag.FUNCTION, Tag.CLASS)
#: How much they give depends on the numbers: on the device the host would wait for it, and one fetch is a fair trade.
_COUNTED = frozenset("nonzero argwhere flatnonzero unique unique_consecutive masked_select bincount compress".split())
_ADDS = frozenset("append extend insert add update setdefault".split())


#: What binds a name to one thing for good.
_NAMED = (Binding.FUNCTION, Binding.CLASS, Binding.IMPORT)


class _Frame(NamedTuple):
    """One run of a function: what its parameters are bound to, where that is known, and what is known by now."""

    bound: Mapping[str, Origin]
    calls: int
    known: dict[int, Origin]


def origin_of(value: ast.expr, ctx: FileFacts) -> Origin:
    """What a value is made of, followed through names, stores, operations and functions of this file."""
    return ctx.once(_origin_of, value)


def _origin_of(value: ast.expr, ctx: FileFacts) -> Origin:
    tracing, frame = ctx.once(_tracing, ctx.tree.module)
    return tracing.of(value, frame)


def _tracing(_: ast.Module, ctx: FileFacts) -> tuple[_Tracing, _Frame]:
    return _Tracing(ctx), _Frame({}, _CALLS, {})


class _Tracing:
    """Walks backwards from values. What is met again on the way changes from turn to turn: it is taken to be data, and
    where it turns out to be something else the walk begins anew with that. So what is known of a value does not depend
    on where the walk began.
    """

    def __init__(self, ctx: FileFacts) -> None:
        self.ctx = ctx
        self.open: set[int] = set()
        #: What definitions that were met again are taken to be, whether one is something else, and what rests on them.
        self.taken: dict[int, Origin] = {}
        self.replaced: set[int] = set()
        self.has_changed = False
        self.written: list[tuple[dict[int, Origin], int]] | None = None

    def of(self, node: ast.expr | None, frame: _Frame) -> Origin:
        """The origin of an expression of a function."""
        found = frame.known.get(id(node))
        if found is None:
            found = self._from_here(node, frame) if self.written is None else self._of(node, frame)
            frame.known[id(node)] = found
            if self.written is not None:
                self.written.append((frame.known, id(node)))
        return found

    def _from_here(self, node: ast.expr | None, frame: _Frame) -> Origin:
        while True:
            self.written, self.has_changed = [], False
            found = self._of(node, frame)
            written, self.written = self.written, None
            if not self.has_changed:
                self.taken.clear()
                self.replaced.clear()
                return found
            for known, key in written:
                known.pop(key, None)

    def _of(self, node: ast.expr | None, frame: _Frame) -> Origin:
        match node:
            case None | ast.Constant() | ast.Lambda() | ast.JoinedStr():
                return _CONSTANT
            case ast.Name():
                return self._of_name(node, frame)
            case ast.Attribute():
                return self._of_attribute(node, frame)
            case ast.Call():
                return self._of_call(node, frame)
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                return _DATA
            case ast.Slice():
                return _as_places(self.all_of((node.lower, node.upper, node.step), frame))
            case ast.IfExp():
                return self.all_of((node.body, node.orelse), frame)
            case ast.Compare():
                return self.all_of((node.left, *node.comparators), frame)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self.all_of((node.elt, *(item.iter for item in node.generators)), frame)
            case ast.DictComp():
                return self.all_of((node.key, node.value, *(item.iter for item in node.generators)), frame)
            case _:
                parts = (part for part in children(node) if isinstance(part, ast.expr))
                return self.all_of(parts, frame)

    def all_of(self, nodes: Iterable[ast.expr | None], frame: _Frame) -> Origin:
        return joined(self.of(node, frame) for node in nodes)

    def _of_name(self, name: ast.Name, frame: _Frame) -> Origin:
        definitions = self.ctx.inference.flow.definitions(name)
        if not definitions:
            return _DATA
        return joined(self._once_of(item, name, frame) for item in definitions)

    def _once_of(self, item: Definition, name: ast.Name, frame: _Frame) -> Origin:
        """What a definition binds; one that is met again while it is followed, what it is taken for."""
        key = id(item)
        if key in self.open:
            return self.taken.setdefault(key, _DATA)
        self.open.add(key)
        found = self._of_definition(item, name, frame)
        self.open.discard(key)
        taken = self.taken.get(key)
        if taken is not None and found != taken:
            # After the first time it only grows, so this comes to an end.
            self.taken[key] = grown = joined((taken, found)) if key in self.replaced else found
            self.replaced.add(key)
            self.has_changed = self.has_changed or grown != taken
        return found

    def _of_definition(self, item: Definition, name: ast.Name, frame: _Frame) -> Origin:
        ctx = self.ctx
        if item.binding is Binding.IMPORT:
            found, there = bound(name, ctx)
            given = [one for one in found if one.binding not in _NAMED]
            return _CONSTANT if all(_is_bound_once(one, there) for one in given) else _DATA
        if item.binding in _NAMED:
            return _CONSTANT
        if item.binding is Binding.PARAM:
            return frame.bound[name.id] if name.id in frame.bound else self._of_parameter(name, item)
        if item.binding in (Binding.ASSIGN, Binding.WALRUS) and item.value is not None:
            if ctx.tree.scope_of(item.node) is ctx.tree.module and ctx.tree.function_of(name) is not None:
                return _CONSTANT if _is_bound_once(item, ctx) else _DATA
            return joined((self.of(item.value, frame), *self._stored(item, frame)))
        if _counts(item):
            return _DATA if _is_step_loop(item.node, ctx) else _SIZES
        if item.binding is Binding.COMPREHENSION:
            return self.of(item.value, frame)
        if item.binding is Binding.FOR and item.value is not None:
            if _is_step_loop(item.node, ctx):
                return _DATA
            return joined((_SIZES, self.of(item.value, frame)))
        return _DATA

    def _stored(self, item: Definition, frame: _Frame) -> Iterable[Origin]:
        """What is stored in the array or list that a definition gives a name: `mask[i] = row`, `rows.append(x)`."""
        function = self.ctx.tree.function_of(item.node)
        if function is None or not isinstance(item.target, ast.Name):
            return ()
        given = self.ctx.once(_stores, function).get(item.name, ())
        return [self.of(value, frame) for value in given]

    def _of_parameter(self, name: ast.Name, item: Definition) -> Origin:
        ctx, kind = self.ctx, self.ctx.kind(name)
        if kind.tag in _PLAIN or is_step_constant(name, ctx):
            return _CONSTANT
        annotation = getattr(item.node, "annotation", None)
        if isinstance(annotation, ast.Name) and annotation.id in ("int", "float", "bool"):
            return _SIZES
        return _SIZES if kind.tag in (Tag.NUMBER, Tag.SHAPE) else _DATA

    def _of_attribute(self, node: ast.Attribute, frame: _Frame) -> Origin:
        ctx = self.ctx
        if node.attr in _FIXED_ATTRIBUTES or _is_of_library(node.value, ctx):
            return _CONSTANT
        if node.attr in _SIZE_ATTRIBUTES:
            return _SIZES
        if is_kept(node, ctx) or is_step_constant(node, ctx):
            return _CONSTANT
        # What an object has may change while the object stays: only another view of its numbers has its source.
        return self.of(node.value, frame) if node.attr in tensors.SAME_ATTRIBUTES else _DATA

    def _of_call(self, call: ast.Call, frame: _Frame) -> Origin:
        ctx, func = self.ctx, call.func
        name, target = callee_name(call), ctx.target(func) or ""
        given = arguments_of(call)
        if isinstance(func, ast.Attribute) and device_read(call, ctx) is not None:
            return Origin(Source.DEVICE, fetched=(call,))
        is_method = isinstance(func, ast.Attribute) and not _is_of_library(func.value, ctx)
        if (name in _SIZE_METHODS and is_method) or target == "len":
            return _SIZES
        if target in _BUILTINS or (target.startswith(_ARITHMETIC) and not is_method):
            return self._of_library(call, name, target, given, frame)
        ref = ctx.project_target(func)
        if ref is not None:
            return self._of_function(call, given, frame)
        parts = self.all_of(given, frame)
        if not isinstance(func, ast.Attribute):
            return joined((Origin(Source.DATA, foreign=True), parts))
        # What a view is given are sizes, too.
        parts = joined((_CONSTANT if name in tensors.VIEW_METHODS else parts, self.of(func.value, frame)))
        is_plain = name in _METHODS and name not in _COUNTED and not _is_widened(call, ctx)
        return parts if is_plain else joined((Origin(Source.DATA, foreign=True), parts))

    def _of_library(self, call: ast.Call, name: str, target: str, given: list[ast.expr], frame: _Frame) -> Origin:
        """What a function of torch's, numpy's or Python's gives for what it is given."""
        if name in _READS_FILES:
            return Origin(Source.DATA, foreign=True)
        if target in tensors.SYNC_FUNCTIONS or name in _COUNTED:
            return joined((Origin(Source.CONSTANT, foreign=True), self.all_of(given, frame)))
        least = Source.SIZES if _is_drawn(target) else Source.CONSTANT
        if name in _SIZED or keyword(call, "size") is not None:
            # Of a size nothing is in the numbers but how many there are.
            filled = call.args[1:2] if name == "full" else []
            sizes = self.all_of((item for item in given if item not in filled), frame)
            least, given = max(least, min(sizes.source, Source.SIZES)), filled
        own = Origin(least, made=(call,) if target in _MADE else (), drawn=_is_drawn(target))
        return joined((own, self.all_of(given, frame)))

    def _of_function(self, call: ast.Call, given: list[ast.expr], frame: _Frame) -> Origin:
        """What a function of the project gives for what it is given; one that cannot be looked into is foreign."""
        ctx = self.ctx
        parts = self.all_of(given, frame)
        ref = ctx.project_target(call.func) if frame.calls else None
        defined = definition_of(Scope(ref.path, ref.name), ctx) if ref is not None and ref.kind == FUNCTION else None
        if defined is not None:
            node, there = defined
            inner = {name: self.of(value, frame) for name, value in _passed(call, node)}
            found = there.once(_tracing, there.tree.module)[0].returned(node, inner, frame.calls - 1)
            if found is not None:
                return found if there is ctx else _as_seen_from_outside(found, inner.values())
        if is_from(ctx.kind(call).origin, Provenance.CONSTRUCTOR, Provenance.LIKE):
            return joined((_SIZES, parts))
        return joined((Origin(Source.DATA, foreign=True), parts))

    def returned(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, bound: Mapping[str, Origin], calls: int
    ) -> Origin | None:
        """What a function of this file returns for what its parameters are bound to, None where it does not tell."""
        returns, yields, _ = self.ctx.inference.classes.results(node)
        if id(node) in self.open or yields or not returns:
            return None
        self.open.add(id(node))
        found = self.all_of(returns, _Frame(bound, calls, {}))
        self.open.discard(id(node))
        return found


def _as_places(bounds: Origin) -> Origin:
    """What bounds say of the numbers between them: which, and nothing that was fetched is one of these."""
    return bounds._replace(source=min(bounds.source, Source.DATA), fetched=())


def _as_seen_from_outside(found: Origin, given: Iterable[Origin]) -> Origin:
    """An origin without the calls of a file that is not the caller's: nobody can change or show them from there."""
    parts = joined(given)
    made = tuple(call for call in found.made if call in parts.made)
    return found._replace(made=made, fetched=tuple(call for call in found.fetched if call in parts.fetched))


def round_trip(node: ast.Call, ctx: FileFacts) -> tuple[ast.Call, ...]:
    """For a call that puts a value on the device: the calls that fetched its numbers from the device, with nothing but
    operations on arrays between. None when there are none, or when it cannot be seen.
    """
    if callee_name(node) in ("to", "cuda") and isinstance(node.func, ast.Attribute):
        value = node.func.value
    elif ctx.target(node.func) in ("torch.tensor", "torch.as_tensor") and keyword(node, "device") and node.args:
        value = node.args[0]
    else:
        return ()
    if (
        only_converts(node, ctx)
        or names_no_device(node, ctx)
        or ctx.kind(value).on_accelerator
        or not ctx.kind(node).on_accelerator
    ):
        return ()
    origin = origin_of(value, ctx)
    fetched = tuple(call for call in origin.fetched if not _goes_elsewhere(call, value, ctx))
    return fetched if origin.source is Source.DEVICE and not origin.foreign else ()


def _goes_elsewhere(call: ast.Call, value: ast.expr, ctx: FileFacts) -> bool:
    """Whether what a call fetches is written to other columns of a table than those that go to the device."""
    target = one_target(ctx.tree.statement_of(call))
    return isinstance(target, ast.Subscript) and isinstance(value, ast.Subscript) and are_disjoint(target, value)


def goes_back(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether what a call fetches from the device is sent back to it on the same turn: round-trip-transfer tells it."""
    return id(node) in ctx.once(_going_back, ctx.tree.scope_of(node))


def _going_back(region: ast.AST, ctx: FileFacts) -> frozenset[int]:
    names = ("to", "cuda", "tensor", "as_tensor")
    sent = [part for part in ctx.walk(region) if isinstance(part, ast.Call) and callee_name(part) in names]
    return frozenset(
        id(fetched) for part in sent for fetched in round_trip(part, ctx) if ctx.loops(fetched) == ctx.loops(part)
    )


def joined(origins: Iterable[Origin]) -> Origin:
    """What is left of several origins: the greatest source, and all that had a hand in it."""
    found = _CONSTANT
    for origin in origins:
        found = Origin(
            max(found.source, origin.source),
            (*found.made, *(call for call in origin.made if call not in found.made)),
            (*found.fetched, *(call for call in origin.fetched if call not in found.fetched)),
            found.foreign or origin.foreign,
            found.drawn or origin.drawn,
        )
    return found


def is_kept(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether `self.x` is bound where an object is set up and nowhere else, and no step changes it: the same for its
    life.
    """
    stores = stores_of(node, ctx)
    if not stores or not all(SETS_UP.match(_function_name(item.node, there)) for item, there in stores):
        return False
    return not is_refilled(node, ctx)


def _is_of_library(base: ast.expr, ctx: FileFacts) -> bool:
    """`np.random`, `torch.nn.functional`: what an attribute is taken of is a module."""
    while isinstance(base, ast.Attribute):
        base = base.value
    return isinstance(base, ast.Name) and base.id in ctx.summary.imports


def _function_name(node: ast.AST, ctx: FileFacts) -> str:
    function = ctx.tree.function_of(node)
    return function.name if function is not None else MODULE


def _is_bound_once(item: Definition, ctx: FileFacts) -> bool:
    """Whether a global name is bound at import, once, and not changed by this file's functions."""
    bindings = ctx.inference.flow.bindings(ctx.tree.module).by_key.get(item.name, ())
    return (
        len(bindings) == 1
        and not ctx.loops(item.node)
        and not ctx.inference.flow.is_mutated(item.name, ctx.tree.module)
    )


def _is_widened(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether numbers become float64, for which the host is meant to compute: devices are slow at it, or have none."""
    types = [*call.args, *(item.value for item in call.keywords if item.arg == "dtype")]
    return callee_name(call) == "double" or any(ctx.target(item) == "torch.float64" for item in types)


def _counts(item: Definition) -> bool:
    """`i` of `for i, x in enumerate(xs)`: it says how many have been, not what they are."""
    turns = item.value
    is_loop = item.binding in (Binding.FOR, Binding.COMPREHENSION)
    return is_loop and isinstance(turns, ast.Call) and callee_name(turns) == "enumerate" and item.path[:1] == (0,)


def _is_step_loop(loop: ast.AST, ctx: FileFacts) -> bool:
    return isinstance(loop, (ast.For, ast.AsyncFor)) and ctx.is_root_loop(loop) and ctx.body_heat(loop) >= Heat.STEP


def _is_drawn(target: str) -> bool:
    return target in _DRAWS or target.startswith(("numpy.random.", "random."))


def _passed(call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterable[tuple[str, ast.expr | None]]:
    """Each parameter with what a call passes for it, or its default."""
    names = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    found: dict[str, ast.expr | None] = {item.arg: None for item in function.args.kwonlyargs}
    found |= dict.fromkeys(names)
    found |= dict(zip(names, call.args))
    found |= {item.arg: item.value for item in call.keywords if item.arg is not None}
    return found.items()


def _stores(function: ast.AST, ctx: FileFacts) -> dict[str, list[ast.expr]]:
    """What is stored in each name's entries in a function."""
    found: dict[str, list[ast.expr]] = {}
    for part in ctx.walk(function):
        if isinstance(part, (ast.Assign, ast.AugAssign)):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            for target in targets:
                root: ast.expr = target
                while isinstance(root, ast.Subscript):
                    root = root.value
                if isinstance(root, ast.Name) and root is not target:
                    found.setdefault(root.id, []).append(part.value)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _ADDS:
            # Under which key something is put says nothing of what it is.
            given = part.args[1:] if part.func.attr == "setdefault" else part.args
            if isinstance(part.func.value, ast.Name):
                found.setdefault(part.func.value.id, []).extend(given)
    return found
