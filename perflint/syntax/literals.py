"""The words that the string literals of a file begin with: by such words code finds modules, classes and functions."""

from __future__ import annotations

import ast

from perflint.system.patterns import pattern

#: What stands behind a quote, to the brace or the percent sign that it goes on with; and what ends one, behind a brace.
#: Behind three quotes, a docstring says what it describes.
#: It begins with what a search can skip to.
_WORD = pattern(r"""["'}](?:(?<!["']["'])(?<=["'])[A-Za-z_][\w./:-]*(?:\{|%(?=s))?|(?<=\})\w+["'])""")
#: What a text ends with that is put together otherwise: looked for where such texts find code.
_ENDS = pattern(r"""%s(\w+)["']"""), pattern(r"""\+ ["'](\w+)["']""")
_FINDING = ("getattr(", "import_module", "__import__", "globals()")


def texts_of(module: ast.Module, lines: list[str]) -> str:
    """`losses.Dice`, `Net{` for what begins with it, `}Loss` for what ends so: sorted, with blanks between them.
    `"build_%s" % name` begins with `build_`, and `"models." + name + "_model"` ends with `_model`.

    Told from the text, which takes no visit of each literal: words of comments are among them. What `__all__` lists is
    not: a name that is exported is not asked for.
    """
    kept = lines
    for node in module.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            kept = [*kept[:first], *[""] * (last - first), *kept[last:]]
    text = "\n".join(kept)
    words = {word.strip("\"'") for word in _WORD.findall(text)}
    found = {word.replace("%", "{") if "%" in word else word for word in words}
    if any(word in text for word in _FINDING):
        found.update("}" + word for ends in _ENDS for word in ends.findall(text))
    return " ".join(sorted(found))
