"""What the rules about printing share: which expressions make text, and which device values that reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.naming.data import FILE_ENDING
from perflint.analysis.values.kind import Kind, Tag
from perflint.analysis.waits.losses import is_propagated
from perflint.analysis.waits.reads import certainty_on_device, device_read, is_on_device, kind_on_device
from perflint.finding import Confidence
from perflint.ir.calls import arguments_of, callee_name, is_constant
from perflint.syntax.walk import children
from perflint.torch_model import trackers

_BUILTINS = frozenset({"print", "str", "repr", "format", "pprint"})
_PRINTERS = frozenset(name.removeprefix("builtins.") for name in trackers.PRINTING)
_LOGGERS = ("log", "logger", "logging", "logs")
#: What texts are logged at, where levels are told by name.
_LEVELS = ("TRACE", "DEBUG", "INFO", "SUCCESS", "WARNING", "ERROR", "CRITICAL")
PRINTING_NAMES = (
    *sorted(_BUILTINS | trackers.PROGRESS_METHODS | trackers.LOGGING_METHODS),
    "write",
    *sorted(trackers.TRACKER_METHODS),
)
#: What may stand between `%` and its conversion: flags, a width and a precision.
_FLAGS = "-#0 +123456789.hlL"
#: Reads of the device that one value costs, as counted by the calls of `aten::_local_scalar_dense`.
ONE_NUMBER = 1
TEXT_OF_TENSOR = 8


class Printed(NamedTuple):
    """A device value that becomes text: the expression, and how many times the host waits for it."""

    value: ast.expr
    waits: int


#: A text is written so often at most for what is filled into it to be counted.
_MOST_TIMES = 64


def formatter_around(node: ast.AST, ctx: FileFacts) -> ast.expr | None:
    """The outermost expression of the same statement that makes text of `node`; None where there is none."""
    found: ast.expr | None = None
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.stmt, ast.Lambda)):
            break
        if isinstance(outer, ast.expr) and child is not getattr(outer, "func", None) and is_formatter(outer, ctx):
            found = outer
        child = outer
    return found


def is_formatter(node: ast.AST, ctx: FileFacts) -> bool:
    """Whether an expression makes text of what is in it."""
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.FormattedValue) for part in node.values)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mod) and (_is_text(node.left) or ctx.kind(node.left).tag is Tag.STRING)
    if not isinstance(node, ast.Call):
        return False
    name = callee_name(node)
    if isinstance(node.func, ast.Attribute):
        if name == "format":
            return _is_text(node.func.value)
        if name in trackers.PROGRESS_METHODS:
            return True
        if name == "log" and _logs_a_number(node):
            return False
        if name in trackers.LOGGING_METHODS or name == "write":
            return _is_logger(node.func.value, ctx) or ctx.target(node.func) in _PRINTERS
        return False
    return name in PRINTING_NAMES and ctx.target(node.func) in (_BUILTINS | _PRINTERS)


def is_tracker(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call hands values to an experiment tracker, which reads them at once."""
    if ctx.target(node.func) in trackers.TRACKER_FUNCTIONS:
        return True
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in trackers.TRACKER_METHODS:
        return False
    target = ctx.target(node.func)
    if target is not None:
        return target.rpartition(".")[0] in trackers.TRACKER_CLASSES
    # What nobody can tell: only a writer of event files has such a method, which is told a tag first.
    is_told = node.func.attr in trackers.WRITER_METHODS and len(node.args) > 1 and _is_text(node.args[0])
    return is_told and not ctx.refs(node.func.value)


def _is_text(node: ast.expr) -> bool:
    """A text that is written out, or put together with one: `prefix + "/loss"`, `"%s/loss" % name`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        return _is_text(node.left) or (isinstance(node.op, ast.Add) and _is_text(node.right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _is_text(node.func.value)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_logger(node: ast.expr, ctx: FileFacts) -> bool:
    name = ctx.text(node).rpartition(".")[2].strip("_").lower()
    return name.endswith(_LOGGERS) or name in ("tqdm", "pbar", "console", "f", "stdout", "stderr", "file")


def _logs_a_number(call: ast.Call) -> bool:
    """`logger.log("train/loss", loss, step)`, `logger.log({"loss": loss}, step)`: keeps values under names. What logs
    text is told a level first.
    """
    assert isinstance(call.func, ast.Attribute)
    of_console = isinstance(call.func.value, ast.Name) and call.func.value.id == "console"
    if call.args and isinstance(call.args[0], ast.Dict):
        return not of_console
    if len(call.args) < 2 or of_console or not _is_text(call.args[0]):
        return False
    return not any(is_constant(call.args[0], level) for level in _LEVELS)


def is_lazy(node: ast.expr) -> bool:
    """Whether values only become text when the level is on: `logger.debug("%s", x)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "debug"


def printed_in(node: ast.expr, ctx: FileFacts) -> Iterator[Printed]:
    """The device values that a formatter, or a tracker, reads."""
    if isinstance(node, ast.Call):
        whole = TEXT_OF_TENSOR
        if callee_name(node) == "format" or is_tracker(node, ctx):
            whole = ONE_NUMBER
        for argument in arguments_of(node):
            yield from _printed(argument, 0 if is_lazy(node) else whole, ctx)
    elif isinstance(node, ast.BinOp):
        for value, whole in _filled_in(node.left, node.right):
            yield from _printed(value, whole, ctx)
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield from _printed(part.value, TEXT_OF_TENSOR if part.conversion != -1 else ONE_NUMBER, ctx)


def _filled_in(template: ast.expr, values: ast.expr) -> Iterator[tuple[ast.expr, int]]:
    """The values of `"%s: %f" % (name, loss)`, and what a 0-d tensor costs there: `%f` asks it for one number, `%s`
    writes it as a tensor.
    """
    text = _words(template)
    kinds = [TEXT_OF_TENSOR if kind in "sra" else ONE_NUMBER for kind in _conversions(text)]
    given = values.elts if isinstance(values, ast.Tuple) else [values]
    starred = [place for place, value in enumerate(given) if isinstance(value, ast.Starred)]
    if len(starred) == 1 and len(given) <= len(kinds) + 1:
        # `"%s" + "%f" * 3` of `(name, *parts)`: each part is one value.
        first, last = starred[0], len(kinds) - (len(given) - starred[0] - 1)
        kinds[first:last] = [sum(kinds[first:last])]
    if len(kinds) == len(given):
        yield from zip(given, kinds)
    else:
        yield values, ONE_NUMBER if text and "%s" not in text else TEXT_OF_TENSOR


def _conversions(text: str) -> list[str]:
    """`s` and `f` of `"%s: %5.1f %%"`."""
    return [part.lstrip(_FLAGS)[:1] for part in text.replace("%%", "").split("%")[1:]]


def _words(node: ast.expr) -> str:
    """A text that is written out, or put together of such: `"%s" + "%5.1f" * 3`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _words(node.left), _words(node.right)
        return left + right if left and right else ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Constant):
        times = node.right.value
        return _words(node.left) * times if isinstance(times, int) and times <= _MOST_TIMES else ""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _printed(value: ast.expr, whole: int, ctx: FileFacts) -> Iterator[Printed]:
    """`whole` is what it costs to make text of a 0-d tensor at this place, 0 where that does not happen."""
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        for item in value.elts:
            yield from _printed(item, TEXT_OF_TENSOR if whole > 1 else whole, ctx)
    elif isinstance(value, ast.Dict):
        for item in value.values:
            yield from _printed(item, whole, ctx)
    elif isinstance(value, ast.Starred):
        yield from _printed(value.value, whole, ctx)
    elif is_formatter(value, ctx):
        yield from printed_in(value, ctx)
    elif device_read(value, ctx) is not None:
        yield Printed(value, ONE_NUMBER)
    elif whole and is_on_device(value, ctx):
        # Where the shape is not known, as little as one number costs: the message says "at least".
        yield Printed(value, whole)
    elif whole and not ctx.kind(value).known and is_propagated(value, ctx):
        yield Printed(value, whole)
    elif whole and ctx.kind(value).tag in (Tag.MAPPING, Tag.SEQUENCE) and _all_on_device(value, ctx):
        yield Printed(value, TEXT_OF_TENSOR)
    else:
        yield from _read_inside(value, ctx)


def _all_on_device(value: ast.expr, ctx: FileFacts) -> bool:
    return isinstance(value, (ast.Name, ast.Attribute)) and _holds_on_device(ctx.kind(value), value, ctx)


def _holds_on_device(kind: Kind, value: ast.expr, ctx: FileFacts) -> bool:
    """Whether all that a container holds is on the device, in whatever lists it is kept."""
    held = [item for item in (kind.element, *(item for _, item in kind.items)) if item is not None]
    return bool(held) and all(
        _holds_on_device(item, value, ctx)
        if item.tag in (Tag.MAPPING, Tag.SEQUENCE)
        else kind_on_device(item, value, ctx) is not None
        for item in held
    )


def _read_inside(value: ast.expr, ctx: FileFacts) -> Iterator[Printed]:
    """Reads within an expression that is printed: `round(loss.item(), 3)`."""
    for child in children(value):
        part = child.value if isinstance(child, ast.keyword) else child
        if isinstance(part, ast.expr) and not isinstance(part, ast.Lambda):
            if device_read(part, ctx) is not None:
                yield Printed(part, ONE_NUMBER)
            elif is_formatter(part, ctx):
                yield from printed_in(part, ctx)
            else:
                yield from _read_inside(part, ctx)


def names_a_file(node: ast.expr) -> bool:
    """Whether the text is the name of a file, `f"{index}.jpg"`: what is written to it came to the host before."""
    last = node.values[-1] if isinstance(node, ast.JoinedStr) and node.values else None
    return isinstance(last, ast.Constant) and isinstance(last.value, str) and bool(FILE_ENDING.search(last.value))


def certainty_of_text(item: Printed, ctx: FileFacts) -> Confidence:
    read = device_read(item.value, ctx)
    found = read.certainty if read is not None else certainty_on_device(item.value, ctx)
    return Confidence.MEDIUM if found is None else found
