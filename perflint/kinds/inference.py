"""Kinds of expressions, on demand: `Inference(tree, program).kind(node)`.

An expression's kind follows from the definitions that reach its names (`source.flow`), from what libraries promise
(`pytorch` tables, through `library` and `methods`), and from the project's own functions and classes: those of this
file are evaluated as trees, those of other files from their summaries (`values`). Everything is remembered per node;
recursion ends in `NEVER`, the value that adds nothing to a join.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from perflint.finding import Confidence
from perflint.kinds import library, methods, operations, promises, transfers
from perflint.kinds.arguments import Arguments, Thunk, given
from perflint.kinds.classes import Classes
from perflint.kinds.kind import (
    DTYPE,
    NEVER,
    NONE,
    NUMBER,
    STRING,
    UNKNOWN,
    Device,
    Kind,
    Place,
    Tag,
    join,
    mapping,
    sequence,
)
from perflint.kinds.linked import Linked, program_of
from perflint.kinds.narrowing import Narrowing
from perflint.kinds.parameters import Parameters
from perflint.kinds.values import Values
from perflint.program.refs import CLASS, EXTERNAL, EXTERNAL_INSTANCE, FUNCTION, INSTANCE, MODULE_REF, Ref, Refs, Scope
from perflint.pytorch.names import canonical, last
from perflint.source.bindings import Binding, Definition, key_of
from perflint.source.flow import Flow
from perflint.source.tree import FunctionNode, Tree

#: Evaluations for one question. Beyond them the answer is unknown: code that needs more is not plain to see.
_BUDGET = 4_000
_DEPTH = 5
_DTYPES = frozenset(
    "float16 float32 float64 bfloat16 half float double int8 int16 int32 int64 uint8 int long short bool complex64 "
    "complex128 cfloat float8_e4m3fn float8_e5m2 uint16 uint32 uint64".split()
)
_MODULE = "<module>"
_EXECUTES = re.compile(r"^\s*exec\(|\bglobals\(\)", re.MULTILINE)
_Node = TypeVar("_Node", ast.expr, Definition)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(slots=True, eq=False)
class Frame:
    """One evaluation of a function's body for given arguments."""

    function: FunctionNode | ast.Lambda
    params: dict[str, Kind]
    memo: dict[int, Kind] = field(default_factory=dict)


class Inference:
    """Kinds of one file's expressions. The nodes asked about must be linked (`tree.link`)."""

    def __init__(self, tree: Tree, program: Linked | None = None, flow: Flow | None = None) -> None:
        self.tree = tree
        self.path = tree.source.path
        self.flow = flow or Flow(tree)
        self.program = program or program_of(self.path, tree.module, tree.source.lines)
        self.classes = Classes(self)
        self.parameters = Parameters(self)
        self.narrowing = Narrowing(self)
        self.values = Values(self)
        self._memo: dict[int, Kind] = {}
        self._active: dict[tuple[int, int], int] = {}
        self._lowest = 1 << 30
        self._spent = 0
        self._runs: dict[object, Kind] = {}
        self._running: dict[object, int] = {}
        self._default: Kind | bool | None = False

    # Questions.

    def kind(self, node: ast.expr) -> Kind:
        """What `node` is. Never raises for valid trees; what is not plain to see is `UNKNOWN`."""
        self._spent = 0
        try:
            found = self.eval(node, None)
        except RecursionError:
            self._active.clear()
            self._running.clear()
            found = UNKNOWN
        if found.tag is Tag.NEVER:
            found = UNKNOWN
        return found

    def qualified(self, node: ast.expr) -> str:
        """The dotted name of the library function, class or module that `node` names (`torch.nn.Linear`), however it
        was imported; empty for anything else.
        """
        kind = self.kind(node)
        return kind.qualified if kind.tag in (Tag.FUNCTION, Tag.CLASS) and not kind.path else ""

    def is_module_instance(self, kind: Kind) -> bool:
        return kind.tag is Tag.MODULE

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
        return self.classes.attribute_definitions(base, node.attr) if base.path == self.path else ()

    # Evaluation.

    def eval(self, node: ast.expr, frame: Frame | None) -> Kind:
        known = (self._memo if frame is None else frame.memo).get(id(node))
        return known if known is not None else self._guarded(node, frame, self._eval)

    def _guarded(self, node: _Node, frame: Frame | None, evaluate: Callable[[_Node, Frame | None], Kind]) -> Kind:
        """Evaluate once; what asks for itself on the way gets `NEVER`, which adds nothing to a join."""
        memo = self._memo if frame is None else frame.memo
        known = memo.get(id(node))
        if known is not None:
            return known
        key = (id(node), id(frame))
        position = self._active.get(key)
        if position is not None:
            self._lowest = min(self._lowest, position)
            return NEVER
        self._spent += 1
        if self._spent > _BUDGET:
            return UNKNOWN
        position = len(self._active)
        outer, self._lowest = self._lowest, 1 << 30
        self._active[key] = position
        try:
            found = evaluate(node, frame)
        finally:
            self._active.pop(key, None)
        # A result that leans on an evaluation still going on is right only for that evaluation.
        if self._lowest >= position and self._spent <= _BUDGET:
            memo[id(node)] = found
            self._lowest = outer
        else:
            self._lowest = min(self._lowest, outer)
        return found

    def _eval(self, node: ast.expr, frame: Frame | None) -> Kind:
        if isinstance(node, ast.Name):
            return self._name(node, frame)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, frame)
        if isinstance(node, ast.Call):
            return self._call(node, frame)
        if isinstance(node, ast.Constant):
            return constant(node.value)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, frame)
        if isinstance(node, ast.BinOp):
            return operations.binary(self.eval(node.left, frame), node.op, self.eval(node.right, frame))
        if isinstance(node, ast.UnaryOp):
            return operations.unary(node.op, self.eval(node.operand, frame))
        if isinstance(node, ast.Compare):
            others = [self.eval(item, frame) for item in node.comparators]
            return operations.compare(self.eval(node.left, frame), node.ops, others)
        if isinstance(node, ast.BoolOp):
            return join(self.eval(value, frame) for value in node.values)
        if isinstance(node, ast.IfExp):
            return join(
                self.eval(arm, frame) for arm in (node.body, node.orelse) if self.narrowing.possible(arm, frame)
            )
        if isinstance(node, ast.JoinedStr):
            return _formatted(node)
        return self._display(node, frame)

    def _display(self, node: ast.expr, frame: Frame | None) -> Kind:
        """Literals of containers, comprehensions and the rarer expressions."""
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            if any(isinstance(item, ast.Starred) for item in node.elts):
                return sequence(join(self._element(item, frame) for item in node.elts))
            items = [self.eval(item, frame) for item in node.elts]
            return sequence(items=items) if items else sequence(qualified="empty")
        if isinstance(node, ast.Dict):
            return self._dict(node, frame)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return sequence(self.eval(node.elt, frame))
        if isinstance(node, ast.DictComp):
            return mapping(self.eval(node.value, frame))
        if isinstance(node, ast.NamedExpr):
            return self.eval(node.value, frame)
        if isinstance(node, ast.Starred):
            return self.eval(node.value, frame)
        if isinstance(node, ast.Lambda):
            return Kind(Tag.FUNCTION, qualified=self.classes.name_lambda(node), path=self.path)
        return UNKNOWN

    def _element(self, item: ast.expr, frame: Frame | None) -> Kind:
        if isinstance(item, ast.Starred):
            return operations.iterate(self.eval(item.value, frame))
        return self.eval(item, frame)

    def _dict(self, node: ast.Dict, frame: Frame | None) -> Kind:
        items: list[tuple[str, Kind]] = []
        rest: list[Kind] = []
        for key, value in zip(node.keys, node.values):
            kind = self.eval(value, frame)
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                items.append((key.value, kind))
            elif key is None:
                rest.append(kind.element or UNKNOWN if kind.tag is Tag.MAPPING else operations.index(kind, None))
            else:
                rest.append(kind)
        if not rest:
            return mapping(items=items)
        return mapping(join([*rest, *(kind for _, kind in items)])).but(items=tuple(items))

    # Names.

    def _name(self, node: ast.Name, frame: Frame | None) -> Kind:
        if not isinstance(node.ctx, ast.Load):
            bound = self.flow.definition_at(node)
            return self.definition_kind(bound, frame) if bound is not None else UNKNOWN
        definitions = self.flow.definitions(node)
        if not definitions:
            return self._free(node)
        found = self._joined(definitions, frame)
        if found.device is Device.CUDA and found.tag in (Tag.STRING, Tag.DEVICE) and self._overridable(definitions):
            found = found.but(device=Device.MAYBE)
        if found.tag in (Tag.BATCH, Tag.MAPPING, Tag.SEQUENCE):
            found = self._with_new_items(node, found, frame)
        return self.narrowing.narrow(node, found, frame)

    def _free(self, node: ast.Name) -> Kind:
        """A builtin, or a name that came with a star import."""
        summary = self.program.summaries.get(self.path)
        if summary is not None and summary.stars:
            return self.of_refs(self.program.resolver.refs(node.id, Scope(self.path, _MODULE)))
        return self.of_library(f"builtins.{node.id}")

    def _joined(self, definitions: tuple[Definition, ...], frame: Frame | None) -> Kind:
        kinds = [(definition, self.definition_kind(definition, frame)) for definition in definitions]
        # `total = 0` before `total += loss`: after the first turn it is a tensor, and that is what matters.
        if any(definition.binding is Binding.AUGMENTED or self._feeds_itself(definition) for definition in definitions):
            if any(kind.tag is Tag.TENSOR for _, kind in kinds):
                kept = [kind for _, kind in kinds if kind.tag is not Tag.NUMBER]
                return join(kept).at_most(Confidence.MEDIUM if len(kept) < len(kinds) else Confidence.HIGH)
        return join(kind for _, kind in kinds)

    def _overridable(self, definitions: tuple[Definition, ...]) -> bool:
        """Module-level settings that `exec` or `globals()` may replace, as configuration by script does."""
        if not _EXECUTES.search(self.tree.source.text):
            return False
        scope = self.flow.bindings(self.tree.module)
        return any(id(item) in scope.top for item in definitions)

    @staticmethod
    def _feeds_itself(definition: Definition) -> bool:
        """`total = total + loss`."""
        value = definition.value
        if definition.binding is not Binding.ASSIGN or not isinstance(value, ast.BinOp):
            return False
        return definition.name in (key_of(value.left), key_of(value.right))

    def definition_kind(self, definition: Definition, frame: Frame | None = None) -> Kind:
        """The value a definition gives its name."""
        inner = frame if frame is not None and _within(frame.function, definition.node) else None
        return self._guarded(definition, inner, self._definition_kind)

    def _definition_kind(self, definition: Definition, inner: Frame | None) -> Kind:
        binding, value = definition.binding, definition.value
        if binding in (Binding.ASSIGN, Binding.WALRUS, Binding.MATCH):
            return self._assigned(definition, inner)
        if binding in (Binding.FOR, Binding.COMPREHENSION) and value is not None:
            return operations.unpack(self.iterate(self.eval(value, inner)), definition.path)
        if binding is Binding.AUGMENTED:
            return self._augmented(definition, inner)
        if binding is Binding.PARAM:
            return self._param(definition, inner)
        if binding is Binding.IMPORT:
            return self._import(definition)
        if binding in (Binding.FUNCTION, Binding.CLASS):
            return self._defined(definition.node)
        if binding is Binding.WITH and value is not None:
            return self._entered(value, definition, inner)
        return NEVER if binding is Binding.DELETE else UNKNOWN

    def iterate(self, kind: Kind) -> Kind:
        """What one turn of a loop over the value gives, through the project's own `__iter__` where there is one."""
        if kind.path and kind.tag in (Tag.INSTANCE, Tag.DATASET, Tag.LOADER, Tag.MODULE):
            found = self.classes.iterated(kind)
            if found is not None and (found.known or kind.element is None):
                return found
            if found is not None and kind.element is not None:
                # A loader with an `__iter__` of its own: what it yields may be anywhere.
                return kind.element.but(place=Place.UNKNOWN, device=None, pinned=False)
        return operations.iterate(kind)

    def _assigned(self, definition: Definition, frame: Frame | None) -> Kind:
        found = UNKNOWN
        if definition.value is not None:
            found = operations.unpack(self.eval(definition.value, frame), definition.path)
        elif definition.annotation is not None and definition.binding is Binding.ASSIGN:
            # `x: Tensor` alone gives no value; it only says what others will give.
            return NEVER
        if definition.annotation is not None:
            return promises.kept(found, self.annotated(definition.annotation))
        return found

    def _augmented(self, definition: Definition, frame: Frame | None) -> Kind:
        node = definition.node
        assert isinstance(node, ast.AugAssign)
        earlier, through = self.flow.definitions_before(definition.name, node)
        kinds = [self.definition_kind(item, frame) for item in earlier]
        if through and not isinstance(definition.target, ast.Name) and definition.target is not None:
            kinds.append(self._load_of(definition.target, frame))
        before = join(kinds) if kinds else UNKNOWN
        added = self.eval(node.value, frame)
        if before.tag is Tag.SEQUENCE and added.tag is Tag.SEQUENCE:
            return before.but(element=join((before.element or NEVER, added.element or NEVER)), items=(), qualified="")
        return operations.binary(before, node.op, added)

    def _load_of(self, target: ast.expr, frame: Frame | None) -> Kind:
        """What a target of `+=` was before, when nothing in this function gave it a value."""
        if isinstance(target, ast.Attribute):
            return self.member(self.eval(target.value, frame), target.attr)
        return UNKNOWN

    def _param(self, definition: Definition, frame: Frame | None) -> Kind:
        if frame is not None and definition.name in frame.params:
            if self.flow.bindings(frame.function).params.get(definition.name) is definition:
                return frame.params[definition.name]
        return self.parameters.kind(definition)

    def _import(self, definition: Definition) -> Kind:
        if self.path in self.program.summaries:
            found = self.values.imported(definition.imported, self.path)
            if found is not None:
                return found
        return self.of_library(definition.imported)

    def _defined(self, node: ast.AST) -> Kind:
        if isinstance(node, ast.ClassDef):
            return Kind(Tag.CLASS, qualified=self.tree.qualname(node), path=self.path)
        assert isinstance(node, _FUNCTIONS)
        return Kind(Tag.FUNCTION, qualified=self.tree.qualname(node), path=self.path)

    def _entered(self, value: ast.expr, definition: Definition, frame: Frame | None) -> Kind:
        """What `with value as x` binds. Progress bars and wrappers hand themselves back."""
        entered = self.eval(value, frame)
        if entered.tag in (Tag.LOADER, Tag.SEQUENCE, Tag.INSTANCE, Tag.MODULE) and not definition.path:
            return entered if not entered.path else UNKNOWN
        return UNKNOWN

    def _with_new_items(self, node: ast.Name, kind: Kind, frame: Frame | None) -> Kind:
        """`for k in batch: batch[k] = batch[k].to(device)` moves the whole batch."""
        stores, through = self.flow.item_stores(node)
        if not stores or through:
            return kind
        made = join(self.definition_kind(item, frame) for item in stores)
        if not made.known:
            return kind
        if kind.tag is Tag.BATCH:
            return kind.but(place=made.place, device=made.device, pinned=made.pinned, items=(), how=made.how)
        return kind.but(element=made, items=())

    # Symbols.

    def of_refs(self, refs: Refs) -> Kind:
        return join(self.of_ref(ref) for ref in refs) if refs else UNKNOWN

    def of_ref(self, ref: Ref) -> Kind:
        """A thing that names refer to, as a kind."""
        if ref.kind == EXTERNAL:
            return self.of_library(ref.name)
        if ref.kind == FUNCTION:
            return Kind(Tag.FUNCTION, qualified=ref.name, path=ref.path)
        if ref.kind == CLASS:
            return Kind(Tag.CLASS, qualified=ref.name, path=ref.path)
        if ref.kind == MODULE_REF:
            return Kind(Tag.INSTANCE, qualified=_MODULE, path=ref.path)
        if ref.kind == INSTANCE:
            return self.classes.instance(Ref(CLASS, ref.path, ref.name))
        if ref.kind == EXTERNAL_INSTANCE:
            return library.call(ref.name, Arguments(exact=False))
        return UNKNOWN

    @staticmethod
    def of_library(dotted: str) -> Kind:
        """A library's function, class, module or constant."""
        name = canonical(dotted)
        short = last(name)
        if name.startswith("torch.") and short in _DTYPES and name.count(".") == 1:
            return DTYPE.but(qualified=name)
        if name in ("math.pi", "math.inf", "math.nan", "math.e", "numpy.pi", "numpy.inf", "numpy.nan"):
            return NUMBER
        return Kind(Tag.CLASS if short[:1].isupper() else Tag.FUNCTION, qualified=name)

    # Attributes and items.

    def _attribute(self, node: ast.Attribute, frame: Frame | None) -> Kind:
        stores, through = self.flow.definitions_of(node)
        kinds = [self.definition_kind(item, frame) for item in stores]
        if kinds and not through:
            return self._stored(kinds, stores)
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
            return self.of_library(f"{base.qualified}.{name}")
        if base.path:
            if base.qualified == _MODULE:
                return self.values.exported(base.path, name)
            found = base.item(name) or self.classes.member(base, name)
            if found is not None:
                return found
        return methods.attribute(base, name)

    def _subscript(self, node: ast.Subscript, frame: Frame | None) -> Kind:
        stores, through = self.flow.definitions_of(node)
        kinds = [self.definition_kind(item, frame) for item in stores]
        if kinds and not through:
            return self._stored(kinds, stores)
        base = self.eval(node.value, frame)
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
        found = operations.index(base, plain, is_slice=isinstance(index, ast.Slice))
        return self._stored([*kinds, found], stores) if kinds else found

    # Calls.

    def _call(self, node: ast.Call, frame: Frame | None) -> Kind:
        arguments = self.arguments(node, frame)
        func = node.func
        if isinstance(func, ast.Attribute):
            if _is_super(func.value):
                return self.classes.call_super(func, arguments)
            base = self.eval(func.value, frame)
            if not (base.tag in (Tag.FUNCTION, Tag.CLASS) and not base.path):
                return self.call_method(base, func.attr, arguments, self._written(node))
        if isinstance(func, ast.Name) and func.id == "getattr" and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                return self.member(self.eval(node.args[0], frame), name.value)
        if isinstance(func, ast.Name) and func.id == "cast" and self._is_cast(func) and len(node.args) > 1:
            promised = self.annotated(node.args[0])
            return promised if promised.known else self.eval(node.args[1], frame)
        callee = self.eval(func, frame)
        if callee.qualified == "builtins.map" and not callee.path and len(arguments) > 1:
            return self._mapped(arguments)
        default = self.default_device(node, frame) if callee.qualified.startswith("torch.") else None
        return self.call(callee, arguments, default)

    def _mapped(self, arguments: Arguments) -> Kind:
        """`map(function, xs, ys)`."""
        function, *iterables = [thunk() for thunk in arguments.positional]
        return sequence(self.call(function, given(*(self.iterate(kind) for kind in iterables))))

    def _is_cast(self, func: ast.Name) -> bool:
        return self.eval(func, None).qualified == "typing.cast"

    def call(self, callee: Kind, arguments: Arguments, default: Kind | None = None) -> Kind:
        """The result of calling a value."""
        if callee.tag in (Tag.FUNCTION, Tag.CLASS):
            if not callee.path:
                return self._fed(library.call(callee.qualified, arguments, default), arguments)
            if callee.tag is Tag.FUNCTION:
                return self.run(Ref(FUNCTION, callee.path, callee.qualified), arguments)
            return self._fed(self.classes.instance(Ref(CLASS, callee.path, callee.qualified), arguments), arguments)
        if callee.path and callee.tag in (Tag.MODULE, Tag.INSTANCE, Tag.LOADER, Tag.DATASET):
            found = self.classes.call_instance(callee, arguments)
            if found is not None:
                return found
        return methods.called(callee, arguments)

    def _fed(self, made: Kind, arguments: Arguments) -> Kind:
        """A loader over a data set of the project: its batches hold what the data set gives for one item."""
        if made.tag is not Tag.LOADER or made.element is None or arguments.has("collate_fn"):
            return made
        dataset = arguments.at(0, "dataset")
        if dataset is None or not dataset.path or dataset.tag is not Tag.DATASET:
            return made
        sample = self.iterate(dataset)
        if sample.tag in (Tag.TENSOR, Tag.SEQUENCE, Tag.MAPPING):
            return made.but(element=library.collated(sample, made.element))
        return made

    def call_method(self, base: Kind, name: str, arguments: Arguments, written: str = "") -> Kind:
        """The result of `base.name(...)`."""
        if base.path:
            if base.qualified == _MODULE:
                return self.call(self.member(base, name), arguments)
            found = self.classes.call_method(base, name, arguments)
            if found is not None:
                return found
        return methods.method(base, name, arguments, written)

    def arguments(self, node: ast.Call, frame: Frame | None) -> Arguments:
        positional = [item for item in node.args if not isinstance(item, ast.Starred)]
        exact = len(positional) == len(node.args) and all(item.arg is not None for item in node.keywords)
        constants: dict[int | str, object] = {}
        for place, item in enumerate(positional):
            if isinstance(item, ast.Constant):
                constants[place] = item.value
        for keyword in node.keywords:
            if keyword.arg is not None and isinstance(keyword.value, ast.Constant):
                constants[keyword.arg] = keyword.value.value
        if not exact:
            # `f(*batch)` and `f(**batch)` hand over what the container holds.
            spread = [item.value for item in node.args if isinstance(item, ast.Starred)]
            spread += [item.value for item in node.keywords if item.arg is None]
            thunks = [self._thunk(item, frame) for item in positional]
            return Arguments(
                [*thunks, *(self._spread(item, frame) for item in spread)],
                {item.arg: self._thunk(item.value, frame) for item in node.keywords if item.arg is not None},
                constants,
                exact=False,
            )
        return Arguments(
            [self._thunk(item, frame) for item in positional],
            {item.arg: self._thunk(item.value, frame) for item in node.keywords if item.arg is not None},
            constants,
        )

    def _thunk(self, node: ast.expr, frame: Frame | None) -> Thunk:
        return lambda: self.eval(node, frame)

    def _spread(self, node: ast.expr, frame: Frame | None) -> Thunk:
        def spread() -> Kind:
            kind = self.eval(node, frame)
            if kind.tag in (Tag.BATCH, Tag.OUTPUT):
                return operations.part_of(kind, "one part of a batch")
            return kind.element or UNKNOWN

        return spread

    def _written(self, node: ast.Call) -> str:
        """The first argument's text, for devices that only their name tells."""
        if not node.args:
            return ""
        first = node.args[0]
        return key_of(first) or "" if isinstance(first, (ast.Name, ast.Attribute)) else ""

    # Functions.

    def run(self, function: Ref, arguments: Arguments, receiver: Kind | None = None) -> Kind:
        """What a function of the project returns for these arguments."""
        if len(self._running) >= _DEPTH:
            return UNKNOWN
        key = (function, arguments.signature(), receiver)
        known = self._runs.get(key)
        if known is not None:
            return known
        if key in self._running:
            self._lowest = min(self._lowest, self._running[key])
            return NEVER
        self._running[key] = len(self._active)
        outer, self._lowest = self._lowest, 1 << 30
        position = len(self._active)
        try:
            found = self._returned(function, arguments, receiver)
        finally:
            self._running.pop(key, None)
        if self._lowest >= position and self._spent <= _BUDGET:
            self._runs[key] = found
            self._lowest = outer
        else:
            self._lowest = min(self._lowest, outer)
        return found

    def _returned(self, function: Ref, arguments: Arguments, receiver: Kind | None) -> Kind:
        if function.path != self.path:
            return self.values.run(function, arguments, receiver)
        node = self.classes.function_node(function.name)
        if node is None:
            return UNKNOWN
        if isinstance(node, ast.Lambda):
            frame = Frame(node, self.parameters.bound(node, arguments, receiver))
            return self.eval(node.body, frame)
        frame = Frame(node, self.parameters.bound(node, arguments, receiver))
        returns, yields, generator = self.classes.results(node)
        if generator:
            return sequence(join(self.eval(item, frame) for item in yields) if yields else UNKNOWN)
        if isinstance(node, ast.AsyncFunctionDef):
            return UNKNOWN
        found = join(self._result(item, frame) for item in returns) if returns else NONE
        return promises.kept(found, self.annotated(node.returns)) if node.returns is not None else found

    def _result(self, node: ast.expr | None, frame: Frame) -> Kind:
        if node is None:
            return NONE
        if not self.narrowing.possible(node, frame):
            return NEVER
        return self.eval(node, frame)

    # Types and devices.

    def annotated(self, node: ast.expr) -> Kind:
        """The kind an annotation promises."""
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
        return self.promised(text, Scope(self.path, _MODULE))

    def promised(self, text: str, scope: Scope) -> Kind:
        """The kind that an annotation's text promises, with its names looked up in `scope`."""

        def instance_of(name: str) -> Kind:
            if not promises.is_name(name):
                return UNKNOWN
            kinds = []
            for ref in self.program.resolver.refs(name, scope) if scope.path in self.program.summaries else ():
                if ref.kind == CLASS:
                    kinds.append(self.classes.instance(ref))
                elif ref.kind == EXTERNAL:
                    kinds.append(promises.library_instance(ref.name))
            return join(kinds) if kinds else UNKNOWN

        return promises.kind_of(text, instance_of)

    def default_device(self, node: ast.AST, frame: Frame | None = None) -> Kind | None:
        """The device that new tensors are made on at `node`, when `with torch.device(...)` or a default says so."""
        for outer in self.tree.ancestors(node):
            if isinstance(outer, (ast.With, ast.AsyncWith)):
                for item in outer.items:
                    if item.context_expr is node:
                        return None
                    if isinstance(item.context_expr, (ast.Call, ast.Name, ast.Attribute)):
                        entered = self._device_entered(item.context_expr, frame)
                        if entered is not None:
                            return entered
            elif isinstance(outer, _FUNCTIONS):
                break
        return self._file_default()

    def _device_entered(self, node: ast.expr, frame: Frame | None) -> Kind | None:
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name != "device":
                return None
        found = self.eval(node, frame)
        return found if found.tag is Tag.DEVICE else None

    def _file_default(self) -> Kind | None:
        """`torch.set_default_device(...)` anywhere in the file holds for all of it."""
        if self._default is not False:
            return self._default  # type: ignore[return-value]
        self._default = None
        if "set_default_device" in self.tree.source.text or "set_default_tensor_type" in self.tree.source.text:
            for top in self.tree.module.body:
                for node in ast.walk(top):
                    if isinstance(node, ast.Call) and _last_name(node.func) in (
                        "set_default_device",
                        "set_default_tensor_type",
                    ):
                        self.tree.link(top)
                        self._default = self._default_of(node)
        return self._default

    def _default_of(self, node: ast.Call) -> Kind:
        if _last_name(node.func) == "set_default_tensor_type":
            written = ast.unparse(node.args[0]) if node.args else ""
            return Kind(Tag.DEVICE, device=Device.CUDA if "cuda" in written else Device.CPU)
        given = self.eval(node.args[0], None) if node.args else UNKNOWN
        return Kind(Tag.DEVICE, device=transfers.device_of(given))


def constant(value: object) -> Kind:
    if value is None:
        return NONE
    if isinstance(value, (int, float, complex)):
        return NUMBER
    if isinstance(value, str):
        device = transfers.device_named(value) if len(value) < 16 else None
        return STRING if device is None else STRING.but(device=device)
    return STRING if isinstance(value, bytes) else UNKNOWN


def _formatted(node: ast.JoinedStr) -> Kind:
    """`f"cuda:{rank}"` names a device."""
    first = node.values[0] if node.values else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value.endswith(":"):
        device = transfers.device_named(first.value)
        if device is not None:
            return STRING.but(device=device)
    return STRING


def _within(function: FunctionNode | ast.Lambda, node: ast.AST) -> bool:
    line: int = getattr(node, "lineno", 0) or getattr(getattr(node, "iter", None), "lineno", 0)
    return function.lineno <= line <= (function.end_lineno or function.lineno)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
