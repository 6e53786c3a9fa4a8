"""What puts models into evaluation mode: `model.eval()`, and a loop that does so for each of several."""

from __future__ import annotations

import ast

from perflint.analysis.gradients.model_calls import name_of_whole


def evaluated(part: ast.AST) -> str:
    """The last name of `model` for `model.eval()`."""
    if type(part) is not ast.Call or type(part.func) is not ast.Attribute or part.func.attr != "eval":
        return ""
    return "" if part.args or part.keywords else name_of_whole(part.func.value)


def evaluated_by(part: ast.AST) -> list[str]:
    """The last names of all models that a call, a loop or a comprehension puts into evaluation mode: `encoder` and
    `head` for `[net.eval() for net in (encoder, head)]`, `nets` for `for net in nets.values(): net.eval()`.
    """
    if isinstance(part, ast.Call):
        name = evaluated(part)
        return [name] if name else []
    if isinstance(part, (ast.ListComp, ast.GeneratorExp)) and len(part.generators) == 1:
        target, over, done = part.generators[0].target, part.generators[0].iter, [part.elt]
    elif isinstance(part, ast.For):
        target, over = part.target, part.iter
        done = [item.value for item in part.body if isinstance(item, ast.Expr)]
    else:
        return []
    name = next((name for item in done if (name := evaluated(item))), "")
    named = [item.id for item in ast.walk(target) if isinstance(item, ast.Name)]
    if not name or (isinstance(part, ast.For) and len(done) != len(part.body)):
        return []
    if name not in named:
        return [name]  # `[nets[key].eval() for key in nets]`
    items = over.elts if isinstance(over, (ast.Tuple, ast.List)) else [_whole(over)]
    return [name for item in items if (name := name_of_whole(item))]


def _whole(over: ast.expr) -> ast.expr:
    """`nets` of `nets.values()`."""
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in ("values", "items"):
        return over.func.value
    return over
