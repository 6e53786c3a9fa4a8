"""What targets come to hold: the names, attributes and items that statements and loops bind."""

from __future__ import annotations

import ast
from sys import intern

from perflint.ir.computed import COVERS
from perflint.ir.growing import Growing
from perflint.ir.notation import path_of, value_of
from perflint.ir.own_tests import given_where
from perflint.ir.sharing import Sharing
from perflint.ir.summary import ClassFacts, FunctionFacts, Summary, Value
from perflint.syntax.walk import children

_NEW_DICT: Value = ("call", "dict", (), ())


class Targets:
    """Writes down targets in the function `scope`.

    `owner` is the qualname of the enclosing scope and `cls` that of the class around it, "" for none: the two are the
    same in a class body.
    """

    def __init__(self, sharing: Sharing) -> None:
        self.once = sharing.once
        self.summary = Summary()
        self.imports = self.summary.imports
        self.classes: dict[str, ClassFacts] = {}
        #: By class and attribute, what it is given.
        self.held: dict[str, dict[str, dict[tuple[Value, str], None]]] = {}
        #: The same of what `ClassFacts` has as computed, and as unclear.
        self.computed: dict[str, dict[str, dict[tuple[Value, str], None]]] = {}
        self.unclear: dict[str, set[str]] = {}
        self.identifiers: set[str] = set()
        self.scope = Growing(FunctionFacts("", 0, 0, "", ""), [])
        self.owner = ""
        self.cls = ""

    def visit(self, node: ast.expr) -> None:
        """Write down an expression whose value nobody wants."""
        raise NotImplementedError

    def target(self, node: ast.expr) -> None:
        while type(node) is ast.Attribute:
            self.identifiers.add(node.attr)
            node = node.value
        kind = type(node)
        if kind is ast.Name:
            self.identifiers.add(node.id)  # type: ignore[attr-defined]
        elif kind is ast.Tuple or kind is ast.List:
            for part in node.elts:  # type: ignore[attr-defined]
                self.target(part)
        else:
            self.visit(node)

    def bind_name(self, name: str, value: Value, computed: Value = None) -> None:
        if not self.cls or self.owner != self.cls:
            if name in self.scope.tested:
                computed = given_where(self.scope.tested[name], value if computed is None else computed)
            if computed is None:
                self.scope.bind(name, value)
            else:
                self.scope.compute(name, value, computed)

    def bind(self, target: ast.expr, value: Value) -> None:
        kind = type(target)
        if kind is ast.Name:
            self.bind_name(target.id, value)  # type: ignore[attr-defined]
        elif kind is ast.Attribute:
            self.bind_attribute(target, value)  # type: ignore[arg-type]
        elif kind is ast.Tuple or kind is ast.List:
            parts = target.elts  # type: ignore[attr-defined]
            if type(value) is tuple and value[0] == "seq" and len(value[1]) == len(parts):
                for part, item in zip(parts, value[1]):
                    self.bind(part, item)
            else:
                self.bind_items(target, value)  # type: ignore[arg-type]
        elif kind is ast.Subscript and type(target.value) is ast.Attribute:  # type: ignore[attr-defined]
            self.scope.set_entry(path_of(target.value), target.slice)  # type: ignore[attr-defined]
        elif kind is ast.Subscript and type(target.value) is ast.Name:  # type: ignore[attr-defined]
            self.scope.unclear.add(target.value.id)  # type: ignore[attr-defined]
            key = target.slice  # type: ignore[attr-defined]
            self.scope.set_entry(target.value.id, key)  # type: ignore[attr-defined]
            if value is not None and self.is_table(target):
                # `NETWORKS["small"] = Small`: one more of those that a dispatch chooses from; `stats["loss"] = loss`.
                is_named = type(key) is ast.Constant and type(key.value) is str
                held = ("map", ((key.value, value),)) if is_named else ("table", value, None)
                self.scope.bind(target.value.id, held)  # type: ignore[attr-defined]

    def is_table(self, target: ast.expr) -> bool:
        """Whether an item is stored in what this very scope has made as a dict."""
        known = self.scope.binds.get(target.value.id, ())  # type: ignore[attr-defined]
        return any(type(held) is tuple and (held[0] == "map" or held == _NEW_DICT) for held in known)

    def hold(self, name: str, items: list[ast.expr]) -> None:
        """`steps += [blur, shift]`: what a list that is written out here holds besides and may be called later on."""
        known = self.scope.binds.get(name)
        first = next(iter(known)) if known else None
        if type(first) is tuple and first[0] == "seq":
            for value in [value_of(item, 2) for item in items]:
                if may_be_code(value):
                    self.scope.bind(name, ("each", value, None))

    def is_of_table(self, value: Value) -> bool:
        """Whether a value is an entry of a table that is written out here, or at the top of a file:
        `self.losses[name] = KNOWN[name]`.
        """
        if type(value) is not tuple or value[0] != "item" or type(value[1]) is not str:
            return False
        known = self.scope.binds.get(value[1])
        if known is None:
            given = any(param.name.lstrip("=*") == value[1] for param in self.scope.facts.params)
            return not given and "." not in value[1]
        return any(type(held) is tuple and held[0] == "map" for held in known)

    def bind_attribute(self, target: ast.Attribute, value: Value, computed: Value = None) -> None:
        base = target.value
        if type(base) is ast.Name and base.id in ("self", "cls") and self.cls:
            asked = self.scope.tested.get(f"self.{target.attr}") if self.scope.tested else None
            if asked is not None:
                computed = given_where(asked, value if computed is None else computed)
            self.attribute_holds(self.cls, target.attr, value, self.scope.facts.qualname, computed)
        else:
            path = path_of(target)
            if path is not None and computed is None:
                self.scope.bind(intern(path), value)
            elif path is not None:
                self.scope.compute(intern(path), value, computed)

    def bind_each(self, target: ast.expr, iterable: Value) -> None:
        if iterable is None or (type(iterable) is tuple and iterable[0] == "call" and iterable[1] == "range"):
            return
        if type(target) is ast.Name:
            self.scope.bind(target.id, ("item", iterable, None))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.bind_items(target, ("item", iterable, None))

    def bind_items(self, target: ast.Tuple | ast.List, value: Value) -> None:
        if value is None or _gives_numbers(value):
            self.scope.unclear.update(names_in(target))
            for part in target.elts:
                if isinstance(part, ast.Attribute):
                    self.bind_attribute(part, None)
            return
        for index, part in enumerate(target.elts):
            item = ("item", value, index)
            if isinstance(part, ast.Starred):
                self.scope.unclear.update(names_in(target))
                return
            if isinstance(part, ast.Name):
                self.scope.bind(part.id, item)
            elif isinstance(part, ast.Attribute):
                if isinstance(part.value, ast.Name) and part.value.id == "self":
                    self.attribute_holds(self.cls, part.attr, item, self.scope.facts.qualname)
            elif isinstance(part, (ast.Tuple, ast.List)):
                self.bind_items(part, item)

    def attribute_holds(self, cls: str, name: str, value: Value, where: str, computed: Value = None) -> None:
        if cls not in self.classes:
            return
        if value is None and computed is None:
            self.unclear.setdefault(cls, set()).add(name)
            return
        held = self.held.setdefault(cls, {}).setdefault(name, {}) if value is not None else {}
        if computed is not None:
            known = self.computed.setdefault(cls, {}).setdefault(name, {})
            known[self.once(computed, computed), where] = None
            if value is not None and (value, where) not in held:
                known[(COVERS, value), where] = None
        elif cls in self.computed and name in self.computed[cls]:
            self.computed[cls][name].pop(((COVERS, value), where), None)
        if value is not None:
            held[self.once(value, value), where] = None


def names_in(target: ast.expr) -> tuple[str, ...]:
    """The plain names a loop's target binds: none for `for self.epoch in range(3)`, whose `self` it only reads."""
    if type(target) is ast.Name:
        return (target.id,)
    if type(target) is ast.Tuple and all(type(part) is ast.Name for part in target.elts):
        return tuple([part.id for part in target.elts])  # type: ignore[attr-defined]
    return tuple(part.id for part in ast.walk(target) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))


def parts_of(value: ast.expr) -> tuple[str, ...]:
    """The names in an expression, and what is called in it: `model()`."""
    found: dict[str, None] = {}
    nodes: list[ast.AST] = [value]
    for node in nodes:  # breadth first: it grows meanwhile
        if type(node) is ast.Name:
            found[node.id] = None
            continue
        if type(node) is ast.Call:
            path = path_of(node.func)
            if path is not None:
                found[f"{path}()"] = None
        nodes += children(node)
    return tuple([intern(name) for name in found])


def may_be_code(value: Value) -> bool:
    """Whether a value is a plain name, a lambda, or an object of a class: something that may be called later on."""
    if type(value) is not tuple:
        return type(value) is str and "." not in value
    if value[0] == "call" and type(value[1]) is str:
        return value[1].rpartition(".")[2][:1].isupper() or value[1].endswith("partial")
    return value[0] == "lambda"  # type: ignore[no-any-return]


def _gives_numbers(value: Value) -> bool:
    """`b, c = x.shape`, `b, c = x.size()`: what comes out refers to nothing."""
    if type(value) is str:
        return value.endswith((".shape", ".size"))
    return value[0] == "call" and type(value[1]) is str and value[1].endswith((".size", ".shape"))
