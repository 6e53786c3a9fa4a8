"""What a test asks that its own text does not answer: how long a named period is, and what a predicate of the project
computes. Written down with the summary, and answered once the program is linked.

A question is a guard's name (`rarity`), None for what tells nothing, or one of

- `("period", value)`: every so many turns, as a value in the notation of summaries says
- `("told", func, args, keywords, truth, otherwise)`: what a call that is true, or false, tells by what the function
  computes; where nobody knows the function, `otherwise`
- `("held", attribute, truth, otherwise)`: what an attribute of `self` that is true, or false, tells by what it
  is given; `("given", parameter, truth, otherwise)`: the same of a parameter, by the tests that callers hand over,
  and of `parameter?` by those on which they hand over anything but None
- `("switched", questions, question, otherwise)`: `question`, where one of these of attributes asks a mere switch of
  a mode; `otherwise`, what the names say
- `("counted", attribute, otherwise)`: what a comparison with an attribute of `self` tells, by the remainders that it is
  given, and by whether anything counts there at all
- `("turns", question)`: what a test asks of the counter of the innermost loop around it, which begins at zero
- `("all", questions)`, `("any", questions)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from perflint.ir import guards, words
from perflint.ir.bodies import sets_back, steps_with_gathered, written_name
from perflint.ir.comparisons import modulo
from perflint.ir.notation import path_of, value_of
from perflint.ir.rarity import ACCUMULATION, FIRST, PERIODIC, coldest
from perflint.ir.summary import Value
from perflint.syntax.walk import STATEMENTS, children

if TYPE_CHECKING:
    from perflint.ir.growing import Growing

#: See the module docstring.
Question: TypeAlias = Value

_ORDER = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)
#: Expressions whose value is a test that a name may hold.
TESTS = frozenset({ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Call, ast.NamedExpr})
#: Those that are noted where they are kept in an attribute or handed over, and remainders.
KEPT_TESTS = frozenset({ast.Compare, ast.BoolOp, ast.BinOp})
_DEEPEST = 8
#: Forms of questions that any flag asks.
_FLAGS = ("held", "given", "counted")
#: What is known to tell nothing, whatever it is called.
_NOTHING: Question = ("all", ())
#: What says nothing of how often: conversions, containers, and what is asked of types and processes.
_PLAIN_CALLS = frozenset(
    "bool int float len isinstance issubclass hasattr getattr callable any all str type next min max abs is_available "
    "is_initialized is_tensor is_floating_point".split()
)


class Counters:
    """What the statements of one function do to the names and attributes that count there."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.remainders: dict[str, ast.BinOp] = {}
        #: By name, the multiple of a period that a number was cut down to: `step // every * every`.
        self.multiples: dict[str, ast.BinOp] = {}
        self.counted: set[str] = set()
        self.counted_down: set[str] = set()
        for statement in _statements(body):
            if isinstance(statement, ast.Assign):
                path = path_of(statement.targets[0])
                if path is not None and isinstance(statement.value, ast.BinOp):
                    self._note(path, statement.value)
            elif isinstance(statement, ast.AugAssign):
                path = path_of(statement.target)
                if path is not None and isinstance(statement.op, ast.Add):
                    self.counted.add(path)
                elif path is not None and isinstance(statement.op, ast.Sub):
                    self.counted_down.add(path)

    def _note(self, path: str, value: ast.BinOp) -> None:
        if isinstance(value.op, ast.Mod) and not isinstance(value.left, (ast.Constant, ast.JoinedStr)):
            self.remainders[path] = value
        elif (remainder := _cut_off(value)) is not None:
            self.multiples[path] = remainder
        elif isinstance(value.op, ast.Add) and path_of(value.left) == path:
            self.counted.add(path)
        elif isinstance(value.op, ast.Sub) and path_of(value.left) == path:
            self.counted_down.add(path)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a function, without those of functions and classes in it."""
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            waiting += [item for item in children(node) if type(item) in STATEMENTS or _holds_statements(item)]


def _holds_statements(node: ast.AST) -> bool:
    return isinstance(node, (ast.ExceptHandler, ast.match_case))


def asked(test: ast.expr, body: list[ast.stmt] | None, scope: Growing, *, truth: bool, depth: int = 0) -> Question:
    """What a test asks beyond what it says itself, None for nothing. `body` runs where it comes to `truth`."""
    kind = type(test)
    if kind is ast.Compare:
        return _of_comparison(test, body, scope, truth=truth)  # type: ignore[arg-type]
    if kind is ast.Call:
        return _of_call(test, body, scope, truth=truth)  # type: ignore[arg-type]
    if depth > _DEEPEST:
        return None
    if kind is ast.Name:
        return _of_name(test, body, scope, truth=truth, depth=depth)  # type: ignore[arg-type]
    if kind is ast.Attribute:
        return _of_attribute(test, body, scope, truth=truth)  # type: ignore[arg-type]
    if kind is ast.UnaryOp and isinstance(test.op, ast.Not):  # type: ignore[attr-defined]
        return asked(test.operand, body, scope, truth=not truth, depth=depth + 1)  # type: ignore[attr-defined]
    if kind is ast.NamedExpr:
        return asked(test.value, body, scope, truth=truth, depth=depth + 1)  # type: ignore[attr-defined]
    if kind is ast.BoolOp:
        return _of_several(test, body, scope, truth=truth, depth=depth)  # type: ignore[arg-type]
    if kind is ast.BinOp and isinstance(test.op, ast.Mod) and not truth:  # type: ignore[attr-defined]
        return _period(test, body)  # type: ignore[arg-type]
    return None


def _of_several(test: ast.BoolOp, body: list[ast.stmt] | None, scope: Growing, *, truth: bool, depth: int) -> Question:
    parts = [asked(item, body, scope, truth=truth, depth=depth + 1) for item in test.values]
    form = "all" if isinstance(test.op, ast.And) is truth else "any"
    flags = tuple([part for part in parts if type(part) is tuple and part[0] == "held" and part[-1] == PERIODIC])
    # Of a flag beside others only its name is asked: most are options, which may be off for good.
    asking = [None if isinstance(part, tuple) and part[0] in _FLAGS else part for part in parts]
    if any(asking):
        return joined(form, _filled(asking, test, body, scope, truth=truth))
    if not flags:
        return None
    whole = joined(form, _filled([part if part in flags else None for part in parts], test, body, scope, truth=truth))
    return ("switched", flags, whole, _said(test, body, scope, truth=truth))


def _filled(
    parts: list[Question], test: ast.BoolOp, body: list[ast.stmt] | None, scope: Growing, *, truth: bool
) -> list[Question]:
    return [part or _said(item, body, scope, truth=truth) for part, item in zip(parts, test.values, strict=True)]


def _of_name(test: ast.Name, body: list[ast.stmt] | None, scope: Growing, *, truth: bool, depth: int) -> Question:
    """`due`, by what it was given."""
    held = scope.held.get(test.id)
    if held is None:
        if test.id in scope.binds or test.id in scope.unclear or not scope.has_parameter(test.id):
            return None
        said = _said(test, body, scope, truth=truth)
        # What the code under a test switches is a flag, and no test of a caller's.
        return ("given", test.id, truth, said) if said == _said(test, None, scope, truth=truth) else None
    said = _said(test, body, scope, truth=truth)
    question = asked(held, None, scope, truth=truth, depth=depth + 1)
    if type(question) is tuple and question[0] == "told":
        return None if said not in (None, PERIODIC) else (*question[:-1], question[-1] or said)
    if question is None and said == PERIODIC and test.id not in scope.tests:
        return _NOTHING  # `should_log = step % 2 == 0`: what it holds says more than its name
    return question


def _of_attribute(test: ast.Attribute, body: list[ast.stmt] | None, scope: Growing, *, truth: bool) -> Question:
    """`self.due`, by what another method gives it."""
    if not (isinstance(test.value, ast.Name) and test.value.id == "self" and scope.facts.in_class):
        return None
    said = _said(test, body, scope, truth=truth)
    is_told = said in (None, PERIODIC) and said == _said(test, None, scope, truth=truth)
    return ("held", test.attr, truth, said) if is_told else None


def note_test(key: str, test: ast.expr, scope: Growing) -> None:
    """Note what a test tells that is kept in an attribute or handed over under a key."""
    told = [answered(test, None, scope, truth=truth) for truth in (True, False)]
    if isinstance(test, ast.BinOp):
        told = [None, told[1]]  # a remainder
    scope.told_elsewhere.append((key, told[0], told[1]))


def note_kept(attribute: str, value: ast.expr, scope: Growing, context: int) -> None:
    """Note what a test tells that `self.attribute` is given; of True, where the name says that it is so now and then,
    under which guards it is given.
    """
    if type(value) in KEPT_TESTS:
        note_test(f"self.{attribute}", value, scope)
    elif type(value) is ast.Constant and value.value is True and words.is_due(attribute):
        scope.told_elsewhere.append((f"self.{attribute}=", scope.guarded_by(context), None))


def answered(test: ast.expr, body: list[ast.stmt] | None, scope: Growing, *, truth: bool) -> Question:
    """The guard of a test that comes to `truth`, or what it asks."""
    test = _bare(test)
    return asked(test, body, scope, truth=truth) or _said(test, body, scope, truth=truth)


def _bare(test: ast.expr) -> ast.expr:
    """`x` of `bool(x)` and `x.item()`."""
    while isinstance(test, ast.Call):
        if isinstance(test.func, ast.Name) and test.func.id == "bool" and len(test.args) == 1:
            test = test.args[0]
        elif isinstance(test.func, ast.Attribute) and test.func.attr == "item" and not test.args:
            test = test.func.value
        else:
            break
    return test


def _said(test: ast.expr, body: list[ast.stmt] | None, scope: Growing, *, truth: bool) -> str | None:
    classified = guards.classify if truth else guards.classify_negated
    return classified(test, body, scope.tests)


def joined(form: str, parts: list[Question]) -> Question:
    """Several questions as one; what is plain to see is not asked."""
    if form == "all":
        parts = [part for part in dict.fromkeys(parts) if part is not None]
        if all(isinstance(part, str) for part in parts):
            return coldest(parts)
    return parts[0] if len(parts) == 1 else (form, tuple(parts))


def _of_comparison(test: ast.Compare, body: list[ast.stmt] | None, scope: Growing, *, truth: bool) -> Question:
    if len(test.ops) != 1:
        return None
    left, right = _as_remainder(test.left, scope), _as_remainder(test.comparators[0], scope)
    if left is test.left and right is test.comparators[0]:
        return _of_sides(test, left, right, body, scope, truth=truth)
    # What its text says is said of a difference, and not of a remainder.
    return _of_sides(test, left, right, body, scope, truth=truth) or _NOTHING


def _of_sides(
    test: ast.Compare, left: ast.expr, right: ast.expr, body: list[ast.stmt] | None, scope: Growing, *, truth: bool
) -> Question:
    op = test.ops[0]
    period = _set_anew(op, left, right, body, scope) if truth and body is not None else None
    if period is not None:
        return _named_period(period)
    if type(op) is ast.Is or type(op) is ast.IsNot:
        return _of_presence(test, body, scope, present=isinstance(op, ast.IsNot) is truth, truth=truth)
    if type(op) is ast.Eq or type(op) is ast.NotEq:
        holds = isinstance(op, ast.Eq) is truth
        remainder = left if isinstance(left, ast.BinOp) else right if isinstance(right, ast.BinOp) else None
        if remainder is None and type(right) is ast.Constant and type(right.value) is int and path_of(left):
            path = path_of(left) or ""
            remainder = _counters(scope).remainders.get(path)
            if remainder is None and (counter := _attribute_of_self(left, scope)):
                said = _said(test, body, scope, truth=truth)
                return ("counted", counter, said) if holds and said in (None, FIRST) else None
        if remainder is not None and isinstance(remainder.op, ast.Mod):
            return _period(remainder, body) if holds else None
    if truth and isinstance(op, (ast.Lt, ast.LtE)) and _is_within_turn(left, right):
        return _period(left, body)  # `frame % frequency < environments`: a counter that moves on by several
    if truth and isinstance(op, (ast.Gt, ast.GtE)) and _is_within_turn(right, left):
        return _period(right, body)
    if isinstance(op, (*_ORDER, ast.Eq)) and body is not None and truth:
        limit = right if isinstance(op, (ast.Gt, ast.GtE, ast.Eq)) else left
        count = left if limit is right else right
        if isinstance(count, (ast.Name, ast.Attribute)) and sets_back(body, count):
            if path_of(count) in _counters(scope).counted:
                # `since += 1; if since >= every: ...; since = 0`
                gathers = words.ACCUMULATES.search(written_name(limit)) or steps_with_gathered(body)
                return ACCUMULATION if gathers else _named_period(limit)
        if isinstance(count, ast.BinOp) and isinstance(count.op, ast.Sub) and _moves_on(body, count.right):
            return _named_period(limit)  # `if step - last >= every: ...; last = step`
    counter = _attribute_of_self(left, scope)
    said = _said(test, body, scope, truth=truth) if counter else None
    return ("counted", counter, said) if said in (FIRST, PERIODIC) else None


def _attribute_of_self(value: ast.expr, scope: Growing) -> str:
    """`count` of `self.count` in a method, empty for anything else."""
    path = (path_of(value) or "") if scope.facts.in_class else ""
    return path[5:] if path.startswith("self.") and path.count(".") == 1 else ""


def _of_presence(
    test: ast.Compare, body: list[ast.stmt] | None, scope: Growing, *, present: bool, truth: bool
) -> Question:
    """`logger is not None`, of a parameter that is given nothing else."""
    name, other = test.left, test.comparators[0]
    if type(name) is not ast.Name or type(other) is not ast.Constant or other.value is not None:
        return None
    if name.id in scope.binds or name.id in scope.unclear or not scope.has_parameter(name.id):
        return None
    said = _said(test, body, scope, truth=truth)
    return ("given", f"{name.id}?", present, said) if said is None else None


def _set_anew(op: ast.cmpop, left: ast.expr, right: ast.expr, body: list[ast.stmt], scope: Growing) -> ast.expr | None:
    """`every` of `if left == 0: left = every; ...` where `left -= 1` counts the turns down."""
    path = path_of(left)
    is_at_end = isinstance(op, (ast.Eq, ast.LtE, ast.Lt)) and type(right) is ast.Constant and right.value in (0, 1)
    if path is None or not is_at_end or path not in _counters(scope).counted_down:
        return None
    return next(
        (
            item.value
            for item in body
            if isinstance(item, ast.Assign) and any(path_of(target) == path for target in item.targets)
        ),
        None,
    )


def _is_within_turn(remainder: ast.expr, width: ast.expr) -> TypeGuard[ast.BinOp]:
    """Whether a remainder is held against how far its counter moves at once; `step % 10 < 5` is every other turn."""
    if not isinstance(remainder, ast.BinOp) or not isinstance(remainder.op, ast.Mod):
        return False
    return not isinstance(width, ast.Constant) or (type(width.value) is int and width.value <= 1)


def _cut_off(multiple: ast.expr) -> ast.BinOp | None:
    """`step % every` for `step // every * every`, which is as much less than `step`; None for anything else."""
    if not (isinstance(multiple, ast.BinOp) and isinstance(multiple.op, ast.Mult)):
        return None
    for turns, period in ((multiple.left, multiple.right), (multiple.right, multiple.left)):
        if isinstance(turns, ast.BinOp) and isinstance(turns.op, ast.FloorDiv):
            if ast.dump(turns.right) == ast.dump(period):
                return ast.BinOp(turns.left, ast.Mod(), period)
    return None


def _as_remainder(value: ast.expr, scope: Growing) -> ast.expr:
    """`step % every` for `step - step // every * every`, where a name may hold the multiple; else the value itself."""
    if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub)):
        return value
    path = path_of(value.right)
    remainder = _cut_off(value.right) if path is None else _counters(scope).multiples.get(path)
    return remainder if remainder is not None and ast.dump(remainder.left) == ast.dump(value.left) else value


def _moves_on(body: list[ast.stmt], last: ast.expr) -> bool:
    path = path_of(last)
    return path is not None and any(
        isinstance(item, ast.Assign) and any(path_of(target) == path for target in item.targets) for item in body
    )


def _counters(scope: Growing) -> Counters:
    if scope.counters is None:
        scope.counters = Counters(scope.body)
    return scope.counters


def _period(remainder: ast.BinOp, body: list[ast.stmt] | None) -> Question:
    """What `step % every` asks where it is zero: nothing where the turns are those of training."""
    kind = modulo(remainder, body)
    return _named_period(remainder.right) if kind == PERIODIC else kind


def _named_period(period: ast.expr) -> Question:
    value = value_of(period)
    return PERIODIC if value is None or isinstance(period, ast.Constant) else ("period", value)


def _of_call(call: ast.Call, body: list[ast.stmt] | None, scope: Growing, *, truth: bool) -> Question:
    func = call.func
    name = written_name(func)
    if not name or name in _PLAIN_CALLS:
        return None
    value = value_of(func)
    if value is None:
        return None
    args = tuple(value_of(item) for item in call.args)
    keywords = tuple((item.arg or "", value_of(item.value)) for item in call.keywords)
    return ("told", value, args, keywords, truth, _said(call, body, scope, truth=truth))


class Told:
    """What the returns of a function tell of when it gives back something true, and something false."""

    def __init__(self) -> None:
        self.truths: list[Question] = []
        self.falsehoods: list[Question] = []
        self.is_plain = True

    def note(self, value: ast.expr | None, scope: Growing, context: int) -> None:
        if not self.is_plain:
            return
        if isinstance(value, ast.IfExp):
            # `step % n == 0 if n > 0 else False`
            self.note(value.body, scope, context)
            self.note(value.orelse, scope, context)
            return
        if value is None or isinstance(value, ast.Constant):
            told = self.truths if value is not None and value.value else self.falsehoods
            told.append(scope.guarded_by(context))
        elif type(value) in TESTS or (type(value) is ast.Name and (value.id in scope.held or value.id in scope.tests)):
            around = scope.guarded_by(context)
            for truth, told in ((True, self.truths), (False, self.falsehoods)):
                told.append(joined("all", [around, answered(value, None, scope, truth=truth)]))
        else:
            self.is_plain = False

    def finish(self) -> Value:
        """The questions of true and false, None where both tell nothing."""
        if not self.is_plain or not self.truths:
            return None
        truth = joined("any", self.truths) if any(self.truths) else None
        falsehood = joined("any", self.falsehoods) if self.falsehoods and all(self.falsehoods) else None
        return (truth, falsehood) if truth or falsehood else None
