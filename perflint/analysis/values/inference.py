"""Kinds of expressions, on demand: `Inference(tree, program).kind(node)`.

An expression's kind follows from the definitions that reach its names (`syntax.flow`), from what libraries promise
(`pytorch` tables, through `library` and `methods`), and from the project's own functions and classes: what stands in
another file is asked of that file's inference (`siblings`). Everything is remembered per node; recursion ends in
`NEVER`, the value that adds nothing to a join.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

from perflint.analysis.evidence import looks_like_loader
from perflint.analysis.names.module_names import is_dotted
from perflint.analysis.names.refs import (
    CLASS,
    EXTERNAL,
    EXTERNAL_INSTANCE,
    FUNCTION,
    INSTANCE,
    MODULE_REF,
    Ref,
    Refs,
    Scope,
)
from perflint.analysis.values import attributes, displays, library, operations, promises, tensor_parts, type_aliases
from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.calls import Calls
from perflint.analysis.values.classes import Classes
from perflint.analysis.values.decided import Decided
from perflint.analysis.values.definitions import Definitions
from perflint.analysis.values.filling import Filling, is_empty_dict, is_placeholder
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.imported import exported
from perflint.analysis.values.joining import Joining
from perflint.analysis.values.keyed_stores import for_key
from perflint.analysis.values.kind import (
    DTYPE,
    NAMED_LOADER,
    NUMBER,
    SHAPE,
    STRING,
    UNKNOWN,
    Device,
    Kind,
    Place,
    Tag,
    join,
    sequence,
    tensor,
)
from perflint.analysis.values.linked import Linked, program_of
from perflint.analysis.values.narrowing import Narrowing
from perflint.analysis.values.parameters import Parameters
from perflint.analysis.values.siblings import Siblings
from perflint.finding import Confidence
from perflint.ir.notation import source_of
from perflint.ir.summary import MODULE
from perflint.syntax.bindings import Binding, Definition
from perflint.syntax.flow import Flow
from perflint.syntax.tree import FunctionNode, Tree

_Node = TypeVar("_Node", ast.expr, Definition)
#: Attributes that are the same of whatever has them, so that nobody need know what that is.
_OF_WHATEVER = {
    "shape": SHAPE,
    "dtype": DTYPE,
    "ndim": NUMBER,
    # What an autograd function's forward put aside for its backward.
    "saved_tensors": sequence(tensor(Place.MODULE)),
}
#: What may have got new items since it was bound.
_FILLED = frozenset({Tag.BATCH, Tag.MAPPING, Tag.SEQUENCE, Tag.INSTANCE, Tag.UNKNOWN})
#: Comparisons that give a bool of the host for whatever they compare.
_HOST_ANSWERS = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


class Inference:
    """Kinds of one file's expressions. The nodes asked about must be linked (`tree.link`)."""

    def __init__(
        self,
        tree: Tree,
        program: Linked | None = None,
        flow: Flow | None = None,
        siblings: Siblings | None = None,
    ) -> None:
        self.tree = tree
        self.path = tree.source.path
        self.flow = flow or Flow(tree)
        self.program = program or program_of(self.path, tree.module, tree.source.lines)
        self.siblings = siblings or Siblings(self.program)
        self.siblings.add(self)
        self.queries = self.siblings.queries
        self.classes = Classes(self)
        self.narrowing = Narrowing(self.tree, self.flow, self.eval, self.classes.instance)
        self.filling = Filling(self)
        self.parameters = Parameters(self, self.classes)
        self.calls = Calls(self, self.classes, self.parameters, self.narrowing)
        self.decided = Decided(self)
        self.joining = Joining(self)
        self.definitions = Definitions(self)
        self._memo: dict[int, Kind] = {}
        self._promised: dict[tuple[str, Scope], Kind] = {}

    def at(self, path: str) -> Inference | None:
        """The inference of another file of the program, None where its text is not at hand."""
        return self if path == self.path else self.siblings.at(path)

    def close(self) -> None:
        """Let go of all that was worked out, in this file and in others."""
        self.siblings.close()

    def size(self) -> int:
        """How many answers are remembered."""
        return len(self._memo) + self.calls.size()

    def let_go(self) -> None:
        """The parts know each other, so nothing would be freed without the garbage collector, which has to look at
        everything to find it.
        """
        for part in (
            self.classes,
            self.parameters,
            self.narrowing,
            self.filling,
            self.decided,
            self.joining,
            self.definitions,
            self.calls.defaults,
            self.calls,
        ):
            vars(part).clear()
        vars(self).clear()

    def kind(self, node: ast.expr, frame: Frame | None = None) -> Kind:
        """What `node` is, in one call of its function where a frame says which. Never raises for valid trees; what is
        not plain to see is `UNKNOWN`.
        """
        found = self._asked(node, frame)
        return UNKNOWN if found.tag is Tag.NEVER else found

    def is_impossible(self, node: ast.expr) -> bool:
        """Whether no value comes to be here: of all that is given, the tests on the way leave none."""
        return self._asked(node, None).tag is Tag.NEVER

    def _asked(self, node: ast.expr, frame: Frame | None) -> Kind:
        try:
            return self.eval(node, frame)
        except RecursionError:
            if self.queries.is_evaluating:
                raise  # whoever asked first begins anew
            self.queries.abandon()
            return UNKNOWN

    def qualified(self, node: ast.expr) -> str:
        """The dotted name of the library function, class or module that `node` names (`torch.nn.Linear`), however it
        was imported; empty for anything else.
        """
        kind = self.kind(node)
        return kind.qualified if kind.tag in (Tag.FUNCTION, Tag.CLASS) and not kind.path else ""

    def names_all(self, call: ast.Call) -> bool:
        """Whether the names of all arguments that a call gives by name are known."""
        return self.calls.arguments(call, None).named

    def bases(self, kind: Kind) -> tuple[str, ...]:
        """Dotted names of the library classes that an instance's or a class's own class derives from."""
        if kind.path:
            return self.classes.library_bases(Ref(CLASS, kind.path, kind.qualified))
        return (kind.qualified,) if kind.qualified else ()

    def origins(self, node: ast.expr, depth: int = 8) -> list[ast.expr]:
        """The expressions that a value comes from, through names of this file: for a name bound to
        `DataLoader(...)`, that call. An expression that is no name is its own origin.
        """
        if depth <= 0 or not isinstance(node, (ast.Name, ast.Attribute)):
            return [node]
        found: list[ast.expr] = []
        for definition in self._definitions_for(node):
            if definition.binding in (Binding.ASSIGN, Binding.WALRUS) and definition.value is not None:
                if not definition.path:
                    found += self.origins(definition.value, depth - 1)
        return found or [node]

    def _definitions_for(self, node: ast.Name | ast.Attribute) -> tuple[Definition, ...]:
        if isinstance(node, ast.Name):
            return self.flow.definitions(node)
        stores, _ = self.flow.definitions_of(node)
        if stores:
            return stores
        base = self.kind(node.value)
        return self.classes.attributes.definitions(base, node.attr) if base.path == self.path else ()

    # Evaluation.

    def eval(self, node: ast.expr, frame: Frame | None) -> Kind:
        if node.__class__ is ast.Constant:
            return operations.constant(node.value)
        memo = self._memo if frame is None else frame.memo
        key = id(node)
        if key in memo:
            return memo[key]
        return self.queries.ask((key, id(frame)), memo, key, self._eval, node, frame)

    def _guarded(self, node: _Node, frame: Frame | None, evaluate: Callable[[_Node, Frame | None], Kind]) -> Kind:
        memo = self._memo if frame is None else frame.memo
        key = id(node)
        if key in memo:
            return memo[key]
        return self.queries.ask((key, id(frame)), memo, key, evaluate, node, frame)

    def _eval(self, node: ast.expr, frame: Frame | None) -> Kind:
        match node:
            case ast.Name():
                return self._name(node, frame)
            case ast.Attribute():
                return self._attribute(node, frame)
            case ast.Call():
                return self.calls.node(node, frame)
            case ast.Subscript():
                return self._subscript(node, frame)
        if isinstance(node, ast.BinOp):
            made = operations.binary(self.eval(node.left, frame), node.op, self.eval(node.right, frame))
            return tensor_parts.with_literal(made, node, lambda part: self.eval(part, frame))
        if isinstance(node, ast.UnaryOp):
            return operations.unary(node.op, self.eval(node.operand, frame))
        if isinstance(node, ast.Compare):
            if all(isinstance(op, _HOST_ANSWERS) for op in node.ops) or _is_with_none(node):
                return NUMBER  # whatever the operands are
            others = [self.eval(item, frame) for item in node.comparators]
            return operations.compare(self.eval(node.left, frame), node.ops, others)
        if isinstance(node, ast.BoolOp):
            return join(self.eval(value, frame) for value in node.values)
        if isinstance(node, ast.IfExp):
            return self.decided.conditional(node, frame)
        if isinstance(node, ast.JoinedStr):
            return operations.formatted(node)
        return self._display(node, frame)

    def _display(self, node: ast.expr, frame: Frame | None) -> Kind:
        """Literals of containers, comprehensions and the rarer expressions."""
        if isinstance(node, (ast.NamedExpr, ast.Starred)):
            return self.eval(node.value, frame)
        if isinstance(node, ast.Lambda):
            return Kind(Tag.FUNCTION, qualified=self.classes.name_lambda(node), path=self.path)
        return displays.kind_of(node, frame, self.eval)

    def _name(self, node: ast.Name, frame: Frame | None) -> Kind:
        if not isinstance(node.ctx, ast.Load):
            bound = self.flow.definition_at(node)
            return self.definition_kind(bound, frame) if bound is not None else UNKNOWN
        definitions = self.flow.definitions(node)
        if not definitions:
            return self._free(node)
        one = len(definitions) == 1
        found = self.definition_kind(definitions[0], frame) if one else self.joining.of(definitions, frame)
        if found is UNKNOWN and looks_like_loader(node.id):
            found = NAMED_LOADER
        if found.tag in (Tag.STRING, Tag.DEVICE) and found.device is not None and found.device.may_be_cuda:
            found = found.but(device=Device.MAYBE) if self.joining.may_be_replaced(definitions) else found
        if found.tag is Tag.SEQUENCE and one:
            found = self.filling.with_appended(definitions[0], found, frame)
        if found.tag in _FILLED or _may_be_mapping(found):
            empty = one and (is_empty_dict(definitions[0]) or is_placeholder(definitions[0]))
            found = self.filling.with_new_items(node, found, frame, empty=empty)
        if found.tag is Tag.MAPPING or (found.tag in (Tag.BATCH, Tag.TENSOR) and found.on_host):
            found = self.filling.with_keys(node, found, frame)
        if found.tag is Tag.INSTANCE and found.path:
            found = self.filling.with_attributes(node, found, frame)
        if found.tag is Tag.BATCH and found.on_host:
            found = self.filling.after_calls(node, found, frame)
        return self.narrowing.narrow(node, found, frame)

    def _free(self, node: ast.Name) -> Kind:
        """A builtin, or a name that came with a star import."""
        summary = self.program.summaries.get(self.path)
        if summary is not None and summary.stars:
            return self.of_refs(self.program.resolver.refs(node.id, Scope(self.path, MODULE)))
        return library.named(f"builtins.{node.id}")

    def definition_kind(self, definition: Definition, frame: Frame | None = None) -> Kind:
        """The value a definition gives its name."""
        inner = frame if frame is not None and _within(frame.function, definition.node) else None
        return self._guarded(definition, inner, self.definitions.kind)

    def taken_from(self, definition: Definition) -> Kind:
        """What a definition takes its value out of: the row for `height` of `for height, width in sizes`."""
        binding, value = definition.binding, definition.value
        if value is None:
            return UNKNOWN
        if binding in (Binding.FOR, Binding.COMPREHENSION):
            whole = self.kind(value)
            return operations.unpack(self.iterate(whole), definition.path[:-1]) if definition.path else whole
        if binding is not Binding.ASSIGN or not definition.path:
            return UNKNOWN
        return operations.unpack(self.kind(value), definition.path[:-1])

    def iterate(self, kind: Kind) -> Kind:
        """What one turn of a loop over the value gives, through the project's own `__iter__` where there is one."""
        if kind.path and kind.tag in (Tag.INSTANCE, Tag.DATASET, Tag.LOADER, Tag.MODULE):
            found = self.classes.iterated(kind)
            if found is not None and (found.known or kind.element is None):
                return found
        return operations.iterate(kind)

    def of_module(self, name: str) -> Kind | None:
        """A name of this file's module as others see it; None where it is not bound there, or is imported."""
        return self.bound_in(MODULE, name)

    def bound_in(self, qualname: str, key: str) -> Kind | None:
        """What a function of this file, or its module's body, binds a name or `object.attribute` to; None where not."""
        node = self.tree.module if qualname == MODULE else self.classes.function_node(qualname)
        if node is None:
            return None
        given = [item for item in self.flow.bindings(node).by_key.get(key, ()) if _gives_value(item)]
        return self.joining.of(tuple(given), None) if given else None

    # Symbols.

    def of_refs(self, refs: Refs) -> Kind:
        return join(self.of_ref(ref) for ref in refs) if refs else UNKNOWN

    def of_ref(self, ref: Ref) -> Kind:
        """A thing that names refer to, as a kind."""
        if ref.kind == EXTERNAL:
            return library.named(ref.name)
        if ref.kind == FUNCTION:
            return Kind(Tag.FUNCTION, qualified=ref.name, path=ref.path)
        if ref.kind == CLASS:
            return Kind(Tag.CLASS, qualified=ref.name, path=ref.path)
        if ref.kind == MODULE_REF:
            return Kind(Tag.INSTANCE, qualified=MODULE, path=ref.path)
        if ref.kind == INSTANCE:
            return self.classes.instance(Ref(CLASS, ref.path, ref.name))
        if ref.kind == EXTERNAL_INSTANCE:
            promised = promises.library_instance(ref.name)
            if promised.tag is Tag.TENSOR:
                return promised  # annotated, or made by the class: where it is cannot be told from here
            made = library.call(ref.name, Arguments(exact=False))
            # What was made on the host may have been moved since.
            return made.but(place=Place.UNKNOWN) if made.tag is Tag.TENSOR and made.place is Place.HOST else made
        return UNKNOWN

    # Attributes and items.

    def _attribute(self, node: ast.Attribute, frame: Frame | None) -> Kind:
        found = self._attribute_value(node, frame)
        # What nothing tells but its name: `self.train_loader` that a factory has made.
        if found is UNKNOWN and looks_like_loader(node.attr):
            return NAMED_LOADER
        return self.narrowing.narrow(node, found, frame)

    def _attribute_value(self, node: ast.Attribute, frame: Frame | None) -> Kind:
        stores, through = displays.telling_stores(node, self.flow, self.tree, self.decided.runs)
        kinds: list[Kind] = []
        for item in stores:
            kinds.append(self.definition_kind(item, frame))
            if kinds[-1] is UNKNOWN:
                return UNKNOWN  # whatever the others are
        if kinds and not through:
            return self._stored(kinds, stores)
        told = _OF_WHATEVER.get(node.attr)
        if told is not None and not kinds and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            return told
        if node.attr == "type" and isinstance(node.value, ast.Attribute) and node.value.attr == "device" and not kinds:
            return STRING
        base = self.eval(node.value, frame)
        found = self.member(base, node.attr)
        if not kinds:
            return found
        return self._stored([*kinds, found], stores)

    @staticmethod
    def _stored(kinds: list[Kind], stores: tuple[Definition, ...]) -> Kind:
        if any(item.binding is Binding.AUGMENTED for item in stores) and any(kind.is_tensor for kind in kinds):
            kinds = [kind for kind in kinds if kind.tag is not Tag.NUMBER]
        return join(kinds)

    def member(self, base: Kind, name: str) -> Kind:
        """`base.name`."""
        if base.tag in (Tag.FUNCTION, Tag.CLASS) and not base.path:
            return library.named(f"{base.qualified}.{name}")
        if base.path:
            if base.qualified == MODULE:
                return exported(base.path, name, self)
            found = base.item(name) or self.classes.member(base, name)
            if found is not None:
                return found
        return attributes.attribute(base, name)

    def _subscript(self, node: ast.Subscript, frame: Frame | None) -> Kind:
        stores, through = self.flow.definitions_of(node)
        if stores and isinstance(node.slice, ast.Name):
            # `batch[key] = batch[key].to(device)`: each turn of the loop has a key of its own.
            around = {id(outer) for outer in self.tree.ancestors(node)}
            others = tuple(item for item in stores if id(item.value) not in around)
            stores, through = others, through or len(others) < len(stores)
        base = self.eval(node.value, frame)
        if stores and _is_key(node) and isinstance(node.value, ast.Name):
            stores, left = for_key(node, stores, base, self.flow, self.tree), len(stores)
            through = through or len(stores) < left
        # What is written into a tensor is copied to where the tensor lives.
        copied = base.tag is Tag.TENSOR and not _is_key(node)
        kinds = [] if copied else [self.definition_kind(item, frame) for item in stores]
        if kinds and not through:
            return self._stored(kinds, stores)
        if base.tag is Tag.CLASS:
            return base  # `DataLoader[int]` is the class all the same
        index = node.slice
        if (
            isinstance(index, ast.UnaryOp)
            and isinstance(index.op, ast.USub)
            and isinstance(index.operand, ast.Constant)
        ):
            value = index.operand.value
            key: object = -value if isinstance(value, int) else None
        else:
            key = index.value if isinstance(index, ast.Constant) else None
        plain = key if isinstance(key, (int, str)) and not isinstance(key, bool) else None
        if isinstance(plain, str) and base.tag is Tag.MAPPING and base.item(plain) is None:
            kept = self.classes.attributes.item_stores(node, plain)
            if kept:
                return join(self.definition_kind(item) for item in kept).but(fresh=False)
        if base.path and base.tag in (Tag.MODULE, Tag.INSTANCE):
            taken = self.classes.indexed(base, lambda: self.eval(index, frame))
            if taken is not None:
                return self._stored([*kinds, taken], stores) if kinds else taken
        by = self.eval(index, frame) if base.tag is Tag.TENSOR and _selects(index) else UNKNOWN
        found = operations.index(base, plain, is_slice=isinstance(index, ast.Slice), by=by)
        if base.is_tensor and isinstance(index, ast.Tuple):
            found = found.but(rank=tensor_parts.rank_of_cut(index, base.rank, lambda part: self.eval(part, frame)))
        return self._stored([*kinds, found], stores) if kinds else found

    # Promises.

    def annotated(self, node: ast.expr) -> Kind:
        """The kind an annotation promises."""
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else source_of(node)
        return self.promised(text, Scope(self.path, MODULE))

    def promised(self, text: str, scope: Scope) -> Kind:
        """The kind that an annotation's text promises, with its names looked up in `scope`."""
        known = self._promised.get((text, scope))
        if known is None:
            known = self._promised[text, scope] = self.promise(text, scope, type_aliases.DEEPEST)
        return known

    def promise(self, text: str, scope: Scope, depth: int) -> Kind:
        """The same, through so many aliases of types."""

        def instance_of(name: str) -> Kind:
            if not is_dotted(name):
                return UNKNOWN
            refs = self.program.resolver.refs(name, scope) if scope.path in self.program.summaries else ()
            alias = type_aliases.find(name, self) if depth and type_aliases.may_be(refs, scope, self.path) else None
            if alias is not None:
                return alias.inference.promise(alias.text, Scope(alias.inference.path, MODULE), depth - 1)
            kinds = []
            for ref in refs:
                if ref.kind == CLASS:
                    kinds.append(self.classes.instance(ref))
                elif ref.kind == EXTERNAL:
                    kinds.append(promises.library_instance(ref.name))
            return join(kinds) if kinds else UNKNOWN

        return promises.kind_of(text, instance_of)


def _gives_value(definition: Definition) -> bool:
    return definition.binding not in (Binding.IMPORT, Binding.FUNCTION, Binding.CLASS, Binding.DELETE)


def _is_with_none(node: ast.Compare) -> bool:
    """`cache == None`, which even a tensor answers by a plain False."""
    values = (node.left, *node.comparators)
    return len(values) == 2 and any(isinstance(item, ast.Constant) and item.value is None for item in values)


def _selects(index: ast.expr) -> bool:
    """Whether an index may be a tensor, or a number that is no literal."""
    return not isinstance(index, (ast.Slice, ast.Tuple, ast.Constant))


def _may_be_mapping(kind: Kind) -> bool:
    """Parts of a loader's batch are tensors as a rule, and mappings at times."""
    return kind.tag is Tag.TENSOR and kind.certainty < Confidence.HIGH


def _is_key(node: ast.Subscript) -> bool:
    """`x["name"]`: no tensor has such items."""
    return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)


def _within(function: FunctionNode | ast.Lambda, node: ast.AST) -> bool:
    line: int = getattr(node, "lineno", 0) or getattr(getattr(node, "iter", None), "lineno", 0)
    return function.lineno <= line <= (function.end_lineno or function.lineno)
