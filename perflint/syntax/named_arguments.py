"""One form for the calls of torch that name their first arguments: `torch.cat(tensors=rows, dim=1)` is read as
`torch.cat(rows, dim=1)`, and `batch.to(device=device)` as `batch.to(device)`, so that nobody who looks at a call has to
know what the parameters are called.

Nodes keep the places that they have in the text; only those that begin the arguments are moved.
"""

from __future__ import annotations

import ast

from perflint.syntax.walk import walked
from perflint.system.patterns import pattern

_JOINS = "cat concat concatenate stack hstack vstack dstack column_stack row_stack block_diag".split()
_FILLED = "zeros ones empty rand randn".split()
#: The parameters that come first, by the name of a function.
_PLACES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_JOINS, ("tensors",)),
    **dict.fromkeys(_FILLED, ("size",)),
    "full": ("size", "fill_value"),
    "tensor": ("data",),
    "as_tensor": ("data",),
    "asarray": ("obj",),
    "save": ("obj", "f"),
    "load": ("f",),
    "compile": ("model",),
    "set_grad_enabled": ("mode",),
    "where": ("condition", "input", "other"),
    "scaled_dot_product_attention": ("query", "key", "value"),
    "clip_grad_norm_": ("parameters", "max_norm"),
    "clip_grad_value_": ("parameters", "clip_value"),
}
#: Those of all other functions, of which the losses take a target; and of optimizers.
_OF_FUNCTIONS = (("input", "target"), ("input", "other"))
_OF_CLASSES = (("params",),)
#: Methods of tensors and modules, and of what hands on to those.
_METHODS: dict[str, tuple[str, ...]] = {"to": ("device",), "cuda": ("device",)}
_ASKED = frozenset({ast.Call, ast.Import, ast.ImportFrom})
_NAMED = pattern(
    r"\w\(\s*(?:tensors|size|data|obj|f|model|mode|condition|query|parameters|input|params|device)\s*=[^=]"
)


def by_place(module: ast.Module, text: str) -> None:
    """Give the calls of torch in `module` by place what they name first."""
    if _NAMED.search(text) is None:
        return
    calls: list[ast.Call] = []
    #: By the names of this file, what they were imported as.
    of_torch: dict[str, str] = {}
    for node in walked(module):
        if node.__class__ not in _ASKED:
            continue
        if isinstance(node, ast.Call):
            if node.keywords and not node.args:
                calls.append(node)
        elif isinstance(node, ast.Import):
            of_torch |= {(each.asname or "torch"): "torch" for each in node.names if _is_torch(each.name)}
        elif isinstance(node, ast.ImportFrom) and not node.level and _is_torch(node.module or ""):
            of_torch |= {each.asname or each.name: each.name for each in node.names}
    for call in calls:
        root = _root(call.func)
        name = call.func.attr if isinstance(call.func, ast.Attribute) else of_torch.get(root, "")
        if name in _METHODS and isinstance(call.func, ast.Attribute):
            _move(call, (_METHODS[name],))
        elif root in of_torch:
            known = _PLACES.get(name)
            _move(call, (known,) if known is not None else _OF_CLASSES if name[:1].isupper() else _OF_FUNCTIONS)


def _move(call: ast.Call, ways: tuple[tuple[str, ...], ...]) -> None:
    for places in ways:
        while call.keywords and len(call.args) < len(places) and call.keywords[0].arg == places[len(call.args)]:
            call.args.append(call.keywords.pop(0).value)


def _is_torch(name: str) -> bool:
    return name == "torch" or name.startswith("torch.")


def _root(func: ast.expr) -> str:
    while isinstance(func, ast.Attribute):
        func = func.value
    return func.id if isinstance(func, ast.Name) else ""
