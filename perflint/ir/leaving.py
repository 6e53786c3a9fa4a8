"""How blocks end, and so when what stands behind them runs: only where they did not leave. Pure, over `ast`."""

from __future__ import annotations

import ast

from perflint.ir.bodies import assigns, takes_out, written_name
from perflint.ir.comparisons import is_step_of_training
from perflint.ir.guards import NO_TESTS, Tests, classify, classify_negated
from perflint.ir.questions import Question
from perflint.ir.rarity import LAZY, PERIODIC, coldest, hottest
from perflint.syntax.walk import walk

_LEAVING = frozenset({ast.Continue, ast.Return, ast.Raise, ast.Break})
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_COMPLAINTS = frozenset({"warn", "warning", "warn_once", "warning_once"})


def leaves_loop(body: list[ast.stmt]) -> bool:
    """Whether `body` ends by leaving the loop around it and does something worth the name before."""
    last = body[-1] if body else None
    if type(last) is ast.Return:
        return len(body) > 1 or last.value is not None
    return type(last) is ast.Break and len(body) > 1


def is_single_turn(body: list[ast.stmt]) -> bool:
    """Whether a loop with this body is left at the end of its first turn: `for batch in loader: ...; break`."""
    if not isinstance(body[-1], (ast.Break, ast.Return)):
        return False
    return not any(isinstance(part, ast.Continue) for statement in body for part in walk(statement))


def ends_block(body: list[ast.stmt]) -> bool:
    """Whether control never falls out of the end of `body`."""
    return bool(body) and (type(body[-1]) in _LEAVING or never_holds(body[-1]))


def skips(node: ast.If) -> bool:
    """`if step % 100 != 0: continue`: what follows in its block runs where the test does not hold."""
    return len(node.body) == 1 and type(node.body[0]) is ast.Continue and not node.orelse


def as_held(node: ast.If, following: list[ast.stmt]) -> ast.If:
    """The `if` that holds what follows one that skips the rest of a turn."""
    return ast.If(opposite(node.test), following, [])


def opposite(test: ast.expr) -> ast.expr:
    """The test that holds where another does not, as it would be written."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators)
    if isinstance(test, ast.BoolOp):  # `if not logging or step % 100: continue`
        op = ast.Or() if isinstance(test.op, ast.And) else ast.And()
        return ast.BoolOp(op, [opposite(value) for value in test.values])
    return ast.UnaryOp(ast.Not(), test)


def never_holds(statement: ast.stmt) -> bool:
    """`assert False, "not done yet"`: nothing goes on from there."""
    return type(statement) is ast.Assert and type(statement.test) is ast.Constant and not statement.test.value


def left_early(node: ast.If, known: Tests = NO_TESTS, depth: int = 4) -> str | None:
    """The guard that what follows an `if` stands under because the arms of it return early, each under a test of its
    own: `if by_epoch: (if epoch % n: return) else: (if step % n: return)`. None where an arm runs through unguarded.
    """
    kinds: list[str] = []
    left = False
    while True:
        if ends_block(node.body):
            left = left or not is_failure(node.body)
        else:
            inner = _within(node.body, known, depth)
            kind = inner or classify(node.test, node.body, known)
            if kind is None:
                return None
            left = left or inner is not None
            kinds.append(kind)
        if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
            break
        node = node.orelse[0]
    if not node.orelse or not ends_block(node.orelse):
        inner = _within(node.orelse, known, depth)
        kind = inner or classify_negated(node.test, node.orelse or None, known)
        if kind is None:
            return None
        left = left or inner is not None
        kinds.append(kind)
    return hottest(kinds) if left else None


def made_plain(after: Question, node: ast.If, block: list[ast.stmt], following: int) -> Question:
    """The guard `after` of what follows an `if` in its block, from `following` on, by what that does."""
    if after is None:
        return _works_off(node, block, following) or _makes_again(node, block, following)
    may_be_step = after == PERIODIC or (type(after) is tuple and after[0] == "period")
    return None if may_be_step and is_step_of_training(node.test, block[following:]) else after


def _works_off(node: ast.If, block: list[ast.stmt], after: int) -> str | None:
    """What follows `if key not in self.pending: return` in its block, from `after` on, where it then takes the key
    out: once for each key.
    """
    if node.orelse or not ends_block(node.body):
        return None
    tests = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or) else [node.test]
    takes = any(
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.NotIn)
        and takes_out(block[after:], test.left, test.comparators[0])
        for test in tests
    )
    return LAZY if takes else None


def _makes_again(node: ast.If, block: list[ast.stmt], after: int) -> str | None:
    """What follows a return from where something kept still fits, and makes it anew: `if self.table is not None: (if
    len(self.table) >= n: return)`, or both tests in one, and then `self.table = build(n)`. Whether it fits has to be
    asked of what is made anew: `if self.table is not None and flag: return` says nothing of that.
    """
    if node.orelse:
        return None
    joined = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) and _returns(node.body)
    tests = node.test.values if joined and isinstance(node.test, ast.BoolOp) else [node.test]
    kept = [part.left for part in tests if isinstance(part, ast.Compare) and _is_there(part)]
    fits = [part for part in tests if not (isinstance(part, ast.Compare) and _is_there(part))]
    if not joined:
        fits = [item.test for item in node.body if isinstance(item, ast.If) and not item.orelse and _returns(item.body)]
    following = block[after:]
    if not any(assigns(following, value) for value in kept):
        return None
    asked = (part for test in fits for part in walk(test) if isinstance(part, ast.Attribute))
    return LAZY if any(assigns(following, part) for part in asked) else None


def _is_there(test: ast.Compare) -> bool:
    """`self.table is not None`"""
    other = test.comparators[0]
    return isinstance(test.ops[0], ast.IsNot) and isinstance(other, ast.Constant) and other.value is None


def _returns(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return)


def _within(body: list[ast.stmt], known: Tests, depth: int) -> str | None:
    """The guard that the end of a block stands under, by what returns early in it."""
    if depth == 0:
        return None
    return coldest(
        [
            classify_negated(item.test, known=known)
            if ends_block(item.body) and not item.orelse and not is_failure(item.body)
            else left_early(item, known, depth - 1)
            for item in body
            if isinstance(item, ast.If)
        ]
    )


def is_failure(body: list[ast.stmt]) -> bool:
    """Whether `body` ends the run or the function with an error."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Raise) or never_holds(last):
        return True
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        name = written_name(last.value.func)
        return name in {"exit", "_exit", "abort"} or name.startswith("raise_")
    return False


def is_complaint(body: list[ast.stmt]) -> bool:
    """Whether `body` is there to warn of what should not be: `if not ok: logger.warning(...)`, a repair beside it."""
    if len(body) <= 3:
        for item in body:
            if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
                if written_name(item.value.func) in _COMPLAINTS:
                    return True
    return False
