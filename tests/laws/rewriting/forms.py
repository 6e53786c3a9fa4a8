"""Other forms of the same calls of torch, and of the same Python loops."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from . import keeps

#: Functions of torch that take a tensor first and are methods of it, and of no other class that programs make.
BOTH = frozenset(
    "abs argmax argmin bmm chunk clamp cumsum erf exp flatten gather index_select isnan isfinite isinf log "
    "log_softmax logsumexp masked_fill masked_select matmul max mean min mm mul nonzero norm permute pow prod relu "
    "repeat_interleave rsqrt sigmoid softmax split sqrt square squeeze std sum tanh topk transpose tril triu unbind "
    "unique unsqueeze var".split()
)
#: Those of them that arrays, frames and distributions do not have.
OF_TENSORS = BOTH & frozenset(
    "argmax bmm chunk clamp erf exp gather index_select isfinite isinf isnan log_softmax logsumexp "
    "masked_fill masked_select matmul mm nonzero permute relu rsqrt sigmoid softmax sqrt square tanh topk "
    "tril triu unbind unsqueeze".split()
)
#: Orders are left out: NaN is in none.
OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@keeps
def functions_as_methods(module: ast.Module) -> bool:
    """`torch.sum(x, 1)` as `x.sum(1)`, `torch.matmul(a, b)` as `a @ b`, `F.softmax(x, dim=1)` as `x.softmax(dim=1)`."""

    def method(call: ast.Call) -> ast.expr:
        name = _of_torch(call, module)
        if name not in BOTH or not call.args or isinstance(call.args[0], (ast.Starred, ast.Constant)):
            return call
        if name == "matmul" and len(call.args) == 2 and not call.keywords:
            return ast.BinOp(call.args[0], ast.MatMult(), call.args[1])
        return ast.Call(ast.Attribute(call.args[0], name, ast.Load()), call.args[1:], call.keywords)

    return _calls(module, method)


@keeps
def methods_as_functions(module: ast.Module) -> bool:
    """`x.softmax(1)` as `torch.softmax(x, 1)`, `a @ b` as `torch.matmul(a, b)`, for what only tensors have."""
    if not _imports(module, "torch") or _imports(module, "numpy"):
        return False

    def function(node: ast.expr) -> ast.expr:
        match node:
            case ast.Call(ast.Attribute(value, name)) if name in OF_TENSORS and _may_be_a_tensor(value):
                return ast.Call(_torch(name), [value, *node.args], node.keywords)
            case ast.BinOp(left, ast.MatMult(), right):
                return ast.Call(_torch("matmul"), [left, right], [])
        return node

    return _expressions(module, function)


@keeps
def loops_in_other_words(module: ast.Module) -> bool:
    """Comprehensions as loops, sums spelled out, what a loop ends with under a test as what follows a `continue`."""
    changed = [_comprehensions_as_loops(module), _sums_spelled_out(module), _guards_with_continue(module)]
    return any(changed)


def _comprehensions_as_loops(module: ast.Module) -> bool:
    """`xs = [f(y) for y in ys]` as `xs = []` and a loop that appends."""

    def loop(node: ast.stmt, scope: ast.AST) -> list[ast.stmt]:
        match node:
            case ast.Assign([ast.Name(name)], ast.ListComp(element, [ast.comprehension(target, over, tests, 0)])):
                inner = {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
                used = {each.id for each in _outside(scope, node) if isinstance(each, ast.Name)} | {name}
                if inner & used or isinstance(scope, ast.ClassDef):
                    return [node]
                body: ast.stmt = ast.Expr(_method(ast.Name(name, ast.Load()), "append", [element], []))
                for test in reversed(tests):
                    body = ast.If(test, [body], [])
                empty = ast.Assign([ast.Name(name, ast.Store())], ast.List([], ast.Load()))
                if name in {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}:
                    return [node]
                return [empty, ast.For(target, over, [body], [])]
        return [node]

    return _statements(module, loop)


def _guards_with_continue(module: ast.Module) -> bool:
    """An `if` without `else` at the end of a loop as `if not ...: continue` and what it held."""
    changed = False
    for node in ast.walk(module):
        match node:
            case (
                ast.For(body=[*before, ast.If(test, body, []) as last])
                | ast.While(body=[*before, ast.If(test, body, []) as last])
            ):
                if any(isinstance(each, (ast.Break, ast.Return)) for part in body for each in ast.walk(part)):
                    continue
                guard = ast.If(_opposite(test), [ast.Continue()], [])
                ast.copy_location(guard.body[0], last)
                node.body = [*before, ast.copy_location(guard, last), *body]
                changed = True
    return changed


def _sums_spelled_out(module: ast.Module) -> bool:
    """`total += x` as `total = total + x`, for names that begin as numbers, and for attributes that do."""
    changed = False
    for block in _blocks(module):
        for at, node in enumerate(block):
            if not isinstance(node, ast.AugAssign) or not isinstance(node.target, ast.Name):
                continue
            name = node.target.id
            starts = [
                each.value
                for each in ast.walk(module)
                if isinstance(each, ast.Assign)
                and name in {one.id for t in each.targets for one in ast.walk(t) if isinstance(one, ast.Name)}
            ]
            if starts and all(isinstance(each, ast.Constant) and not isinstance(each.value, str) for each in starts):
                value = ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value)
                block[at] = ast.copy_location(ast.Assign([node.target], value), node)
                changed = True
    return changed


@keeps
def arguments_by_name(module: ast.Module) -> bool:
    """`torch.cat(xs, 1)` as `torch.cat(tensors=xs, dim=1)`, `DataLoader(data, 8)` with the names of both."""
    names = {
        "torch.cat": ("tensors", "dim"),
        "torch.stack": ("tensors", "dim"),
        "torch.load": ("f",),
        "torch.save": ("obj", "f"),
        "torch.softmax": ("input", "dim"),
        "torch.tensor": ("data",),
        "torch.as_tensor": ("data",),
        "torch.full": ("size", "fill_value"),
        "torch.compile": ("model",),
        "torch.matmul": ("input", "other"),
        "torch.where": ("condition", "input", "other"),
        "torch.set_grad_enabled": ("mode",),
        "DataLoader": ("dataset", "batch_size"),
        "nn.functional.cross_entropy": ("input", "target"),
        "F.cross_entropy": ("input", "target"),
        "F.softmax": ("input", "dim"),
        "copy.deepcopy": ("x",),
        "torch.nn.utils.clip_grad_norm_": ("parameters", "max_norm"),
        "nn.utils.clip_grad_norm_": ("parameters", "max_norm"),
        "nn.functional.mse_loss": ("input", "target"),
        "F.mse_loss": ("input", "target"),
    }

    def named(call: ast.Call) -> ast.expr:
        known = names.get(_dotted(call.func), ())
        if len(call.args) > len(known) or not call.args or any(isinstance(each, ast.Starred) for each in call.args):
            return call
        if _dotted(call.func) == "DataLoader" and not _imports(module, "torch.utils.data.DataLoader"):
            return call
        given = [ast.keyword(name, value) for name, value in zip(known, call.args, strict=False)]
        return ast.Call(call.func, [], [*given, *call.keywords])

    return _calls(module, named)


def _opposite(test: ast.expr) -> ast.expr:
    match test:
        case ast.UnaryOp(ast.Not(), inner):
            return inner
        case ast.Compare(left, [op], others) if type(op) in OPPOSITE:
            return ast.Compare(left, [OPPOSITE[type(op)]()], others)
    return ast.UnaryOp(ast.Not(), test)


def _may_be_a_tensor(value: ast.expr) -> bool:
    """Not a module of functions, nor a constant, nor what holds a class's own methods."""
    root = _dotted(value).split(".")[0]
    return root not in ("torch", "F", "nn", "math", "np", "self", "super") and not isinstance(value, ast.Constant)


def _of_torch(call: ast.Call, module: ast.Module) -> str:
    """The name of the function of torch that a call is of."""
    where, _, name = _dotted(call.func).rpartition(".")
    known = {"torch": "torch", "F": "torch.nn.functional", "nn.functional": "torch"}
    return name if where in known and _imports(module, known[where]) else ""


def _imports(module: ast.Module, name: str) -> bool:
    for node in ast.walk(module):
        match node:
            case ast.Import(names) if any(each.name == name for each in names):
                return True
            case ast.ImportFrom(of, names) if any(f"{of}.{each.name}" == name for each in names):
                return True
    return False


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value, name) if before := _dotted(value):
            return f"{before}.{name}"
    return ""


def _torch(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("torch", ast.Load()), name, ast.Load())


def _method(value: ast.expr, name: str, args: list[ast.expr], keywords: list[ast.keyword]) -> ast.Call:
    return ast.Call(ast.Attribute(value, name, ast.Load()), args, keywords)


def _calls(module: ast.Module, write: Callable[[ast.Call], ast.expr]) -> bool:
    return _expressions(module, lambda node: write(node) if isinstance(node, ast.Call) else node)


def _expressions(module: ast.Module, write: Callable[[ast.expr], ast.expr]) -> bool:
    """Write the expressions of a module anew, inner ones first; whether there were any."""

    class Changer(ast.NodeTransformer):
        changed = False

        def visit(self, node: ast.AST) -> ast.AST:
            self.generic_visit(node)
            if not isinstance(node, ast.expr):
                return node
            new = write(node)
            self.changed |= new is not node
            return ast.copy_location(new, node)

    changer = Changer()
    changer.visit(module)
    return changer.changed


def _outside(scope: ast.AST, node: ast.AST) -> Iterator[ast.AST]:
    inside = {*ast.walk(node)}
    return (each for each in ast.walk(scope) if each not in inside)


def _blocks(module: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(module):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _statements(module: ast.Module, write: Callable[[ast.stmt, ast.AST], list[ast.stmt]]) -> bool:
    """Write statements anew, given what holds them; whether there were any."""
    changed = False
    for block in [*_blocks(module)]:
        new = [(node, write(node, module)) for node in block]
        if any(after != [node] for node, after in new):
            changed = True
            block[:] = [
                each if each is node else ast.copy_location(each, node) for node, after in new for each in after
            ]
    return changed
