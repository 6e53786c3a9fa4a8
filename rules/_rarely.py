"""What rules about small costs share: code that runs rarely, though a hot loop leads to it."""

from __future__ import annotations

import ast
import re

from perflint.api import Context

#: Functions that nobody calls on every step, whatever leads to them: checkpoints, exports, set-up.
_RARELY = re.compile(
    r"(?:^|_)(?:plot|visuali[sz]e|requirements?|save|resume|restore|export|checkpoints?|ckpt|state_dict|set_?up|inject|warm_?up|profile|from_pretrained)"
    r"(?:_|$)|(?:^|_)load_(?:\w+_)?(?:state|model|weights?|params|optim\w*|prompts?|pretrained)(?:_|$)",
    re.IGNORECASE,
)
_NAME = re.compile(r"[\w.]+")


def runs_rarely(node: ast.AST, ctx: Context) -> bool:
    """Whether the names on the way to `node` say that it does not run on every step."""
    function = ctx.tree.function_of(node)
    if function is not None and _RARELY.search(function.name):
        return True
    _, route, _ = ctx.heat_and_route(node)
    # The first hop is the root of heat itself; the later ones are the functions that are called on the way.
    names = (_NAME.match(hop.text) for hop in route[1:])
    return any(name is not None and _RARELY.search(name.group().rpartition(".")[2]) for name in names)
