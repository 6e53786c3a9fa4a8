"""What a parameter is, where nothing in the function itself assigns it.

In this order: the receiver of a method, what a framework passes to a hook, the annotation, what the project's callers
pass, how a module's `forward` uses it, its default. A name alone says nothing, but for the names that loaders have.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from perflint.analysis.evidence import looks_like_loader
from perflint.analysis.names.refs import Scope
from perflint.analysis.values import hooks_on_tensors, promises
from perflint.analysis.values.bound_parameters import default_of
from perflint.analysis.values.classes import Classes
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.forward_methods import ForwardMethods, class_around, class_ref
from perflint.analysis.values.frames import OnDemand
from perflint.analysis.values.handed import is_left_behind, is_moved_by_wrapper
from perflint.analysis.values.kind import (
    NAMED_LOADER,
    NEVER,
    NOTHING_NAMED,
    UNKNOWN,
    Device,
    Kind,
    Place,
    Tag,
    join,
    mapping,
    sequence,
    tensor,
)
from perflint.analysis.values.mapped import Mapping
from perflint.analysis.values.operations import iterate, part_of
from perflint.analysis.values.origin import Origin, Provenance, is_from
from perflint.analysis.values.passed_values import asked_in_turn, lies_with
from perflint.analysis.values.placing import with_module
from perflint.analysis.values.ranks import SCALAR
from perflint.analysis.values.scattering import is_scattering, moves_itself, scattered
from perflint.analysis.values.shown_calls import is_last_resort, tells_no_place, without_place
from perflint.analysis.values.tensor_uses import TensorUses
from perflint.analysis.values.used_as import UsedAs
from perflint.analysis.values.written_calls import WrittenCalls
from perflint.finding import Confidence
from perflint.ir.callees import last_name as last_of
from perflint.syntax.bindings import Definition
from perflint.syntax.tree import FUNCTIONS, FunctionNode
from perflint.torch_model import frameworks
from perflint.torch_model.hooks import CLOSURE

if TYPE_CHECKING:
    from perflint.analysis.call_graph.edges import Edge
    from perflint.analysis.values.frames import Frame

#: Kinds that say little of what other callers pass.
_WEAK = frozenset({Tag.NUMBER, Tag.STRING, Tag.NONE, Tag.SEQUENCE, Tag.MAPPING, Tag.FUNCTION, Tag.CLASS, Tag.INSTANCE})
#: How kinds say that a parameter is a tensor and no more.
_HANDED = (Provenance.ANNOTATION, Provenance.USE)
_MOST_CALLERS = 8
#: Decorators that hand on what a method is called with.
_PLAIN = frozenset({"staticmethod", "classmethod"})


class Parameters:
    """Kinds of one file's parameters: what annotations, frameworks, callers, uses and defaults say, in this order."""

    def __init__(self, inference: Evaluating, classes: Classes) -> None:
        self.inference = inference
        self.classes = classes
        self._known: dict[int, Kind] = {}
        self.used_as = UsedAs(inference)
        self.uses = TensorUses(inference)
        self.written = WrittenCalls(inference)
        self._forwards = ForwardMethods(inference, classes)
        self.mapping = Mapping(inference)

    def kind(self, definition: Definition) -> Kind:
        """What the function may be given. Callers that only pass on what they are given say nothing."""
        number = id(definition.node)
        known = self._known.get(number)
        if known is not None:
            return known
        return self.inference.queries.ask(
            ("parameter", number),
            self._known,
            number,
            self._kind,
            definition,
            floor=lambda: self._kind(definition, is_called=False),
        )

    def _kind(self, definition: Definition, *, is_called: bool = True) -> Kind:
        argument = definition.node
        assert isinstance(argument, ast.arg)
        tree = self.inference.tree
        arguments = tree.parent(argument)
        function = tree.parent(arguments) if arguments is not None else None
        if isinstance(function, ast.Lambda):
            return self._mapped(function, argument)
        if not isinstance(function, FUNCTIONS):
            return UNKNOWN
        args = function.args
        if argument is args.vararg:
            return sequence(self._rest(function, argument, is_called=is_called))
        if argument is args.kwarg:
            return self._given_by_name(function)
        cls = class_around(function, self.inference)
        if cls is None and argument in args.args[1:2] and self._is_step_of_engine(function):
            batch = Kind(
                Tag.BATCH, Place.HOST, certainty=Confidence.MEDIUM, origin=Origin(Provenance.FRAMEWORK, "step")
            )
            return self._refined(batch, self._annotated(argument))
        if cls is not None:
            ordered = _ordered(function)
            place = ordered.index(argument) if argument in ordered else -1
            if place == 0 and not _decorated(function, "staticmethod"):
                return self._receiver(function, cls)
            hooked = self._from_hook(function, cls, place)
            if hooked is not None:
                return self._refined(hooked, self._annotated(argument))
        return self._ordinary(function, definition, cls, is_called=is_called)

    def _rest(self, function: FunctionNode, argument: ast.arg, *, is_called: bool) -> Kind:
        """What `*inputs` of a function holds: tensors, where each known call gives such."""
        annotated, cls = self._annotated(argument), class_around(function, self.inference)
        if annotated.known or not is_called:
            return annotated
        scope = Scope(self.inference.path, self.inference.tree.qualname(function))
        edges = [edge for edge in self.inference.program.callers(scope) if not edge.stands_in]
        if len(edges) > _MOST_CALLERS and function.name != "forward":
            return UNKNOWN
        given = [kind for edge in edges[:_MOST_CALLERS] for kind in self._rest_of(edge, function)]
        found = join(given) if given and all(kind.is_tensor for kind in given) else UNKNOWN
        if not found.is_tensor:
            return UNKNOWN
        if found.place is Place.UNKNOWN and self._forwards.holds(function, cls):
            found = found.but(place=Place.MODULE, device=None)
        return found.but(fresh=False, rank=None).at_most(Confidence.MEDIUM)

    def _rest_of(self, edge: Edge, function: FunctionNode, frame: Frame | None = None) -> list[Kind]:
        """What one call gives for `*inputs`, one by one."""
        if edge.callback or edge.index < 0:
            return []
        cls = class_around(function, self.inference)
        first = len(_ordered(function)) - (cls is not None and not _decorated(function, "staticmethod"))
        facts = self.inference.program.summaries[edge.caller.path].functions[edge.caller.function].calls[edge.index]
        other, places = self.inference.at(edge.caller.path), range(first, len(facts.args))
        if other is None:
            return [UNKNOWN]
        return [other.parameters.argument_at(edge, "", at, frame) or UNKNOWN for at in places]

    def _mapped(self, function: ast.Lambda, argument: ast.arg) -> Kind:
        """The parameter of a function that is mapped where it stands: `map(lambda part: part.to(device), batch)`."""
        call = self.inference.tree.parent(function)
        if not isinstance(call, ast.Call) or call.args[:1] != [function]:
            return UNKNOWN
        if not isinstance(call.func, ast.Name):
            return hooks_on_tensors.given(call.func, self.inference)
        places = [*function.args.posonlyargs, *function.args.args]
        place = places.index(argument) + 1 if argument in places else len(call.args)
        if call.func.id not in ("map", "filter") or place >= len(call.args):
            return UNKNOWN
        over = call.args[place]
        return UNKNOWN if isinstance(over, ast.Starred) else iterate(self.inference.eval(over, None)).but(fresh=False)

    def _receiver(self, function: FunctionNode, cls: ast.ClassDef) -> Kind:
        ref = class_ref(cls, self.inference)
        if _decorated(function, "classmethod") or function.name in ("__new__", "__init_subclass__"):
            return Kind(Tag.CLASS, qualified=ref.name, path=ref.path)
        made = self.classes.instance(ref)
        return made.but(place=Place.MODULE) if made.tag is Tag.MODULE else made

    def _from_hook(self, function: FunctionNode, cls: ast.ClassDef, place: int) -> Kind | None:
        # A framework's own repository holds its base classes as project classes: their last names count too.
        bases = [base.name for base in self.classes.mro(class_ref(cls, self.inference))[1:]]
        hook = frameworks.hook_of(bases, function.name)
        if hook is None or place < 0:
            return None
        origin = Origin(Provenance.FRAMEWORK, function.name)
        if place in hook.managed:
            return Kind(Tag.BATCH, Place.TARGET, device=Device.MAYBE, certainty=Confidence.MEDIUM, origin=origin)
        if place in hook.host:
            return Kind(Tag.BATCH, Place.HOST, certainty=Confidence.MEDIUM, origin=origin)
        if place in hook.modules:
            return Kind(Tag.MODULE, Place.TARGET, device=Device.MAYBE, certainty=Confidence.MEDIUM, origin=origin)
        if place in hook.closures:
            return Kind(Tag.FUNCTION, qualified=CLOSURE, certainty=Confidence.MEDIUM, origin=origin)
        if place in hook.tensors and hook.contract:
            return tensor(Place.MODULE, certainty=Confidence.MEDIUM, origin=origin)
        if place in hook.tensors:
            return tensor(
                Place.TARGET, device=Device.MAYBE, rank=SCALAR if "backward" in function.name else None, origin=origin
            )
        return None

    def _is_step_of_engine(self, function: FunctionNode) -> bool:
        scope = Scope(self.inference.path, self.inference.tree.qualname(function))
        return scope.path in self.inference.program.summaries and self.inference.program.is_step_of_engine(scope)

    @staticmethod
    def _refined(hooked: Kind, annotated: Kind) -> Kind:
        """What a framework passes, in the shape its annotation gives it."""
        if annotated.tag is Tag.TENSOR:
            return annotated.but(place=hooked.place, device=hooked.device, origin=hooked.origin)
        if annotated.tag in (Tag.SEQUENCE, Tag.MAPPING):
            items = tuple((key, Parameters._refined(hooked, kind)) for key, kind in annotated.items)
            element = annotated.element or part_of(hooked)
            return annotated.but(items=items, element=Parameters._refined(hooked, element))
        return annotated if annotated.known and annotated.tag is not Tag.INSTANCE else hooked

    def _annotated(self, argument: ast.arg) -> Kind:
        return self.inference.annotated(argument.annotation) if argument.annotation is not None else UNKNOWN

    def _ordinary(
        self, function: FunctionNode, definition: Definition, cls: ast.ClassDef | None, *, is_called: bool
    ) -> Kind:
        argument = definition.node
        assert isinstance(argument, ast.arg)
        annotated = self._annotated(argument)
        found = annotated
        if not found.known or _is_open(found):
            passed = self._passed(function, argument.arg) if is_called else UNKNOWN
            if passed.tag is Tag.NEVER:
                return passed
            found = promises.merged(annotated, passed)
        elif is_called and found.tag is Tag.NUMBER:
            passed = self._passed(function, argument.arg)
            found = passed if passed.is_tensor else found  # `sigma: float`, where each caller gives a tensor
        is_forward = self._forwards.holds(function, cls)
        if (
            not found.known
            and function.name == "backward"
            and cls is not None
            and self._forwards.is_autograd(function, cls)
        ):
            found = tensor(certainty=Confidence.MEDIUM, origin=Origin(Provenance.USE))  # a gradient
        in_forward = is_forward or (not found.known and self._is_of_library(function, cls))
        if in_forward and not found.known and self.uses.is_tensor(definition, in_forward=True):
            found = tensor(certainty=Confidence.MEDIUM, origin=Origin(Provenance.USE))
        if is_forward and found.holds_tensors and found.device is not Device.CPU_OR_GIVEN:
            moved = cls is not None and is_moved_by_wrapper(found, function, cls, self.inference)
            if found.place is Place.UNKNOWN or moved:
                is_left = is_left_behind(function, argument.arg, self.inference)
                found = found.but(place=Place.HOST if is_left else Place.MODULE, device=None)
        elif is_forward and found.tag is Tag.MAPPING and len(_ordered(function)) == 2:
            found = with_module(found)  # alone it is the batch
        if not found.known and found.place is Place.UNKNOWN and self.uses.is_tensor(definition, in_forward=False):
            found = tensor(certainty=Confidence.MEDIUM, origin=Origin(Provenance.USE))
        if looks_like_loader(argument.arg) and (not found.known or _is_open(found)):
            return NAMED_LOADER
        if found.known:
            return found
        left_out = self._default(function, argument.arg)
        if left_out.known or found.place is not Place.UNKNOWN:
            return left_out
        return self.used_as.kind(definition, function)

    def _is_of_library(self, function: FunctionNode, cls: ast.ClassDef | None) -> bool:
        """Whether a function of a library, or a method of a module that its forward runs, computes with what it is
        given: where that lies nobody knows.
        """
        program, path = self.inference.program, self.inference.path
        if path not in program.summaries or (
            cls is not None and not self.classes.is_module(class_ref(cls, self.inference))
        ):
            return False
        return program.role(Scope(path, self.inference.tree.qualname(function)), -1) in ("forward", "metric")

    def _default(self, function: FunctionNode, name: str) -> Kind:
        value = default_of(function, name)
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return UNKNOWN
        kind = self.inference.eval(value, None)
        if not isinstance(value, ast.Constant) and (kind.device is None or kind.tag not in (Tag.DEVICE, Tag.STRING)):
            # A class that is made, or a function that is called: `norm=nn.LayerNorm`. Whatever else may change.
            is_known = kind.tag in (Tag.CLASS, Tag.FUNCTION) and (kind.path or kind.qualified.startswith("torch."))
            return kind.at_most(Confidence.MEDIUM) if is_known else UNKNOWN
        if kind.device is Device.CPU and not self._is_given(function, name):
            # `device="cpu"`, where no call of the project says another one: the host, unless somebody else does.
            kind = kind.but(device=Device.CPU_OR_GIVEN)
        elif kind.device is not None:
            # `device="cuda"` may be called with another one.
            kind = kind.but(device=Device.MAYBE)
        return kind.at_most(Confidence.MEDIUM)

    def _leaves_out(self, edge: Edge, function: FunctionNode, name: str) -> bool:
        """Whether a call certainly does not give a parameter."""
        if edge.callback or edge.index < 0:
            return False
        facts = self.inference.program.summaries[edge.caller.path].functions[edge.caller.function].calls[edge.index]
        names = [item.arg for item in _ordered(function)]
        place = names.index(name) if name in names else len(names)
        return len(facts.args) <= place and not any(key in ("", name) for key, _ in facts.keywords)

    def _is_given(self, function: FunctionNode, name: str) -> bool:
        """Whether some call may give a parameter, as far as the project's own calls tell."""
        scope = Scope(self.inference.path, self.inference.tree.qualname(function))
        edges = self.inference.program.callers(scope) if self._is_surveyed(scope) else ()
        return any(not edge.stands_in and not self._leaves_out(edge, function, name) for edge in edges)

    def _never_given(self, function: FunctionNode, name: str) -> Kind:
        """A device that a call does not say is the one that stands there: `def noise(shape, device="cpu")`."""
        value = default_of(function, name)
        kind = self.inference.eval(value, None) if value is not None else UNKNOWN
        is_device = kind.tag in (Tag.DEVICE, Tag.STRING) and kind.device is not None
        return kind.at_most(Confidence.MEDIUM) if is_device else UNKNOWN

    # Callers.

    def _is_surveyed(self, scope: Scope) -> bool:
        summary = self.inference.program.summaries.get(scope.path)
        return summary is not None and scope.function in summary.functions

    def _passed(self, function: FunctionNode, name: str) -> Kind:
        """What the project's own callers pass. Callers that cannot be followed leave the place unknown."""
        inference = self.inference
        scope = Scope(inference.path, inference.tree.qualname(function))
        if not self._is_surveyed(scope):
            return UNKNOWN
        callers = inference.program.callers(scope)
        edges = [edge for edge in callers if not edge.stands_in]
        if (own := hooks_on_tensors.given_by_itself(edges, function, name, inference)).is_tensor:
            return own
        if not edges or len(edges) > 4 * _MOST_CALLERS:
            return UNKNOWN
        if all(edge.callback for edge in edges):
            return self._mapped_over(edges, function, name)
        edges = [edge for edge in edges if self._calls_itself(edge, function)]
        # What is tried where all else failed, on the host say, is not what the function is for.
        edges = [edge for edge in edges if not is_last_resort(edge, inference.program)] or edges
        is_used = len(edges) < len(callers)
        shown = tells_no_place(function.name, scope, edges, inference, is_used=is_used)
        passed = (self.argument(edge, function, name) for edge in edges[:_MOST_CALLERS])
        kinds = asked_in_turn(passed, to_the_end=shown)
        if kinds is None:
            return UNKNOWN
        # What never comes to be is passed by no call.
        given = [kind for kind in kinds if kind is not None and kind.tag is not Tag.NEVER]
        if not given and any(kind is not None for kind in kinds):
            return NEVER
        if edges and not given and all(self._leaves_out(edge, function, name) for edge in edges):
            return self._never_given(function, name)
        if shown:
            given = [without_place(kind) for kind in given]
        known = [kind for kind in given if kind.known] or [kind for kind in given if kind.on_accelerator]
        if any(kind.is_tensor for kind in known):
            # Who takes tensors is given arrays too, brought to the host by the caller: the tensors tell.
            known = [kind for kind in known if kind.tag is not Tag.ARRAY]
            given = [kind for kind in given if kind.tag is not Tag.ARRAY]
        if not known:
            return UNKNOWN
        if len(given) < len(kinds):
            # Who does not say which device takes the one by default.
            left_out = self._never_given(function, name)
            known += [left_out] if left_out.device is not None else []
            given += [left_out] if left_out.device is not None else []
        found = join(known)
        if not found.known:
            # Something that every caller has moved to the device, whatever it is.
            return found if len(known) == len(given) else UNKNOWN
        # What is not known but lies in the same place as the tensors that are known may be one of them.
        alike = [kind for kind in given if not kind.known and lies_with(kind, found)]
        if len(known) + len(alike) < len(given):
            # The same parameter given a number here and something unknown there may be anything.
            if found.tag in _WEAK:
                return UNKNOWN
            # On the device by what is known: as a tensor of which nothing is known but that it is one.
            origin = Origin(Provenance.USE) if found.is_tensor and found.on_accelerator else found.origin
            found = found.but(place=Place.UNKNOWN, device=None, items=(), origin=origin)
        if found.is_tensor and any(is_from(kind.origin, *_HANDED) for kind in known):
            # Some caller was given it, too: what the others made says no more of where it is.
            found = found.but(origin=Origin(Provenance.USE))
        return found.but(fresh=False).at_most(Confidence.MEDIUM)

    def _mapped_over(self, edges: list[Edge], function: FunctionNode, name: str) -> Kind:
        """What a function is given that is only handed to what maps it: items of the lists that it is handed with."""
        place, found = self.place_of(function, name), list[Kind]()
        for edge in edges[:_MOST_CALLERS]:
            other = self.inference.at(edge.caller.path)
            found += other.parameters.mapping.given(edge, function.name, place) if other is not None else [UNKNOWN]
        # None stands in a list for what is not given, which the function then finds out.
        given = join(kind for kind in found if kind.tag is not Tag.NONE)
        return given.but(fresh=False).at_most(Confidence.MEDIUM) if given.known else UNKNOWN

    def _given_by_name(self, function: FunctionNode) -> Kind:
        """What `**kwargs` holds of tensors off the host, by the calls that say so: `meters.update(norm=norm)`. Nothing,
        where each call is known and gives no more than what has a name.
        """
        inference = self.inference
        scope = Scope(inference.path, inference.tree.qualname(function))
        summary = inference.program.summaries.get(inference.path)
        if summary is None or scope.function not in summary.functions:
            return mapping()
        named = {item.arg for item in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
        found, edges = [], inference.program.callers(scope)
        is_plain = 0 < len(edges) <= 4 * _MOST_CALLERS and not _decorators(function)
        for edge in edges if is_plain else edges[: 2 * _MOST_CALLERS]:
            if edge.stands_in or edge.callback or edge.index < 0 or not self._calls_itself(edge, function):
                is_plain = False
                continue
            facts = inference.program.summaries[edge.caller.path].functions[edge.caller.function].calls[edge.index]
            names = [key for key, _ in facts.keywords if key not in named]
            is_plain = is_plain and not names
            found += [self.argument(edge, function, name) for name in names if name]
        tensors = [kind for kind in found if kind is not None and kind.is_tensor and kind.place is not Place.HOST]
        if tensors:
            return mapping(join(tensors).but(fresh=False).at_most(Confidence.MEDIUM))
        return NOTHING_NAMED if is_plain else mapping()

    def _calls_itself(self, edge: Edge, function: FunctionNode) -> bool:
        """Whether an edge is a call of the function, not one that hands it to a library as a callback."""
        facts = self.inference.program.summaries[edge.caller.path].functions[edge.caller.function].calls[edge.index]
        for value in [*facts.args, *[value for _, value in facts.keywords]]:
            if type(value) is str and (value == function.name or value.endswith(f".{function.name}")):
                return False
        return last_of(facts.func) == function.name or edge.confidence is Confidence.HIGH

    def argument(self, edge: Edge, function: FunctionNode, name: str, frame: Frame | None = None) -> Kind | None:
        """What a call passes for a parameter of a function of this file, in one call of its own function where a frame
        says which; None where it does not.
        """
        other, place = self.inference.at(edge.caller.path), self.place_of(function, name)
        found = UNKNOWN if other is None else other.parameters.argument_at(edge, name, place, frame)
        if function.name != "forward" or other is None or found is None:
            return found
        moved = scattered(found)
        if moved is not found and not moves_itself(function, name):
            call = other.parameters.written.of(edge)
            if call is not None and moved != found and is_scattering(other.eval(call.func, frame)):
                return moved
        return found

    def place_of(self, function: FunctionNode, name: str) -> int:
        """The position by which a parameter is passed; negative where it has none."""
        cls, names = class_around(function, self.inference), [item.arg for item in _ordered(function)]
        if cls is not None and (not _decorated(function, "staticmethod") or self._forwards.is_autograd(function, cls)):
            names = names[1:]
        return names.index(name) if name in names else -1

    def argument_at(self, edge: Edge, name: str, place: int, frame: Frame | None = None) -> Kind | None:
        """What a call of this file passes by a name, or at a place that is not negative; None where it does not."""
        call = self.written.of(edge)
        if call is None:
            return UNKNOWN
        node = self.written.argument(call, name, place)
        if node is None:
            return None
        return self.written.given(call, node, place, frame)

    def node_at(self, edge: Edge, name: str, place: int) -> ast.expr | None:
        """The same as it is written; None where that is not plain to see."""
        call = self.written.of(edge)
        node = self.written.argument(call, name, place) if call is not None else None
        return None if isinstance(node, ast.Starred) else node

    def given_by(self, edge: Edge, function: FunctionNode, frame: Frame | None = None) -> OnDemand:
        """What one call gives the parameters of a function of this file, but for its receiver."""
        args = function.args
        is_method = class_around(function, self.inference) is not None and not _decorated(function, "staticmethod")
        items = {item.arg: item for item in (*args.posonlyargs, *args.args, *args.kwonlyargs)[is_method:]}
        if args.vararg is not None:
            items[args.vararg.arg] = args.vararg

        def given(item: ast.arg) -> Kind:
            if item is args.vararg:
                rest = self._rest_of(edge, function, frame)
                # `f(*batch)` gives nobody knows how many.
                return sequence(items=rest) if all(kind.known for kind in rest) else sequence(join(rest))
            found = self.argument(edge, function, item.arg, frame)
            if found is None:
                value = default_of(function, item.arg)
                found = UNKNOWN if value is None else self.inference.eval(value, None)
            return promises.kept(found, self._annotated(item)).but(fresh=False)

        return OnDemand(items, given)


def _is_open(kind: Kind) -> bool:
    """Whether an annotation leaves out what callers may say: where tensors are, what a container holds."""
    if kind.holds_tensors:
        return kind.place is Place.UNKNOWN
    if kind.tag in (Tag.SEQUENCE, Tag.MAPPING):
        return kind.element is None or not kind.element.known or _is_open(kind.element)
    return False


def _ordered(function: FunctionNode) -> list[ast.arg]:
    """The parameters that have a position."""
    return [*function.args.posonlyargs, *function.args.args]


def _decorators(function: FunctionNode) -> list[ast.expr]:
    """The decorators that may call a function with other arguments than its callers gave."""
    return [item for item in function.decorator_list if not (isinstance(item, ast.Name) and item.id in _PLAIN)]


def _decorated(function: FunctionNode, name: str) -> bool:
    return any(isinstance(item, ast.Name) and item.id == name for item in function.decorator_list)
