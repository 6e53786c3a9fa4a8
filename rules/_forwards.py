"""What the rules about forwards that are run again share."""

from __future__ import annotations

import ast

from perflint.api import Context, Tag, callee_name

#: Methods of models that run them, besides calling them.
FORWARD_METHODS = frozenset(
    "forward run_with_cache encode encode_image encode_text encode_prompt get_image_features get_text_features "
    "forward_features extract_features get_features embed".split()
)
#: What gives the same for the same input and costs little to read through.
_PURE = frozenset(
    "to_tokens tokenize to cuda cpu unsqueeze squeeze view reshape long getattr len int str float range tuple "
    "get".split()
)


def is_forward(node: ast.Call, ctx: Context) -> bool:
    """Whether the call runs a module: `model(x)`, `model.encode_text(x)`."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in FORWARD_METHODS:
        if node.func.attr == "run_with_cache":
            return True  # a name that only models of TransformerLens have
        return ctx.kind(node.func.value).tag is Tag.MODULE
    return isinstance(node.func, (ast.Name, ast.Attribute)) and ctx.kind(node.func).tag is Tag.MODULE


def arguments(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(item.value for item in node.keywords)]


def is_pure(call: ast.Call, ctx: Context) -> bool:
    """Whether a call gives the same for the same arguments, as tokenizers and moves do."""
    return callee_name(call) in _PURE or ctx.kind(call.func).tag is Tag.TOKENIZER
