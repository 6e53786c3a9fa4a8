"""Imports of a file, which bind names. Those inside functions are taken for the whole file: a name that means several
things means them all.
"""

from __future__ import annotations

import ast

from perflint.ir.assignments import Assignments
from perflint.ir.sharing import Sharing


class Importing(Assignments):
    """Handlers of import statements."""

    def __init__(self, sharing: Sharing) -> None:
        super().__init__(sharing)
        self.renamed: dict[str, str] = {}
        #: Handlers of errors around: what they import stands in for what could not be imported.
        self.falling_back = 0

    def import_(self, node: ast.Import) -> str | None:
        for alias in node.names:
            if alias.asname:
                self.imported(alias.asname, alias.name)
                self.renamed.setdefault(alias.asname, alias.name.rpartition(".")[2])
            else:
                first = alias.name.partition(".")[0]
                self.summary.imports.setdefault(first, first)
            self.identifiers.update(alias.name.split("."))
        return None

    def import_from(self, node: ast.ImportFrom) -> str | None:
        module = "." * node.level + (node.module or "")
        self.identifiers.update((node.module or "").split("."))
        for alias in node.names:
            if alias.name == "*":
                self.summary.stars += (module,)
                continue
            bound = alias.asname or alias.name
            target = f"{module}{alias.name}" if module.endswith(".") else f"{module}.{alias.name}"
            self.imported(bound, target)
            self.identifiers.add(alias.name)
            if bound != alias.name:
                self.renamed.setdefault(bound, alias.name)
        return None

    def imported(self, bound: str, target: str) -> None:
        first = self.summary.imports.setdefault(bound, target)
        others = self.summary.also.get(bound, ())
        if target not in (first, *others) and not self.falling_back:
            self.summary.also[bound] = (*others, target)
