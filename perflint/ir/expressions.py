"""The walk over expressions: one visit of each node writes down names, calls and loops, and gives its value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from sys import intern

from perflint.ir.computed import COMPUTED, of_value
from perflint.ir.dull import (
    DULL_CALLS,
    DULL_READS,
    MAYBE_DULL,
    is_dull,
    may_tell_class,
)
from perflint.ir.effects import Unread
from perflint.ir.growing import HEADER_LENGTH, Growing
from perflint.ir.joined import MAYBE_LISTS, joined
from perflint.ir.notation import (
    DEPTH,
    MOST_LITERALS,
    constant,
    cut,
    either,
    index_of,
    is_moved_arm,
    lambda_name,
    may_name_code,
    method_template,
    path_of,
    text_template,
    value_of,
)
from perflint.ir.questions import answered, note_test
from perflint.ir.sharing import NOTHING, NoSharing, Once, Sharing
from perflint.ir.signatures import Signatures
from perflint.ir.spreading import is_spread, spread_out
from perflint.ir.summary import CallFacts, FunctionFacts, LoopFacts, Value, record
from perflint.ir.targets import may_be_code, names_in
from perflint.syntax.walk import children
from perflint.torch_model.registries import PUTTING

_ARGUMENT_DEPTH = 4
#: Arguments that are no tests.
_PLAIN_ARGUMENTS = frozenset({ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript, ast.BinOp, ast.Starred})
#: Arguments by name that say that a program runs on devices.
_OF_DEVICES = frozenset({"device", "non_blocking"})
#: A list that something may be put into.
_EMPTY: Value = ("seq", ())
#: A value that says nothing of what it is.
ANYTHING: Value = ("const", "object", None)


def _shared_literal(once: Once, literal: object) -> Value:
    value = constant(literal)
    return once(value, value)


class Expressions(Signatures):
    """Walks expressions for the function `scope`, in its context `context`."""

    def __init__(self, sharing: Sharing) -> None:
        super().__init__(sharing)
        self.shares = not isinstance(sharing, NoSharing)
        #: The value of a literal. (A method of this object kept in it would be a circle, which nothing frees before the
        #: next collection, and all lines of the file with it.)
        self.literal = partial(_shared_literal, sharing.once) if self.shares else constant
        self.context = -1

    def value(self, node: ast.expr, depth: int = DEPTH) -> Value:
        """Write down what `node` holds. Its value reaches `depth` levels down; 0 where nobody asks for it."""
        return HANDLERS[type(node)](self, node, depth)

    def values(self, nodes: Sequence[ast.expr], depth: int) -> tuple[Value, ...]:
        """The values of several. Names and literals, which most are, come without another call."""
        if depth <= 0:
            return tuple([self.value(node, 0) for node in nodes])
        made: list[Value] = []
        identifiers, literal = self.identifiers, self.literal
        for node in nodes:
            kind = type(node)
            if kind is ast.Name:
                name = node.id  # type: ignore[attr-defined]
                identifiers.add(name)
                made.append(name)
            elif kind is ast.Constant:
                made.append(literal(node.value))  # type: ignore[attr-defined]
            else:
                made.append(HANDLERS[kind](self, node, depth))
        return tuple(made)

    def keywords(self, nodes: Sequence[ast.keyword], depth: int) -> tuple[tuple[str, Value], ...]:
        """As `values`, with their names."""
        if depth <= 0:
            return tuple([(item.arg or "", self.value(item.value, 0)) for item in nodes])
        made: list[tuple[str, Value]] = []
        identifiers, literal = self.identifiers, self.literal
        for item in nodes:
            node = item.value
            kind = type(node)
            if kind is ast.Constant:
                value = literal(node.value)  # type: ignore[attr-defined]
            elif kind is ast.Name:
                value = node.id  # type: ignore[attr-defined]
                identifiers.add(value)
            else:
                value = HANDLERS[kind](self, node, depth)
            made.append((item.arg or "", value))
        return tuple(made)

    def visit(self, node: ast.expr) -> None:
        """Write down what stands in an expression whose value nobody asks for."""
        kind = type(node)
        if kind is ast.Name:
            self.identifiers.add(node.id)  # type: ignore[attr-defined]
        elif kind is not ast.Constant:
            HANDLERS[kind](self, node, 0)

    def many(self, nodes: Iterable[ast.expr | None]) -> None:
        for node in nodes:
            kind = type(node)
            if kind is ast.Name:
                self.identifiers.add(node.id)  # type: ignore[union-attr]
            elif kind is not ast.Constant and node is not None:
                HANDLERS[kind](self, node, 0)

    def children(self, node: ast.expr, _depth: int) -> Value:
        self.many(children(node))  # type: ignore[arg-type]
        return None

    def name(self, node: ast.Name, depth: int) -> Value:
        self.identifiers.add(node.id)
        return node.id if depth > 0 else None

    def constant(self, node: ast.Constant, depth: int) -> Value:
        return self.literal(node.value) if depth > 0 else None

    def attribute(self, node: ast.Attribute, depth: int) -> Value:
        attr = node.attr
        base = node.value
        if type(base) is ast.Name:
            first = base.id
            self.identifiers.add(first)
            self.identifiers.add(attr)
            path = intern(f"{first}.{attr}")
            if attr not in DULL_READS and first not in self.imports:
                self.scope.reads[path, self.context] = node.lineno
            return path
        names = [attr]
        while type(base) is ast.Attribute:
            names.append(base.attr)
            base = base.value
        self.identifiers.update(names)
        if type(base) is ast.Name:
            first = base.id
            self.identifiers.add(first)
            names.append(first)
            names.reverse()
            path = intern(".".join(names))
            if first not in self.imports:
                self.scope.reads[path, self.context] = node.lineno
            return path
        value = self.value(base, depth - len(names))
        for name in reversed(names):
            value = None if value is None else ("attr", value, name)
        return value

    def callee(self, node: ast.Attribute) -> Value:
        """The value of a called attribute: only what it is called on is read."""
        base = node.value
        self.identifiers.add(node.attr)
        if type(base) is ast.Name:
            self.identifiers.add(base.id)
            return intern(f"{base.id}.{node.attr}")
        if type(base) is ast.Attribute:
            value = self.attribute(base, DEPTH)
            if type(value) is str:
                return intern(f"{value}.{node.attr}")
        else:
            value = self.value(base)
        return None if value is None else ("attr", value, node.attr)

    def call(self, node: ast.Call, depth: int) -> Value:
        func = node.func
        name: Value
        if type(func) is ast.Name:
            name = func.id
            self.identifiers.add(name)
            if name in DULL_CALLS:
                return self.dull_call(node, name, depth)
        elif type(func) is ast.Attribute:
            name = self.callee(func)
            if func.attr in MAYBE_DULL and is_dull(func, node, self.imports, self.scope.binds):
                if func.attr in PUTTING and node.args:
                    self.put(func, node.args)
                if func.attr == "append" and type(func.value) is ast.Name and len(node.args) == 1:
                    return self.appended(func.value.id, node.args[0])
                if func.attr == "extend" and type(func.value) is ast.Name and type(node.args[0]) is ast.List:
                    self.hold(func.value.id, node.args[0].elts)
                return self.dull_call(node, name, depth)
        else:
            name = self.value(func, DEPTH)
        args, keywords = self.arguments(node, _ARGUMENT_DEPTH)
        given = spread_out(node, args, keywords, self.scope) if is_spread(node) else (args, keywords)
        facts = name, *given, node.lineno, node.col_offset, self.context
        if not _PLAIN_ARGUMENTS.issuperset(map(type, node.args)) or node.keywords:
            self.hand_tests(node)
        self.scope.calls.append(record(CallFacts, facts))
        if keywords:
            # Whatever the values are called: the program has devices.
            self.identifiers.update([item.arg for item in node.keywords if item.arg in _OF_DEVICES])
        if args or keywords:
            self.compute_arguments(node)
        if type(func) is ast.Attribute and func.attr == "compile":
            self.narrow(func.value)
        if depth <= 0 or name is None:
            return None
        if depth < _ARGUMENT_DEPTH:
            # A call within a call's arguments: cut, or every level of nesting would be told once more.
            args = tuple([cut(item, depth - 1) for item in args])
            keywords = tuple([(key, cut(item, depth - 1)) for key, item in keywords])
        return ("call", name, args, keywords)

    def hand_tests(self, node: ast.Call) -> None:
        """Note the tests that a call hands over: `self.report(loss, step % 100 == 0)`."""
        given: list[tuple[int | str | None, ast.expr]] = [*enumerate(node.args)]
        given += [(item.arg, item.value) for item in node.keywords]
        for place, value in given:
            if type(value) is ast.Compare or type(value) is ast.BoolOp:
                note_test(f"{node.lineno}:{node.col_offset}:{place}", value, self.scope)
            elif type(value) is ast.IfExp and type(value.orelse) is ast.Constant and value.orelse.value is None:
                # `logger if due else None`: whether there is one is told by the test.
                note_test(f"{node.lineno}:{node.col_offset}:{place}?", value.test, self.scope)

    def put(self, func: ast.Attribute, args: list[ast.expr]) -> None:
        """`self.hooks.append(hook)`, where the item may be called later on; what local lists hold is told by `bind`."""
        place = PUTTING[func.attr]
        item = value_of(args[place], 2) if place < len(args) else None
        container = path_of(func.value) if may_be_code(item) else None
        if container is not None and container not in self.scope.binds:
            self.scope.stores[intern(container), item] = None

    def compute_arguments(self, node: ast.Call) -> None:
        """Write down the arguments of the last call that plain notation has no form for, or not for all of."""
        for place, item in enumerate(node.args):
            if type(item) in COMPUTED and (computed := of_value(item)) is not None:
                self.scope.computed[f"#{len(self.scope.calls) - 1}:{place}"] = {computed: None}
        for word in node.keywords:
            if type(word.value) in COMPUTED and word.arg and (computed := of_value(word.value)) is not None:
                self.scope.computed[f"#{len(self.scope.calls) - 1}:{word.arg}"] = {computed: None}

    def appended(self, name: str, node: ast.expr) -> Value:
        """`rows.append(row)`: what `rows = []` holds is told beside it, so that nobody takes it for an empty list; what
        may be called later on is told of others as well.
        """
        known = self.scope.binds.get(name)
        first = next(iter(known)) if known else None
        value = self.value(node)
        if first == _EMPTY:
            self.scope.bind(name, ("each", value if value is not None else ANYTHING, None))
        elif may_be_code(value) and type(first) is tuple and first[0] == "seq":
            self.scope.bind(name, ("each", value, None))
        return None

    def dull_call(self, node: ast.Call, name: Value, depth: int) -> Value:
        """A call that is not recorded, but for what stands in it."""
        if name == "isinstance":
            asked = self.values(node.args, _ARGUMENT_DEPTH)
            facts = CallFacts(name, asked, (), node.lineno, node.col_offset, self.context)
            (self.scope.calls if may_tell_class(asked) else self.scope.asked).append(facts)
        elif name == "setattr" and len(node.args) == 3:
            self.set_attribute(*node.args)
        if depth <= 0 or name is None:
            self.many(node.args)
            for item in node.keywords:
                self.visit(item.value)
            return None
        args, keywords = self.arguments(node, depth - 1)
        if name == "getattr" and len(args) > 1 and args[1] is None:
            args = (args[0], method_template(node.args[1]), *args[2:])
        return ("call", name, args, keywords)

    def set_attribute(self, base: ast.expr, name: ast.expr, value: ast.expr) -> None:
        """`setattr(Net, "forward", ours)`, as `Net.forward = ours`."""
        if type(name) is ast.Constant and type(name.value) is str:
            held = value_of(value, 3)
            if may_be_code(held):
                self.bind_attribute(ast.Attribute(base, name.value, ast.Store()), held)

    def arguments(self, node: ast.Call, depth: int) -> tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]]:
        args: tuple[Value, ...] = ()
        keywords: tuple[tuple[str, Value], ...] = ()
        if node.args:
            args = self.values(node.args, depth)
        if node.keywords:
            keywords = self.keywords(node.keywords, depth)
        return (self.once(args, args), self.once(keywords, keywords)) if self.shares else (args, keywords)

    def narrow(self, receiver: ast.expr) -> None:
        """Record the `isinstance` tests of a module that is compiled in place: they alone tell what it is."""
        for call in self.scope.asked:
            if len(call.args) == 2 and type(receiver) is ast.Name and call.args[0] == receiver.id:
                self.scope.calls.append(call)

    def subscript(self, node: ast.Subscript, depth: int) -> Value:
        base = self.value(node.value, depth - 1)
        self.visit(node.slice)
        return None if base is None or depth <= 0 else ("item", base, index_of(node.slice))

    def inner(self, node: ast.Await | ast.Starred, depth: int) -> Value:
        return self.value(node.value, depth)

    def sequence(self, node: ast.Tuple | ast.List, depth: int) -> Value:
        items = node.elts
        if depth <= 0:
            self.many(items)
            return None
        if len(items) > MOST_LITERALS and not may_name_code(items):
            self.many(items[MOST_LITERALS:])
            items = items[:MOST_LITERALS]
        return ("seq", self.values(items, depth - 1))

    def mapping(self, node: ast.Dict, depth: int) -> Value:
        items: list[tuple[str, Value]] = []
        most = len(node.values) if may_name_code(node.values) else 2 * MOST_LITERALS
        for key, item in zip(node.keys, node.values):
            text = key.value if type(key) is ast.Constant and type(key.value) is str else None
            if key is not None and text is None:
                self.visit(key)
            value = self.value(item, depth - 1 if text is not None else 0)
            if text is not None and len(items) < most:
                items.append((text, value))
        if len(items) < len(node.values):
            items.append(("", None))  # there are entries of which the keys are not known
        return ("map", tuple(items)) if depth > 0 else None

    def conditional(self, node: ast.IfExp, depth: int) -> Value:
        self.visit(node.test)
        here = self.context
        values = []
        for part, truth in ((node.body, True), (node.orelse, False)):
            if type(part) is not ast.Constant:
                guard = answered(node.test, None, self.scope, truth=truth)
                if guard is not None:
                    self.context = self.scope.push_guard(here, guard, part, part)
            calls = len(self.scope.calls)
            values.append(self.value(part, depth))  # an arm stands where the whole does: a chain of them is no deeper
            if len(self.scope.calls) > calls:
                self.scope.arms.append((node.test, truth, part))
            self.context = here
        if is_moved_arm(values[0], values[1]):
            del values[1]
        return either(values) if depth > 0 else None

    def choice(self, node: ast.BoolOp, depth: int) -> Value:
        values = []
        for place, item in enumerate(node.values):
            calls = len(self.scope.calls)
            values.append(self.value(item, depth - 1))
            if place and len(self.scope.calls) > calls:
                is_and = type(node.op) is ast.And
                self.scope.arms += [(before, is_and, item) for before in node.values[:place]]
        return either(values) if depth > 0 else None

    def operation(self, node: ast.BinOp, depth: int) -> Value:
        # Sums of strings may be thousands long: walked in a loop, not by recursion.
        left: ast.expr = node
        while type(left) is ast.BinOp:
            self.visit(left.right)
            left = left.left
        self.visit(left)
        if depth <= 0:
            return None
        is_sum = type(node.op) is ast.Add and type(left) in MAYBE_LISTS and left is node.left
        both = joined(node, self.scope.binds, depth) if is_sum else ()
        return ("seq", both) if both else text_template(node)

    def unary(self, node: ast.UnaryOp, _depth: int) -> Value:
        self.visit(node.operand)
        return None

    def compare(self, node: ast.Compare, _depth: int) -> Value:
        self.visit(node.left)
        self.many(node.comparators)
        return None

    def formatted(self, node: ast.JoinedStr, depth: int) -> Value:
        for part in node.values:
            if type(part) is ast.FormattedValue:
                self.visit(part.value)
                if part.format_spec is not None:
                    self.visit(part.format_spec)
        return text_template(node) if depth > 0 else None

    def named(self, node: ast.NamedExpr, depth: int) -> Value:
        value = self.value(node.value, depth or DEPTH)
        self.bind(node.target, value)
        return value

    def yielded(self, node: ast.Yield | ast.YieldFrom, _depth: int) -> Value:
        scope = self.scope
        scope.is_generator = True
        if node.value is not None:
            value = self.value(node.value, DEPTH)
            scope.yields.append((value if type(node) is ast.Yield else ("each", None, value), self.context))
        return None

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, depth: int) -> Value:
        scope, here = self.scope, self.context
        first: Value = None
        for number, generator in enumerate(node.generators):
            iterable = self.value(generator.iter, DEPTH)
            first = iterable if number == 0 else first
            self.target(generator.target)
            targets = names_in(generator.target)
            self.bind_each(generator.target, iterable)
            header = f"for {' '.join(targets)[:HEADER_LENGTH]} in {path_of(generator.iter) or '...'}"
            scope.loops.append(
                record(
                    LoopFacts,
                    (node.lineno, node.col_offset, "comprehension", targets, iterable, header, self.context),
                )
            )
            self.context = scope.push(self.context, "loop", len(scope.loops) - 1, node, node)
            self.many(generator.ifs)
        element: Value = None
        if type(node) is ast.DictComp:
            self.visit(node.key)
            element = self.value(node.value, depth - 1)
        else:
            element = self.value(node.elt, depth - 1)  # type: ignore[union-attr]
        self.context = here
        if depth <= 0:
            return None
        return ("table" if type(node) is ast.DictComp else "each", element, cut(first, depth - 1))

    def lambda_(self, node: ast.Lambda, depth: int) -> Value:
        qualname = lambda_name(node)
        facts = FunctionFacts(
            qualname,
            node.lineno,
            node.end_lineno or node.lineno,
            self.owner,
            "",
            params=self.parameters(node.args),
            binds=NOTHING,
            annotations=NOTHING,
            computed=NOTHING,
        )
        facts.put_off(Unread(node))
        inner = Growing(facts, [])
        self.summary.functions[qualname] = facts
        before = self.scope, self.context, self.owner
        self.scope, self.context, self.owner = inner, -1, qualname
        inner.returns[self.value(node.body, DEPTH)] = None
        inner.told.note(node.body, inner, -1)
        self.scope, self.context, self.owner = before
        inner.finish(self.once)
        return ("lambda", qualname) if depth > 0 else None


_Handler = Callable[..., Value]
HANDLERS: dict[type, _Handler] = {
    **dict.fromkeys(ast.expr.__subclasses__(), Expressions.children),
    ast.Name: Expressions.name,
    ast.Attribute: Expressions.attribute,
    ast.Call: Expressions.call,
    ast.Constant: Expressions.constant,
    ast.Subscript: Expressions.subscript,
    ast.Await: Expressions.inner,
    ast.Starred: Expressions.inner,
    ast.Tuple: Expressions.sequence,
    ast.List: Expressions.sequence,
    ast.Dict: Expressions.mapping,
    ast.IfExp: Expressions.conditional,
    ast.BoolOp: Expressions.choice,
    ast.BinOp: Expressions.operation,
    ast.UnaryOp: Expressions.unary,
    ast.Compare: Expressions.compare,
    ast.JoinedStr: Expressions.formatted,
    ast.NamedExpr: Expressions.named,
    ast.Yield: Expressions.yielded,
    ast.YieldFrom: Expressions.yielded,
    ast.ListComp: Expressions.comprehension,
    ast.SetComp: Expressions.comprehension,
    ast.GeneratorExp: Expressions.comprehension,
    ast.DictComp: Expressions.comprehension,
    ast.Lambda: Expressions.lambda_,
}
