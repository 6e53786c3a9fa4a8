"""The survey: one pass over a file's syntax tree that writes its `Summary`.

It runs on every file of the project, so it is written for speed: each node is visited once, and nothing is recorded
that linking cannot use.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from sys import intern

from perflint.ir import guards, leaving
from perflint.ir.computed import COMPUTED, of_value
from perflint.ir.effects import Unread
from perflint.ir.expressions import HANDLERS
from perflint.ir.global_setters import setters_of
from perflint.ir.growing import HEADER_LENGTH, Growing
from perflint.ir.importing import Importing
from perflint.ir.needed import needed_by
from perflint.ir.notation import annotation_text, switches_grad, value_of
from perflint.ir.own_tests import tested_names
from perflint.ir.questions import Question, answered
from perflint.ir.sharing import NOTHING, NoSharing, Sharing
from perflint.ir.summary import (
    MODULE,
    ClassFacts,
    FunctionFacts,
    LoopFacts,
    StatementFacts,
    Summary,
    Value,
    record,
)
from perflint.ir.targets import names_in
from perflint.syntax.bindings import set_attribute
from perflint.syntax.literals import texts_of
from perflint.syntax.qualnames import name_of
from perflint.syntax.walk import children

_DEFINITIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef})
#: Tests that never say by themselves that what they guard is done once.
_PLAIN_TESTS = frozenset({ast.Compare, ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant})
_IMPORTS = frozenset({ast.Import, ast.ImportFrom})
#: What autograd calls of a `torch.autograd.Function`, with a context first.
_APPLIED = frozenset({"forward", "backward"})
_GRAD_CONTEXTS = {False: "no_grad", True: "grad"}


def survey(module: ast.Module, lines: list[str], sharing: Sharing | None = None, *, outlined: bool = False) -> Summary:
    """The facts of one file. `lines` are its source lines, for the text of loop headers.

    Where it is `outlined` they say what the file defines and imports, and nothing of what it does or mentions.
    """
    return _Surveyor(lines, sharing or NoSharing(), outlined=outlined).survey(module)


class _Surveyor(Importing):
    """Walks statements. A handler returns the guard that what follows it in its block stands under, or None."""

    def __init__(self, lines: list[str], sharing: Sharing, *, outlined: bool) -> None:
        super().__init__(sharing)
        self.outlined = outlined
        self.lines = lines
        #: Functions of the top-level statement at hand that stand in no other, with their identifiers.
        self.outermost: list[tuple[FunctionFacts, set[str]]] = []
        self.inside = False
        #: The names of the module that functions declare as global ones.
        self.set_elsewhere: set[str] = set()
        #: What calls of the file's functions are known to set, as a function's tests hold it.
        self.setters: guards.Tests = {}

    def survey(self, module: ast.Module) -> Summary:
        self.setters = dict.fromkeys(setters_of(module), (None, None))
        top = self.scope = Growing(FunctionFacts(MODULE, 1, max(1, len(self.lines)), "", ""), module.body)
        statements = []
        for index, statement in enumerate(module.body):
            self.identifiers = set()
            after = self.statement(statement)
            if after is not None and index + 1 < len(module.body):
                self.context = top.push_guard(self.context, after, module.body[index + 1], module.body[-1])
            for facts, words in self.outermost:
                facts.identifiers = self.told(words)
            self.outermost.clear()
            first = statement.lineno
            if type(statement) in _DEFINITIONS and statement.decorator_list:  # type: ignore[attr-defined]
                first = min(first, statement.decorator_list[0].lineno)  # type: ignore[attr-defined]
            last, told = statement.end_lineno or first, self.told(self.identifiers)
            statements.append(StatementFacts(first, last, told, type(statement) in _IMPORTS))
        for name in self.set_elsewhere & (top.binds.keys() | top.computed.keys()):
            top.computed.setdefault(name, {})[None] = None
        self.summary.functions[MODULE] = top.finish(self.once)
        self.summary.statements = tuple(statements)
        self.summary.holds_tests = self.outlined
        if self.outlined:
            self.forget_doings()
        self.summary.classes = self.classes
        for qualname, cls in self.classes.items():
            held = self.held.get(qualname)
            cls.annotations = cls.annotations or NOTHING
            cls.attributes = {name: tuple(values) for name, values in held.items()} if held else NOTHING
            known = self.computed.get(qualname)
            cls.computed = {name: tuple(values) for name, values in known.items()} if known else NOTHING
            cls.unclear = tuple(sorted(self.unclear.get(qualname, ())))
        self.drop_plain_reads()
        if not self.outlined:
            self.summary.texts = texts_of(module, self.lines)
            self.summary.needs = needed_by(module)
        return self.summary

    def forget_doings(self) -> None:
        """Leave out what the file itself does, and what it mentions."""
        top = self.summary.functions[MODULE]
        top.calls, top.reads = (), ()
        for statement in self.summary.statements:
            statement.identifiers = ""
        for facts in self.summary.functions.values():
            facts.identifiers = ""

    def told(self, words: set[str]) -> str:
        """Identifiers as text, with what the renamed ones are called where they come from."""
        if not words:
            return ""
        if self.renamed:
            for alias in self.renamed.keys() & words:
                words.add(self.renamed[alias])
        text = " ".join(sorted(words))
        return self.once(text, text)  # type: ignore[no-any-return]

    def drop_plain_reads(self) -> None:
        """Forget reads of `self.x` where this file's class assigns `x`: a property has no room beside it."""
        for facts in self.summary.functions.values():
            if facts.reads and facts.in_class in self.classes:
                assigned = self.classes[facts.in_class].attributes
                facts.reads = tuple([read for read in facts.reads if not _is_assigned(read.path, assigned)])

    # Blocks.

    def block(self, body: list[ast.stmt], context: int) -> None:
        """Walk statements in a context of the current function, and come back to the one before."""
        before, tested = self.context, self.scope.tested
        self.context = context
        for following, node in enumerate(body, 1):
            kind = type(node)
            after = _STATEMENTS[kind](self, node)
            if kind is ast.If:
                after = self.after_if(after, node, body, following)  # type: ignore[arg-type]
                if following < len(body) and leaving.ends_block(node.body):  # type: ignore[attr-defined]
                    self.scope.tested = {**self.scope.tested, **tested_names(node.test, truth=False)}  # type: ignore[attr-defined]
            elif kind is ast.Expr and following < len(body) and switches_grad(node.value) is False:  # type: ignore[attr-defined]
                self.gradless(body, following)
                break
            if after is not None and following < len(body):
                self.context = self.guarded(body[following:], self.context, after)
        self.context, self.scope.tested = before, tested

    def after_if(self, after: Question, node: ast.If, body: list[ast.stmt], following: int) -> Question | int:
        """The guard of what follows an `if` in its block, from `following` on."""
        if leaving.skips(node) and following < len(body):
            held = leaving.as_held(node, body[following:])
            after = self.guard_under(held, self.context, self.scope.tests)
            if isinstance(after, int):
                return after
        return leaving.made_plain(after, node, body, following)

    def gradless(self, body: list[ast.stmt], start: int) -> None:
        """What follows `torch.set_grad_enabled(False)` in its block, up to where they are switched on again."""
        end = start
        while end < len(body):
            node = body[end]
            if isinstance(node, ast.Expr) and switches_grad(node.value) is True:
                break
            end += 1
        if end > start:
            self.block(body[start:end], self.scope.push(self.context, "no_grad", "", body[start], body[end - 1]))
        self.block(body[end:], self.context)

    def statement(self, node: ast.stmt) -> Question:
        return _STATEMENTS[type(node)](self, node)

    def other(self, node: ast.stmt) -> str | None:
        for child in children(node):
            if isinstance(child, ast.expr):
                self.target(child)
        return None

    def expression(self, node: ast.Expr) -> str | None:
        held = node.value
        if type(held) is not ast.Constant:
            HANDLERS[type(held)](self, held, 0)
            made = set_attribute(held) if type(held) is ast.Call else None
            if made is not None:
                target = ast.Attribute(made.holder, made.name, ast.Store())
                computed = of_value(made.value) if type(made.value) in COMPUTED else None
                self.bind_attribute(target, value_of(made.value), computed)
        return None

    def assert_(self, node: ast.Assert) -> str | None:
        self.many([node.test, node.msg])
        # `assert not self.registered`: what follows runs once, for it raises the second time. Most tests are plain.
        may_tell = type(node.test) not in _PLAIN_TESTS
        return guards.LAZY if may_tell and guards.classify(node.test) == guards.LAZY else None

    def nothing(self, _node: ast.stmt) -> str | None:
        return None

    def declaration(self, node: ast.Global) -> str | None:
        self.set_elsewhere.update(node.names)
        self.scope.tests |= {guards.declared(name): (None, None) for name in node.names}
        return None

    # Definitions.

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
        owner, cls = self.owner, self.cls
        around, is_outermost = self.identifiers, not self.inside
        if is_outermost:
            self.identifiers, self.inside = set(), True
        decorators = tuple([self.value(item) for item in node.decorator_list]) if node.decorator_list else ()
        if decorators and node.name in _APPLIED and owner == cls and self._is_autograd(cls):
            # `Function.apply(x)` hands the first parameter itself, as a call of a method does.
            decorators = tuple([item for item in decorators if item != "staticmethod"])
        params = self.parameters(node.args)
        returns_annotation = self.annotation(node.returns)
        in_class_body = bool(cls) and owner == cls
        name = name_of(node)
        qualname = f"{owner}.{name}" if in_class_body else f"{owner}.<locals>.{name}" if owner else name
        qualname = self.fresh(qualname)
        facts = FunctionFacts(
            qualname,
            node.lineno,
            node.end_lineno or node.lineno,
            owner,
            cls if in_class_body else "",
            params=params,
            decorators=decorators,
            binds=NOTHING,
            annotations=NOTHING,
            computed=NOTHING,
            returns_annotation=returns_annotation,
        )
        if not self.outlined:
            facts.put_off(Unread(node))
        self.summary.functions[qualname] = facts
        if in_class_body:
            self.classes[cls].methods += (node.name,)
        before = self.scope
        self.scope, self.owner = Growing(facts, node.body), qualname
        if before.tests and not is_outermost and not in_class_body:
            given = {param.name for param in params}
            # A name that is declared global out here is a local one of this function all the same.
            known = {name: kinds for name, kinds in before.tests.items() if not guards.is_declared(name)}
            self.scope.tests = {name: kinds for name, kinds in known.items() if name not in given}
        if self.setters:
            self.scope.tests = {**self.setters, **self.scope.tests}
        if not self.outlined:
            self.block(node.body, -1)
            if self.scope.told.is_plain and not leaving.ends_block(node.body):
                self.scope.told.note(None, self.scope, -1)  # it gives back None
        self.scope.finish(self.once)
        self.scope, self.owner = before, owner
        if is_outermost:
            self.outermost.append((facts, self.identifiers))
            self.identifiers, self.inside = around, False
        return None

    def _is_autograd(self, cls: str) -> bool:
        """Whether a class derives, as written, from `torch.autograd.Function`."""
        bases = self.classes[cls].bases if cls in self.classes else ()
        return any(isinstance(base, str) and base.rpartition(".")[2] == "Function" for base in bases)

    def fresh(self, qualname: str) -> str:
        """A second definition of a name (overloads, `if`/`else` variants) gets a number."""
        if qualname not in self.summary.functions:
            return intern(qualname)
        number = 2
        while f"{qualname}~{number}" in self.summary.functions:
            number += 1
        return intern(f"{qualname}~{number}")

    def class_(self, node: ast.ClassDef) -> str | None:
        owner, cls = self.owner, self.cls
        inside_function = bool(owner) and owner != cls
        qualname = (
            f"{owner}.<locals>.{node.name}" if inside_function else f"{owner}.{node.name}" if owner else node.name
        )
        facts = ClassFacts(
            qualname,
            node.lineno,
            decorators=tuple([self.value(item) for item in node.decorator_list]),
            bases=tuple([self.value(base) for base in node.bases]),
            keywords=tuple([(item.arg or "", self.value(item.value)) for item in node.keywords]),
        )
        self.classes[qualname] = facts
        self.owner = self.cls = qualname
        for statement in node.body:
            self.statement(statement)
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                facts.annotations.setdefault(statement.target.id, annotation_text(statement.annotation))
                self.class_holds(qualname, statement.target.id, statement.value)
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        self.class_holds(qualname, target.id, statement.value)
        self.owner, self.cls = owner, cls
        return None

    def class_holds(self, qualname: str, name: str, held: ast.expr | None) -> None:
        """A name in the body of a class is given something, or only declared."""
        if held is not None:
            computed = of_value(held) if type(held) in COMPUTED else None
            self.attribute_holds(qualname, name, value_of(held), MODULE, computed)

    # Control flow.

    def if_(self, node: ast.If) -> Question:
        # An `elif` chain may be thousands long: walked in a loop, not by recursion.
        self.scope.branching = True
        here = self.context
        context = here
        first, tests = node, self.scope.tests
        try:
            while True:
                known = self.scope.tests
                self.visit(node.test)
                self.branch(node.body, context, self.guard_under(node, context, known), node.test, truth=True)
                if not node.orelse:
                    if node is not first:
                        return leaving.left_early(first, tests)
                    if not leaving.is_failure(node.body) and leaving.ends_block(node.body):
                        return answered(node.test, None, self.scope, truth=False)
                    return None
                kind = answered(node.test, node.orelse, self.scope, truth=False)
                if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
                    context = self.guarded(node.orelse, context, kind)
                    node = node.orelse[0]
                    self.context = context
                    continue
                self.branch(node.orelse, context, kind, node.test, truth=False)
                return leaving.left_early(first, tests)
        finally:
            self.context = here

    def guard_under(self, node: ast.If, context: int, known: guards.Tests) -> Question | int:
        """The guard of what an `if` holds."""
        rare = leaving.is_failure(node.body) or leaving.is_complaint(node.body)
        return guards.RARE if rare else self.guard_of(node, context, known)

    def branch(self, body: list[ast.stmt], context: int, kind: Question | int, test: ast.expr, *, truth: bool) -> None:
        if kind is None and leaving.leaves_loop(body) and self.scope.in_loop(context):
            kind = guards.LEAVES
        tested = self.scope.tested
        asked = tested_names(test, truth=truth)
        if asked:
            self.scope.tested = {**tested, **asked}
        self.block(body, self.guarded(body, context, kind))
        self.scope.tested = tested

    def guarded(self, body: list[ast.stmt], context: int, kind: Question | int) -> int:
        if kind is None:
            return context
        if isinstance(kind, int):
            return self.scope.push(context, "switch", kind, body[0], body[-1])
        return self.scope.push_guard(context, kind, body[0], body[-1])

    def for_(self, node: ast.For | ast.AsyncFor) -> str | None:
        self.target(node.target)
        iterable = self.scope.held_item(self.value(node.iter))
        self.bind_each(node.target, iterable)
        inner = self.loop(node, "for", names_in(node.target), iterable)
        self.block(node.body, self.turn(node.body, inner))
        self.block(node.orelse, self.context)
        return None

    def while_(self, node: ast.While) -> str | None:
        here = self.context
        inner = self.loop(node, "while", (), None)
        self.context = inner
        self.visit(node.test)
        self.context = here
        self.block(node.body, self.turn(node.body, inner))
        self.block(node.orelse, here)
        return None

    def turn(self, body: list[ast.stmt], inner: int) -> int:
        """The context of a loop's body, which runs for the first turn alone where it ends with a `break`."""
        return self.guarded(body, inner, guards.LEAVES if leaving.is_single_turn(body) else None)

    def loop(
        self, node: ast.For | ast.AsyncFor | ast.While, kind: str, targets: tuple[str, ...], iterable: Value
    ) -> int:
        scope = self.scope
        text = self.lines[node.lineno - 1].strip() if node.lineno <= len(self.lines) else kind
        text = text.partition("#")[0].rstrip().rstrip(":")
        if len(text) > HEADER_LENGTH:
            text = f"{text[: HEADER_LENGTH - 3].rstrip()}..."
        elif text.endswith(("(", "[", "{", ",")):
            text += "..."
        facts = node.lineno, node.col_offset, kind, targets, iterable, text, self.context
        scope.turning[len(scope.loops)] = node
        scope.loops.append(record(LoopFacts, facts))
        # A `while` test is evaluated every turn; a `for` iterable only once.
        first = node.test if isinstance(node, ast.While) else node.body[0]
        return scope.push(self.context, "loop", len(scope.loops) - 1, first, node.body[-1])

    def with_(self, node: ast.With | ast.AsyncWith) -> str | None:
        here = self.context
        if (later := self.scope.facts.later) is not None:
            later.enters = True
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                self.target(item.optional_vars)
                if isinstance(item.optional_vars, ast.Name):
                    self.scope.bind(item.optional_vars.id, value)
            switched = switches_grad(item.context_expr)
            if switched is not None:
                self.context = self.scope.push(self.context, _GRAD_CONTEXTS[switched], "", node.body[0], node.body[-1])
        self.block(node.body, self.context)
        self.context = here
        # `with ignore_errors(): return fast(x)`: what follows runs when an error was swallowed.
        return guards.RARE if leaving.ends_block(node.body) else None

    def try_(self, node: ast.Try) -> str | None:
        here = self.context
        self.block(node.body, here)
        for handler in node.handlers:
            if handler.type is not None:
                self.visit(handler.type)
            self.falling_back += 1
            self.block(handler.body, self.guarded(handler.body, here, guards.RARE))
            self.falling_back -= 1
        self.block(node.orelse, here)
        self.block(node.finalbody, here)
        # `try: return fast(x)`, and after a handler that swallows the error the slow way: like the handler itself.
        return guards.RARE if node.handlers and leaving.ends_block(node.body) else None

    def match_(self, node: ast.Match) -> str | None:
        self.visit(node.subject)
        for case in node.cases:
            captures = (part for part in ast.walk(case.pattern) if isinstance(part, (ast.MatchAs, ast.MatchStar)))
            self.identifiers.update([part.name for part in captures if part.name])
            if case.guard is not None:
                self.visit(case.guard)
            self.block(case.body, self.context)
        return None

    def return_(self, node: ast.Return) -> str | None:
        if self.scope.told.is_plain:
            self.scope.told.note(node.value, self.scope, self.context)
        if node.value is not None:
            self.scope.returns[self.value(node.value)] = None
        return None


def _is_assigned(path: str, assigned: dict[str, tuple[tuple[Value, str], ...]]) -> bool:
    return path.startswith("self.") and path[len("self.") :] in assigned


_Handler = Callable[..., Question]
_STATEMENTS: dict[type, _Handler] = {
    **dict.fromkeys(ast.stmt.__subclasses__(), _Surveyor.other),
    ast.FunctionDef: _Surveyor.function,
    ast.AsyncFunctionDef: _Surveyor.function,
    ast.ClassDef: _Surveyor.class_,
    ast.Expr: _Surveyor.expression,
    ast.AugAssign: _Surveyor.augmented,
    ast.Pass: _Surveyor.nothing,
    ast.Global: _Surveyor.declaration,
    ast.Break: _Surveyor.nothing,
    ast.Continue: _Surveyor.nothing,
    ast.Assert: _Surveyor.assert_,
    ast.If: _Surveyor.if_,
    ast.For: _Surveyor.for_,
    ast.AsyncFor: _Surveyor.for_,
    ast.While: _Surveyor.while_,
    ast.With: _Surveyor.with_,
    ast.AsyncWith: _Surveyor.with_,
    ast.Try: _Surveyor.try_,
    ast.Match: _Surveyor.match_,
    ast.Assign: _Surveyor.assign,
    ast.AnnAssign: _Surveyor.annotated,
    ast.Return: _Surveyor.return_,
    ast.Import: _Surveyor.import_,
    ast.ImportFrom: _Surveyor.import_from,
}
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = _Surveyor.try_
