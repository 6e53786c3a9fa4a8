"""What tests around a use say of a value: `isinstance`, `is None`, and the arms that cannot be reached."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from perflint.analysis.names.refs import CLASS, Ref
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.kind import ARRAY, NEVER, NUMBER, STRING, Kind, Tag, mapping, sequence, tensor
from perflint.analysis.values.operations import part_of
from perflint.finding import Confidence
from perflint.ir.calls import is_constant
from perflint.syntax.bindings import key_of
from perflint.syntax.flow import Flow
from perflint.syntax.tree import Tree
from perflint.syntax.walk import STATEMENTS, block_with

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_JUMPS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_TAGS = {
    "torch.Tensor": Tag.TENSOR,
    "builtins.dict": Tag.MAPPING,
    "builtins.list": Tag.SEQUENCE,
    "builtins.tuple": Tag.SEQUENCE,
    "builtins.set": Tag.SEQUENCE,
    "builtins.str": Tag.STRING,
    "builtins.int": Tag.NUMBER,
    "builtins.float": Tag.NUMBER,
    "builtins.bool": Tag.NUMBER,
    "numpy.ndarray": Tag.ARRAY,
    "torch.nn.Module": Tag.MODULE,
}
_LAST_TAGS = {
    "Mapping": Tag.MAPPING,
    "MutableMapping": Tag.MAPPING,
    "OrderedDict": Tag.MAPPING,
    "Dict": Tag.MAPPING,
    "UserDict": Tag.MAPPING,
    "Sequence": Tag.SEQUENCE,
    "List": Tag.SEQUENCE,
    "Tuple": Tag.SEQUENCE,
    "Iterable": Tag.SEQUENCE,
    "Number": Tag.NUMBER,
}
_STRUCTURES = (Tag.BATCH, Tag.OUTPUT)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
#: Expressions that evaluate some of their parts only after a test.
_CONDITIONAL = frozenset({ast.IfExp, ast.BoolOp, *_COMPREHENSIONS})
#: A test, and whether it is true.
_Test: TypeAlias = tuple[ast.expr, bool]
#: What a test asks about: a name, or an attribute of one.
_Subject: TypeAlias = ast.Name | ast.Attribute
#: A test with what it asks about.
Fact: TypeAlias = tuple[ast.expr, bool, _Subject]


class Narrowing:
    """Asks for the kinds of the tests' own parts with `evaluate`."""

    def __init__(
        self,
        tree: Tree,
        flow: Flow,
        evaluate: Callable[[ast.expr, Frame | None], Kind],
        instance: Callable[[Ref], Kind],
    ) -> None:
        self.tree = tree
        self.flow = flow
        self.evaluate = evaluate
        self.instance = instance
        self._known: dict[int, list[Fact]] = {}
        #: By block, for each statement of it, what ran before it tells.
        self._blocks: dict[int, dict[int, list[Fact]]] = {}

    def narrow(self, use: _Subject, kind: Kind, frame: Frame | None) -> Kind:
        """`kind`, the joined kind of the definitions that reach `use`, after the tests on the way to it."""
        if kind.tag is Tag.NEVER:
            return kind
        statement, always = self.tree.standing(use)
        facts = self._facts_around(statement) if always else self._facts(use)
        if not facts:
            return kind
        excluded: set[Tag] = set()
        for test, truth, subject in facts:
            if not _are_alike(subject, use) or not self._same(subject, use):
                continue
            kind = self._apply(kind, test, excluded, truth=truth, frame=frame)
        return kind

    def possible(self, node: ast.AST, frame: Frame | None) -> bool:
        """Whether the tests around `node` leave anything of the values they ask about."""
        for test, truth, subject in self._facts(node):
            if not self._type_test(test) or not isinstance(subject, ast.Name):
                continue  # an attribute holds more than what the code at hand has put there
            before = self.evaluate(subject, frame)
            if before.tag is Tag.NEVER or self._apply(before, test, set(), truth=truth, frame=frame).tag is Tag.NEVER:
                return False
        return True

    @staticmethod
    def _type_test(test: ast.expr) -> bool:
        return isinstance(test, ast.Call)

    def _same(self, subject: _Subject, use: _Subject) -> bool:
        """Whether the test and the use see the same definitions."""
        if subject is use:
            return False
        if isinstance(subject, ast.Attribute) or isinstance(use, ast.Attribute):
            return self._stores(subject) == self._stores(use)
        definitions = self.flow.definitions
        if isinstance(subject.ctx, ast.Store):
            bound = self.flow.definition_at(subject)
            left = {id(bound.node)} if bound is not None else set()
        else:
            left = {id(item.node) for item in definitions(subject)}
        return left == {id(item.node) for item in definitions(use)}

    def _stores(self, path: _Subject) -> tuple[set[int], bool]:
        stores, through = self.flow.definitions_of(path)
        return {id(item.node) for item in stores}, through

    def _facts(self, node: ast.AST) -> list[Fact]:
        """Tests of a name that are known to be true or false where `node` is evaluated, outermost last."""
        statement, always = self.tree.standing(node)
        if always:
            return self._facts_around(statement)
        found: list[Fact] = []
        parent = self.tree.parent
        child, outer = node, parent(node)
        while outer is not None and type(child) not in STATEMENTS:
            kind = type(outer)
            if kind in _CONDITIONAL:
                found += _facts(_inside_expression(outer, child))
            elif kind is ast.Lambda:
                return found
            child, outer = outer, parent(outer)
        around = self._facts_around(child)
        return found + around if found else around

    def _facts_around(self, statement: ast.AST) -> list[Fact]:
        """The same, of what stands around a statement."""
        key = id(statement)
        if key in self._known:
            return self._known[key]
        # A chain of `elif` may be hundreds long: gone up in a loop, not by recursion.
        passed: list[tuple[ast.AST, ast.AST]] = []
        found: list[Fact] | None = None
        while found is None:
            outer = self.tree.parent(statement)
            if outer is None:
                found = []
            else:
                passed.append((statement, outer))
                found = [] if isinstance(outer, _SCOPES) else self._known.get(id(outer))
                statement = outer
        for inner, outer in reversed(passed):
            tests, earlier = _facts(_around_statement(outer, inner)), self._earlier(outer, inner)
            if tests or earlier:
                found = [*tests, *earlier, *found]
            self._known[id(inner)] = found
        return found

    def _earlier(self, parent: ast.AST, child: ast.AST) -> list[Fact]:
        """`if isinstance(x, T): return ...` and `assert` before the statement `child` in its block, the last first."""
        if type(child) not in STATEMENTS:
            return []
        block = block_with(parent, child)
        if not block:
            return []
        known = self._blocks.get(id(block))
        if known is None:
            known = self._blocks[id(block)] = _told_in(block)
        return known[id(child)]

    def _apply(self, kind: Kind, test: ast.expr, excluded: set[Tag], *, truth: bool, frame: Frame | None) -> Kind:
        if isinstance(test, ast.Compare):
            positive = isinstance(test.ops[0], ast.Is)
            if positive is truth:
                return kind
            return kind.but(optional=False) if kind.optional else kind
        if not isinstance(test, ast.Call):
            return kind.but(optional=False) if truth and kind.optional and kind.tag is not Tag.TENSOR else kind
        wanted = self._wanted(test, frame)
        if not wanted:
            return self._of_class(kind, test, frame) if truth else kind
        if truth:
            return _only(kind, wanted)
        excluded |= wanted
        if kind.tag in wanted and None not in wanted:
            return NEVER
        if kind.tag in _STRUCTURES and Tag.TENSOR in excluded and excluded & {Tag.MAPPING, Tag.SEQUENCE}:
            # Neither a tensor nor a container: nothing that lives on a device.
            return NEVER
        return kind

    def _of_class(self, kind: Kind, test: ast.Call, frame: Frame | None) -> Kind:
        """What is an instance of one class of the project by `isinstance(layer, Block)`, where less was known."""
        if kind.path or kind.tag not in (Tag.UNKNOWN, Tag.MODULE, Tag.INSTANCE) or len(test.args) != 2:
            return kind
        if self.evaluate(test.func, frame).qualified != "builtins.isinstance":
            return kind
        cls = self.evaluate(test.args[1], frame)
        if cls.tag is not Tag.CLASS or not cls.path:
            return kind
        made = self.instance(Ref(CLASS, cls.path, cls.qualified))
        is_module = kind.tag is Tag.MODULE and made.tag is Tag.MODULE
        return made.but(place=kind.place, device=kind.device) if is_module else made

    def _wanted(self, test: ast.Call, frame: Frame | None) -> set[Tag]:
        """The tags a type test asks for; empty when it is not understood."""
        name = self.evaluate(test.func, frame).qualified
        if name == "torch.is_tensor":
            return {Tag.TENSOR}
        if name != "builtins.isinstance" or len(test.args) != 2:
            return set()
        types = test.args[1]
        nodes = types.elts if isinstance(types, ast.Tuple) else _alternatives(types)
        found: set[Tag] = set()
        for node in nodes:
            qualified = self.evaluate(node, frame).qualified
            tag = _TAGS.get(qualified) or _LAST_TAGS.get(qualified.rpartition(".")[2])
            if tag is None:
                return set()
            found.add(tag)
        return found


def _facts(tests: Iterable[_Test]) -> list[Fact]:
    return [(test, truth, subject) for test, truth in tests if (subject := _subject(test)) is not None]


def _inside_expression(outer: ast.AST, child: ast.AST) -> Iterator[_Test]:
    """The tests that `outer`, an expression, makes before it evaluates its part `child`."""
    if isinstance(outer, ast.IfExp):
        if child is not outer.test:
            yield from _split(outer.test, truth=child is outer.body)
    elif isinstance(outer, ast.BoolOp):
        for earlier in outer.values[: outer.values.index(child)]:  # type: ignore[arg-type]
            yield from _split(earlier, truth=isinstance(outer.op, ast.And))
    elif isinstance(outer, _COMPREHENSIONS) and not isinstance(child, ast.comprehension):
        for generator in outer.generators:
            for condition in generator.ifs:
                yield from _split(condition, truth=True)


def _around_statement(outer: ast.AST, child: ast.AST) -> Iterator[_Test]:
    """The tests that `outer` makes before it runs the statement `child`."""
    if isinstance(outer, ast.If):
        yield from _split(outer.test, truth=child in outer.body)
    elif isinstance(outer, ast.While) and child in outer.body:
        yield from _split(outer.test, truth=True)


def _alternatives(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_alternatives(node.left), *_alternatives(node.right)]
    return [node]


def _split(test: ast.expr, *, truth: bool) -> Iterator[_Test]:
    """The simple tests that `test` being true (or false) decides."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _split(test.operand, truth=not truth)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is truth:
            for value in test.values:
                yield from _split(value, truth=truth)
    elif isinstance(test, ast.Compare):
        if (
            len(test.ops) == 1
            and isinstance(test.ops[0], (ast.Is, ast.IsNot))
            and is_constant(test.comparators[0], None)
        ):
            yield test, truth
    elif isinstance(test, (ast.Call, ast.Name)):
        yield test, truth


def _are_alike(subject: _Subject, use: _Subject) -> bool:
    """Whether two paths are written with the same names."""
    if isinstance(subject, ast.Name) or isinstance(use, ast.Name):
        return isinstance(subject, ast.Name) and isinstance(use, ast.Name) and subject.id == use.id
    key = key_of(use)
    return subject.attr == use.attr and key is not None and key == key_of(subject)


def _subject(test: ast.expr) -> _Subject | None:
    """What a test asks about."""
    if isinstance(test, ast.Call):
        node: ast.expr | None = test.args[0] if test.args else None
    elif isinstance(test, ast.Compare):
        node = test.left
    else:
        node = test
    if isinstance(node, ast.NamedExpr):
        node = node.target
    return node if isinstance(node, (ast.Name, ast.Attribute)) else None


def _told_in(block: list[ast.stmt]) -> dict[int, list[Fact]]:
    """For each statement of a block, what is known because of those before it."""
    found: dict[int, list[Fact]] = {}
    told: list[Fact] = []
    for statement in block:
        found[id(statement)] = told
        if isinstance(statement, (ast.Assert, ast.If)):
            facts = _facts(_decided_by(statement))
            told = [*facts, *told] if facts else told
    return found


def _decided_by(statement: ast.stmt) -> Iterator[_Test]:
    """The tests that are decided where a statement has run."""
    if isinstance(statement, ast.Assert):
        yield from _split(statement.test, truth=True)
    while isinstance(statement, ast.If) and isinstance(statement.body[-1], _JUMPS):
        yield from _split(statement.test, truth=False)
        # `elif` arms that leave as well.
        if len(statement.orelse) != 1 or not isinstance(statement.orelse[0], ast.If):
            break
        statement = statement.orelse[0]


def _only(kind: Kind, wanted: set[Tag]) -> Kind:
    """`kind` where it is known to be one of `wanted`."""
    if kind.tag in wanted:
        return kind.but(optional=False, certainty=max(kind.certainty, Confidence.MEDIUM))
    if kind.tag in _STRUCTURES or (kind.tag is Tag.TENSOR and kind.certainty < Confidence.HIGH):
        if kind.tag is Tag.TENSOR and not wanted & {Tag.STRING, Tag.NUMBER, Tag.ARRAY}:
            return NEVER
        return _as(kind, wanted)
    if kind.tag is Tag.UNKNOWN:
        return _as(kind, wanted)
    return NEVER


def _as(kind: Kind, wanted: set[Tag]) -> Kind:
    if len(wanted) > 1:
        return kind
    (tag,) = wanted
    if tag is Tag.TENSOR:
        return part_of(kind) if kind.tag in _STRUCTURES else tensor(kind.place, device=kind.device)
    if tag is Tag.MAPPING:
        return mapping(kind if kind.tag in _STRUCTURES else None)
    if tag is Tag.SEQUENCE:
        return sequence(kind if kind.tag in _STRUCTURES else None)
    return {Tag.STRING: STRING, Tag.NUMBER: NUMBER, Tag.ARRAY: ARRAY}.get(tag, Kind(tag))
