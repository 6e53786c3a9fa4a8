"""What calls of objects of unknown class give, by what the program does with the objects and with what they give.

An object whose parameters are asked for, that is switched to training or evaluation, or that `DataParallel` wraps is a
network, whatever made it: `eval`, another library, a caller out of sight. What a network is given on the device it
answers there. What is given tensors of the device and gives something that walks back is a loss.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.values import methods
from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import UNKNOWN, Kind, Tag, tensor
from perflint.analysis.values.origin import Provenance, is_from
from perflint.analysis.values.ranks import SCALAR
from perflint.finding import Confidence
from perflint.ir.calls import arguments_of
from perflint.ir.notation import last_name, path_of
from perflint.syntax.bindings import Binding, Definition
from perflint.syntax.tree import FUNCTIONS
from perflint.syntax.walk import walk
from perflint.torch_model import distributed, modules
from perflint.torch_model.names import last

#: What is asked of networks, and of nothing else that is called: to move, for its parts, for its mode.
_OF_NETWORKS = (
    modules.TENSOR_ITERATORS
    | modules.NAMED_TENSOR_ITERATORS
    | modules.MODULE_ITERATORS
    | modules.NAMED_MODULE_ITERATORS
    | frozenset({"state_dict", "load_state_dict", "zero_grad", "requires_grad_", "cuda", "to", "half"})
)
_MODES = frozenset({"train", "eval"})
_WRAPPERS = frozenset(
    last(name)
    for names in (distributed.DATA_PARALLEL, distributed.DISTRIBUTED_DATA_PARALLEL, distributed.FULLY_SHARDED)
    for name in names
) | {"DDP", "FSDP"}
#: What of a network gives no tensors of the device, or is the network itself.
_GIVES_OTHERS = frozenset("predict decode tokenize parse save load fit step update".split())
_OWN_METHODS = _GIVES_OTHERS | modules.METHODS_OF_MODULES - {"forward"}
#: Through how many calls, aliases and attributes an object is followed.
_DEEPEST = 4
_MOST_CALLERS = 8


class UsedAsNetwork:
    """Calls in one file."""

    def __init__(self, inference: Evaluating) -> None:
        self._inference = inference
        self._known: dict[tuple[int, str, int], bool] = {}

    def result(self, call: ast.Call, callee: Kind, arguments: Arguments) -> Kind:
        """What a call of something unknown gives."""
        if not _is_unknown(callee) or not _are_in_one_place(arguments):
            return UNKNOWN
        if self._is_walked_back(call):
            made = methods.module_result(Kind(Tag.MODULE), arguments)
            return tensor(
                made.place,
                device=made.device,
                rank=SCALAR,
                fresh=True,
                requires_grad=True,
                certainty=Confidence.MEDIUM,
                origin=made.origin,
            )
        return self._output(call.func, arguments)

    def result_of_method(self, call: ast.Call, func: ast.Attribute, receiver: Kind, arguments: Arguments) -> Kind:
        """What a method of something unknown gives, `model.encode(images)`, or what an object holds: `self.net(x)`."""
        if receiver.path:
            return self.result(call, self._inference.member(receiver, func.attr), arguments)
        if func.attr.startswith("__") or func.attr in _OWN_METHODS:
            return UNKNOWN
        if not (_is_unknown(receiver) or receiver.tag is Tag.MODULE) or not _are_in_one_place(arguments):
            return UNKNOWN
        return self._output(func.value, arguments) if receiver.tag is not Tag.MODULE else _result(arguments)

    def _output(self, network: ast.expr, arguments: Arguments) -> Kind:
        return _result(arguments) if self.is_network(network) else UNKNOWN

    def is_network(self, node: ast.expr, depth: int = _DEEPEST) -> bool:
        """Whether what an expression gives is used as a network wherever it goes by this name or another one."""
        if depth <= 0:
            return False
        if isinstance(node, ast.Call):
            return self._is_made_as_one(node, depth)
        if isinstance(node, ast.Name):
            return any(self._of_definition(item, depth) for item in self._inference.flow.definitions(node))
        if isinstance(node, ast.Subscript):
            return any(self.is_network(item, depth - 1) for item in self._held(node.value))
        return isinstance(node, ast.Attribute) and self._of_attribute(node, depth)

    def _is_made_as_one(self, call: ast.Call, depth: int) -> bool:
        """`DataParallel(net)`, `net.cuda()`"""
        if last_name(call.func) in _WRAPPERS:
            return True
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr not in ("cuda", "to", "eval", "train"):
            return False
        return _is_of_network(func, call) and self.is_network(func.value, depth - 1)

    def _of_definition(self, definition: Definition, depth: int) -> bool:
        # In reach of a cycle of functions that hand on what they are given the answer is no, whoever asks first.
        key = id(definition.node), definition.name, depth
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = any(
                _uses_as_network(use, self._inference.tree.parent) for use in self._inference.flow.uses_of(definition)
            ) or self._comes_as_one(definition, depth - 1)
        return known

    def _comes_as_one(self, definition: Definition, depth: int) -> bool:
        """Whether what a name is bound to is used as a network elsewhere: where it was made, or by a caller."""
        if definition.binding is Binding.PARAM:
            return depth > 0 and any(self._is_handed_as_one(definition, depth))
        if definition.value is None:
            return False
        if definition.binding in (Binding.FOR, Binding.COMPREHENSION):
            over = _gone_through(definition.value, definition.path)
            return over is not None and any(self.is_network(item, depth) for item in self._held(over))
        return not definition.path and self.is_network(definition.value, depth)

    def _held(self, container: ast.expr) -> Iterator[ast.expr]:
        """What a list, tuple or dict is made of that goes by a name, and what is appended to it."""
        flow, tree = self._inference.flow, self._inference.tree
        if isinstance(container, (ast.List, ast.Tuple)):
            yield from container.elts
        elif isinstance(container, ast.Dict):
            yield from container.values
        elif isinstance(container, ast.Name):
            for definition in flow.definitions(container):
                if isinstance(definition.value, (ast.List, ast.Tuple, ast.Dict)) and not definition.path:
                    yield from self._held(definition.value)
                for use in flow.uses_of(definition):
                    put = tree.parent(use)
                    call = tree.parent(put) if isinstance(put, ast.Attribute) and put.attr == "append" else None
                    if isinstance(call, ast.Call):
                        yield from call.args

    def _is_handed_as_one(self, definition: Definition, depth: int) -> Iterator[bool]:
        inference, argument = self._inference, definition.node
        around = inference.tree.parent(argument)
        function = inference.tree.parent(around) if around is not None else None
        if not isinstance(argument, ast.arg) or not isinstance(function, FUNCTIONS):
            return
        scope = Scope(inference.path, inference.tree.qualname(function))
        place = inference.parameters.place_of(function, argument.arg)
        for edge in inference.program.callers(scope)[:_MOST_CALLERS]:
            other = None if edge.callback or edge.stands_in else inference.at(edge.caller.path)
            given = other.parameters.node_at(edge, argument.arg, place) if other is not None else None
            if other is not None and given is not None:
                yield other.calls.networks.is_network(given, depth)

    def _of_attribute(self, node: ast.Attribute, depth: int) -> bool:
        """`self.net`, by what the methods of its class do with it, or by what is stored there."""
        path, around = path_of(node), self._inference.tree.class_of(node)
        function = self._inference.tree.function_of(node)
        if path is None:
            return False
        if around is None or not path.startswith("self."):
            return function is not None and _names_as_network(function.body, path)
        own = Ref(CLASS, self._inference.path, self._inference.tree.qualname(around))
        for owner in self._inference.classes.mro(own):
            other = self._inference.at(owner.path) if owner.kind == CLASS else None
            cls = other.classes.class_node(owner.name) if other is not None else None
            if other is None or cls is None:
                continue
            if node.attr in other.tree.source.text and _names_as_network(cls.body, path):
                return True
            stores = other.classes.attributes.stores(cls, node.attr)
            values = (item.value for item in stores if item.value is not None and not item.path)
            if any(other.calls.networks.is_network(value, depth - 1) for value in values):
                return True
        return False

    def _is_walked_back(self, call: ast.Call) -> bool:
        """Whether what a call gives walks back under the name that it is bound to."""
        tree = self._inference.tree
        statement = tree.parent(call)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        target, function = statement.targets[0], tree.function_of(call)
        if isinstance(target, ast.Name):
            bound = self._inference.flow.definition_at(target)
            uses: Iterable[ast.AST] = self._inference.flow.uses_of(bound) if bound is not None else ()
        else:
            path = path_of(target)
            uses = _named(function.body, path) if path is not None and function is not None else ()
        return any(_walks_back(tree.parent(use), use) for use in uses)


def _result(arguments: Arguments) -> Kind:
    """A tensor, or any structure of tensors."""
    return methods.module_result(Kind(Tag.MODULE), arguments).but(mixed=True).at_most(Confidence.MEDIUM)


def _is_unknown(kind: Kind) -> bool:
    """Whether nothing is known of an object but perhaps the class of another library that made it."""
    if kind.tag is Tag.INSTANCE:
        return not kind.path and not kind.qualified.startswith(("torch.", "builtins.", "numpy."))
    return kind.tag is Tag.UNKNOWN


def _are_in_one_place(arguments: Arguments) -> bool:
    """Whether tensors of the device are given, and none of the host; or only what was moved to the host."""
    kinds = [*arguments.kinds()]
    given = [kind for kind in kinds if kind.holds_tensors]
    if any(kind.on_accelerator for kind in given):
        return not any(kind.on_host for kind in given)
    return bool(kinds) and all(kind.on_host and is_from(kind.origin, Provenance.MOVE) for kind in kinds)


def _uses_as_network(use: ast.AST, parent_of: Callable[[ast.AST], ast.AST | None]) -> bool:
    parent = parent_of(use)
    if isinstance(parent, ast.Attribute):
        call = parent_of(parent)
        return isinstance(call, ast.Call) and call.func is parent and _is_of_network(parent, call)
    return isinstance(parent, ast.Call) and use in parent.args and last_name(parent.func) in _WRAPPERS


def _is_of_network(func: ast.Attribute, call: ast.Call) -> bool:
    """Whether a method is asked of networks alone: `train` with data may be anything's."""
    if func.attr in _MODES:
        given = arguments_of(call)
        return all(isinstance(item, ast.Constant) and isinstance(item.value, bool) for item in given)
    return func.attr in _OF_NETWORKS


def _gone_through(over: ast.expr, path: tuple[int | str, ...]) -> ast.expr | None:
    """What a target of a loop takes one after the other of: `nets` for `net` of `for at, (x, net) in enumerate(zip(xs,
    nets))`.
    """
    for place in path:
        name = last_name(over.func) if isinstance(over, ast.Call) else ""
        if not isinstance(over, ast.Call) or not isinstance(place, int):
            return None
        if name == "enumerate" and place == 1 and over.args:
            over = over.args[0]
        elif name == "zip" and place < len(over.args):
            over = over.args[place]
        else:
            return None
    return over


def _names_as_network(body: list[ast.stmt], path: str) -> bool:
    """Whether code asks of what goes by a path what is asked of networks."""
    for statement in body:
        for part in walk(statement):
            if part.__class__ is not ast.Call:
                continue
            func = part.func
            if isinstance(func, ast.Attribute) and _is_of_network(func, part) and path_of(func.value) == path:
                return True
            if last_name(func) in _WRAPPERS and any(path_of(item) == path for item in part.args):
                return True
    return False


def _named(body: list[ast.stmt], path: str) -> Iterator[ast.AST]:
    for statement in body:
        for part in walk(statement):
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load) and path_of(part) == path:
                yield part


def _walks_back(parent: ast.AST | None, use: ast.AST) -> bool:
    return isinstance(parent, ast.Attribute) and parent.value is use and parent.attr == "backward"
