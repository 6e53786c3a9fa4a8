"""Classes and functions of the project: their nodes in this file, their members, and instances of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from perflint.analysis.names.refs import CLASS, EXTERNAL, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.values import dtypes, library, methods, promises
from perflint.analysis.values.arguments import NO_ARGUMENTS, Arguments
from perflint.analysis.values.attributes import PARAM_GROUPS
from perflint.analysis.values.class_attributes import ClassAttributes
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.given_fields import GivenFields
from perflint.analysis.values.kind import (
    NUMBER,
    UNKNOWN,
    Device,
    Kind,
    Place,
    Tag,
    join,
    mapping,
    same_place,
)
from perflint.analysis.values.object_attributes import is_open
from perflint.analysis.values.operations import iterate
from perflint.analysis.values.origin import Origin, Provenance, is_from
from perflint.analysis.values.placing import handed_out, placed
from perflint.analysis.values.scattering import unwrapped
from perflint.finding import Confidence
from perflint.ir.notation import lambda_name
from perflint.ir.summary import MODULE, Value
from perflint.syntax.tree import FUNCTIONS, FunctionNode
from perflint.syntax.walk import children
from perflint.torch_model import frameworks, loaders, modules, wrappers
from perflint.torch_model.frameworks import AUTOGRAD_FUNCTION
from perflint.torch_model.names import canonical, last

_PROPERTIES = frozenset({"property", "cached_property", "functools.cached_property", "torch.jit.unused"})
_CALLS = ("forward", "__call__")
_RECORDS = frozenset({"typing.NamedTuple", "collections.namedtuple", "torch.NamedTuple"})
#: Dictionaries whose keys a class names, with the types of what they hold.
_TYPED_DICTS = frozenset({"typing.TypedDict", "typing_extensions.TypedDict"})
_OUTPUT_BASES = ("ModelOutput", "BaseOutput")
#: The name of a class that is looked up by text in the module at a kind's path.
_ANY = "<any>"
#: So many classes below tell what their base leaves to them.
_MOST_BELOW = 8
_UNIFORM = ({Tag.MODULE}, {Tag.INSTANCE}, {Tag.DATASET})


class Classes:
    """The classes of a project as one file sees them: their members are asked of the files that they stand in."""

    def __init__(self, inference: Evaluating) -> None:
        self.inference = inference
        self._nodes: dict[str, ast.AST] = {}
        self._lambdas: dict[str, ast.Lambda] = {}
        self._results: dict[int, tuple[list[ast.expr | None], list[ast.expr], bool]] = {}
        self._instances: dict[Ref, Kind] = {}
        self.attributes = ClassAttributes(inference, self)
        self._given = GivenFields(inference)

    # Nodes of this file.

    def node(self, qualname: str) -> ast.AST | None:
        """The `def` or `class` of this file with a qualified name, linked."""
        if not self._nodes:
            # What is defined again keeps its name: the first one has it.
            self._nodes = dict(reversed(self.inference.tree.qualified))
        return self._nodes.get(qualname)

    def function_node(self, qualname: str) -> FunctionNode | ast.Lambda | None:
        """The `def` or lambda of this file with a qualified name, linked."""
        if qualname in self._lambdas:
            return self._lambdas[qualname]
        node = self.node(qualname)
        if isinstance(node, FUNCTIONS):
            return node
        return None

    def name_lambda(self, node: ast.Lambda) -> str:
        """The qualname a lambda has in summaries; from now on `function_node` knows it."""
        name = lambda_name(node)
        self._lambdas[name] = node
        return name

    def class_node(self, qualname: str) -> ast.ClassDef | None:
        node = self.node(qualname)
        if isinstance(node, ast.ClassDef):
            return node
        return None

    def results(self, node: FunctionNode) -> tuple[list[ast.expr | None], list[ast.expr], bool]:
        """What a function returns and yields, and whether it is a generator. Of what it yields from, all of that."""
        known = self._results.get(id(node))
        if known is not None:
            return known
        returns: list[ast.expr | None] = []
        yields: list[ast.expr] = []
        generator = False
        lines = self.inference.tree.source.lines[node.lineno - 1 : node.end_lineno]
        may_yield = any("yield" in line for line in lines)
        stack: list[ast.AST] = list(reversed(node.body))
        while stack:
            part = stack.pop()
            if isinstance(part, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
                continue
            if isinstance(part, ast.expr) and not may_yield:
                continue  # no `return` stands in one
            if isinstance(part, ast.Return):
                returns.append(part.value)
            elif isinstance(part, (ast.Yield, ast.YieldFrom)):
                generator = True
                if isinstance(part, ast.YieldFrom):
                    yields.append(part)
                elif part.value is not None:
                    yields.append(part.value)
            stack.extend(reversed(children(part)))
        self._results[id(node)] = (returns, yields, generator)
        return self._results[id(node)]

    # Hierarchy.

    def mro(self, cls: Ref) -> tuple[Ref, ...]:
        resolver = self.inference.program.resolver
        if cls.path not in self.inference.program.summaries:
            return (cls,)
        return resolver.mro(Ref(CLASS, cls.path, cls.name))

    def library_bases(self, cls: Ref) -> tuple[str, ...]:
        return tuple(canonical(ref.name) for ref in self.mro(cls) if ref.kind == EXTERNAL)

    def is_module(self, cls: Ref) -> bool:
        return any(modules.is_module_class(name) for name in self.library_bases(cls))

    def instance(self, cls: Ref, arguments: Arguments | None = None) -> Kind:
        """An instance of a project class."""
        known = self._instances.get(cls)
        if known is None:
            known = self._instances[cls] = self._instance(cls)
        if arguments is None:
            return known
        if known.tag is Tag.LOADER:
            made = library.loader(known.qualified, arguments)
            if known.place is Place.UNKNOWN:
                return known
            return made.but(qualified=cls.name, path=cls.path)
        if known.tag in (Tag.INSTANCE, Tag.OUTPUT) and self._is_record(cls):
            return known.but(items=tuple(self._fields(cls, arguments)))
        if known.tag is Tag.INSTANCE and self.distribution_of(cls):
            return library.distribution(known, arguments)
        return known.but(items=self._given.of(cls, arguments)) if known.tag is Tag.INSTANCE else known

    def distribution_of(self, cls: Ref) -> str:
        """The distribution of torch's that a class of the project is made of; empty for others."""
        bases = self.library_bases(cls)
        return next((name for name in bases if name.startswith(modules.DISTRIBUTION_PACKAGES)), "")

    def any_of_module(self, path: str) -> Kind:
        """A class of a module of the project that is looked up by text: whichever, it goes by the module's name."""
        found = self.inference.program.resolver.offered(path)
        return Kind(Tag.CLASS, qualified=_ANY, path=path) if found else UNKNOWN

    def _each(self, base: Kind) -> Iterator[Kind]:
        """The instances that one of a class looked up by text may be: of no class that is there to be built upon."""
        found = self.inference.program.resolver.offered(base.path)
        bases = {owner for cls in found for owner in self.mro(cls)[1:]}
        for cls in found:
            if cls not in bases:
                made = self.instance(cls)
                yield made if base.place is Place.UNKNOWN else made.but(place=base.place, device=base.device)

    def _of_each(self, base: Kind, told: Callable[[Kind], Kind | None]) -> Kind | None:
        """What is common to the answers of those classes that have one."""
        answers = [answer for made in self._each(base) if (answer := told(made)) is not None]
        return join(answers) if answers else None

    def _any_instance(self, cls: Ref) -> Kind:
        """An instance of one of the classes of a module, where all are modules or all are not."""
        tags = {made.tag for made in self._each(Kind(Tag.CLASS, qualified=cls.name, path=cls.path))}
        return Kind(tags.pop(), qualified=cls.name, path=cls.path) if tags in _UNIFORM else UNKNOWN

    def _typed_dict(self, cls: Ref) -> Kind:
        """A dictionary with the keys that a class and its bases name."""
        items: dict[str, Kind] = {}
        for owner in reversed(self.mro(cls)):
            summary = self.inference.program.summaries.get(owner.path)
            facts = summary.classes.get(owner.name) if summary is not None and owner.kind == CLASS else None
            for name, annotation in facts.annotations.items() if facts is not None else ():
                items[name] = self.inference.promised(annotation, Scope(owner.path, MODULE))
        return mapping(items=items.items())

    def _instance(self, cls: Ref) -> Kind:
        tag = Tag.INSTANCE
        if cls.name == _ANY:
            return self._any_instance(cls)
        if not _TYPED_DICTS.isdisjoint(self.library_bases(cls)):
            return self._typed_dict(cls)
        for name in self.library_bases(cls):
            if modules.is_module_class(name):
                tag = Tag.MODULE
            elif loaders.is_loader(name):
                tag = Tag.LOADER
            elif loaders.is_dataset(name):
                tag = Tag.DATASET
            elif name == "torch.optim.Optimizer" or modules.makes_optimizer(name):
                tag = Tag.OPTIMIZER
            elif modules.makes_scheduler(name):
                tag = Tag.SCHEDULER
            elif name == "torch.Tensor":
                tag = Tag.TENSOR
            elif last(name) in _OUTPUT_BASES:
                tag = Tag.OUTPUT
            else:
                continue
            break
        made = Kind(tag, qualified=cls.name, path=cls.path)
        if tag is Tag.MODULE and self._moves_itself(cls):
            return made.but(place=Place.TARGET, device=Device.MAYBE)
        if tag is Tag.LOADER:
            if self._method_anywhere(cls, "__iter__"):
                # What a loader with an `__iter__` of its own yields may be anywhere.
                return made.but(element=Kind(Tag.BATCH, certainty=Confidence.MEDIUM))
            batch = Kind(Tag.BATCH, Place.HOST, certainty=Confidence.MEDIUM, origin=Origin(Provenance.LOADER, cls.name))
            return made.but(place=Place.HOST, element=batch)
        return made

    def _moves_itself(self, cls: Ref) -> bool:
        """Whether making an instance of a module puts it on a device: `self.to(self.device)` in its `__init__`."""
        made = self.inference.program.resolver.method(Ref(INSTANCE, cls.path, cls.name), "__init__")
        facts = self.inference.program.summaries[made.path].functions[made.name] if made is not None else None
        if facts is None or facts.in_class == "":
            return False
        moves = (call for call in facts.calls if call.func in ("self.to", "self.cuda"))
        return any(call.func == "self.cuda" or (call.args and _may_be_device(call.args[0])) for call in moves)

    def _method_anywhere(self, cls: Ref, name: str) -> bool:
        """Whether the project defines a method in the class or one of its bases."""
        return any(owner.kind == CLASS and self._method_of(owner, name) for owner in self.mro(cls))

    def _is_record(self, cls: Ref) -> bool:
        """A dataclass or named tuple: its constructor's arguments are its fields."""
        if _RECORDS & set(self.library_bases(cls)):
            return True
        summary = self.inference.program.summaries.get(cls.path)
        facts = summary.classes.get(cls.name) if summary is not None else None
        if facts is None or "__init__" in facts.methods:
            return False
        written = [item[1] if isinstance(item, tuple) and item[0] == "call" else item for item in facts.decorators]
        return any(isinstance(item, str) and last(item) == "dataclass" for item in written)

    def _fields(self, cls: Ref, arguments: Arguments) -> Iterator[tuple[int | str, Kind]]:
        facts = self.inference.program.summaries[cls.path].classes[cls.name]
        for place, name in enumerate(facts.annotations):
            given = arguments.at(place, name)
            if given is not None and given.known:
                yield name, given

    # Members.

    def member(self, base: Kind, name: str) -> Kind | None:
        """`base.name` as the project's classes define it; None when they do not."""
        if base.qualified == _ANY:
            return self._of_each(base, lambda made: self.member(made, name))
        cls = Ref(CLASS, base.path, base.qualified)
        for owner in self.mro(cls):
            if owner.kind == EXTERNAL and name == "param_groups" and owner.name.startswith("torch.optim."):
                found: Kind | None = PARAM_GROUPS
            elif owner.kind == EXTERNAL:
                kept = frameworks.attribute_of(owner.name, name)
                found = promises.library_instance(kept) if kept else None
            else:
                found = self._own_member(owner, name, base)
            if found is not None and (found.tag is not Tag.NONE or base.tag is Tag.CLASS):
                return found
            if found is not None:
                return self._given_below(cls, name, base) or found
        below = self._given_below(cls, name, base)
        if below is not None:
            return below
        if base.tag is Tag.MODULE and name in wrappers.WRAPPED_ATTRIBUTES:
            return unwrapped(base)
        if base.tag is Tag.CLASS and name in modules.FACTORY_METHODS and self.library_bases(cls):
            return base  # `Encoder.from_pretrained(path)` makes one, as calling the class does
        if name == "__class__" and base.tag is not Tag.CLASS:
            return Kind(Tag.CLASS, qualified=base.qualified, path=base.path)
        if name == "apply" and base.tag is Tag.CLASS and AUTOGRAD_FUNCTION in self.library_bases(cls):
            return Kind(Tag.FUNCTION, qualified=f"{base.qualified}.{name}", path=base.path)
        return None

    def _given_below(self, cls: Ref, name: str, base: Kind) -> Kind | None:
        """What the classes below give an attribute that a base leaves to them: by None, or by not speaking of it."""
        program = self.inference.program
        if cls.path not in program.summaries or base.tag is Tag.CLASS:
            return None
        kinds: list[Kind] = []
        for child in program.whole.setters_below(cls, name):
            other = self.inference.at(child.path)
            found = other.classes.attributes.here(child, name) if other is not None else None
            if found is not None and found.tag is not Tag.NONE:
                kinds.append(found)
            if len(kinds) == _MOST_BELOW:
                break
        made = join(kinds)
        return placed(self._inside(made, base), base) if made.known else None

    def _own_member(self, owner: Ref, name: str, base: Kind) -> Kind | None:
        method = self._method_of(owner, name)
        if method is not None:
            if self._is_property(method):
                return placed(self.inference.calls.run(method, NO_ARGUMENTS, base), base)
            bound = base if base.tag in (Tag.MODULE, Tag.INSTANCE) and not self._is_static(method) else None
            return Kind(Tag.FUNCTION, qualified=method.name, path=method.path, element=bound and bound.but(items=()))
        other = self.inference.at(owner.path)
        found = other.classes.attributes.here(owner, name) if other is not None else None
        if other is None or found is None:
            return None
        if base.items and base.tag is Tag.INSTANCE and is_open(found):
            own = other.classes.attributes.of_objects.of(owner, name, base)
            found = own if own.known else found
        return placed(self._inside(found, base), base)

    @staticmethod
    def _inside(kind: Kind, base: Kind) -> Kind:
        """A submodule or parameter is wherever its module is; a plain tensor attribute stays where it was made."""
        if base.tag is not Tag.MODULE:
            return kind
        # `self.weight = self.embedding.weight` is the parameter itself: it goes where the module goes.
        is_parameter = kind.is_tensor and is_from(kind.origin, Provenance.PARAMETER) and not kind.fresh
        if (kind.tag is Tag.MODULE or is_parameter) and kind.place is Place.UNKNOWN:
            return kind.but(place=Place.MODULE)
        if kind.tag is Tag.SEQUENCE and kind.element is not None and kind.element.tag is Tag.MODULE:
            return kind.but(element=kind.element.but(place=Place.MODULE), items=())
        return kind

    def _method_of(self, owner: Ref, name: str) -> Ref | None:
        summary = self.inference.program.summaries.get(owner.path)
        qualname = f"{owner.name}.{name}"
        if summary is not None and qualname in summary.functions:
            return Ref(FUNCTION, owner.path, qualname)
        return None

    def _is_property(self, method: Ref) -> bool:
        facts = self.inference.program.summaries[method.path].functions[method.name]
        return any(isinstance(item, str) and item in _PROPERTIES for item in facts.decorators)

    # Calls.

    def call_method(self, base: Kind, name: str, arguments: Arguments) -> Kind | None:
        """`base.name(...)` where the project defines the method, or holds a callable under that name."""
        if base.qualified == _ANY:
            return self._of_each(base, lambda made: self.call_method(made, name, arguments))
        if base.tag is Tag.MODULE and name == "forward":
            return self.call_instance(base, arguments)
        for owner in self.mro(Ref(CLASS, base.path, base.qualified)):
            if owner.kind == EXTERNAL:
                continue
            method = self._method_of(owner, name)
            if method is not None:
                if self._is_property(method):
                    return self.inference.calls.value(self.inference.calls.run(method, NO_ARGUMENTS, base), arguments)
                receiver = None if self._is_static(method) else base
                return self._handed(self.inference.calls.run(method, arguments, receiver), base, arguments)
        if base.tag is Tag.CLASS:
            return self._applied(base, arguments) if name == "apply" else None
        held = self.member(base, name)
        if held is None or held.tag is Tag.NEVER:
            return held
        if held.known:
            return self.inference.calls.value(held, arguments)
        # What a module holds, from a registry say, and calls with tensors of the device gives such again.
        given = next(arguments.kinds(), UNKNOWN) if base.tag is Tag.MODULE else UNKNOWN
        return methods.module_result(base, arguments) if given.is_tensor and given.on_accelerator else None

    def applied(self, function: Kind, arguments: Arguments) -> Kind | None:
        """What calling `Function.apply` of an own autograd function by another name gives; None for other functions."""
        owner, _, name = function.qualified.rpartition(".")
        if not owner or name not in ("apply", "forward"):
            return None
        return self._applied(Kind(Tag.CLASS, qualified=owner, path=function.path), arguments)

    def _applied(self, base: Kind, arguments: Arguments) -> Kind | None:
        """`Function.apply(x)` of an own autograd function: what its forward returns, on the device of its inputs."""
        cls = Ref(CLASS, base.path, base.qualified)
        if AUTOGRAD_FUNCTION not in self.library_bases(cls):
            return None
        forward = self._method_of(cls, "forward")
        if forward is None:
            return None
        context = Arguments(
            [_context, *arguments.positional], arguments.keywords, exact=arguments.exact, named=arguments.named
        )
        found = self.inference.calls.run(forward, context)
        if found.known or found.tag is Tag.NEVER:
            return found
        place, device = same_place(arguments.kinds())
        return Kind(Tag.TENSOR, place, device=device, fresh=True, certainty=Confidence.MEDIUM)

    def _is_static(self, method: Ref) -> bool:
        facts = self.inference.program.summaries[method.path].functions[method.name]
        return "staticmethod" in facts.decorators

    def call_instance(self, base: Kind, arguments: Arguments) -> Kind | None:
        """Calling an instance of a project class."""
        if base.qualified == _ANY:
            found = self._of_each(base, lambda made: self.call_instance(made, arguments))
            # One of them gives a tuple, another a tensor: where it is, is common to both.
            return found if found is None or found.known else self._module_output(base, arguments)
        for owner in self.mro(Ref(CLASS, base.path, base.qualified)):
            for name in _CALLS:
                method = self._method_of(owner, name) if owner.kind == CLASS else None
                if method is not None:
                    found = self.inference.calls.run(method, arguments, base)
                    is_open = not found.known or (found.tag is Tag.SEQUENCE and found.element is UNKNOWN)
                    if is_open and not found.items and base.tag is Tag.MODULE and found.tag is not Tag.NEVER:
                        return methods.module_result(base, arguments)  # whatever it is, and a tuple of whatever
                    return self._handed(found, base, arguments)
        return None

    def _module_output(self, base: Kind, arguments: Arguments) -> Kind:
        places = {made.place for made in self._each(base)}
        place = places.pop() if len(places) == 1 else Place.UNKNOWN
        return methods.module_result(base.but(place=place, qualified="", path=""), arguments)

    def _handed(self, kind: Kind, base: Kind, arguments: Arguments) -> Kind:
        """A result made on the module's device, seen from outside: where the module is, or its inputs are."""
        if base.tag is not Tag.MODULE:
            return kind
        place, device = methods.result_place(base, list(arguments.kinds()))
        return handed_out(kind, place, device)

    def call_super(self, func: ast.Attribute, arguments: Arguments) -> Kind:
        """`super().name(...)`."""
        cls = self.inference.tree.class_of(func)
        if cls is None:
            return UNKNOWN
        own = Ref(CLASS, self.inference.path, self.inference.tree.qualname(cls))
        receiver = self.instance(own)
        for owner in self.mro(own)[1:]:
            if owner.kind == EXTERNAL:
                continue
            method = self._method_of(owner, func.attr)
            if method is not None:
                return self.inference.calls.run(method, arguments, receiver)
        return methods.method(receiver.but(path="", qualified=""), func.attr, arguments)

    def indexed(self, base: Kind, index: Callable[[], Kind]) -> Kind | None:
        """`base[index]` of an object of the project, through its `__getitem__`; None when it has none."""
        if not self._method_anywhere(Ref(CLASS, base.path, base.qualified), "__getitem__"):
            return None
        return self.call_method(base, "__getitem__", Arguments((index,)))

    def iterated(self, base: Kind) -> Kind | None:
        """What iterating an instance of a project class gives, through its `__iter__` or `__getitem__`; None when it
        has neither.
        """
        if base.qualified == _ANY:
            return self._of_each(base, self.iterated)
        for owner in self.mro(Ref(CLASS, base.path, base.qualified)):
            for name, given in (("__iter__", NO_ARGUMENTS), ("__getitem__", None)):
                method = self._method_of(owner, name) if owner.kind == CLASS else None
                if method is not None:
                    arguments = given if given is not None else Arguments((lambda: NUMBER,))
                    found = self.inference.calls.run(method, arguments, base)
                    return self._taken(found) if name == "__iter__" else found
        return None

    def _taken(self, iterator: Kind) -> Kind:
        """What one turn takes of what an `__iter__` gives: an object of the project says that in its `__next__`."""
        if iterator.tag is Tag.INSTANCE and iterator.path:
            for owner in self.mro(Ref(CLASS, iterator.path, iterator.qualified)):
                method = self._method_of(owner, "__next__") if owner.kind == CLASS else None
                if method is not None:
                    return self.inference.calls.run(method, NO_ARGUMENTS, iterator)
        return iterate(iterator)


def _may_be_device(value: Value) -> bool:
    """Whether what a module is moved to is no dtype that is written out, and not the host."""
    if isinstance(value, str):
        return not dtypes.named(value) and last(value) != "dtype"
    return not (isinstance(value, tuple) and value[0] == "const" and value[2] == "cpu")


def _context() -> Kind:
    """What the first parameter of an autograd function's forward is."""
    return UNKNOWN
