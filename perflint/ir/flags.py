"""What local names hold of tests: `is_due = step % 10 == 0` and, far below it, `if is_due`."""

from __future__ import annotations

import ast

from perflint.ir import guards
from perflint.ir.expressions import Expressions
from perflint.ir.lazy_results import asked_of_result
from perflint.ir.questions import Question, asked
from perflint.ir.summary import MODULE

#: The tests of a name that only a handler sets to None.
_TAKEN_AWAY: tuple[str | None, str | None] = (None, guards.RARE)


class Flags(Expressions):
    """Keeps the tests that names hold in the scope at hand, and tells a guard by them."""

    def guard_of(self, node: ast.If, context: int, known: guards.Tests) -> Question | int:
        """The guard of a test, or what it asks. Of a flag that the code under it switches back, the context in which
        the flag begins.
        """
        question = asked(node.test, node.body, self.scope, truth=True)
        if question is not None:
            return ("turns", question) if self.scope.thins_own_loop(node.test, context) else question
        kind = guards.classify(node.test, node.body, known)
        if kind == guards.FIRST and self.scope.counts_turns(node.test, context):
            return guards.TURN
        if kind is None and self.scope.equals_once(node.test, context):
            return guards.FIRST
        if kind is None and self.scope.is_made_once(node, context):
            return guards.FIRST
        if kind is None and self.scope.equals_number_of_turn(node.test, context):
            return guards.TURN
        if kind is None and self.scope.facts.qualname != MODULE and guards.is_self_test(node.test):
            return guards.RARE
        if kind == guards.LAZY:
            # `if key not in seen: seen[key] = ...`, for a `seen` that this very call has made
            made = self.scope.made.get(guards.looked_into(node.test))
            return (asked_of_result(node.test, node.body, context, self.scope) or kind) if made is None else made
        flag = guards.flag_of(node.test, known) if kind == guards.PERIODIC else None
        begun = self.scope.begun_in(flag, context) if flag is not None else None
        if kind == guards.PERIODIC and begun is None:
            begun = self.scope.around_turns(node.test, context)
        return kind if begun is None else begun

    def keep_test(self, name: str, value: ast.expr) -> None:
        """`log_now = step % 10 == 0`: a later `if log_now` is the guard that its test is. So is that of a flag which
        only an error sets (`skip = True` under `if not finite`), or takes away (`states = None` in a handler).
        """
        tests = self.scope.tests
        self.scope.begun.setdefault(name, self.context)
        mapping = guards.looked_up_in(value)
        if mapping is not None:
            tests[guards.lacking(name)] = mapping, None
        elif tests:
            tests.pop(guards.lacking(name), None)
        if tests:
            for known in [known for known in tests if known.startswith(f"{name} == ")]:
                del tests[known]
        if isinstance(value, ast.IfExp):
            # `mode = "train" if model.training else "eval"`
            truth, falsehood = (
                guards.classify(value.test, known=tests),
                guards.classify_negated(value.test, known=tests),
            )
            for choice, kinds in ((value.body, (truth, falsehood)), (value.orelse, (falsehood, truth))):
                if any(kinds) and isinstance(choice, ast.Constant) and isinstance(choice.value, str):
                    tests[guards.chosen(name, choice.value)] = kinds
        elif (
            isinstance(value, (ast.Compare, ast.BoolOp, ast.UnaryOp))
            or guards.is_mode(value)
            or guards.is_health(value, tests)
        ):
            kinds = guards.classify(value, known=tests), guards.classify_negated(value, known=tests)
            if any(kinds):
                tests[name] = kinds
                return
        elif guards.is_looked_up(value):
            tests[name] = None, guards.LAZY
            return
        if not isinstance(value, ast.Constant):
            if tests.get(name) == _TAKEN_AWAY:
                return
        elif not value.value:
            if value.value is None and name in self.scope.unset and self.in_rare(self.context):
                tests[name] = _TAKEN_AWAY
                return
            self.scope.unset.add(name)
            if value.value is False and name in tests and tests[name][0] is not None:
                return  # `is_due = step % 10 == 0`, and `if quiet: is_due = False`: true no more often than before
        elif value.value is True and name in self.scope.unset and self.in_rare(self.context):
            tests[name] = guards.RARE, None
            return
        tests.pop(name, None)

    def in_rare(self, context: int) -> bool:
        """Whether a context runs only when something went wrong."""
        while context >= 0:
            item = self.scope.contexts[context]
            if item.kind == "guard" and item.detail == guards.RARE:
                return True
            context = item.parent
        return False
