"""Calls: of library things by their tables, of the project's own functions by evaluating what they return."""

from __future__ import annotations

import ast

from perflint.analysis.evidence import ITERATOR_NAME, looks_like_loader
from perflint.analysis.names.declared import is_abstract
from perflint.analysis.names.refs import CLASS, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.values import library, mapped, methods, operations, promises, records
from perflint.analysis.values.arguments import Arguments, Thunk, given, signed
from perflint.analysis.values.bound_parameters import bound_parameters
from perflint.analysis.values.classes import Classes
from perflint.analysis.values.defaults import Defaults
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.frames import Frame
from perflint.analysis.values.keyed_fields import KeyedFields
from perflint.analysis.values.kind import (
    NAMED_BATCH,
    NEVER,
    NONE,
    UNKNOWN,
    Device,
    Kind,
    Place,
    Tag,
    is_empty,
    join,
    limited,
    sequence,
)
from perflint.analysis.values.narrowing import Narrowing
from perflint.analysis.values.origin import Origin, Provenance
from perflint.analysis.values.parameters import Parameters
from perflint.analysis.values.record_classes import record, record_class
from perflint.analysis.values.spread_arguments import written_out
from perflint.analysis.values.used_as_network import UsedAsNetwork
from perflint.finding import Confidence
from perflint.ir.notation import last_name, value_of
from perflint.ir.summary import MODULE
from perflint.syntax.bindings import key_of
from perflint.syntax.tree import FUNCTIONS, FunctionNode
from perflint.torch_model import loaders

#: How many containers deep the arguments of a call are told apart. A function that calls itself with `[x]` has no end
#: of calls otherwise.
_DEEPEST = 4
#: What may make an object, or is not known to.
_MAKERS = (Tag.CLASS, Tag.FUNCTION, Tag.UNKNOWN)
#: A name that may stand for more functions than these is not followed.
_MOST_CHOICES = 4
#: `batches.__next__()`, and `batches.next()` as iterators of loaders had it.
_NEXT = frozenset({"__next__", "next"})
#: What of libraries goes through an iterable, and gives its elements with something beside them or in groups.
_GOING_THROUGH = {name for name, wrapper in loaders.WRAPPERS.items() if wrapper.shape in ("counted", "zipped", "chunk")}


class Calls:
    """Calls in one file, by node or by what is known of callee and arguments."""

    def __init__(self, inference: Evaluating, classes: Classes, parameters: Parameters, narrowing: Narrowing) -> None:
        self.inference = inference
        self.classes = classes
        self.parameters = parameters
        self.narrowing = narrowing
        self.defaults = Defaults(
            inference.tree, inference.eval, lambda: inference.program.whole.makes_on_card(inference.path)
        )
        self.fields = KeyedFields(inference)
        self.networks = UsedAsNetwork(inference)
        self._runs: dict[int, Kind] = {}
        self._numbers: dict[object, int] = {}
        self._frames: dict[int, Frame] = {}

    def size(self) -> int:
        """How many answers are remembered."""
        return len(self._runs)

    def node(self, node: ast.Call, frame: Frame | None) -> Kind:
        arguments = self.arguments(node, frame)
        found = self._node(node, arguments, frame)
        return found if found.known or not arguments.keywords else methods.promised(arguments, found)

    def _node(self, node: ast.Call, arguments: Arguments, frame: Frame | None) -> Kind:
        func = node.func
        if isinstance(func, ast.Attribute):
            if _is_super(func.value):
                return self.classes.call_super(func, arguments)
            base = self.inference.eval(func.value, frame)
            if not (base.tag in (Tag.FUNCTION, Tag.CLASS) and not base.path):
                if func.attr in _NEXT and not len(arguments) and self._is_iterator(base, func):
                    return self._taken(base, func.value)
                made = self.method(base, func.attr, arguments, self._written(node))
                several = self._one_of_several(func, arguments, frame) if made is UNKNOWN and base.path else None
                key = arguments.constant(0) if not made.known and len(arguments) == 1 else None
                held = self.fields.given_by(base, func.attr, key) if isinstance(key, str) else UNKNOWN
                made = several or (held if held.known else made)
                return made if made is not UNKNOWN else self.networks.result_of_method(node, func, base, arguments)
        if isinstance(func, ast.Name) and func.id == "getattr" and len(node.args) > 1:
            name = node.args[1]
            base = self.inference.eval(node.args[0], frame)
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                return self.inference.member(base, name.value)
            if base.path and base.qualified == MODULE:
                return self.classes.any_of_module(base.path)
        if isinstance(func, ast.Name) and func.id == "cast" and self._is_cast(func) and len(node.args) > 1:
            promised = self.inference.annotated(node.args[0])
            return promised if promised.known else self.inference.eval(node.args[1], frame)
        callee = self.inference.eval(func, frame)
        if callee.qualified == "builtins.map" and not callee.path and len(arguments) > 1:
            return self._mapped(arguments)
        if callee.qualified == "builtins.next" and not callee.path and len(arguments):
            return self._next(arguments, node.args[0] if node.args else None)
        if callee.qualified == "functools.partial" and not callee.path and len(node.args) == 1:
            return self.inference.eval(node.args[0], frame)  # what it is told by name besides says nothing of the rest
        if callee.qualified == "builtins.zip" and len(node.args) == 1 and isinstance(node.args[0], ast.Starred):
            found = mapped.transposed(self.inference.eval(node.args[0].value, frame))
            if found is not None:
                return found
        if callee.qualified == "builtins.type" and not callee.path and len(node.args) == 1:
            made = self.inference.eval(node.args[0], frame)
            return Kind(Tag.CLASS, qualified=made.qualified, path=made.path) if made.path else UNKNOWN
        if not callee.known or (callee.tag is Tag.FUNCTION and not callee.qualified):
            one_of = self._one_of_several(func, arguments, frame)
            if one_of is not None:
                return one_of
        if callee.tag in _MAKERS and not callee.qualified and (made := self._of_any_class(func, arguments)).known:
            return made
        default = self.defaults.at(node, frame) if callee.qualified.startswith("torch.") else None
        named_tuple = None if callee.path else record_class(node, callee, self.inference.tree)
        found = named_tuple or self.value(callee, arguments, default)
        return found if found is not UNKNOWN else self.networks.result(node, callee, arguments)

    def _one_of_several(self, func: ast.expr, arguments: Arguments, frame: Frame | None) -> Kind | None:
        """What is common to the results of those that a name may stand for: `loss = cross_entropy if hard else mse`."""
        made = [arm for origin in self.inference.origins(func) for arm in _arms(origin)]
        if not 1 < len(made) <= _MOST_CHOICES:
            return None
        function = self.inference.tree.function_of(func)
        here = [frame if self.inference.tree.function_of(item) is function else None for item in made]
        kinds = [self.inference.eval(item, where) for item, where in zip(made, here)]
        return join(self.value(kind, arguments) for kind in kinds) if all(kind.known for kind in kinds) else None

    def _of_any_class(self, func: ast.expr, arguments: Arguments) -> Kind:
        """The module that any of the classes and functions makes which a name may stand for: `{"unet": UNet, "vnet":
        make_vnet}[name](width)`.
        """
        around = self.inference.tree.function_of(func)
        scope = Scope(self.inference.path, MODULE if around is None else self.inference.tree.qualname(around))
        resolver = self.inference.program.resolver
        refs = resolver.refs(value_of(func), scope)
        if not any(ref.kind == CLASS and self.classes.is_module(ref) for ref in refs):
            return UNKNOWN
        if len(refs) == 1 and self.inference.program.whole.names_class(value_of(func), scope):
            return self.value(self.inference.of_refs(refs), arguments)
        made = join(self.value(self.inference.of_refs((ref,)), arguments) for ref in refs if ref.kind != INSTANCE)
        # Which one it is stays open: what stands beside them may be nothing that can be seen.
        return made.but(qualified="", path="").at_most(Confidence.MEDIUM) if made.tag is Tag.MODULE else UNKNOWN

    def _next(self, arguments: Arguments, iterator: ast.expr | None) -> Kind:
        """`next(iterator)`, or a default: None where there is no more says that it may be None."""
        found = self._taken(arguments.at(0) or UNKNOWN, iterator)
        default = arguments.at(1)
        return found if default is None else join((found, default))

    def _taken(self, kind: Kind, iterator: ast.expr | None) -> Kind:
        """What comes next of an iterator: a batch, where its name is all that tells."""
        found = self.inference.iterate(kind)
        if not _says_what(found) and iterator is not None:
            name = last_name(iterator)
            if name.strip("_") == "data" or looks_like_loader(name) or ITERATOR_NAME.search(name):
                return NAMED_BATCH
        return found

    def _is_iterator(self, kind: Kind, method: ast.Attribute) -> bool:
        """Whether a value that is asked for what comes next by a method may be a plain iterator: it has no such method
        of the project's own, and is no loader itself, of which only other libraries' have one.
        """
        name = last_name(method.value)
        if kind.tag is Tag.UNKNOWN:
            return ITERATOR_NAME.search(name) is not None
        if kind.tag not in (Tag.LOADER, Tag.SEQUENCE) or (looks_like_loader(name) and not ITERATOR_NAME.search(name)):
            return False
        return not kind.path or self.classes.member(kind, method.attr) is None

    def _mapped(self, arguments: Arguments) -> Kind:
        """`map(function, xs, ys)`."""
        function, *iterables = [thunk() for thunk in arguments.positional]
        if len(iterables) == 1:
            found = mapped.each(iterables[0], lambda part: self.value(function, given(part)))
            if found is not None:
                return found
        return sequence(self.value(function, given(*(self.inference.iterate(kind) for kind in iterables))))

    def _is_cast(self, func: ast.Name) -> bool:
        return self.inference.eval(func, None).qualified == "typing.cast"

    def value(self, callee: Kind, arguments: Arguments, default: Kind | None = None) -> Kind:
        """The result of calling a value."""
        if callee.tag in (Tag.FUNCTION, Tag.CLASS):
            if not callee.path:
                if (made := record(callee, arguments)) is not None:
                    return made
                if callee.qualified in _GOING_THROUGH:
                    arguments = self._gone_through(arguments)
                made = library.call(callee.qualified, arguments, default)
                if callee.device is Device.MAYBE and made.is_tensor:
                    made = made.but(place=Place.TARGET, device=Device.MAYBE)
                return self._fed(made, arguments)
            if callee.tag is Tag.FUNCTION:
                applied = self.classes.applied(callee, arguments)
                return applied or self.run(Ref(FUNCTION, callee.path, callee.qualified), arguments, callee.element)
            return self._fed(self.classes.instance(Ref(CLASS, callee.path, callee.qualified), arguments), arguments)
        if callee.path and callee.tag in (Tag.MODULE, Tag.INSTANCE, Tag.LOADER, Tag.DATASET):
            found = self.classes.call_instance(callee, arguments)
            if found is not None:
                return found
        return methods.called(callee, arguments)

    def _gone_through(self, arguments: Arguments) -> Arguments:
        """What a library goes through: an object of the project says itself what that gives."""
        kinds = [thunk() for thunk in arguments.positional]
        if not any(kind.tag is Tag.INSTANCE and kind.path for kind in kinds):
            return arguments
        given = [
            sequence(self.inference.iterate(kind)) if kind.tag is Tag.INSTANCE and kind.path else kind for kind in kinds
        ]
        keywords = [(name, thunk()) for name, thunk in arguments.keywords.items()]
        return signed(given, keywords, exact=arguments.exact, named=arguments.named)

    def _fed(self, made: Kind, arguments: Arguments) -> Kind:
        """A loader over a data set of the project: its batches hold what the data set gives for one item."""
        if made.tag is not Tag.LOADER or made.element is None:
            return made
        dataset = arguments.at(0, "dataset")
        is_known = dataset is not None and bool(dataset.path) and dataset.tag is Tag.DATASET
        sample = self.inference.iterate(dataset) if is_known and dataset is not None else UNKNOWN
        if arguments.has("collate_fn"):
            parts = self._collated(arguments, sample, made.element, is_known=is_known)
            return made.but(element=made.element.but(items=parts)) if parts or is_known else made
        if sample.tag in (Tag.TENSOR, Tag.SEQUENCE, Tag.MAPPING):
            return made.but(element=library.collated(sample, made.element))
        return made

    def _collated(
        self, arguments: Arguments, sample: Kind, batch: Kind, *, is_known: bool
    ) -> tuple[tuple[int | str, Kind], ...]:
        """The entries of a batch that the project's own `collate_fn` makes on the device, and where the samples are
        known those that it leaves lists: of numbers, of texts, of tensors.
        """
        function = arguments.at(-1, "collate_fn")
        if function is None or function.tag not in (Tag.FUNCTION, Tag.INSTANCE) or not function.path:
            return ()
        made = self.value(function, Arguments([lambda: sequence(sample)]))
        if made.tag not in (Tag.MAPPING, Tag.SEQUENCE):
            return ()
        there = tuple((key, kind) for key, kind in made.items if kind.is_tensor and kind.on_accelerator)
        if not is_known:
            return there
        lists = [(key, kind, kind.element) for key, kind in made.items if kind.tag is Tag.SEQUENCE]
        objects = tuple((key, kind) for key, kind in made.items if kind.tag is Tag.INSTANCE and kind.path)
        kept = tuple((key, _listed(kind, batch)) for key, kind, held in lists if _is_plain(held) or not kind.items)
        return (*kept, *objects, *there)

    def method(self, base: Kind, name: str, arguments: Arguments, written: str = "") -> Kind:
        """The result of `base.name(...)`."""
        if base.path:
            if base.qualified == MODULE:
                return self.value(self.inference.member(base, name), arguments)
            found = self.classes.call_method(base, name, arguments)
            if found is not None:
                return found
            if base.tag is Tag.INSTANCE and base.place is not Place.UNKNOWN:
                drawn_from = self.classes.distribution_of(Ref(CLASS, base.path, base.qualified))
                base = base.but(path="", qualified=drawn_from) if drawn_from else base
        held = records.named_item(base, name)
        if held is not None and held.known:
            return self.value(held, arguments)  # `nets.encoder(images)`
        return methods.method(base, name, arguments, written)

    def arguments(self, node: ast.Call, frame: Frame | None) -> Arguments:
        """The arguments of a call, each worked out when it is asked for."""
        if node.args and isinstance(node.args[-1], ast.Starred) and not node.keywords:
            parts = self.inference.eval(node.args[-1].value, frame)
            if operations.has_parts(parts) and not any(isinstance(item, ast.Starred) for item in node.args[:-1]):
                # `map(func, *args)` of arguments that are known one by one.
                thunks = [self._thunk(item, frame) for item in node.args[:-1]]
                return Arguments([*thunks, *given(*(part for _, part in parts.items)).positional])
        args, keywords = written_out(node, self.inference.flow, self.inference.tree)
        positional = [item for item in args if not isinstance(item, ast.Starred)]
        exact = len(positional) == len(args) and all(item.arg is not None for item in keywords)
        constants: dict[int | str, object] = {}
        for place, item in enumerate(positional):
            if isinstance(item, ast.Constant):
                constants[place] = item.value
        for keyword in keywords:
            if keyword.arg is not None and isinstance(keyword.value, ast.Constant):
                constants[keyword.arg] = keyword.value.value
        if not exact:
            # `f(*batch)` and `f(**batch)` hand over what the container holds.
            spread = [item.value for item in args if isinstance(item, ast.Starred)]
            by_name = [item.value for item in keywords if item.arg is None]
            named = all(self._is_empty(item, frame) for item in by_name)
            spread += [] if named else by_name
            thunks = [self._thunk(item, frame) for item in positional]
            return Arguments(
                [*thunks, *(self._spread(item, frame) for item in spread)],
                {item.arg: self._thunk(item.value, frame) for item in keywords if item.arg is not None},
                constants,
                exact=named and len(positional) == len(args),
                named=named,
            )
        return Arguments(
            [self._thunk(item, frame) for item in positional],
            {item.arg: self._thunk(item.value, frame) for item in keywords if item.arg is not None},
            constants,
        )

    def _thunk(self, node: ast.expr, frame: Frame | None) -> Thunk:
        return lambda: self.inference.eval(node, frame)

    def _is_empty(self, node: ast.expr, frame: Frame | None) -> bool:
        """Whether nothing is handed over by `**kwargs`: no caller gives what the function has no name for."""
        if not isinstance(node, ast.Name) or not is_empty(self.inference.eval(node, frame)):
            return False
        flow, parent = self.inference.flow, self.inference.tree.parent
        uses = [use for item in flow.definitions(node) for use in flow.uses_of(item)]
        return all(isinstance(parent(use), ast.keyword) for use in uses)  # `kwargs.setdefault("device", device)`

    def _spread(self, node: ast.expr, frame: Frame | None) -> Thunk:
        def spread() -> Kind:
            kind = self.inference.eval(node, frame)
            if kind.tag in (Tag.BATCH, Tag.OUTPUT):
                return operations.part_of(kind)
            return kind.element or UNKNOWN

        return spread

    def _written(self, node: ast.Call) -> str:
        """The first argument's text, for devices that only their name tells."""
        if not node.args:
            return ""
        first = node.args[0]
        return key_of(first) or "" if isinstance(first, (ast.Name, ast.Attribute)) else ""

    def run(self, function: Ref, arguments: Arguments, receiver: Kind | None = None) -> Kind:
        """What a function of the project returns for these arguments."""
        if function.path != self.inference.path:
            other = self.inference.at(function.path)
            return other.calls.run(function, arguments, receiver) if other is not None else UNKNOWN
        positional, keywords = arguments.signature(_DEEPEST)
        # Such a key takes long to hash, a number stands for it.
        receiver = None if receiver is None else limited(receiver, _DEEPEST)
        key = (function, positional, keywords, arguments.exact, arguments.named, receiver)
        number = self._numbers.setdefault(key, len(self._numbers))
        query = (id(self), number)
        known = self._runs.get(number)
        if known is not None:
            return known
        if any(kind.tag is Tag.NEVER for kind in (*positional, *(kind for _, kind in keywords))):
            return NEVER  # of a call that is not made there is no result
        same = signed(positional, keywords, exact=arguments.exact, named=arguments.named)
        found = self.inference.queries.ask(query, self._runs, number, self._returned, number, function, same, receiver)
        if number in self._runs:
            self._frames.pop(number, None)
        return found

    def stored(self, qualname: str, place: int) -> Kind:
        """What a function of this file stores under any key into the argument at a place, where it does so."""
        node = self.classes.function_node(qualname)
        if not isinstance(node, FUNCTIONS):
            return UNKNOWN
        names = [item.arg for item in (*node.args.posonlyargs, *node.args.args)]
        place += isinstance(self.inference.tree.parent(node), ast.ClassDef)
        if place >= len(names):
            return UNKNOWN
        stores = self.inference.flow.bindings(node).by_key.get(f"{names[place]}[*]", ())
        return join(self.inference.definition_kind(item) for item in stores) if stores else UNKNOWN

    def _frame(self, number: int, node: FunctionNode | ast.Lambda, params: dict[str, Kind]) -> Frame:
        """The frame of one call. What is worked out again for the same parameters is so in the same frame."""
        frame = self._frames.get(number)
        if frame is None or frame.params != params:
            frame = self._frames[number] = Frame(node, params)
        return frame

    def _yielded(self, item: ast.expr, frame: Frame) -> Kind:
        if isinstance(item, ast.YieldFrom):
            return self.inference.iterate(self.inference.eval(item.value, frame))
        return self.inference.eval(item, frame)

    def _returned(self, number: int, function: Ref, arguments: Arguments, receiver: Kind | None) -> Kind:
        if self._is_left_open(function):
            return self._promised(function)  # what the classes below return
        node = self.classes.function_node(function.name)
        if node is None:
            return UNKNOWN
        if isinstance(node, ast.Lambda):
            return self.inference.eval(
                node.body, self._frame(number, node, bound_parameters(node, arguments, receiver, self.inference))
            )
        frame = self._frame(number, node, bound_parameters(node, arguments, receiver, self.inference))
        returns, yields, generator = self.classes.results(node)
        if generator:
            return sequence(join(self._yielded(item, frame) for item in yields) if yields else UNKNOWN)
        if isinstance(node, ast.AsyncFunctionDef):
            return UNKNOWN
        results: list[Kind] = [] if returns else [NONE]
        for item in returns:
            results.append(self._result(item, frame))
            if results[-1] is UNKNOWN:
                break  # whatever the others are
        found = join(results)
        found = _if_taken_apart(results) if found is UNKNOWN else found
        return promises.kept(found, self.inference.annotated(node.returns)) if node.returns is not None else found

    def _is_left_open(self, function: Ref) -> bool:
        """Whether a method is left to the classes below."""
        summary = self.inference.program.summaries.get(function.path)
        facts = summary.functions.get(function.name) if summary is not None else None
        return facts is not None and bool(facts.in_class) and not facts.returns and is_abstract(facts)

    def _promised(self, function: Ref) -> Kind:
        """What the annotation of such a method says that they return."""
        node = self.classes.function_node(function.name)
        returns = node.returns if isinstance(node, FUNCTIONS) else None
        return UNKNOWN if returns is None else self.inference.annotated(returns)

    def _result(self, node: ast.expr | None, frame: Frame) -> Kind:
        if node is None:
            return NONE
        if not self.narrowing.possible(node, frame):
            return NEVER
        return self.inference.eval(node, frame)


def _listed(made: Kind, batch: Kind) -> Kind:
    """A list of a batch. What is in it is where the batch is."""
    if made.element is None or _is_plain(made.element):
        return made
    nested = made.element.tag is Tag.SEQUENCE and not made.element.items
    element = _listed(made.element, batch) if nested else library.collated(made.element, batch).but(fresh=False)
    return Kind(Tag.SEQUENCE, element=element, certainty=Confidence.MEDIUM, origin=Origin(Provenance.COLLATED))


def _is_plain(kind: Kind | None) -> bool:
    return kind is not None and kind.tag in (Tag.NUMBER, Tag.STRING)


def _if_taken_apart(results: list[Kind]) -> Kind:
    """Something that is a tuple or not: nothing is known of it but what its parts are, for who takes it apart."""
    tuples = [kind for kind in results if kind.tag is Tag.SEQUENCE and kind.items and not kind.longer]
    whole = all(kind.known or kind.tag is Tag.NEVER for kind in results)
    if not whole or len({len(kind.items) for kind in tuples}) != 1:
        return UNKNOWN
    return UNKNOWN.but(items=join(tuples).items)


def _arms(node: ast.expr) -> list[ast.expr]:
    return [*_arms(node.body), *_arms(node.orelse)] if isinstance(node, ast.IfExp) else [node]


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _says_what(found: Kind) -> bool:
    """Whether anything is known of a value, or for a sequence of what it holds."""
    if found.tag is not Tag.SEQUENCE:
        return found.known
    return any(item.known for _, item in found.items) or (found.element is not None and found.element.known)
