"""Expressions in the notation of `Summary`: the value of a syntax node as far as it is plain to see. Pure."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from sys import intern
from typing import Any

from perflint.ir.summary import Value

#: How deep values nest before they end in None.
DEPTH = 5
#: Characters that are kept of a literal or an annotation.
LONGEST_TEXT = 200
_GRAD_SWITCHES = frozenset({"no_grad", "inference_mode", "enable_grad", "set_grad_enabled"})


def value_of(node: ast.expr | None, depth: int = DEPTH) -> Value:
    """`node` in the notation of `Summary`, None where it is not plain to see."""
    if node is None or depth <= 0:
        return None
    if type(node) is ast.Constant:
        return constant(node.value)
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            path = path_of(node)
            if path is not None:
                return intern(path)
            base = value_of(node.value, depth - 1)
            return None if base is None else ("attr", base, node.attr)
        case ast.Call():
            func = value_of(node.func, depth - 1)
            if func is None:
                return None
            args = tuple(value_of(item, depth - 1) for item in node.args)
            return (
                "call",
                func,
                args,
                tuple((item.arg or "", value_of(item.value, depth - 1)) for item in node.keywords),
            )
        case ast.Subscript():
            base = value_of(node.value, depth - 1)
            return None if base is None else ("item", base, index_of(node.slice))
        case ast.Await() | ast.Starred() | ast.NamedExpr():
            return value_of(node.value, depth)
        case ast.Tuple() | ast.List():
            items = node.elts if may_name_code(node.elts) else node.elts[:MOST_LITERALS]
            return ("seq", tuple(value_of(item, depth - 1) for item in items))
        case ast.Dict():
            keys = node.keys if may_name_code(node.values) else node.keys[: 2 * MOST_LITERALS]
            pairs = zip(keys, node.values)
            entries = [(key.value, value_of(item, depth - 1)) for key, item in pairs if is_text(key)]  # type: ignore[union-attr]
            others = [("", None)] if len(entries) < len(node.keys) else []
            return ("map", (*entries, *others))
        case ast.IfExp():
            arms = [value_of(item, depth) for item in (node.body, node.orelse)]
            return arms[0] if is_moved_arm(*arms) else either(arms)
        case ast.BoolOp():
            return either(value_of(item, depth - 1) for item in node.values)
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            return ("each", value_of(node.elt, depth - 1), value_of(node.generators[0].iter, depth - 1))
        case ast.DictComp():
            return ("table", value_of(node.value, depth - 1), value_of(node.generators[0].iter, depth - 1))
        case ast.Lambda():
            return ("lambda", lambda_name(node))
        case ast.JoinedStr() | ast.BinOp():
            return text_template(node)
        case _:
            return None


def text_template(node: ast.JoinedStr | ast.BinOp) -> Value:
    """`f"models.{name}"`, `"models/" + name` and `"models/%s.py" % name`, written as `"models.{}".format()` is, where
    the text may be the path or the name of a module: it holds no blank, and a separator.
    """
    return _template(node, _is_path)


def _is_path(text: str) -> bool:
    return ("." in text or "/" in text) and text.replace("{}", "x").translate(_SEPARATORS).isidentifier()


def _template(node: ast.expr, fits: Callable[[str], bool]) -> Value:
    if type(node) is ast.JoinedStr:
        parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
        text = "".join(part for part in parts if isinstance(part, str))
    elif not isinstance(node, ast.BinOp) or not isinstance(node.left, ast.Constant):
        return None
    elif isinstance(node.left.value, str) and isinstance(node.op, (ast.Add, ast.Mod)):
        end = node.right.value if isinstance(node.right, ast.Constant) and isinstance(node.right.value, str) else "{}"
        text = node.left.value + (end if isinstance(node.op, ast.Add) else "")
    else:
        return None
    text = text.replace("%s", "{}")
    if len(text) > LONGEST_TEXT or not fits(text):
        return None
    return ("call", ("attr", ("const", "str", text), "format"), (), ())


def method_template(node: ast.expr) -> Value:
    """`f"{kind}_loss"` and `"loss_" + kind`, written as `text_template` does, where the text may be a method's name."""
    return _template(node, _is_name)


def _is_name(text: str) -> bool:
    return text.replace("{}", "x").isidentifier() and bool(text.replace("{}", "").strip("_"))


#: What stands between the words of a module's name or path.
_SEPARATORS = str.maketrans(dict.fromkeys("./-", "_"))


#: Of longer tuples and lists of literals only the beginning is kept; of dicts twice as much.
MOST_LITERALS = 32


def may_name_code(items: Sequence[ast.expr]) -> bool:
    """Whether a display may hold classes, functions or objects: any of them may be what is run, however many there
    are. Tables of numbers and texts only tell what sort of thing they hold.
    """
    return any(type(item) is ast.Name or type(item) is ast.Attribute or type(item) is ast.Call for item in items)


def is_text(node: ast.expr | None) -> bool:
    """Whether a node is a string that is written out."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def constant(value: Any) -> Value:
    """A literal with the name of its type; its value where it is a text, a bool or a number of usual size."""
    kind = type(value)
    if kind is str:
        return ("const", "str", value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT])
    if kind is int:
        # Larger integers would not survive a trip through JSON.
        return ("const", "int", value if abs(value) < 2**53 else None)
    if kind is float and value == 0:
        return ("const", "float", 0.0)  # options are off by it
    return _OTHER_CONSTANTS[value] if kind is bool else _OTHER_CONSTANTS[kind]


class _Constants(dict[Any, Value]):
    """What is told of a truth value, and of all literals of a type."""

    def __missing__(self, kind: type) -> Value:
        self[kind] = ("const", kind.__name__, None)
        return self[kind]


_OTHER_CONSTANTS = _Constants({truth: ("const", "bool", truth) for truth in (False, True)})


def index_of(node: ast.expr) -> int | str | None:
    """A constant index, None for any other."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, str)):
        return None if isinstance(node.value, bool) else node.value  # `x[True]` is no item of `x`
    return None


def either(values: Iterable[Value]) -> Value:
    """One of several values; those that are not plain to see are left out."""
    found: tuple[Value, ...] = ()
    for value in values:
        if value is not None:
            found += value[1] if type(value) is tuple and value[0] == "either" else (value,)
    return found[0] if len(found) == 1 else ("either", found) if found else None


def is_moved_arm(taken: Value, other: Value) -> bool:
    """`value.to(device) if torch.is_tensor(value) else value`: what is left as it is has no values to wait for."""
    return (
        type(other) is str
        and type(taken) is tuple
        and taken[0] == "call"
        and (taken[1] == f"{other}.to" or taken[1] == f"{other}.cuda")
    )


def lambda_name(node: ast.Lambda) -> str:
    """The qualname a lambda has in `Summary.functions`: lambdas have no name, so their place names them."""
    return f"<lambda:{node.lineno}:{node.col_offset}>"


def path_of(node: ast.AST) -> str | None:
    """`a.b.c` as text, None for anything but names and their attributes."""
    if node.__class__ is ast.Name:
        return node.id
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    parts.reverse()
    return ".".join(parts)


def last_name(node: ast.AST) -> str:
    """`c` for `a.b.c`, empty for anything but names and attributes."""
    kind = node.__class__
    return node.attr if kind is ast.Attribute else node.id if kind is ast.Name else ""  # type: ignore[attr-defined]


def annotation_text(node: ast.expr | None) -> str:
    """An annotation as text; strings lose their quotes. Empty when there is none."""
    if node is None:
        return ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value[:LONGEST_TEXT]
    try:
        return source_of(node)[:LONGEST_TEXT]
    except (RecursionError, ValueError):
        return ""


def source_of(annotation: ast.expr) -> str:
    """What `ast.unparse` gives."""
    text = _plain_annotation(annotation)
    return text if text is not None else ast.unparse(annotation)


def _plain_annotation(node: ast.expr) -> str | None:
    """What `ast.unparse` gives, for the shapes that nearly all annotations have: it is slow, and they are many."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return path_of(node)
    if isinstance(node, ast.Subscript):
        inner = node.slice
        texts = [_plain_annotation(item) for item in (inner.elts if isinstance(inner, ast.Tuple) else [inner])]
        base = _plain_annotation(node.value)
        if base is None or not texts or None in texts:
            return None
        return f"{base}[{', '.join(texts)}]"  # type: ignore[arg-type]
    if isinstance(node, ast.Constant):
        if node.value is ...:
            return "..."
        return repr(node.value) if node.value is None or isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        left, right = _plain_annotation(node.left), _plain_annotation(node.right)
        return f"{left} | {right}" if left and right and not isinstance(node.right, ast.BinOp) else None
    return None


def switches_grad(node: ast.expr) -> bool | None:
    """What a `with` item, decorator or call does to gradients: False switches them off (`torch.no_grad()`), True on
    (`torch.enable_grad()`), None leaves them."""
    call = node if isinstance(node, ast.Call) else None
    name = last_name(call.func if call is not None else node)
    if name not in _GRAD_SWITCHES:
        return None
    if name == "enable_grad":
        return True
    given = None
    if call is not None and (call.args or call.keywords):
        given = call.args[0] if call.args else call.keywords[0].value
    if name == "set_grad_enabled":
        return given.value if isinstance(given, ast.Constant) and isinstance(given.value, bool) else None
    if given is None or (isinstance(given, ast.Constant) and given.value is True):
        return False
    # `inference_mode(mode=flag)` may or may not; `no_grad(function)` is a decorator in other clothes.
    return False if name == "no_grad" else None


def cut(value: Value, depth: int) -> Value:
    """A value down to `depth` levels."""
    if type(value) is not tuple:
        return value if depth > 0 else None
    if depth <= 0:
        return None
    form = value[0]
    if form == "const":
        return value
    if form == "call":
        func = cut(value[1], depth - 1)
        if func is None:
            return None
        args = tuple([cut(item, depth - 1) for item in value[2]])
        return ("call", func, args, tuple([(key, cut(item, depth - 1)) for key, item in value[3]]))
    if form in ("seq", "either"):
        return (form, tuple([cut(item, depth - 1) for item in value[1]]))
    if form == "map":
        return (form, tuple([(key, cut(item, depth - 1)) for key, item in value[1]]))
    if form in ("item", "attr"):
        base = cut(value[1], depth - 1)
        return None if base is None else (form, base, value[2])
    if form in ("each", "table"):
        return (form, cut(value[1], depth - 1), cut(value[2], depth - 1))
    return value
