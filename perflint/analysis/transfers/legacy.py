"""Legacy classes of device tensors (`torch.cuda.FloatTensor`): which of their calls copy data of the host."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.values.kind import Tag
from perflint.torch_model import tensors

#: Draws of numpy's, and what draws the like on the device.
_DRAWS = {
    **dict.fromkeys(("normal", "randn", "standard_normal"), "torch.randn"),
    **dict.fromkeys(("random", "rand", "uniform", "random_sample"), "torch.rand"),
    **dict.fromkeys(("randint", "choice", "integers"), "torch.randint"),
}


def copied_data(call: ast.Call, ctx: FileFacts) -> ast.expr | None:
    """The array or list that a call such as `torch.cuda.FloatTensor(array)` copies to the device, under whatever name
    the class goes; None for other calls, and for sizes, of which it makes a tensor on the device.
    """
    if len(call.args) != 1 or call.keywords or not isinstance(call.func, (ast.Name, ast.Attribute)):
        return None
    data = call.args[0]
    if isinstance(data, (ast.Starred, ast.Constant)):
        return None
    made = ctx.kind(call.func)
    if made.tag is not Tag.CLASS or made.path or made.qualified not in tensors.DEVICE_CONSTRUCTORS:
        return None
    if isinstance(data, (ast.List, ast.Tuple)):
        return data if data.elts else None
    return data if isinstance(data, ast.ListComp) or ctx.kind(data).tag is Tag.ARRAY else None


def dtype_of(call: ast.Call, ctx: FileFacts) -> str:
    """The type that a legacy class converts to: `torch.float32` for `torch.cuda.FloatTensor`."""
    return tensors.LEGACY_DTYPES[ctx.kind(call.func).qualified.replace("torch.cuda.", "torch.")]


def drawn_by(data: ast.expr, ctx: FileFacts) -> str:
    """The function of torch that draws what `data` is drawn by numpy for; empty for what is not drawn."""
    made = (data, *ctx.inference.origins(data))
    targets = (ctx.target(item.func) or "" for item in made if isinstance(item, ast.Call))
    drawn = (target.rpartition(".")[2] for target in targets if target.startswith("numpy.random."))
    return next((_DRAWS[name] for name in drawn if name in _DRAWS), "")
