"""Where the results of forwards go, and whether a graph of theirs is wanted anywhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.gradients.forwards import FORWARD_METHODS
from perflint.analysis.gradients.frozen import is_frozen
from perflint.analysis.gradients.method_forwards import runs_own_layers
from perflint.analysis.gradients.model_calls import is_loss_function, is_model_call, name_of_whole
from perflint.analysis.gradients.passing_on import passes_on
from perflint.analysis.names.refs import Scope
from perflint.analysis.naming.models import GRADIENTS_OFF, LAYER_WITH_PARAMETERS, WITHOUT_PARAMETERS
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name
from perflint.torch_model import tensors

_DEPTH = 7
#: How many definitions of a name are followed.
_WAYS = 2
#: End a graph: what comes out has no gradient.
_DETACHERS = frozenset({"detach", "detach_"})
#: Read values or make some through which no gradient flows.
_READERS = frozenset("item tolist argmax argmin size dim numel argsort isnan isinf isfinite long int bool".split())
_READ_ATTRIBUTES = frozenset("shape dtype device ndim requires_grad is_cuda".split())
#: Functions of torch through which no gradient flows.
_READING = frozenset("argmax argmin isnan isinf isfinite is_tensor numel".split())
_BUILTINS = frozenset({"isinstance", "len", "hasattr", "type"})
#: Reads of a result that only code makes which wants its values and no gradient.
_VALUE_READERS = _READERS | frozenset("eq ne lt le gt ge any all nonzero count_nonzero multinomial numpy".split())
_VALUE_READING = _READING | frozenset("multinomial eq ne lt le gt ge any all nonzero equal".split())
_VALUE_BUILTINS = _BUILTINS | frozenset("float int bool str repr print".split())
#: Methods of distributions that draw without a gradient.
_DRAWS = frozenset({"sample", "sample_n"})
#: Methods of distributions whose results have a gradient, or may have one where the class is not known.
_OF_DISTRIBUTIONS = frozenset("rsample log_prob entropy cdf icdf".split()) | _DRAWS
#: Give values and their places: no gradient flows through the places.
_WITH_PLACES = frozenset({"max", "min", "topk", "sort", "median", "mode", "kthvalue"})
#: Methods of tensors through which gradients flow.
CARRIERS = (
    tensors.VIEW_METHODS
    | tensors.CAST_METHODS
    | tensors.FRESH_METHODS
    | tensors.TUPLE_METHODS
    | _OF_DISTRIBUTIONS
    | {"to", "cpu", "cuda"}
)


def forwards_behind(
    value: ast.expr, ctx: FileFacts, depth: int, *, computed: bool = False, methods: bool = False
) -> Iterator[ast.Call]:
    """The forwards that a value is made from: by attributes, items, methods, arithmetic and names, also of two
    definitions; what is `computed` by functions of torch and losses, by all that they are given, too. With `methods`,
    what runs layers of a network by a method of its own is a forward as well.
    """
    return _behind(value, ctx, depth, set(), computed=computed, methods=methods)


def _behind(
    value: ast.expr, ctx: FileFacts, depth: int, seen: set[int], *, computed: bool, methods: bool
) -> Iterator[ast.Call]:
    if depth == 0:
        return
    parts: list[ast.expr] = []
    if isinstance(value, ast.Call):
        if is_model_call(value, ctx) or (methods and runs_own_layers(value, ctx)):
            yield value
        elif computed and (computes(value, ctx) or passes_on(value, ctx)):
            parts = value.args
        elif isinstance(value.func, ast.Attribute):
            yield from _behind(value.func.value, ctx, depth, seen, computed=computed, methods=methods)
    elif isinstance(value, (ast.Attribute, ast.Subscript)):
        yield from _behind(value.value, ctx, depth, seen, computed=computed, methods=methods)
    elif isinstance(value, ast.BinOp):
        parts = [value.left, value.right]
    elif isinstance(value, ast.Name):
        made = ctx.inference.flow.definitions(value)
        if len(made) <= _WAYS and all(isinstance(item.node, ast.Assign) for item in made):
            parts = [item.value for item in made if item.value is not None and id(item) not in seen]
            seen.update(id(item) for item in made)
    for part in parts:
        yield from _behind(part, ctx, depth - 1, seen, computed=computed, methods=methods)


def computes(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call makes its result from the tensors it is given: a function of torch, or a loss."""
    if is_loss_function(call.func, ctx):
        return True
    target = ctx.target(call.func) or ""
    if is_distribution(target):
        return True
    if target.startswith("torch.") and target.rpartition(".")[2] in _WITH_PLACES:
        return True
    return target in tensors.FUNCTIONS | tensors.TUPLE_FUNCTIONS or target.startswith("torch.nn.functional.")


def is_distribution(target: str) -> bool:
    """Whether a class of torch is one of distributions, whose draws have no gradient and whose densities have one."""
    return target.startswith("torch.distributions.")


def learns(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether what runs may hold parameters: no layer of torch that has none."""
    return may_hold_parameters(ctx.kind(node.func).qualified)


def may_hold_parameters(qualified: str) -> bool:
    """Whether objects of a class may, by its full name."""
    if WITHOUT_PARAMETERS.search(qualified):
        return False
    return not qualified.startswith("torch.nn.") or bool(LAYER_WITH_PARAMETERS.match(qualified.rpartition(".")[2]))


def has_no_graph(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether no graph is recorded here, or one that hooks may want."""
    if ctx.grad_off(node) or switches_itself(node, ctx) or is_frozen(node, ctx):
        return True
    if ctx.mentions("register_forward_hook", "register_module_forward_hook", "inference_mode", "set_grad_enabled"):
        return True
    around, function = ctx.tree.class_of(node), ctx.tree.function_of(node)
    if around is not None and any(name_of_whole(base) == "Function" for base in around.bases):
        return True  # `torch.autograd.Function` runs with gradients off
    if ctx.program.whole.switches_gradients:
        return True
    if function is None:
        return False
    return any(GRADIENTS_OFF.search(ctx.text(decorator)) for decorator in function.decorator_list)


def switches_itself(node: ast.Call, ctx: FileFacts, *, wholly: bool = False) -> bool:
    """Whether a method of the project with this name, or the forward of this class, gives a result without a graph;
    `wholly`, whether it makes none beside it or on the way to it either.
    """
    kind = ctx.kind(node.func)
    method = callee_name(node)
    if method in FORWARD_METHODS and method != "forward":
        scopes = ctx.program.named(method)
    else:
        own = Scope(kind.path, kind.qualified if kind.tag is Tag.FUNCTION else f"{kind.qualified}.forward")
        is_there = own.path in ctx.program.summaries and own.function in ctx.program.summaries[own.path].functions
        scopes = (own,) if is_there else ()
    for scope in scopes:
        facts = ctx.program.function(scope)
        if (
            any(GRADIENTS_OFF.search(str(decorator)) for decorator in facts.decorators)
            or (any(context.kind == "no_grad" for context in facts.contexts) and not (wholly and _goes_on(scope, ctx)))
            or (not wholly and any("detach" in str(value) for value in facts.returns))
        ):
            return True
    return False


def _goes_on(scope: Scope, ctx: FileFacts) -> bool:
    """Whether a method runs parts of its object with gradients after those that it runs without."""
    calls = [call for call in ctx.program.function(scope).calls if str(call.func).startswith("self")]
    last = max(calls, key=lambda call: (call.line, call.column), default=None)
    return last is not None and not ctx.program.grad_off(scope, last.context)


class Followed:
    """Follows a forward's result to all places where it is read.

    What another forward is given goes on in its result. `by_value` says that reading the values counts as an end as
    well, and what losses are taken of is followed further. `detached` tells whether a `detach` was met.
    """

    def __init__(self, ctx: FileFacts, *, by_value: bool = False) -> None:
        self.ctx = ctx
        self.by_value = by_value
        self.detached = False
        #: Forwards whose results are being followed: what a loop hands from turn to turn comes back to them.
        self._followed: set[int] = set()
        self.readers = _VALUE_READERS if by_value else _READERS
        self.reading = _VALUE_READING if by_value else _READING
        self.builtins = _VALUE_BUILTINS if by_value else _BUILTINS

    def ends(self, value: ast.expr, depth: int) -> bool:
        """Whether every way of a value ends where no gradient flows on."""
        if depth == 0:
            return False
        parent = self.ctx.tree.parent(value)
        match parent:
            case ast.Attribute():
                return self._ends_at_attribute(parent, depth)
            case ast.Subscript() if parent.value is value:
                return self._takes_places(parent) or self.ends(parent, depth)
            case ast.Compare():
                return True
            case ast.BinOp() | ast.UnaryOp() | ast.IfExp():
                return self.ends(parent, depth)
            case ast.Call() | ast.keyword():
                return self._ends_at_call(parent, depth)
            case ast.Assign() if len(parent.targets) == 1:
                return self._ends_at_target(parent.targets[0], depth, value)
            case ast.FormattedValue():
                return self.by_value
            case _:
                return False

    def _takes_places(self, item: ast.Subscript) -> bool:
        """`logits.max(1)[1]`"""
        index = item.slice
        return (
            isinstance(item.value, ast.Call)
            and callee_name(item.value) in _WITH_PLACES
            and isinstance(index, ast.Constant)
            and index.value == 1
        )

    def _ends_at_attribute(self, node: ast.Attribute, depth: int) -> bool:
        if node.attr in _READ_ATTRIBUTES or node.attr == "indices" or (self.by_value and node.attr == "data"):
            return True
        call = self.ctx.tree.parent(node)
        if not isinstance(call, ast.Call) or call.func is not node:
            return self.ends(node, depth)
        if node.attr in _DETACHERS:
            self.detached = True
            return True
        if node.attr in self.readers or (node.attr in _DRAWS and self._is_distribution(node.value)):
            return True
        carries = node.attr in CARRIERS or node.attr in _WITH_PLACES
        return carries and self.ends(call, depth)

    def _ends_at_call(self, node: ast.Call | ast.keyword, depth: int) -> bool:
        call = self.ctx.tree.parent(node) if isinstance(node, ast.keyword) else node
        assert isinstance(call, ast.Call)
        if self.ctx.grad_off(call):
            return True
        if isinstance(call.func, ast.Name) and call.func.id in self.builtins:
            return True
        is_made = is_model_call(call, self.ctx) or (not self.by_value and runs_own_layers(call, self.ctx))
        if is_made or (self.by_value and is_loss_function(call.func, self.ctx)):
            if id(call) in self._followed:
                return True
            self._followed.add(id(call))
            return self.ends(call, depth - 1)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_DISTRIBUTIONS:
            return self.ends(call, depth)
        target = self.ctx.target(call.func) or ""
        if not target.startswith("torch."):
            return passes_on(call, self.ctx) and self.ends(call, depth - 1)
        if target.rpartition(".")[2] in self.reading:
            return True
        return computes(call, self.ctx) and self.ends(call, depth)

    def _is_distribution(self, value: ast.expr) -> bool:
        return is_distribution(self.ctx.kind(value).qualified)

    def _ends_at_target(self, target: ast.expr, depth: int, value: ast.expr) -> bool:
        names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        if len(names) == 2 and isinstance(value, ast.Call) and callee_name(value) in _WITH_PLACES:
            names = names[:1]
        flow, found = self.ctx.inference.flow, len(names) < 2 and isinstance(target, (ast.Tuple, ast.List))
        for name in names:
            if not isinstance(name, ast.Name) or self._is_changed(name):
                return False
            made = flow.definition_at(name)
            uses = flow.uses_of(made) if made is not None else []
            for use in uses:
                found = True
                if self.ctx.grad_off(use):
                    continue
                if not self.ends(use, depth - 1):
                    return False
        return found

    def _is_changed(self, name: ast.Name) -> bool:
        """Whether `loss /= n` makes more of a value, which is no use of its own."""
        function = self.ctx.tree.function_of(name) or self.ctx.tree.module
        return name.id in self.ctx.once(_augmented, function)


def _augmented(function: ast.AST, ctx: FileFacts) -> frozenset[str]:
    """The names that augmented assignments of a function change."""
    parts = ctx.tree.walk(function)
    return frozenset(
        part.target.id for part in parts if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)
    )


def forwards_read_by(node: ast.expr, ctx: FileFacts) -> Iterator[ast.Call]:
    """The forwards behind `x.argmax()`, `torch.argmax(x)` and `x.data`."""
    read = node.func if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Call) and ctx.target(node.func) == f"torch.{callee_name(node)}":
        yield from forwards_behind(node.args[0], ctx, _DEPTH, computed=True) if node.args else ()
    elif isinstance(read, ast.Attribute):
        yield from forwards_behind(read.value, ctx, _DEPTH, computed=True)
