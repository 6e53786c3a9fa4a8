"""Methods that run in a module's forward, or that autograd calls: what they are given lies where the module does."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.values.evaluating import Evaluating
from perflint.syntax.tree import FunctionNode
from perflint.torch_model.frameworks import AUTOGRAD_FUNCTION

if TYPE_CHECKING:
    from perflint.analysis.values.classes import Classes

_MOST_CALLERS = 8


class ForwardMethods:
    """Answers for one file."""

    def __init__(self, inference: Evaluating, classes: Classes) -> None:
        self._inference = inference
        self._classes = classes

    def holds(self, function: FunctionNode, cls: ast.ClassDef | None) -> bool:
        """Whether a function runs in a module's forward, or is defined in one that does."""
        if cls is None:
            outer = self._inference.tree.function_of(function)
            if outer is None:
                return False
            function, cls = outer, class_around(outer, self._inference)
        if cls is not None and self.is_autograd(function, cls):
            return True
        return (
            cls is not None
            and self._classes.is_module(class_ref(cls, self._inference))
            and self._runs_in_forward(function, cls)
        )

    def is_autograd(self, function: FunctionNode, cls: ast.ClassDef) -> bool:
        """Whether autograd calls a method, with its context and tensors: those of `Function.apply`, or gradients."""
        return function.name in ("forward", "backward") and AUTOGRAD_FUNCTION in self._classes.library_bases(
            class_ref(cls, self._inference)
        )

    def _runs_in_forward(self, function: FunctionNode, cls: ast.ClassDef) -> bool:
        """Whether this is a module's `forward`, or a method of the module that it calls: what that is given lies where
        the module does.
        """
        if function.name == "forward":
            return True
        inference = self._inference
        owner, path = inference.tree.qualname(cls), inference.path
        if path not in inference.program.summaries:
            return False
        seen: set[Scope] = set()
        waiting = [Scope(path, inference.tree.qualname(function))]
        while waiting and len(seen) <= _MOST_CALLERS:
            scope = waiting.pop()
            if scope in seen:
                continue
            seen.add(scope)
            for edge in inference.program.callers(scope):
                caller = edge.caller
                if caller.path == path and caller.function.rpartition(".")[0] == owner:
                    if caller.function == f"{owner}.forward":
                        return True
                    waiting.append(caller)
        return False


def class_around(function: FunctionNode, inference: Evaluating) -> ast.ClassDef | None:
    outer = inference.tree.parent(function)
    while isinstance(outer, (ast.If, ast.Try, ast.With)):
        outer = inference.tree.parent(outer)
    return outer if isinstance(outer, ast.ClassDef) else None


def class_ref(cls: ast.ClassDef, inference: Evaluating) -> Ref:
    return Ref(CLASS, inference.path, inference.tree.qualname(cls))
