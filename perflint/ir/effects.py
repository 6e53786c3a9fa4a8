"""What a function's own text may do beyond its run: a whitelist, so that whatever is not known to be harmless is told.

The answer is a tuple of short texts, in no order that means anything:

- `"keeps"`: something that outlives the call is surely given a value: an attribute, a global, an entry of what was not
  made here; or nobody can tell
- `"fills"`: what a call gave is written into, so that it depends on whether that is anybody else's
- `"gives"`: what it hands out is, or may be, a part of something that outlives the call
- `"asks"`: it asks for gradients, or whether there are any
- `"calls f"`: it calls what goes by the dotted name `f`, which the program has to look up; `f[]` is an element of `f`,
  `.f` a method of a value that has no name
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from perflint.ir.notation import last_name
from perflint.ir.own_effects import own_effects, uncertain
from perflint.syntax.walk import walk_own
from perflint.torch_model import tensors

__all__ = ["ASKS", "CALLS", "FILLS", "GIVES", "KEEPS", "Unread"]

KEEPS, FILLS, GIVES, ASKS, CALLS = "keeps", "fills", "gives", "asks", "calls "

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})
#: Builtins that reach what has no name here.
_REACHING = frozenset({"setattr", "delattr", "globals", "vars", "exec", "eval", "compile", "__import__"})
#: Attributes that hold numbers.
_NUMBERS = frozenset({"shape", "dtype", "device", "ndim", "training", "is_cuda", "layout"})
_ASKING = frozenset(
    "requires_grad requires_grad_ is_grad_enabled is_inference_mode_enabled needs_input_grad grad_fn is_leaf "
    "register_hook retain_grad saved_tensors_hooks backward autograd enable_grad set_grad_enabled jacrev jacfwd "
    "jacobian hessian vjp jvp hvp".split()
)
#: What goes through its argument, turn by turn.
_THROUGH = frozenset("enumerate zip reversed list tuple iter next sorted items values children modules".split())
_ALIASES = tensors.VIEW_METHODS | tensors.CAST_METHODS | tensors.TUPLE_METHODS | {"to", "cpu", "cuda", "get", "pop"}


#: The nodes that give names values, and those that may do something beyond their value.
_BINDING = frozenset(
    {
        ast.Assign,
        ast.AnnAssign,
        ast.NamedExpr,
        ast.For,
        ast.AsyncFor,
        ast.comprehension,
        ast.withitem,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Import,
        ast.ImportFrom,
        ast.MatchAs,
        ast.MatchStar,
        ast.MatchMapping,
    }
)
_ACTING = frozenset(
    {
        ast.Global,
        ast.Nonlocal,
        ast.Await,
        ast.Attribute,
        ast.Subscript,
        ast.AugAssign,
        ast.withitem,
        ast.Return,
        ast.Call,
    }
)


class _Whose(IntEnum):
    """Who else may have a value: nobody, whoever made it in a call, or what outlives the call."""

    OWN = 0
    GIVEN = 1
    LASTING = 2


class Unread:
    """What one function does beyond its run, in words and with places, and which of its lines need not run, each read
    when it is asked for; what stands in functions within it is told of those.
    """

    __slots__ = ("_function", "_reader", "enters", "stores")

    def __init__(self, function: _Function) -> None:
        self._function = function
        #: What has gone through the function for one answer, and will be wanted for the other.
        self._reader: _Reader | None = None
        self.enters = self.stores = False

    def read(self, name: str) -> tuple[Any, ...]:
        if name == "uncertain":
            body = self._function.body
            return uncertain(body) if isinstance(body, list) else ()
        reader, self._reader = self._reader, None
        if reader is None:
            reader = self._reader = _Reader(self._function)
        if name == "effects":
            return tuple(sorted(reader.read()))
        return own_effects(reader.parts, frozenset(reader.params), reader.bound, reader.first)


class _Reader:
    def __init__(self, function: _Function) -> None:
        body = function.body if isinstance(function.body, list) else [function.body]
        self.parts = [part for item in body for part in walk_own(item)]
        self.name = getattr(function, "name", "")
        given = function.args
        params = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        self.params = {item.arg for item in params}
        self.first = params[0].arg if params else ""
        self.bound: dict[str, list[ast.expr | None]] = {}
        self.inner: set[str] = set()
        #: Who else may have what a local name holds, as far as it is known by now: it only grows.
        self.owners: dict[str, _Whose] = {}
        self.tried: set[int] = set()
        self.constant: set[int] = set()
        for part in self.parts:
            if type(part) in _BINDING:
                self._note(part)

    def read(self) -> set[str]:
        found: set[str] = set()
        self._note_constants()
        self._settle_owners()
        for part in self.parts:
            kind = type(part)
            # Most nodes are names and constants, which hardly ever do anything: they are told by their fields at once.
            if kind is ast.Name:
                if part.id in _ASKING and type(part.ctx) is ast.Load:  # type: ignore[attr-defined]
                    found.add(ASKS)
            elif kind in _ACTING:
                found.update(self._of(part))
            elif kind is ast.Constant and part.value == "nuc":  # type: ignore[attr-defined]
                found.add(ASKS)  # a norm that is computed in another way without gradients
        return found

    def _note_constants(self) -> None:
        """Which targets are given a constant, and what stands in a `try`."""
        for part in self.parts:
            kind = type(part)
            if kind is ast.Assign and type(part.value) is ast.Constant:  # type: ignore[attr-defined]
                self.constant.update(map(id, part.targets))  # type: ignore[attr-defined]
            elif kind is ast.AugAssign and type(part.value) is ast.Constant:  # type: ignore[attr-defined]
                self.constant.add(id(part.target))  # type: ignore[attr-defined]
            elif kind is ast.Try:
                tried = (walk_own(item) for item in part.body)  # type: ignore[attr-defined]
                self.tried.update(id(inner) for parts in tried for inner in parts)

    # What local names hold.

    def _note(self, part: ast.AST) -> None:
        if isinstance(part, ast.Assign):
            for target in part.targets:
                self._bind(target, part.value)
        elif isinstance(part, (ast.AnnAssign, ast.NamedExpr)):
            if part.value is not None:
                self._bind(part.target, part.value)
        elif isinstance(part, (ast.For, ast.AsyncFor, ast.comprehension)):
            self._bind(part.target, ast.Subscript(part.iter, ast.Constant(None), ast.Load()))
        elif isinstance(part, ast.withitem) and part.optional_vars is not None:
            self._bind(part.optional_vars, part.context_expr)
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self.inner.add(part.name)
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            self.inner.update((alias.asname or alias.name).partition(".")[0] for alias in part.names)
        elif isinstance(part, (ast.MatchAs, ast.MatchStar)) and part.name:
            self.bound.setdefault(part.name, []).append(None)
        elif isinstance(part, ast.MatchMapping) and part.rest:
            self.bound.setdefault(part.rest, []).append(None)

    def _bind(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.bound.setdefault(target.id, []).append(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            whole = len(parts) == len(target.elts) and not any(isinstance(item, ast.Starred) for item in parts)
            for number, item in enumerate(target.elts):
                self._bind(item, parts[number] if whole else value)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, value)

    def _settle_owners(self) -> None:
        """The least fixed point of who owns local names: three levels that only rise, so few rounds."""
        local = {name: values for name, values in self.bound.items() if name not in self.params}
        self.owners = dict.fromkeys(local, _Whose.OWN)
        changed = True
        while changed:
            changed = False
            for name, values in local.items():
                found = max(map(self.whose, values))
                if found > self.owners[name]:
                    self.owners[name], changed = found, True

    def whose(self, value: ast.expr | None) -> _Whose:
        """Who else may have a value, or a part of it."""
        if isinstance(value, ast.Name):
            return self.owners.get(value.id, _Whose.LASTING)
        if isinstance(value, ast.Attribute):
            return _Whose.OWN if value.attr in _NUMBERS else self.whose(value.value)
        if isinstance(value, (ast.Subscript, ast.Starred, ast.NamedExpr)):
            return self.whose(value.value)
        if isinstance(value, ast.Call):
            return self._of_result(value)
        if isinstance(value, (ast.BoolOp, ast.Tuple, ast.List, ast.Set)):
            parts = value.values if isinstance(value, ast.BoolOp) else value.elts
            return max(map(self.whose, parts), default=_Whose.OWN)
        if isinstance(value, ast.IfExp):
            return max(self.whose(value.body), self.whose(value.orelse))
        if isinstance(value, ast.Dict):
            return max(map(self.whose, value.values), default=_Whose.OWN)
        if isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self.whose(value.elt)
        if isinstance(value, ast.DictComp):
            return self.whose(value.value)
        plain = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.JoinedStr, ast.Lambda, ast.Slice)
        return _Whose.OWN if isinstance(value, plain) else _Whose.LASTING

    def _of_result(self, call: ast.Call) -> _Whose:
        func = call.func
        name = last_name(func)
        if isinstance(func, ast.Attribute):
            if name in tensors.FRESH_METHODS or name.startswith("new_"):
                return _Whose.OWN
            if name in _ALIASES or name.endswith("_"):
                return max([self.whose(func.value), *map(self.whose, call.args[:1])])
        elif name in _THROUGH:
            return max(map(self.whose, call.args), default=_Whose.OWN)
        elif name in _REACHING or name in ("getattr", "locals", "type"):
            return _Whose.LASTING
        return _Whose.GIVEN

    # What is done.

    def _of(self, part: ast.AST) -> Iterator[str]:
        if isinstance(part, (ast.Global, ast.Nonlocal, ast.Await)):
            yield KEEPS
        elif isinstance(part, ast.Attribute):
            if isinstance(part.ctx, ast.Load):
                if part.attr in _ASKING:
                    yield ASKS
            elif isinstance(part.ctx, ast.Store):
                if id(part) not in self.constant and not self._is_own_object(part.value):
                    yield from self._written(part.value)
        elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
            if id(part) not in self.constant and not self._is_own_object(part.value):
                yield from self._written(part.value)
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            if id(part.target) not in self.constant:
                yield from self._written(part.target)
        elif isinstance(part, ast.withitem):
            if not isinstance(part.context_expr, ast.Call):
                yield KEEPS
        elif isinstance(part, ast.Return) and part.value is not None:
            if self.whose(part.value) is _Whose.LASTING and not self._hands_back(part.value):
                yield GIVES
        elif isinstance(part, ast.Call):
            yield from self._of_call(part)

    def _is_own_object(self, value: ast.expr) -> bool:
        """Whether an attribute is set on what is just being made."""
        while isinstance(value, (ast.Attribute, ast.Subscript)):
            value = value.value
        return self.name in _CONSTRUCTORS and isinstance(value, ast.Name) and value.id == self.first

    def _hands_back(self, value: ast.expr) -> bool:
        """Whether it is what it was given: whoever gave it knows whose it is."""
        return isinstance(value, ast.Name) and value.id in self.params

    def _written(self, value: ast.expr) -> Iterator[str]:
        whose = self.whose(value)
        if whose is _Whose.LASTING:
            yield KEEPS
        elif whose is _Whose.GIVEN:
            yield FILLS

    def _of_call(self, call: ast.Call) -> Iterator[str]:
        func, name = call.func, last_name(call.func)
        if isinstance(func, ast.Name) and name in _REACHING:
            yield KEEPS
        elif any(item.arg == "out" for item in call.keywords):
            yield from (said for item in call.keywords if item.arg == "out" for said in self._written(item.value))
        if any(item.arg == "inplace" and not _is_false(item.value) for item in call.keywords) and call.args:
            yield from self._written(call.args[0])
        if name == "numpy" and id(call) in self.tried:
            yield ASKS  # which raises where there are gradients
        if name.endswith("_") and not name.endswith("__"):
            receiver = func.value if isinstance(func, ast.Attribute) else None
            if isinstance(receiver, ast.Name) and receiver.id not in self.bound and receiver.id not in self.params:
                receiver = None  # `F.relu_(x)`
            written = receiver if receiver is not None else call.args[0] if call.args else func
            yield from self._written(written)
        if isinstance(func, ast.Attribute) and self.whose(func.value) is _Whose.OWN:
            return  # of what was made here
        yield from (f"{CALLS}{path}" for path in self._callees(func))

    def _callees(self, func: ast.expr | None, depth: int = 6, met: frozenset[str] = frozenset()) -> Iterator[str]:
        """By which names the program may look up what is called; `met` are the local names that led there."""
        if depth == 0 or func is None:
            yield "?"
        elif isinstance(func, ast.Name):
            if func.id in self.bound and func.id not in met:
                for value in self.bound[func.id]:
                    yield from self._callees(value, depth - 1, met | {func.id})
            elif func.id in self.params:
                yield "?"
            elif func.id not in self.bound:
                yield func.id
        elif isinstance(func, ast.Attribute):
            path = _dotted(func)
            root = path.partition(".")[0]
            yield path if path and root not in self.bound else f".{func.attr}"
        elif isinstance(func, ast.Subscript):
            yield from (
                path if path.endswith("[]") else f"{path}[]" for path in self._elements(func.value, depth - 1, met)
            )
        elif isinstance(func, ast.IfExp):
            yield from self._callees(func.body, depth - 1, met)
            yield from self._callees(func.orelse, depth - 1, met)
        elif isinstance(func, ast.Call) and last_name(func.func) == "super":
            return
        elif isinstance(func, ast.Lambda):
            return
        else:
            yield "?"

    def _elements(self, value: ast.expr, depth: int, met: frozenset[str]) -> Iterator[str]:
        """The same of what elements are taken from."""
        if isinstance(value, ast.Call) and last_name(value.func) in _THROUGH:
            sources = list(value.args)
            if isinstance(value.func, ast.Attribute):
                sources.append(value.func.value)
            for source in sources:
                yield from self._elements(source, depth - 1, met) if depth > 0 else ("?",)
        elif isinstance(value, ast.Call) and last_name(value.func) == "range":
            return
        else:
            yield from self._callees(value, depth, met)


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def _dotted(node: ast.expr) -> str:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(names)])
