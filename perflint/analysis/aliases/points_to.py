"""What memory a value may lie in: from a name to what it was bound to, and on to what that is a part or a view of."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from typing import NamedTuple, TypeAlias

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Place, Tag
from perflint.ir.calls import arguments_of, callee_name
from perflint.syntax.bindings import Definition
from perflint.syntax.walk import walk
from perflint.torch_model import tensors

#: Methods and functions that hand back what they are given, or what holds the same parts under the same keys.
_SAME_METHODS = tensors.CAST_METHODS | {"to", "cpu", "cuda", "numpy", "pin_memory", "copy"}
_SAME_FUNCTIONS = frozenset("list tuple dict copy".split())
#: Functions that hand out what they are given, or parts of it.
_HANDING = frozenset("zip enumerate reversed iter map filter deepcopy tqdm sorted chain".split())
#: What hands on its receiver or first argument, or a part or view of it.
_PASSING = (
    _SAME_METHODS
    | _SAME_FUNCTIONS
    | tensors.VIEW_METHODS
    | tensors.TUPLE_METHODS
    | frozenset("get pop items values from_numpy as_tensor asarray".split())
)
#: Builtins that make something that shares no memory with what they are given; `next` hands out what is not met again.
_APART = frozenset("len int float str bool repr range sum min max abs round next type isinstance hasattr print".split())
#: Functions of `torch` that may hand back their argument, or a view of it.
_VIEWING = frozenset(
    f"torch.{name}"
    for name in (
        "as_strided broadcast_to detach adjoint conj diagonal flatten moveaxis movedim narrow permute positive ravel "
        "real imag reshape select squeeze swapaxes swapdims t transpose unflatten unsqueeze view_as_complex "
        "view_as_real resolve_conj resolve_neg"
    ).split()
)
#: Arrays that numpy makes anew.
ARRAYS = frozenset(
    f"numpy.{name}"
    for name in "array stack concatenate vstack hstack zeros ones empty full zeros_like ones_like arange where".split()
)
#: Methods that put their arguments into the receiver.
FILLING = frozenset("update setdefault append appendleft extend insert add".split())
#: What has no memory of a tensor.
_NO_MEMORY = (Tag.NUMBER, Tag.STRING, Tag.SHAPE, Tag.DTYPE, Tag.DEVICE, Tag.NONE, Tag.FUNCTION, Tag.CLASS)

#: Keys that lead from a value to a part of it: `("image", 0)`. None stands for a key that cannot be told.
Path: TypeAlias = "tuple[Hashable | None, ...]"
_WHOLE: Path = ()
#: How many keys of a path are kept: `x = x[0]` in a loop goes ever deeper.
_DEPTH = 3


class Spot(NamedTuple):
    """Of what a definition binds, what lies under a path."""

    definition: Hashable
    path: Path


class _Step(NamedTuple):
    name: ast.Name
    path: Path
    #: Whether an earlier turn of the loop may have bound it.
    earlier: bool


class _Fill(NamedTuple):
    """`batch["x"] = value`, `parts.append(value)`."""

    path: Path
    value: ast.expr
    line: int


class Memory:
    """Where values of one function, and of those inside it, may lie at the time when one of them is `moved`.

    Of what lies on the `host`, unless told otherwise: a copy on the device is then memory of nobody else.
    """

    def __init__(self, region: ast.AST, moved: ast.AST, ctx: FileFacts, *, host: bool = True) -> None:
        self.ctx = ctx
        self.host = host
        self._moved = moved
        self._statement = moved if moved is region else ctx.tree.statement_of(moved)
        self._inside = set() if moved is region else {id(part) for part in walk(moved)}
        self._replaced = dict(self._put_back())
        self._through = True
        #: By name and first key; there may be hundreds of one name.
        self._fills = ctx.once(_fills_in, region)
        self._inner: dict[int, set[int]] = {}

    def spots(self, value: ast.expr, loop: ast.AST | None = None, *, through: bool = True) -> dict[Spot, bool]:
        """The spots that a value may lie in, and of each whether an earlier turn of `loop` may have put it there.

        Goes `through` calls that cannot be seen, which may hand back what they are given, unless told otherwise.
        """
        self._through = through
        inside = self._inner.get(id(loop))
        if inside is None:
            inside = self._inner[id(loop)] = set() if loop is None else {id(part) for part in walk(loop)}
        steps = [_Step(name, path, earlier=False) for name, path in self._parts(value, _WHOLE)]
        found: dict[Spot, bool] = {}
        while steps:
            step = steps.pop()
            definitions = self._definitions(step.name)
            for definition in definitions:
                earlier = step.earlier or id(definition.node) not in inside or _stands_behind(definition, step.name)
                spot = Spot(id(definition), step.path)
                if found.get(spot) not in (True, earlier):
                    found[spot] = earlier
                    steps += (_Step(name, path, earlier) for name, path in self._sources(definition, step.path))
            if not definitions:
                found[Spot(step.name.id, step.path)] = True
            steps += self._put_in(step, found)
        return found

    def is_handed_out(self, value: ast.expr) -> bool:
        """Whether a value comes straight from a call that cannot be seen: who made it may write into it later."""
        while not isinstance(value, ast.Name):
            if isinstance(value, (ast.Subscript, ast.Attribute, ast.NamedExpr)):
                value = value.value
            elif not isinstance(value, ast.Call) or self._is_new(value):
                return False
            elif isinstance(value.func, ast.Attribute) and value.func.attr in _PASSING:
                value = value.func.value
            elif value.args and (self.ctx.target(value.func) in _VIEWING or callee_name(value) in _PASSING):
                value = value.args[0]
            else:
                return True
        return False

    def _put_back(self) -> Iterator[tuple[str, Path]]:
        """Where the copy is put in place of what is moved: `batch["x"] = batch["x"].cuda()`."""
        if isinstance(self._statement, ast.Assign):
            for target in self._statement.targets:
                for bound, value in _pairs(target, self._statement.value):
                    arms = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
                    if self._moved in arms and isinstance(bound, (ast.Subscript, ast.Attribute)):
                        name, path = _base(bound)
                        if name is not None:
                            yield name.id, path

    def _put_in(self, step: _Step, found: dict[Spot, bool]) -> Iterator[_Step]:
        """What the function puts into what a name holds."""
        fills = self._fills.get(step.name.id, {})
        first = step.path[0] if step.path else None
        near = {first, None} if type(first) is str else fills  # only texts are apart from all others
        for fill in (fill for key in near for fill in fills.get(key, ())):
            spot = Spot(id(fill.value), fill.path)
            earlier = step.earlier or fill.line > step.name.lineno
            if _may_be_one(fill.path, step.path) and found.get(spot) not in (True, earlier):
                found[spot] = earlier
                yield from (_Step(name, path, earlier) for name, path in self._parts(fill.value, _WHOLE))

    def _definitions(self, name: ast.Name) -> tuple[Definition, ...]:
        flow, statement = self.ctx.inference.flow, self.ctx.tree.statement_of(name)
        if isinstance(name.ctx, ast.Load):
            found = flow.definitions(name)
        else:
            found = flow.definitions_before(name.id, statement)[0]
        if statement is self._statement:
            return found
        # Once what is moved has been given this name, that is what the name stands for.
        return tuple(item for item in found if item.node is self._statement) or found

    def _sources(self, definition: Definition, path: Path) -> Iterator[tuple[ast.Name, Path]]:
        """What lies under a path of what a definition binds, as names, and paths there."""
        value, kind = definition.value, definition.binding.name
        if kind == "AUGMENTED" and isinstance(definition.target, ast.Name):
            yield definition.target, path
        if value is None or kind in ("PARAM", "IMPORT", "EXCEPT"):
            return
        if kind in ("ASSIGN", "WALRUS"):
            taken = tuple(None if item == "*" else item for item in definition.path)
            yield from self._parts(value, (*taken, *path))
        elif kind != "FOR" or self._is_taken_apart(definition):
            yield from self._parts(value, (_Each(definition.path[0]),) if definition.path else _WHOLE)

    def _is_taken_apart(self, loop: Definition) -> bool:
        """Whether a loop goes through the parts of something that is there; what loaders hand out is met once."""
        assert loop.value is not None
        if self.ctx.kind(loop.value).tag in (Tag.LOADER, Tag.DATASET):
            return False
        around = {id(part) for outer in self.ctx.loops(loop.node) for part in walk(outer)}
        for name, _ in self._parts(loop.value, _WHOLE):
            tag = self.ctx.kind(name).tag
            if tag in (Tag.BATCH, Tag.TENSOR, Tag.ARRAY) or name.id in self._fills:
                return True
            if tag not in (Tag.LOADER, Tag.DATASET) and any(
                id(item.node) in around and not isinstance(item.value, ast.Call) for item in self._definitions(name)
            ):
                return True
        return False

    def _parts(self, value: ast.expr, path: Path) -> Iterator[tuple[ast.Name, Path]]:
        """The names, and paths in what they hold, in whose memory may lie what is under a path of a value."""
        if isinstance(value, ast.Name):
            rest = self._rest(value, path)
            if rest is not None:
                yield value, rest[:_DEPTH]
        elif isinstance(value, (ast.Starred, ast.Await)):
            yield from self._parts(value.value, _WHOLE)
        elif isinstance(value, ast.NamedExpr):
            yield value.target, path[:_DEPTH]
        elif isinstance(value, (ast.Subscript, ast.Attribute)):
            if not self.has_none(value):
                yield from self._parts(value.value, _key_of(value) + path)
        elif isinstance(value, ast.Call):
            yield from self._of_call(value, path)
        else:
            for inner, part in self._arms(value, path):
                yield from self._parts(inner, part)

    def _rest(self, name: ast.Name, path: Path) -> Path | None:
        """What is left under a path where the copy has taken the place of what was moved."""
        gone = self._replaced.get(name.id)
        if gone is None or not _stands_after(name, self._statement):
            return path
        if None in gone or path[: len(gone)] == gone:
            return None  # what is moved under a key is put back under it, whichever that is
        return (_But(gone[0]),) if not path and len(gone) == 1 else path

    def _arms(self, value: ast.expr, path: Path) -> Iterator[tuple[ast.expr, Path]]:
        """The expressions that a display, a choice or a comprehension is made of."""
        first, rest = (path[0], path[1:]) if path else (None, _WHOLE)
        if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
            taken = value.elts
            if isinstance(first, int) and not any(isinstance(item, ast.Starred) for item in value.elts):
                taken = value.elts[first : first + 1 or None]
            yield from ((item, rest) for item in taken)
        elif isinstance(value, ast.Dict):
            names = [None if item is None else _constant(item) for item in value.keys]
            yield from ((item, rest) for item, name in zip(value.values, names) if _may_lead_to_one(name, first))
        elif isinstance(value, ast.IfExp):
            arms = (value.body, value.orelse)
            taken_arms = [arm for arm in arms if not self._inside.isdisjoint(map(id, walk(arm)))]
            yield from ((arm, path) for arm in taken_arms or arms)
        elif isinstance(value, ast.BoolOp):
            yield from ((item, path) for item in value.values)
        elif isinstance(value, ast.DictComp):
            yield value.value, rest
        elif isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            yield value.elt, rest
        elif isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.BitOr)):
            # Sums of numbers and tensors are made anew; lists and mappings hold what they held before.
            if not (self.ctx.kind(value).is_tensor or self.has_none(value)):
                yield from ((item, _WHOLE) for item in (value.left, value.right))

    def _of_call(self, call: ast.Call, path: Path) -> Iterator[tuple[ast.Name, Path]]:
        if call is self._moved or self.has_none(call) or self._is_new(call):
            return
        func, name = call.func, callee_name(call)
        if isinstance(func, ast.Attribute) and name in _SAME_METHODS and self.ctx.target(func) is None:
            yield from self._parts(func.value, path)
        elif isinstance(func, ast.Attribute) and name in ("get", "pop") and call.args:
            yield from self._parts(func.value, (_constant(call.args[0]), *path))
            for given in call.args[1:]:
                yield from self._parts(given, path)
        elif name in _SAME_FUNCTIONS and len(call.args) == 1 and not call.keywords:
            yield from self._parts(call.args[0], path)
        elif self._through or name in _PASSING or name in _HANDING or self.ctx.target(func) in _VIEWING:
            given_all = arguments_of(call)
            for given in [*given_all, func.value] if isinstance(func, ast.Attribute) else given_all:
                yield from self._parts(given, _WHOLE)

    def _is_new(self, call: ast.Call) -> bool:
        """Whether a call makes what nobody else has the memory of."""
        func, target = call.func, self.ctx.target(call.func) or ""
        if any(item.arg in ("out", None) for item in call.keywords):
            return False
        if isinstance(func, ast.Name) and func.id in _APART and not self.ctx.inference.flow.definitions(func):
            return True
        if isinstance(func, ast.Attribute) and not target and func.attr in tensors.FRESH_METHODS:
            return self.ctx.kind(func.value).tag in (Tag.TENSOR, Tag.BATCH, Tag.OUTPUT, Tag.UNKNOWN)
        if target in tensors.CONSTRUCTORS:
            return target not in ("torch.as_tensor", "torch.asarray")
        fresh = target in ARRAYS or target in tensors.LIKE_CONSTRUCTORS
        fresh = fresh or target in tensors.FUNCTIONS or target in tensors.LOSS_FUNCTIONS
        return fresh and target not in _VIEWING and not target.endswith("_")

    def has_none(self, value: ast.expr) -> bool:
        """Whether a value has no memory that counts: numbers, texts, and copies on the device."""
        kind = self.ctx.kind(value)
        return kind.tag in _NO_MEMORY or (self.host and (kind.on_accelerator or kind.place is Place.DEVICE))


def _fills_in(region: ast.AST, _: FileFacts) -> dict[str, dict[Hashable | None, list[_Fill]]]:
    """By name and first key, what is put into what names hold."""
    found: dict[str, dict[Hashable | None, list[_Fill]]] = {}
    for part in walk(region):
        for name, fill in _fills(part):
            first = fill.path[0] if fill.path else None
            found.setdefault(name, {}).setdefault(first, []).append(fill)
    return found


def meet(some: dict[Spot, bool], others: dict[Spot, bool], *, earlier: bool = False) -> bool:
    """Whether two values may share memory; `earlier` asks whether one of them may be that of an earlier turn."""
    by_definition: dict[Hashable, list[tuple[Path, bool]]] = {}
    for spot, before in others.items():
        by_definition.setdefault(spot.definition, []).append((spot.path, before))
    return any(
        _may_be_one(spot.path, path) and (not earlier or before or also)
        for spot, before in some.items()
        for path, also in by_definition.get(spot.definition, ())
    )


class _Each(NamedTuple):
    """The key of what a loop takes from each element: `labels` of `for images, labels in pairs`."""

    place: Hashable


class _But(NamedTuple):
    """All parts but the one of this key."""

    key: Hashable


def _may_be_one(path: Path, other: Path) -> bool:
    """Whether what lies under two paths may be, or hold, the same."""
    return all(_may_lead_to_one(key, another) for key, another in zip(path, other))


def _may_lead_to_one(key: Hashable | None, other: Hashable | None) -> bool:
    """Whether two keys may lead to the same part: one of them is not known, or they are equal, or of two types, or
    count from two ends.
    """
    for one, another in ((key, other), (other, key)):
        if isinstance(one, _But):
            return another is None or one.key != another
    if key is None or other is None or key == other or type(key) is not type(other):
        return True
    return isinstance(key, int) and isinstance(other, int) and (key < 0) is not (other < 0)


def _key_of(value: ast.Subscript | ast.Attribute) -> Path:
    if isinstance(value, ast.Attribute):
        # `batch.image` is `batch["image"]` in many classes.
        return _WHOLE if value.attr in tensors.SAME_ATTRIBUTES else (value.attr,)
    return (None if _is_spread(value.value) else _constant(value.slice),)


def _is_spread(value: ast.expr) -> bool:
    """`x.expand(2, 3)`: two of its rows may be one."""
    return isinstance(value, ast.Call) and callee_name(value) in ("expand", "expand_as", "broadcast_to", "as_strided")


def _constant(index: ast.expr) -> Hashable | None:
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        inner = _constant(index.operand)
        return -inner if isinstance(inner, int) else None
    return index.value if isinstance(index, ast.Constant) and type(index.value) in (int, str) else None


def _stands_after(name: ast.Name, statement: ast.AST) -> bool:
    return (name.lineno, name.col_offset) > (
        getattr(statement, "end_lineno", 0),
        getattr(statement, "end_col_offset", 0),
    )


def _stands_behind(definition: Definition, name: ast.Name) -> bool:
    """Whether what reaches a name was bound further down: in the turn before."""
    line = getattr(definition.node, "lineno", 0)
    return (line, getattr(definition.node, "col_offset", 0)) > (name.lineno, name.col_offset)


def _fills(part: ast.AST) -> Iterator[tuple[str, _Fill]]:
    if isinstance(part, ast.Assign):
        for target in part.targets:
            for bound, value in _pairs(target, part.value):
                if isinstance(bound, (ast.Subscript, ast.Attribute)):
                    name, path = _base(bound)
                    if name is not None:
                        yield name.id, _Fill(path, value, part.lineno)
    elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
        if isinstance(part.value, (ast.List, ast.Tuple, ast.ListComp)):
            yield part.target.id, _Fill(_WHOLE, part.value, part.lineno)
    elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in FILLING:
        name, path = _base(part.func.value)
        if name is not None:
            for given in arguments_of(part):
                yield name.id, _Fill(path, given, part.lineno)


def _base(value: ast.expr) -> tuple[ast.Name | None, Path]:
    """`batch` and `("x", 0)` for `batch["x"][0]`."""
    path: Path = _WHOLE
    while isinstance(value, (ast.Subscript, ast.Attribute)):
        path, value = _key_of(value) + path, value.value
    return (value, path) if isinstance(value, ast.Name) else (None, path)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment binds to what: `a, b = c, d`."""
    displays = (ast.Tuple, ast.List)
    if not isinstance(target, displays):
        yield target, value
    elif isinstance(value, displays) and len(value.elts) == len(target.elts):
        if not any(isinstance(item, ast.Starred) for item in (*target.elts, *value.elts)):
            for one, other in zip(target.elts, value.elts):
                yield from _pairs(one, other)
    else:
        for item in target.elts:
            yield from _pairs(item.value if isinstance(item, ast.Starred) else item, value)
