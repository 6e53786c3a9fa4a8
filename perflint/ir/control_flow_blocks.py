"""Builds the blocks and edges of a function's control-flow graph from its syntax tree, for `control_flow`.

A block holds expressions and statements in the order in which their evaluation ends. Short circuits, conditional
expressions and comprehensions branch as statements do. `finally` is copied to each way out of its `try`, as CPython
compiles it, so that a return never seems to go on behind it; its nodes then stand in several blocks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from perflint.syntax.walk import children

__all__ = ["Block", "Blocks", "Condition", "ScopeNode", "build"]

ScopeNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module"
#: A test, and how it came out.
Condition: TypeAlias = "tuple[ast.expr, bool]"

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BASE_EXCEPTIONS = frozenset({"Exception", "BaseException"})


class Block:
    """Nodes that run one after the other."""

    __slots__ = ("entered_when", "handler", "index", "nodes", "predecessors", "successors")

    def __init__(self, index: int, entered_when: tuple[Condition, ...]) -> None:
        self.index = index
        #: In the order in which their evaluation ends: operands before the operator, a statement last. What branches
        #: (`if`, `while`, `and` in a test) stands where its evaluation starts.
        self.nodes: list[ast.AST] = []
        self.successors: list[Block] = []
        self.predecessors: list[Block] = []
        #: Tests whose outcome is known where the block is entered.
        self.entered_when = entered_when
        #: The successor that an exception leads to which is raised before, by or after any of the nodes.
        self.handler: Block | None = None

    def __repr__(self) -> str:
        return f"<Block {self.index} -> {[block.index for block in self.successors]}>"


class Blocks(NamedTuple):
    """All blocks of a function; `exit` is entered by returning, `failure` by what is raised, `end` by both."""

    all: list[Block]
    entry: Block
    exit: Block
    failure: Block
    end: Block
    #: By the id of a node, the blocks it stands in and where in each.
    places: dict[int, list[tuple[Block, int]]]


def build(scope: ScopeNode) -> Blocks:
    """The blocks of a function's body, of a lambda's expression or of a module."""
    builder = _Builder()
    if isinstance(scope, ast.Lambda):
        builder.visit(scope.body)
    else:
        builder.statements(scope.body)
    return builder.finish()


class _Loop(NamedTuple):
    continues: Block
    breaks: Block


class _Finally(NamedTuple):
    body: list[ast.stmt]
    #: Where exceptions lead outside of the `try`.
    outside: Block | None


class _Builder:
    def __init__(self) -> None:
        self.all: list[Block] = []
        self.places: dict[int, list[tuple[Block, int]]] = {}
        self.entry = self.current = self.new()
        self.exit, self.failure, self.end = self.new(), self.new(), self.new()
        #: Where an exception leads from here, None out of the function.
        self.outside: Block | None = None
        #: What `break`, `continue` and `return` leave, innermost last.
        self.around: list[_Loop | _Finally] = []

    def finish(self) -> Blocks:
        self.link(self.current, self.exit)
        self.link(self.exit, self.end)
        self.link(self.failure, self.end)
        return Blocks(self.all, self.entry, self.exit, self.failure, self.end, self.places)

    # Blocks.

    def new(self, entered_when: Iterable[Condition] = ()) -> Block:
        block = Block(len(self.all), tuple(entered_when))
        self.all.append(block)
        return block

    def link(self, block: Block, successor: Block) -> None:
        if successor not in block.successors:
            block.successors.append(successor)
            successor.predecessors.append(block)

    def enter(self, block: Block) -> None:
        """Go on in a block. In a `try` what follows may fail before anything of it has run, or later."""
        self.current = block
        if self.outside is not None:
            self.current = self.new()
            self.link(block, self.current)
            for part in (block, self.current):
                self.link(part, self.outside)
                part.handler = self.outside

    def go_on_in(self, block: Block) -> None:
        self.link(self.current, block)
        self.enter(block)

    def leave_for(self, block: Block) -> None:
        """Go to a block, so that nothing follows here."""
        self.link(self.current, block)
        self.enter(self.new())

    def fail(self) -> None:
        """Go to where an exception leads, by an edge of its own: this one is raised for certain."""
        thrown = self.new()
        self.link(self.current, thrown)
        self.link(thrown, self.outside or self.failure)

    def place(self, node: ast.AST) -> None:
        key, block = id(node), self.current
        at = block, len(block.nodes)
        if key in self.places:
            self.places[key].append(at)
        else:  # nearly all are in one place
            self.places[key] = [at]
        block.nodes.append(node)

    # Expressions.

    def visit(self, *nodes: ast.AST | None) -> None:
        """Evaluate nodes one after the other."""
        # Chains of operators may be hundreds of nodes deep: gone down in a loop, not by recursion.
        stack: list[tuple[ast.AST, bool]] = [(node, False) for node in reversed(nodes) if node is not None]
        while stack:
            node, is_done = stack.pop()
            special = None if is_done else _EXPRESSIONS.get(type(node))
            if special is not None:
                special(self, node)
            elif is_done:
                self.place(node)
            else:
                stack.append((node, True))
                stack += [(child, False) for child in reversed(children(node))]

    def branch(self, test: ast.expr, when_true: Block, when_false: Block) -> None:
        """Evaluate a test and go to one of two blocks."""
        if isinstance(test, ast.BoolOp):
            self.place(test)
            is_and = isinstance(test.op, ast.And)
            for value in test.values[:-1]:
                further = self.new(outcomes(value, truth=is_and))
                self.branch(value, *((further, when_false) if is_and else (when_true, further)))
                self.enter(further)
            self.branch(test.values[-1], when_true, when_false)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.place(test)
            self.branch(test.operand, when_false, when_true)
        else:
            self.visit(test)
            known = bool(test.value) if isinstance(test, ast.Constant) else None
            if known is not False:
                self.link(self.current, when_true)
            if known is not True:
                self.link(self.current, when_false)

    def short_circuit(self, node: ast.BoolOp) -> None:
        joined = self.new()
        is_and = isinstance(node.op, ast.And)
        for value in node.values[:-1]:
            further, done = self.new(outcomes(value, truth=is_and)), self.new(outcomes(value, truth=not is_and))
            self.branch(value, *((further, done) if is_and else (done, further)))
            self.link(done, joined)
            self.enter(further)
        self.visit(node.values[-1])
        self.go_on_in(joined)
        self.place(node)

    def conditional(self, node: ast.IfExp) -> None:
        joined = self.new()
        when_true, when_false = self.new(outcomes(node.test, truth=True)), self.new(outcomes(node.test, truth=False))
        self.branch(node.test, when_true, when_false)
        for start, value in ((when_true, node.body), (when_false, node.orelse)):
            self.enter(start)
            self.visit(value)
            self.link(self.current, joined)
        self.enter(joined)
        self.place(node)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        after = self.new()
        back = after
        for generator in node.generators:
            self.visit(generator.iter)
            header, body = self.new(), self.new()
            self.go_on_in(header)
            self.place(generator)
            self.link(self.current, body)
            self.link(self.current, back)
            back = header
            self.enter(body)
            self.visit(generator.target)
            for test in generator.ifs:
                passed = self.new(outcomes(test, truth=True))
                self.branch(test, passed, header)
                self.enter(passed)
        if isinstance(node, ast.DictComp):
            self.visit(node.key, node.value)
        else:
            self.visit(node.elt)
        self.link(self.current, back)
        self.enter(after)
        self.place(node)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """A definition evaluates its decorators and defaults; its body runs at another time."""
        self.visit(*getattr(node, "decorator_list", ()), *node.args.defaults, *node.args.kw_defaults)
        self.place(node)

    # Statements.

    def statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            handler = _STATEMENTS.get(type(statement))
            if handler is not None:
                handler(self, statement)
            else:
                self.visit(*_in_order(statement))
                self.place(statement)

    def class_body(self, node: ast.ClassDef) -> None:
        self.visit(*node.decorator_list, *node.bases, *node.keywords)
        self.statements(node.body)
        self.place(node)

    def if_statement(self, node: ast.If) -> None:
        joined = self.new()
        # A chain of `elif` may be hundreds long: followed in a loop.
        chained: ast.If | None = node
        while chained is not None:
            self.place(chained)
            body, orelse = self.new(outcomes(chained.test, truth=True)), self.new(outcomes(chained.test, truth=False))
            self.branch(chained.test, body, orelse)
            self.enter(body)
            self.statements(chained.body)
            self.link(self.current, joined)
            self.enter(orelse)
            only = chained.orelse[0] if len(chained.orelse) == 1 else None
            if not isinstance(only, ast.If):
                self.statements(chained.orelse)
            chained = only if isinstance(only, ast.If) else None
        self.go_on_in(joined)

    def while_loop(self, node: ast.While) -> None:
        header, after = self.new(), self.new()
        self.go_on_in(header)
        self.place(node)
        body, orelse = self.new(outcomes(node.test, truth=True)), self.new(outcomes(node.test, truth=False))
        self.branch(node.test, body, orelse)
        self.loop_body(node, header, body, orelse, after)

    def for_loop(self, node: ast.For | ast.AsyncFor) -> None:
        header, body, orelse, after = self.new(), self.new(), self.new(), self.new()
        self.visit(node.iter)
        self.go_on_in(header)
        self.place(node)
        self.link(self.current, body)
        self.link(self.current, orelse)
        self.loop_body(node, header, body, orelse, after)

    def loop_body(
        self, node: ast.While | ast.For | ast.AsyncFor, header: Block, body: Block, orelse: Block, after: Block
    ) -> None:
        self.around.append(_Loop(header, after))
        self.enter(body)
        if not isinstance(node, ast.While):
            self.visit(node.target)
        self.statements(node.body)
        self.link(self.current, header)
        self.around.pop()
        self.enter(orelse)
        self.statements(node.orelse)
        self.go_on_in(after)

    def assertion(self, node: ast.Assert) -> None:
        self.place(node)
        passed, failed = self.new(outcomes(node.test, truth=True)), self.new(outcomes(node.test, truth=False))
        self.branch(node.test, passed, failed)
        self.enter(failed)
        self.visit(node.msg)
        self.fail()
        self.enter(passed)

    def raises(self, node: ast.Raise) -> None:
        self.visit(node.exc, node.cause)
        self.place(node)
        self.fail()
        self.enter(self.new())

    def returns(self, node: ast.Return) -> None:
        self.visit(node.value)
        self.place(node)
        self.unwind(0)
        self.leave_for(self.exit)

    def jumps(self, node: ast.Break | ast.Continue) -> None:
        self.place(node)
        index = next((i for i in reversed(range(len(self.around))) if isinstance(self.around[i], _Loop)), None)
        if index is None:
            return
        loop = self.around[index]
        assert isinstance(loop, _Loop)
        self.unwind(index + 1)
        self.leave_for(loop.breaks if isinstance(node, ast.Break) else loop.continues)

    def unwind(self, depth: int) -> None:
        """Run the `finally` of all that is left, innermost first."""
        around, outside = self.around, self.outside
        for index in reversed(range(depth, len(around))):
            left = around[index]
            if isinstance(left, _Finally):
                self.around, self.outside = around[:index], left.outside
                self.go_on_in(self.new())
                self.statements(left.body)
        self.around, self.outside = around, outside

    def try_statement(self, node: Any) -> None:
        self.place(node)
        outside = self.outside
        escaped = self.new() if node.finalbody else None
        if node.finalbody:
            self.around.append(_Finally(node.finalbody, outside))
        uncaught = escaped or outside
        caught = self.new() if node.handlers else None
        self.outside = caught or uncaught
        self.go_on_in(self.new())
        self.statements(node.body)
        self.outside = uncaught
        self.go_on_in(self.new())
        self.statements(node.orelse)
        ends = [self.current]
        if caught is not None:
            ends += self.handlers(node.handlers, caught)
        if node.finalbody:
            self.around.pop()
        self.outside = outside
        joined = self.new()
        for end in ends:
            self.link(end, joined)
        if escaped is not None:
            self.enter(escaped)
            self.statements(node.finalbody)
            self.fail()
        self.enter(joined)
        self.statements(node.finalbody)

    def handlers(self, handlers: list[ast.ExceptHandler], caught: Block) -> Iterator[Block]:
        """The blocks that handlers end in."""
        for handler in handlers:
            self.enter(caught)
            self.visit(handler.type)
            caught = self.new()
            if not _catches_all(handler):
                self.link(self.current, caught)
            self.go_on_in(self.new())
            self.place(handler)
            self.statements(handler.body)
            yield self.current
        self.link(caught, self.outside or self.failure)

    def with_statement(self, node: ast.With | ast.AsyncWith) -> None:
        self.place(node)
        for item in node.items:
            self.visit(item.context_expr, item.optional_vars)
            self.place(item)
        if not any(_suppresses(item.context_expr) for item in node.items):
            self.statements(node.body)
            return
        outside, caught, after = self.outside, self.new(), self.new()
        self.outside = caught
        self.go_on_in(self.new())
        self.statements(node.body)
        self.outside = outside
        self.link(caught, after)
        self.link(caught, outside or self.failure)
        self.go_on_in(after)

    def match(self, node: ast.Match) -> None:
        self.place(node)
        self.visit(node.subject)
        after = self.new()
        for case in node.cases:
            body, further = self.new(outcomes(case.guard, truth=True) if case.guard else ()), self.new()
            self.place(case)
            matches_all = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
            if case.guard is not None:
                guarded = self.new()
                self.link(self.current, guarded)
                if not matches_all:
                    self.link(self.current, further)
                self.enter(guarded)
                self.branch(case.guard, body, further)
            else:
                self.link(self.current, body)
                if not matches_all:
                    self.link(self.current, further)
            self.enter(body)
            self.statements(case.body)
            self.link(self.current, after)
            self.enter(further)
        self.go_on_in(after)


def outcomes(test: ast.expr, *, truth: bool) -> Iterator[Condition]:
    """How the parts of a test have come out where the whole has come out so: all of `a and b` where it is true. Of
    `a or b` that is true only the whole is known; of a constant there is nothing to know.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from outcomes(test.operand, truth=not truth)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is truth:
        for value in test.values:
            yield from outcomes(value, truth=truth)
    elif not isinstance(test, ast.Constant):
        yield test, truth


def _in_order(statement: ast.stmt) -> list[ast.AST]:
    """The expressions of a simple statement as they are evaluated."""
    if isinstance(statement, ast.Assign):
        return [statement.value, *statement.targets]
    if isinstance(statement, ast.AnnAssign):
        return [statement.target] if statement.value is None else [statement.value, statement.target]
    return children(statement)


def _catches_all(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or (isinstance(handler.type, ast.Name) and handler.type.id in _BASE_EXCEPTIONS)


def _suppresses(manager: ast.expr) -> bool:
    """`contextlib.suppress(...)`"""
    func = manager.func if isinstance(manager, ast.Call) else None
    name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    return name == "suppress"


_Visit: TypeAlias = Callable[[_Builder, Any], None]
_EXPRESSIONS: dict[type[ast.AST], _Visit] = {
    ast.BoolOp: _Builder.short_circuit,
    ast.IfExp: _Builder.conditional,
    ast.Lambda: _Builder.function,
    **dict.fromkeys(_COMPREHENSIONS, _Builder.comprehension),
}
_STATEMENTS: dict[type[ast.AST], _Visit] = {
    ast.FunctionDef: _Builder.function,
    ast.AsyncFunctionDef: _Builder.function,
    ast.ClassDef: _Builder.class_body,
    ast.If: _Builder.if_statement,
    ast.While: _Builder.while_loop,
    ast.For: _Builder.for_loop,
    ast.AsyncFor: _Builder.for_loop,
    ast.Assert: _Builder.assertion,
    ast.Raise: _Builder.raises,
    ast.Return: _Builder.returns,
    ast.Break: _Builder.jumps,
    ast.Continue: _Builder.jumps,
    ast.Try: _Builder.try_statement,
    ast.With: _Builder.with_statement,
    ast.AsyncWith: _Builder.with_statement,
    ast.Match: _Builder.match,
}
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = _Builder.try_statement
