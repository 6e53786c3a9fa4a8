"""Whether a function treats what it is given as only a tensor can be treated, itself or in functions that it calls."""

from __future__ import annotations

import ast

from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import Tag
from perflint.ir.notation import last_name
from perflint.syntax.bindings import Definition
from perflint.syntax.tree import FUNCTIONS, Tree
from perflint.torch_model import graphs, tensors

_REDUCING = frozenset("sum mean max min any all argmax argmin prod cumsum std var norm softmax log_softmax".split())
#: Methods that of what a forward is given only tensors have.
_OF_INPUTS = frozenset(
    "size view expand float long half abs exp clone contiguous flatten transpose reshape unique cumsum matmul eq ne gt "
    "lt ge le argmax argmin sqrt pow flip".split()
)
#: Through how many calls of the project's own functions a parameter is followed.
_LINKS = 2


class TensorUses:
    """Parameters of one file, by the places that read them."""

    def __init__(self, inference: Evaluating) -> None:
        self.inference = inference

    def is_tensor(self, definition: Definition, *, in_forward: bool, links: int = _LINKS) -> bool:
        """Whether the function treats a parameter as only a tensor can be treated: a forward also where it hands it to
        functions of the project that do.
        """
        tree = self.inference.tree
        for name in self.inference.flow.uses_of(definition):
            if in_forward and self._is_cut_by_own_mask(name):
                return True
            use, parent = _last_part(name, tree) if in_forward else (name, tree.parent(name))
            if isinstance(parent, ast.Attribute) and parent.value is use:
                call = tree.parent(parent)
                called = isinstance(call, ast.Call) and call.func is parent
                if called and parent.attr in tensors.TELLING_METHODS:
                    return True
                if in_forward and (parent.attr == "shape" or (called and parent.attr in _OF_INPUTS)):
                    return True
                if in_forward and isinstance(call, ast.Call) and call.func is parent and _reduces_a_dimension(call):
                    return True
            elif not in_forward:
                continue
            elif isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Invert):
                return True
            elif isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.MatMult):
                return True
            elif isinstance(parent, ast.Call) and use in parent.args:
                if self._takes_tensor(parent, use) or (links and self._is_handed_on(parent, use, links - 1)):
                    return True
            elif isinstance(parent, (ast.List, ast.Tuple)):
                call = tree.parent(parent)
                if isinstance(call, ast.Call) and parent in call.args and self._is_torch_function(call):
                    return True
        return False

    def _is_cut_by_own_mask(self, name: ast.expr) -> bool:
        """`losses[losses > low]`, also where the comparison has a name: no number, list or mapping is cut like that."""
        cut = self.inference.tree.parent(name)
        if not isinstance(cut, ast.Subscript) or cut.value is not name or not isinstance(name, ast.Name):
            return False
        masks: list[ast.expr | None] = [cut.slice]
        if isinstance(cut.slice, ast.Name):
            masks = [made.value for made in self.inference.flow.definitions(cut.slice) if not made.path]
        return any(
            isinstance(mask, ast.Compare) and isinstance(mask.left, ast.Name) and mask.left.id == name.id
            for mask in masks
        )

    def _takes_tensor(self, call: ast.Call, given: ast.expr) -> bool:
        """Whether a call takes `given` as a tensor: a torch function, or a layer held by the module.

        A layer of torch.nn takes tensors only; another one may be told a height and a width besides its input.
        """
        if self._is_torch_function(call):
            taken = tensors.TENSOR_ARGUMENTS.get(last_name(call.func), 1)
            return any(item is given for item in call.args[:taken])
        func = call.func
        is_own = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"
        if is_own or isinstance(func, (ast.Call, ast.Subscript)):
            held = self.inference.eval(func, None)
            return held.tag is Tag.MODULE and (held.qualified.startswith("torch.nn.") or call.args[0] is given)
        return False

    def _is_handed_on(self, call: ast.Call, given: ast.expr, links: int) -> bool:
        """Whether a function of the project treats what it is given at this place as a tensor."""
        callee = self.inference.eval(call.func, None)
        other = self.inference.at(callee.path) if callee.tag is Tag.FUNCTION and callee.path else None
        function = None if other is None else other.classes.function_node(callee.qualified)
        if (
            other is None
            or not isinstance(function, FUNCTIONS)
            or any(isinstance(item, ast.Starred) for item in call.args)
        ):
            return False
        names = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
        place = call.args.index(given)
        name = next((name for name in names if other.parameters.place_of(function, name) == place), "")
        taken = other.flow.bindings(function).params.get(name)
        # What it is annotated as says less: lists of sizes are handed to what says that it takes a tensor of them.
        return taken is not None and other.parameters.uses.is_tensor(taken, in_forward=True, links=links)

    def _is_torch_function(self, call: ast.Call) -> bool:
        name = self.inference.eval(call.func, None).qualified
        if name in tensors.FUNCTIONS or name in tensors.TUPLE_FUNCTIONS:
            return True
        if name in graphs.SEVERAL or name in graphs.OF_EDGES:
            return True
        return name.startswith(tensors.FUNCTIONAL_MODULES)


def _last_part(name: ast.expr, tree: Tree) -> tuple[ast.expr, ast.AST | None]:
    """`target[i]` of a use of `target`, and what stands around: rows of a tensor are used as tensors."""
    use, parent = name, tree.parent(name)
    while isinstance(parent, ast.Subscript) and parent.value is use and not isinstance(parent.slice, ast.Constant):
        use, parent = parent, tree.parent(parent)
    return use, parent


def _reduces_a_dimension(call: ast.Call) -> bool:
    """`mask.any(dim=-1)`, for which arrays have `axis`, and `mask.sum(1)`: what a forward is given is no array."""
    if any(keyword.arg == "dim" for keyword in call.keywords):
        return True
    place = call.args[0] if call.args and isinstance(call.func, ast.Attribute) else None
    if isinstance(place, ast.UnaryOp) and isinstance(place.op, ast.USub):
        place = place.operand
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _REDUCING
        and isinstance(place, ast.Constant)
        and type(place.value) is int
    )
