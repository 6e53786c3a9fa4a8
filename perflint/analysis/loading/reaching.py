"""What of a batch reaches a copy to the device: what a loader has made, and may pin, or what is made of that."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import Scope
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import callee_name
from perflint.ir.summary import CallFacts, FunctionFacts, Value
from perflint.torch_model import tensors

#: What gives its argument, or a view of it: pinned memory stays pinned.
_PASSING = tensors.VIEW_METHODS | {"Variable", "detach", "contiguous", "requires_grad_", "to", "cuda", "pin_memory"}
#: What makes a tensor of its own in pageable memory.
_MAKING = frozenset(
    "float double half long int short byte bool index_select gather masked_select take cat concat stack hstack vstack "
    "pad sort topk argsort clone repeat tile flip roll from_numpy tensor as_tensor Tensor FloatTensor LongTensor "
    "DoubleTensor IntTensor one_hot pad_sequence nonzero where normalize".split()
)
_INTEGERS = frozenset({"long", "int", "short", "byte", "bool"})
_DEPTH = 8


def is_of_batch(move: CallFacts, batch: frozenset[str], facts: FunctionFacts) -> bool | None:
    """Whether what `x.cuda()` moves may be of the batch as the loader gave it; False where all of it is made anew of
    the batch, and None where nobody sees what it is.
    """
    moved = move.func[1] if isinstance(move.func, tuple) else str(move.func).rpartition(".")[0]
    found = set(_origins(moved, batch, facts, frozenset(), _DEPTH))
    return True if True in found else False if found == {False} else None


def _origins(
    value: Value, batch: frozenset[str], facts: FunctionFacts, seen: frozenset[str], depth: int
) -> Iterable[bool | None]:
    if depth == 0:
        return [None]
    if isinstance(value, str):
        name = value.partition(".")[0]
        if name in batch:
            return [True]
        if name in seen:
            return []  # `x = x.float()`
        bound = facts.binds.get(name, ())
        return [item for part in bound for item in _origins(part, batch, facts, seen | {name}, depth - 1)] or [None]
    if not isinstance(value, tuple) or not value:
        return [None]
    if value[0] in ("item", "attr"):
        return _origins(value[1], batch, facts, seen, depth - 1)
    if value[0] != "call":
        return [None]
    func, name = value[1], last_of(value[1])
    whose = func[1] if isinstance(func, tuple) and func[0] == "attr" else _owner(func)
    sources = [item for item in (whose, *value[2]) if item is not None]
    if name in _PASSING:
        return _origins(sources[0], batch, facts, seen, depth - 1) if sources else [None]
    if name in _MAKING:
        made_of = [item for part in sources for item in _origins(part, batch, facts, seen, depth - 1)]
        return [False] if True in made_of or False in made_of else [None]
    return [None]


def _owner(func: Value) -> Value | None:
    """`x` of `x.float`; nothing of `torch.stack`."""
    if not isinstance(func, str) or func.startswith("torch."):
        return None
    return func.rpartition(".")[0] or None


def moves_indices(scope: Scope, ctx: FileFacts) -> bool:
    """Whether all that a function moves is cast to whole numbers there, `rows.cuda().long()`: indices, some KB."""
    found = definition_of(scope, ctx)
    if found is None:
        return False
    node, there = found
    moves = [part for part in there.walk(node) if isinstance(part, ast.Call) and callee_name(part) in ("to", "cuda")]
    return bool(moves) and all(_is_cast(move, there) for move in moves)


def _is_cast(move: ast.Call, ctx: FileFacts) -> bool:
    method = ctx.tree.parent(move)
    return isinstance(method, ast.Attribute) and method.attr in _INTEGERS
