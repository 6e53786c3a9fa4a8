"""Device tensors that stand where Python or PyTorch needs a number: bounds of slices, sizes, counts of repetitions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.dtypes import Dtype
from perflint.analysis.values.implicit_reads import numbers_in
from perflint.analysis.values.kind import UNKNOWN, Kind, Place, Tag
from perflint.analysis.values.origin import Provenance, is_from
from perflint.analysis.values.outside_stores import ends_as_tensor
from perflint.analysis.waits.reads import Read, certainty_on_device, kind_on_device
from perflint.finding import Confidence
from perflint.ir.calls import arguments_of, callee_name
from perflint.ir.notation import is_text
from perflint.syntax.bindings import Definition
from perflint.torch_model import counts

#: Operations that take numbers; where a device tensor stands for one, the host waits for it.
NUMBER_NAMES = tuple(sorted(counts.NAMES | counts.OF_LISTS | set(counts.LISTED)))
#: What no tensor of the device stands in for, or nothing that can be told of: settings.
_NO_TENSORS = (ast.Constant, ast.Attribute)
#: Methods that give numbers of the host, and what functions that do are called on.
_OF_HOST = frozenset("size dim numel ndimension item tolist index find count get bit_length".split())
_BUILTINS = frozenset(dir(builtins))
_LIBRARIES = frozenset("self math np numpy random os re time".split())
#: What an operation of torch makes, or has moved, and what a module registers.
_MADE = (
    *(Provenance.CONSTRUCTOR, Provenance.LIKE, Provenance.TOKENIZER, Provenance.MOVE, Provenance.FUNCTION),
    Provenance.BUFFER,
)
#: What makes a tensor that values are written into.
_KEPT = (Provenance.CONSTRUCTOR, Provenance.LIKE)
_ON_HOST = (Tag.SEQUENCE, Tag.ARRAY)
#: What all that have such an attribute have on the host.
_OF_WHATEVER = frozenset({"shape", "dtype", "ndim"})
#: How many names a value is followed through.
_LINKS = 4


def device_number(node: ast.AST, ctx: FileFacts) -> Read | None:
    """The device tensor of one number that a slice, an index or a call turns into a Python number: each is a read."""
    return ctx.once(_device_number, node)


def _device_number(node: ast.AST, ctx: FileFacts) -> Read | None:
    if isinstance(node, ast.Call):
        if callee_name(node) in counts.LISTED:
            return _listed(node, ctx)
        if not _may_take_tensor(node, ctx):
            return None
    for number in numbers_of(node, ctx):
        if isinstance(node, ast.Subscript) and not _is_one_position(number, ctx):
            continue  # a row of positions selects on the device
        certainty = certainty_of_bound(number, ctx)
        if certainty is not None:
            # Which callee it is takes more to tell than most arguments do: it is asked last.
            is_own = isinstance(node, ast.Call) and ctx.target(node.func) is None and _runs_project(node.func, ctx)
            return None if is_own else Read(number, certainty)
    return _list_of_numbers(node, ctx) if isinstance(node, ast.Call) else None


def _may_take_tensor(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether an argument that stands for a number is a tensor, or a name of a list. Of most calls the text tells that
    none is, and their sizes are soon looked up: what the methods are called on takes far longer to tell.
    """
    dotted = ctx.target(call.func) or ""
    if _is_of_import(call.func, ctx) or _is_of_object(call.func, ctx):
        if not dotted and not (isinstance(call.func, ast.Attribute) and ctx.kind(call.func.value).is_tensor):
            return False  # as `numbers_of` has it
        methods: Iterable[ast.expr] = ()
    else:
        methods = numbers_in(call, "")
    given = [*numbers_in(call, dotted), *(call.args[:1] if callee_name(call) in counts.OF_LISTS else ()), *methods]
    return any(_is_number_or_list(item, ctx) for item in given if _may_be_read(item, ctx))


def _is_number_or_list(item: ast.expr, ctx: FileFacts) -> bool:
    if isinstance(item, ast.Name):
        made = ctx.inference.flow.definitions(item)
        if made and all(map(_is_size, made)):
            return False
    elif not may_be_tensor(item, ctx):
        return False
    if ctx.kind(item).tag is Tag.SEQUENCE:
        return _certainty_of_items(item, ctx) is not None
    return certainty_on_device(item, ctx) is not None and ctx.kind(item).rank in (None, 0)


def _is_size(made: Definition) -> bool:
    """Whether a name is bound to a size, or to what arithmetic gives of numbers alone: neither tensor nor list."""
    value = made.value
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Attribute) and value.value.attr == "shape"
    if isinstance(value, ast.Attribute):
        return value.attr == "shape" and bool(made.path)
    if isinstance(value, ast.Call):
        func = value.func
        return isinstance(func, ast.Attribute) and func.attr == "size" and bool(made.path or value.args)
    return False


def _list_of_numbers(node: ast.Call, ctx: FileFacts) -> Read | None:
    """`torch.tensor(lengths)`, `x.split(lengths)` of a list that holds numbers of the device: each of them is read."""
    if callee_name(node) in counts.OF_LISTS:
        is_made = bool(node.args) and (ctx.target(node.func) or "").startswith("torch.")
        lists = node.args[:1] if is_made else []
    else:
        lists = list(numbers_of(node, ctx))
    for given in lists:
        certainty = _certainty_of_items(given, ctx)
        if certainty is not None:
            return Read(given, certainty)
    return None


def _certainty_of_items(given: ast.expr, ctx: FileFacts) -> Confidence | None:
    """How sure it is that a name is of a list that holds numbers of the device: nothing else can stand in it."""
    held = ctx.kind(given) if isinstance(given, ast.Name) else None
    element = held.element if held is not None and held.tag is Tag.SEQUENCE else None
    return kind_on_device(element, given, ctx) if element is not None and element.rank in (None, 0) else None


def _listed(node: ast.Call, ctx: FileFacts) -> Read | None:
    """`pack_padded_sequence(x, list(lengths))` of lengths that are computed on the device."""
    place, name = counts.LISTED[callee_name(node)]
    lists = [item.value for item in node.keywords if item.arg == name] or node.args[place : place + 1]
    for given in lists:
        kind = ctx.kind(given)
        if kind.tag is not Tag.SEQUENCE or kind.element is None or kind.element.rank not in (None, 0):
            continue
        sources = [part for origin in ctx.inference.origins(given) for part in _gone_through(origin)]
        certainty = kind_on_device(kind.element, given, ctx)
        if certainty is not None and any(_is_computed(part, ctx, _LINKS) for part in sources):
            return Read(given, certainty)
    return None


def _gone_through(made: ast.expr) -> list[ast.expr]:
    """What a list is made of: `lengths` of `list(lengths)` and of `[n for n in lengths]`."""
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id in ("list", "tuple", "sorted"):
        return made.args[:1]
    if isinstance(made, ast.ListComp) and isinstance(made.elt, ast.Name):
        return [made.generators[0].iter]
    return []


def numbers_of(node: ast.AST, ctx: FileFacts) -> Iterator[ast.expr]:
    """What a slice, a call or a repetition needs as numbers, where it may be a tensor by how it is written."""
    if isinstance(node, ast.Slice):
        yield from bounds(node, ctx)
    elif isinstance(node, ast.Subscript):
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        yield from (place for place in places if isinstance(place, (ast.Name, ast.Subscript, ast.Call, ast.BinOp)))
    elif isinstance(node, ast.Call) and callee_name(node) in NUMBER_NAMES:
        # Most are literals, sizes and settings: the text tells before the callee is looked up.
        if any(_may_be_read(item, ctx) for item in arguments_of(node)):
            is_method = isinstance(node.func, ast.Attribute) and ctx.kind(node.func.value).is_tensor
            dotted = None if is_method else ctx.target(node.func)
            if dotted is None and (_is_of_import(node.func, ctx) or _is_of_object(node.func, ctx)):
                return  # a function of what is imported and not known: which argument is the tensor, nobody knows
            for number in numbers_in(node, dotted or ""):
                yield from (number,) if _may_be_read(number, ctx) else ()


def _is_of_import(func: ast.expr, ctx: FileFacts) -> bool:
    owner = func.value if isinstance(func, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id in ctx.summary.imports


def _is_of_object(func: ast.expr, ctx: FileFacts) -> bool:
    """`self.dropout(x)`: what the object around has or does, which is no method of a tensor."""
    owner = func.value if isinstance(func, ast.Attribute) else None
    around = ctx.tree.class_of(func)
    if not isinstance(owner, ast.Name) or around is None or owner.id != _object_of_method(func, around, ctx):
        return False
    return not any("Tensor" in ctx.text(base) for base in around.bases)


def _object_of_method(node: ast.AST, cls: ast.ClassDef, ctx: FileFacts) -> str | None:
    """What the method of a class around a node calls its object: its first parameter, mostly `self`."""
    method = function = ctx.tree.function_of(node)
    while function is not None and ctx.tree.class_of(function) is cls:
        method, function = function, ctx.tree.function_of(function)
    first = [*method.args.posonlyargs, *method.args.args][:1] if method is not None else []
    return first[0].arg if first else None


def _runs_project(func: ast.expr, ctx: FileFacts) -> bool:
    """`self.dropout(x)` of a module of the project, which shares its name with a function of torch's."""
    return any(ref.path for ref in ctx.refs(func)) or ctx.kind(func).tag in (Tag.MODULE, Tag.INSTANCE)


def _is_one_position(index: ast.expr, ctx: FileFacts) -> bool:
    """Whether an index is known to be a single integer: then it is read, to know which part is meant. Lists take no
    other, nor do arrays take one of the device.
    """
    if not may_be_tensor(index, ctx):
        return False
    kind = ctx.kind(index)
    if not kind.is_tensor:
        return False
    if kind.dtype is Dtype.INT and (kind.scalar or (kind.rank is None and ctx.kind_on_route(index).scalar)):
        return True
    node = ctx.tree.parent(index)
    while isinstance(node, ast.Tuple):
        node = ctx.tree.parent(node)
    return kind.rank is None and isinstance(node, ast.Subscript) and ctx.kind(node.value).tag in _ON_HOST


def stored_on_host(place: ast.AST, ctx: FileFacts) -> Read | None:
    """The device tensor that an assignment copies into a part of a tensor that this function made on the host. What an
    object holds for long, such as a buffer of experience, is there because it is large.
    """
    statement = ctx.tree.parent(place)
    if not isinstance(statement, ast.Assign) or not isinstance(place, ast.Subscript) or place not in statement.targets:
        return None
    if not isinstance(place.value, ast.Name) or isinstance(statement.value, ast.Constant) or is_text(place.slice):
        return None
    certainty = certainty_on_device(statement.value, ctx)
    held = UNKNOWN if certainty is None else ctx.kind(place.value)
    if certainty is None or not (held.is_tensor and held.on_host and is_from(held.origin, *_KEPT)):
        return None
    return Read(statement.value, min(certainty, held.certainty), copies=True)


def bounds(node: ast.Slice, ctx: FileFacts) -> Iterator[ast.expr]:
    """The beginning and the end of a slice, where either may be a tensor's by how it is written."""
    for bound in (node.lower, node.upper):
        number = bound.operand if isinstance(bound, ast.UnaryOp) else bound
        if number is not None and _may_be_read(number, ctx):
            yield number


def _may_be_read(item: ast.expr, ctx: FileFacts) -> bool:
    return not isinstance(item, _NO_TENSORS) or is_buffer(item, ctx)


def is_buffer(node: ast.expr, ctx: FileFacts) -> bool:
    """Whether an attribute is a buffer that its class registers: `self.r` of `self.register_buffer("r", one)`."""
    if not isinstance(node, ast.Attribute):
        return False
    # The text tells of most attributes that they are no buffers of this file.
    text = ctx.once(_text_with_buffers, ctx.tree.module)
    is_registered = f'"{node.attr}"' in text or f"'{node.attr}'" in text
    return is_registered and is_from(ctx.kind(node).origin, Provenance.BUFFER)


def _text_with_buffers(_: ast.Module, ctx: FileFacts) -> str:
    """The text of a file that registers buffers; empty for any other."""
    text = ctx.tree.source.text
    return text if "register_buffer" in text else ""


def certainty_of_bound(bound: ast.expr, ctx: FileFacts, links: int = _LINKS) -> Confidence | None:
    """How sure it is that a bound is a number of the device: one that is known to come from an operation on tensors.
    What a model or a caller gives may be a number as well.
    """
    # Most bounds are sizes and numbers of turns, which the text tells without asking for kinds.
    if not may_be_tensor(bound, ctx):
        # `torch.arange(longest)` in a helper that is called with `lengths.max()` where it is hot.
        given = ctx.given_on_route(bound) if links else None
        handed = None if given is None else certainty_of_bound(*given, links - 1)
        return None if handed is None else min(handed, Confidence.MEDIUM)
    certainty = certainty_on_device(bound, ctx)
    if certainty is None:
        return _certainty_of_moved(bound, ctx)
    kind = _where_it_is_hot(bound, ctx)
    if kind.rank not in (None, 0):
        return None
    if not (is_from(kind.origin, *_MADE) or _is_computed(bound, ctx, _LINKS) or _is_part(bound, ctx)):
        return None
    return certainty


def _where_it_is_hot(value: ast.expr, ctx: FileFacts) -> Kind:
    """What a value is: of several callers, what the one gives that makes this hot."""
    kind = ctx.kind(value)
    there = ctx.kind_on_route(value) if kind.place is Place.UNKNOWN else kind
    return there if there.on_accelerator else kind


def _certainty_of_moved(bound: ast.expr, ctx: FileFacts) -> Confidence | None:
    """`lengths[i]` of what has been moved to the device, whatever it is: a number that has been moved is a tensor."""
    kind = ctx.kind(bound)
    if kind.tag is not Tag.UNKNOWN:
        return None
    moved = _where_it_is_hot(bound, ctx)
    is_moved = moved.tag is Tag.UNKNOWN and moved.on_accelerator and is_from(moved.origin, Provenance.MOVE)
    return Confidence.MEDIUM if is_moved else None


def _is_part(bound: ast.expr, ctx: FileFacts, links: int = _LINKS) -> bool:
    """Whether a number is a part of what is known to be a tensor: `sizes[0]`, `height` of `for height, width in sizes`.
    What is handed in whole may be a number as well; what has parts is none, nor is what was computed for a list.
    """
    if not ctx.kind(bound).on_accelerator:
        return False  # an annotation alone says that something is a tensor where lists of numbers are given, too
    if isinstance(bound, ast.BinOp):
        return _is_part(bound.left, ctx, links) or _is_part(bound.right, ctx, links)
    if isinstance(bound, ast.Subscript):
        return _is_surely_tensor(ctx.kind(bound.value))
    if not isinstance(bound, ast.Name):
        return False
    return any(
        _is_surely_tensor(whole := ctx.inference.taken_from(item))
        or (whole.tag is Tag.SEQUENCE and ctx.kind(bound).fresh)
        or (not item.path and links > 0 and item.value is not None and _is_part(item.value, ctx, links - 1))
        for item in ctx.inference.flow.definitions(bound)
    )


def _is_surely_tensor(kind: Kind) -> bool:
    """What a model gives in a structure may be something else."""
    return kind.is_tensor and kind.certainty is Confidence.HIGH


def roots(bound: ast.expr) -> set[str]:
    """The names of what a bound is computed from: `starts` and `size` of `starts[i] + size`."""
    if isinstance(bound, ast.BinOp):
        return roots(bound.left) | roots(bound.right)
    inner = bound
    while isinstance(inner, (ast.Subscript, ast.Attribute, ast.Call)):
        inner = inner.func if isinstance(inner, ast.Call) else inner.value
    return {inner.id} if isinstance(inner, ast.Name) and inner.id != "self" else set()


def may_be_tensor(node: ast.expr, ctx: FileFacts, links: int = _LINKS) -> bool:
    """Whether a value may be a tensor by how it is written: no size, number of a turn, setting or bare parameter."""
    if isinstance(node, ast.Name):
        return links > 0 and any(_may_hold_tensor(item, ctx, links) for item in ctx.inference.flow.definitions(node))
    if isinstance(node, ast.Attribute):
        return is_buffer(node, ctx)
    if isinstance(node, ast.BinOp):
        return may_be_tensor(node.left, ctx, links) or may_be_tensor(node.right, ctx, links)
    if isinstance(node, (ast.List, ast.Tuple)):
        return any(may_be_tensor(item, ctx, links) for item in node.elts)
    if isinstance(node, ast.ListComp):
        return may_be_tensor(node.elt, ctx, links)
    if isinstance(node, ast.Subscript):
        base = node.value
        if isinstance(base, ast.Name):
            made = ctx.inference.flow.definitions(base)
            if any(isinstance(item.node, ast.arg) for item in made):
                return True
            return links > 0 and any(_may_hold_tensor(item, ctx, links) for item in made)
        return may_be_tensor(base, ctx, links) or _is_field_of_tensors(base, ctx)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _is_number_of_helper(node, ctx)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr in _OF_HOST:
        return False
    return not isinstance(node.func.value, ast.Name) or node.func.value.id not in _LIBRARIES


def _is_number_of_helper(call: ast.Call, ctx: FileFacts) -> bool:
    """`longest_of(mask)` of a function of the program, which gives one number as a tensor."""
    assert isinstance(call.func, ast.Name)
    return call.func.id not in _BUILTINS and ctx.kind(call).is_tensor and ctx.kind(call).scalar


def _is_field_of_tensors(field: ast.expr, ctx: FileFacts) -> bool:
    """`self.lengths` that a method has moved, and `batch.sizes` of a moved batch of the program's own making, where the
    program stores a tensor there.
    """
    if not isinstance(field, ast.Attribute) or not isinstance(field.value, ast.Name):
        return False
    is_left = ends_as_tensor(field.attr, ctx.inference)
    if not is_left and field.attr in _OF_WHATEVER and field.value.id != "self":
        if not ctx.inference.flow.definitions_of(field)[0]:
            return False  # `x.shape`, whatever `x` is, which takes far longer to tell
    owner = ctx.kind(field.value)
    if owner.tag in (Tag.INSTANCE, Tag.MODULE) and owner.path:
        held = ctx.kind(field)
        return held.is_tensor and held.on_accelerator
    return is_left and owner.tag is Tag.BATCH and owner.on_accelerator


def _may_hold_tensor(made: Definition, ctx: FileFacts, links: int) -> bool:
    value = made.value
    if value is None:
        annotation = made.node.annotation if isinstance(made.node, ast.arg) else None
        return annotation is not None and "Tensor" in ctx.text(annotation)
    if isinstance(made.node, (ast.For, ast.comprehension)):
        return not _is_counted(value, made.path)
    if isinstance(value, ast.Tuple) and made.path and isinstance(made.path[0], int) and made.path[0] < len(value.elts):
        value = value.elts[made.path[0]]
    return may_be_tensor(value, ctx, links - 1)


def _is_counted(turns: ast.expr, path: tuple[int | str, ...]) -> bool:
    """Whether a loop counts what stands at a place in its target: `for i in range(n)`, `for i, x in enumerate(xs)`."""
    if not isinstance(turns, ast.Call) or not isinstance(turns.func, ast.Name):
        return False
    return turns.func.id == "range" or (turns.func.id == "enumerate" and path[:1] == (0,))


def _is_computed(node: ast.expr, ctx: FileFacts, links: int) -> bool:
    """Whether a call that gives a tensor stands behind a value: `mask.sum(dim=1).max()`, by whatever names."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return _is_number_of_helper(node, ctx)
        if not isinstance(node.func, ast.Attribute) or not ctx.kind(node).is_tensor:
            return False
        return ctx.kind(node.func.value).is_tensor or (ctx.target(node.func) or "").startswith("torch.")
    if isinstance(node, ast.BinOp):
        return any(_is_computed(side, ctx, links) for side in (node.left, node.right))
    if isinstance(node, ast.Subscript):
        return _is_computed(node.value, ctx, links)
    if not isinstance(node, ast.Name) or not links:
        return False
    values = [item.value for item in ctx.inference.flow.definitions(node)]
    return any(value is not None and _is_computed(value, ctx, links - 1) for value in values)
