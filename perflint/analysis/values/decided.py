"""Which branches no run takes, by the constants of the program: `use_cuda = False` and `if use_cuda: x = x.cuda()`."""

from __future__ import annotations

import ast

from perflint.analysis.names.refs import Scope
from perflint.analysis.values import displays
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.kind import Kind, join
from perflint.ir.computed import expression
from perflint.ir.summary import MODULE
from perflint.syntax.bindings import Definition
from perflint.syntax.tree import FUNCTIONS


class Decided:
    """Answers for one file's inference, remembered by test. Asked of what goes to CUDA in one branch alone: that there
    is such a device is taken for granted.
    """

    def __init__(self, inference: Evaluating) -> None:
        self._inference = inference
        self._known: dict[int, bool | None] = {}

    def conditional(self, node: ast.IfExp, frame: Frame | None) -> Kind:
        """What `a if test else b` gives."""
        evaluate, narrowing = self._inference.eval, self._inference.narrowing
        possible = [arm for arm in (node.body, node.orelse) if narrowing.possible(arm, frame)]
        for arm, other in ((node.body, node.orelse), (node.orelse, node.body)) if len(possible) == 2 else ():
            if is_of_cuda(evaluate(arm, frame)) and not is_of_cuda(evaluate(other, frame)):
                if self._comes_to(node.test) is (arm is node.orelse):
                    return evaluate(other, frame)
        return join(evaluate(arm, frame) for arm in displays.arms(node) if arm in possible)

    def runs(self, definition: Definition) -> bool:
        """Whether the tests around a definition, in its own function, let it run."""
        tree = self._inference.tree
        child: ast.AST = definition.node
        for outer in tree.ancestors(child):
            if isinstance(outer, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
                break
            if isinstance(outer, ast.If) and child is not outer.test:
                if self._comes_to(outer.test) is (child not in outer.body):
                    return False
            child = outer
        return True

    def _comes_to(self, test: ast.expr) -> bool | None:
        if id(test) not in self._known:
            inference = self._inference
            value = expression(test) if inference.path in inference.program.summaries else None
            around = inference.tree.function_of(test)
            scope = Scope(inference.path, MODULE if around is None else inference.tree.qualname(around))
            self._known[id(test)] = None if value is None else inference.program.decided(value, scope)
        return self._known[id(test)]


def is_of_cuda(kind: Kind) -> bool:
    """Whether a value is a device that may be CUDA, or is on one."""
    return kind.device is not None and kind.device.may_be_cuda
