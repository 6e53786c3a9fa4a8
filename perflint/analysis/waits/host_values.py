"""Tests of which the text alone tells that they ask the host: most are such, and this costs a hundredth of asking for
kinds.
"""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.invariants.step_constants import default_of
from perflint.ir.notation import is_text, last_name
from perflint.syntax.bindings import Definition

#: Functions that give a bool or number of the host for whatever they are given.
_HOST_FUNCTIONS = frozenset("isinstance issubclass hasattr callable len id type any all bool".split())
#: Methods of tensors that tell what the host knows of them.
_SIZE_METHODS = frozenset("size dim numel ndimension nelement element_size".split())
#: Comparisons that ask no value of a tensor.
_ANSWERED = (ast.Is, ast.IsNot)
_PLAIN_ANNOTATIONS = frozenset({"int", "float", "bool", "str"})
#: Functions that give a number of the host, for a tensor as well.
_NUMBER_FUNCTIONS = frozenset({"len", "int", "float"})
#: The names that libraries of arrays on the host go by, and what is asked of them where no array is meant.
ARRAYS = ("np", "numpy", "pd", "pandas", "jnp", "polars")
#: Numbers of theirs, and of the module `math`.
CONSTANTS = frozenset({"inf", "Inf", "nan", "pi", "e"})
_NO_ARRAYS = CONSTANTS | {"random"}
#: How many names a size is followed through.
_LINKS = 2


def asks_the_host(leaf: ast.expr, ctx: FileFacts) -> bool:
    """Whether no tensor is asked by a test, or none of which it can ever be sure enough that it is one."""
    if isinstance(leaf, ast.Call):
        return _is_answered_by_host(leaf, ctx)
    if isinstance(leaf, ast.Compare):
        if isinstance(leaf.ops[0], _ANSWERED) and len(leaf.ops) == 1 and not isinstance(leaf.left, ast.Call):
            return True
        return any(is_text(item) for item in leaf.comparators) or (
            all(isinstance(item, ast.Tuple) or is_of_host(item, ctx) for item in (leaf.left, *leaf.comparators))
        )
    return _is_handed_in(leaf, ctx)


def speaks_of_arrays(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether a name is that of a library of arrays; who draws a number by `np.random.rand()` has none in mind, but for
    what an environment is played with.
    """
    if not (isinstance(node, ast.Name) and node.id in ARRAYS):
        return False
    asked = ctx.tree.parent(node)
    return not (isinstance(asked, ast.Attribute) and asked.attr in _NO_ARRAYS) or ctx.mentions("gym", "gymnasium")


def _is_answered_by_host(call: ast.Call, ctx: FileFacts) -> bool:
    """`len(x)`, `torch.jit.is_scripting()`."""
    func = call.func
    if isinstance(func, ast.Name):
        return func.id in _HOST_FUNCTIONS
    if not (isinstance(func, ast.Attribute) and func.attr.startswith("is_")) or func.attr == "is_nonzero":
        return False
    root: ast.expr = func
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and ctx.summary.imports.get(root.id, "").partition(".")[0] == "torch"


def _is_handed_in(leaf: ast.expr, ctx: FileFacts) -> bool:
    """A parameter, or an attribute that is set to literals and parameters alone: of neither it is ever sure enough
    that it is a tensor of one number, and most of what is tested is such.
    """
    if isinstance(leaf, ast.Name):
        definitions = ctx.inference.flow.definitions(leaf)
        return bool(definitions) and all(isinstance(item.node, ast.arg) for item in definitions)
    if not (isinstance(leaf, ast.Attribute) and isinstance(leaf.value, ast.Name) and leaf.value.id == "self"):
        return False
    if leaf.attr == "training":
        return True  # of every module
    around = ctx.tree.class_of(leaf)
    facts = ctx.summary.classes.get(ctx.tree.qualname(around)) if around is not None else None
    if facts is None:
        return False
    values = facts.attributes.get(leaf.attr, ())
    if _promises_plain(facts.annotations.get(leaf.attr, "")):
        return True
    return bool(values) and all(_is_plain(value) for value, _ in values)


def _promises_plain(annotation: str) -> bool:
    """`bool` or `Final[bool]`, as what an attribute is annotated with."""
    _, final, inner = annotation.rpartition("Final[")
    return (inner.removesuffix("]") if final else annotation) in _PLAIN_ANNOTATIONS


def _is_plain(value: object) -> bool:
    """A name or a literal, in the notation of summaries."""
    return (isinstance(value, str) and "." not in value) or (isinstance(value, tuple) and value[0] == "const")


def is_of_host(node: ast.expr, ctx: FileFacts, links: int = _LINKS) -> bool:
    """A literal, a size, a setting of numbers and flags, and sums of such."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.BinOp):
        return is_of_host(node.left, ctx, links) and is_of_host(node.right, ctx, links)
    if isinstance(node, ast.UnaryOp):
        return is_of_host(node.operand, ctx, links)
    if isinstance(node, ast.Name):
        return links > 0 and _is_named_size(node, ctx, links)
    return _is_size(node) or _is_setting(node, ctx)


def _is_size(node: ast.expr) -> bool:
    """`len(x)`, `x.ndim`, `x.shape[0]`, `x.size(0)`."""
    if isinstance(node, ast.Call):
        func = node.func
        return func.id in _NUMBER_FUNCTIONS if isinstance(func, ast.Name) else last_name(func) in _SIZE_METHODS
    if isinstance(node, ast.Subscript):
        inner = node.value
        return _is_size(inner) if isinstance(inner, ast.Call) else last_name(inner) == "shape" and _is_size(inner)
    if isinstance(node, ast.Attribute):
        return node.attr in ("ndim", "shape") and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    return False


def _is_named_size(name: ast.Name, ctx: FileFacts, links: int) -> bool:
    """Whether a name only ever holds sizes: `batch, length, _ = x.shape`, the number of a turn, or a parameter that is
    said to be one.
    """
    definitions = ctx.inference.flow.definitions(name)
    return bool(definitions) and all(
        _is_annotated_plain(item.node) or _is_set_to_size(item, ctx, links) for item in definitions
    )


def _is_set_to_size(definition: Definition, ctx: FileFacts, links: int) -> bool:
    node, value = definition.node, definition.value
    if value is None:
        return False
    if isinstance(node, (ast.For, ast.comprehension)):
        return _counts(value, definition.path)
    return isinstance(node, ast.Assign) and is_of_host(value, ctx, links - 1)


def _counts(turns: ast.expr, path: tuple[int | str, ...]) -> bool:
    """Whether a loop counts what stands at a place in its target: `for i in range(n)`, `for i, x in enumerate(xs)`."""
    if not (isinstance(turns, ast.Call) and isinstance(turns.func, ast.Name)):
        return False  # `torch.range(0, 3)` gives tensors
    return turns.func.id == "range" or (turns.func.id == "enumerate" and path[:1] == (0,))


def _is_setting(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether `self.x` is only set to literals, and to parameters that are declared to be numbers, flags or texts."""
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"):
        return False
    around = ctx.tree.class_of(node)
    if around is None:
        return False
    facts = ctx.summary.classes.get(ctx.tree.qualname(around))
    if facts is not None and _promises_plain(facts.annotations.get(node.attr, "")):
        return True
    stores = ctx.inference.classes.attributes.stores(around, node.attr)
    return bool(stores) and all(isinstance(item.node, ast.Assign) and _is_declared(item, ctx) for item in stores)


def _is_declared(store: Definition, ctx: FileFacts) -> bool:
    value = store.value
    if isinstance(value, ast.Constant):
        return True
    if store.path or not isinstance(value, ast.Name):
        return False
    definitions = ctx.inference.flow.definitions(value)
    return bool(definitions) and all(
        isinstance(item.node, ast.arg) and _is_plain_parameter(item.node, ctx) for item in definitions
    )


def _is_annotated_plain(node: ast.AST) -> bool:
    """`size: int`"""
    annotation = node.annotation if isinstance(node, ast.arg) else None
    return isinstance(annotation, ast.Name) and annotation.id in _PLAIN_ANNOTATIONS


def _is_plain_parameter(parameter: ast.arg, ctx: FileFacts) -> bool:
    """Whether a parameter is annotated as a number, flag or text, or has one by default."""
    if _is_annotated_plain(parameter):
        return True
    arguments = ctx.tree.parent(parameter)
    if not isinstance(arguments, ast.arguments):
        return False
    default = default_of(parameter, arguments)
    return isinstance(default, ast.Constant) and default.value is not None
