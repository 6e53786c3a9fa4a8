"""Code under a test of a parameter that no call of the function makes true: `if verbose:` where nobody passes it; or
of an attribute that holds such a parameter of the constructor; or for an attribute that nobody sets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.evidence import last_name
from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.ir.dull import MAYBE_DULL, PLAIN_METHODS
from perflint.ir.leaving import ends_block
from perflint.ir.summary import MODULE, SPREAD, CallFacts, FunctionFacts, Param, Value
from perflint.rule_api.context import Context
from perflint.syntax.tree import FUNCTIONS, FunctionNode

#: Tests, each with what it has to be.
Tests: TypeAlias = "Sequence[tuple[ast.expr, bool]]"
#: Calls that are looked at.
_MOST_CALLERS = 32
#: Functions that hand a parameter on, one to the other.
_LONGEST_WAY = 4
#: What a function is given through their decorators is what a call passes.
_PASSING_ON = frozenset({"staticmethod", "classmethod", "abstractmethod", "torch", "functools", "abc", "contextlib"})
#: What sets attributes that nobody sees.
_SETTING = ("setattr", "__dict__", "__setattr__", "vars")
_PLAIN_BASES = frozenset({"object", "ABC", "Module", "LightningModule"})
#: What such a base may bring along.
_GIVEN = frozenset(
    "training device dtype trainer fabric logger loggers hparams current_epoch global_step global_rank local_rank "
    "automatic_optimization example_input_array on_gpu log log_dict print optimizers lr_schedulers manual_backward "
    "toggle_optimizer untoggle_optimizer clip_gradients configure_optimizers training_step validation_step test_step "
    "predict_step save_hyperparameters all_gather freeze unfreeze to_onnx to_torchscript load_from_checkpoint "
    "parameters named_parameters buffers named_buffers modules named_modules children named_children state_dict "
    "load_state_dict forward train eval to to_empty cuda cpu xpu ipu mtia half float double bfloat16 type apply "
    "compile add_module register_module register_buffer register_parameter get_submodule get_parameter get_buffer "
    "set_submodule get_extra_state set_extra_state register_forward_hook register_forward_pre_hook "
    "register_full_backward_hook zero_grad requires_grad_ share_memory extra_repr dump_patches call_super_init".split()
)
_FLOAT16 = frozenset({"torch.float16", "torch.half"})
_UNKNOWN = object()


def is_unreached(node: ast.AST, ctx: Context) -> bool:
    """Whether a test of a parameter keeps `node` from being run, by what all known calls of its function pass."""
    scope = ctx.scope(node)
    if scope.function == MODULE:
        return False
    function, tests = _tests_around(node, ctx)
    if function is None or not tests:
        return False
    told = _by_parameters(scope, function, tests, ctx) or _by_attributes(scope, tests, ctx)
    return told or _by_absence(scope, tests, ctx)


def only_in_float16(node: ast.AST, ctx: Context) -> bool:
    """Whether a test around `node` lets it run for float16 values only, which hardly any training has by now."""
    _, tests = _tests_around(node, ctx)
    return any(_asks_for_float16(test, truth=truth, ctx=ctx) for test, truth in tests)


def _asks_for_float16(test: ast.expr, *, truth: bool, ctx: Context) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is truth:
        return any(_asks_for_float16(part, truth=truth, ctx=ctx) for part in test.values)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _asks_for_float16(test.operand, truth=not truth, ctx=ctx)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    if not isinstance(test.ops[0], (ast.Eq, ast.Is, ast.In) if truth else (ast.NotEq, ast.IsNot, ast.NotIn)):
        return False
    asked = test.comparators[0]
    listed = asked.elts if isinstance(asked, (ast.Tuple, ast.List, ast.Set)) else [asked]
    is_dtype = isinstance(test.left, ast.Attribute) and test.left.attr == "dtype"
    return is_dtype and bool(listed) and all(ctx.target(one) in _FLOAT16 for one in listed)


def _by_parameters(scope: Scope, function: FunctionNode, tests: Tests, ctx: Context) -> bool:
    facts = ctx.program.function(scope)
    params = {param.name.lstrip("=") for param in _own_parameters(facts)}
    names = {name for test, _ in tests for name in ctx.once(_names_in, test) if name in params}
    names = {name for name in names if not _is_bound(name, function, ctx)}
    if not names or _is_called_unseen(scope, facts, ctx):
        return False
    callers = ctx.program.callers(scope)
    if not callers:
        return False
    callers = [*callers, *_calls_of_bases(scope, facts, ctx)]
    if len(callers) > _MOST_CALLERS:
        return False
    return _never_runs(tests, [_given(edge, facts, names, ctx, (scope,)) for edge in callers])


def _by_attributes(scope: Scope, tests: Tests, ctx: Context) -> bool:
    """Whether a test of `self.flag` fails, by what all known calls of the constructor pass for it."""
    cls = ctx.program.function(scope).in_class
    if not cls or cls not in ctx.summary.classes:
        return False
    made = Scope(scope.path, f"{cls}.__init__")
    held = {
        name: param for test, _ in tests for name in ctx.once(_attributes_in, test) if (param := _held(name, made, ctx))
    }
    callers = ctx.program.callers(made) if held else ()
    if not callers or len(callers) > _MOST_CALLERS:
        return False
    facts = ctx.program.function(made)
    passed = [_given(edge, facts, set(held.values()), ctx, (made,)) for edge in callers]
    known = [{f"self.{name}": given[param] for name, param in held.items() if param in given} for given in passed]
    return _never_runs(tests, known)


def _by_absence(scope: Scope, tests: Tests, ctx: Context) -> bool:
    """Whether a test fails for want of an attribute: `hasattr(self, "crops")`, where nothing sets `crops`."""
    asked = {key for test, _ in tests for key in ctx.once(_attributes_asked_for, test)}
    if not asked or not _has_plain_bases(scope, ctx):
        return False
    missing = {key: False for key in asked if not ctx.program.whole.is_set_anywhere(key.partition("?")[2])}
    return _never_runs(tests, [missing])


def _has_plain_bases(scope: Scope, ctx: Context) -> bool:
    """Whether the class of a method has what the project gives it by name, and little else: no layer's `weight`."""
    cls = ctx.program.function(scope).in_class
    bases = ctx.program.resolver.mro(Ref(CLASS, scope.path, cls)) if cls else ()
    if not bases or not all(base.path or base.name.rpartition(".")[2] in _PLAIN_BASES for base in bases):
        return False
    own = [base for base in bases if base.path]
    if any("__getattr__" in ctx.program.summaries[base.path].classes[base.name].methods for base in own):
        return False  # it has what something else has
    return not ctx.program.mentions(_SETTING, {base.path for base in own})


def _asks_for(node: ast.AST) -> str:
    """How it is known what `hasattr(self, "name")` comes to; "" for anything else."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr"):
        return ""
    if len(node.args) != 2 or not isinstance(node.args[0], ast.Name) or node.args[0].id != "self":
        return ""
    name = node.args[1]
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str) or name.value in _GIVEN:
        return ""
    return f"hasattr?{name.value}" if not name.value.startswith("_") else ""


def _held(name: str, made: Scope, ctx: Context) -> str:
    """The parameter of the constructor `made` that an attribute always holds, "" where it may hold something else."""
    summary = ctx.program.summaries[made.path]
    cls = made.function.rpartition(".")[0]
    if made.function not in summary.functions or cls not in summary.classes:
        return ""
    written = summary.classes[cls].attributes.get(name, ())
    if len(written) != 1:
        return ""
    value, where = written[0]
    if where != made.function or not isinstance(value, str):
        return ""
    facts = ctx.program.function(made)
    params = {param.name.lstrip("=") for param in _own_parameters(facts)}
    is_kept = value in params and value not in facts.binds and not ctx.program.whole.is_set_elsewhere(name, made)
    return value if is_kept else ""


def _never_runs(tests: Tests, given: Sequence[Mapping[str, object]]) -> bool:
    return all(any(_outcome(test, known) is (not truth) for test, truth in tests) for known in given)


def _tests_around(node: ast.AST, ctx: Context) -> tuple[FunctionNode | None, Tests]:
    """The function whose body a node stands in, and the tests there that decide whether it runs, each with what it has
    to be. Not of what stands in a lambda.
    """
    tests: list[tuple[ast.expr, bool]] = []
    child = node
    for outer in ctx.tree.ancestors(node):
        tests += _left_before(outer, child)
        if isinstance(outer, FUNCTIONS):
            return outer if child in outer.body else None, tests
        if isinstance(outer, ast.Lambda):
            break
        if isinstance(outer, ast.If) and child is not outer.test:
            tests.append((outer.test, child in outer.body))
        elif isinstance(outer, ast.IfExp) and child is not outer.test:
            tests.append((outer.test, child is outer.body))
        elif isinstance(outer, ast.BoolOp) and child is not outer.values[0]:
            before = outer.values[: outer.values.index(child)]  # type: ignore[arg-type]
            tests += [(item, isinstance(outer.op, ast.And)) for item in before]
        child = outer
    return None, ()


def _left_before(outer: ast.AST, child: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """The tests before a statement of its block, one arm of which leaves it: `if not logging: return loss`."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(outer, name, None)
        if isinstance(block, list) and child in block:
            for statement in block[: block.index(child)]:
                if isinstance(statement, ast.If):
                    if ends_block(statement.body):
                        yield statement.test, False
                    elif ends_block(statement.orelse):
                        yield statement.test, True


def _names_in(test: ast.expr, _ctx: Context) -> frozenset[str]:
    return frozenset(part.id for part in ast.walk(test) if isinstance(part, ast.Name))


def _attributes_in(test: ast.expr, _ctx: Context) -> frozenset[str]:
    return frozenset(part.attr for part in ast.walk(test) if isinstance(part, ast.Attribute) and _key(part))


def _attributes_asked_for(test: ast.expr, _ctx: Context) -> frozenset[str]:
    return frozenset(key for part in ast.walk(test) if (key := _asks_for(part)))


def _key(node: ast.expr) -> str:
    """How what a name or an attribute of `self` holds is known."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return ""


def _is_bound(name: str, function: FunctionNode, ctx: Context) -> bool:
    """Whether a parameter may come to mean something else than what was passed."""
    return any(not isinstance(part.ctx, ast.Load) for part in ctx.tree.named(name, function))


def _is_called_unseen(scope: Scope, facts: FunctionFacts, ctx: Context) -> bool:
    """Whether a function may be called with what nobody sees: by a framework, through a decorator, or as a method of
    something unknown.
    """
    decorators = _decorators(facts, scope.path, ctx)
    if ctx.program.roots.functions.get(scope) is not None or not all(map(_passes_on, decorators)):
        return True
    if not facts.in_class:
        return False
    # Calls of a tensor's methods are not recorded, some of them only where they pass something.
    unrecorded = PLAIN_METHODS if any(param.default is None for param in _own_parameters(facts)) else MAYBE_DULL
    return facts.name in unrecorded or ctx.program.whole.is_called_by_name(facts.name)


def _decorators(facts: FunctionFacts, path: str, ctx: Context) -> Iterator[str]:
    """The decorators of a function of a file as they are imported, "" for one that has no name."""
    imports = ctx.program.summaries[path].imports if facts.decorators else {}
    for decorator in facts.decorators:
        named = decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator
        first = named.partition(".")[0] if isinstance(named, str) else ""
        yield imports.get(first, first)


def _passes_on(decorator: str) -> bool:
    return decorator.partition(".")[0] in _PASSING_ON


def _calls_of_bases(scope: Scope, facts: FunctionFacts, ctx: Context) -> Iterator[Edge]:
    """The calls of what a method overrides, which may be of an object that has this one."""
    if not facts.in_class:
        return
    for base in ctx.program.resolver.mro(Ref(CLASS, scope.path, facts.in_class))[1:]:
        if base.path:
            yield from ctx.program.callers(Scope(base.path, f"{base.name}.{facts.name}"))


def _given(
    edge: Edge, facts: FunctionFacts, names: AbstractSet[str], ctx: Context, way: tuple[Scope, ...]
) -> Mapping[str, object]:
    """The literals that a call passes for parameters, or leaves them to be. `way` are the functions that lead from the
    call to where the literals are asked for.
    """
    if edge.callback or edge.stands_in:
        return {}
    call = ctx.program.function(edge.caller).calls[edge.index]
    if not _is_plain(call, edge, facts, ctx):
        return {}
    keywords = dict(call.keywords)
    found = {}
    for place, param in enumerate(_own_parameters(facts)):
        name = param.name.lstrip("=")
        if name not in names:
            continue
        by_name_alone = param.name.startswith("=")
        if name in keywords:
            value = keywords[name]
        elif SPREAD in keywords and not by_name_alone:
            value = None
        elif place < len(call.args) and not by_name_alone:
            value = call.args[place]
        else:
            value = param.default if "" not in keywords else None
        literal = _literal(value)
        if literal is _UNKNOWN and isinstance(value, str):
            literal = _handed_on(value, edge.caller, ctx, way)
        if literal is not _UNKNOWN:
            found[name] = literal
    return found


def _handed_on(name: str, scope: Scope, ctx: Context, way: tuple[Scope, ...]) -> object:
    """The one literal that a function has been given for a parameter which it hands on, itself or as an attribute that
    its constructor keeps: `transform(x, k)`, where nobody passes a `k` to the caller either.
    """
    facts = ctx.program.function(scope)
    made = scope
    if name.startswith("self.") and facts.in_class:
        made = Scope(scope.path, f"{facts.in_class}.__init__")
        name = _held(name.removeprefix("self."), made, ctx)
        if not name:
            return _UNKNOWN
        facts = ctx.program.function(made)
    elif _is_bound_in(name, facts) or _is_called_unseen(scope, facts, ctx):
        return _UNKNOWN
    callers = ctx.program.callers(made)
    if not callers or len(callers) > _MOST_CALLERS or made in way or len(way) > _LONGEST_WAY:
        return _UNKNOWN
    callers = [*callers, *_calls_of_bases(made, facts, ctx)] if made == scope else callers
    found = [_given(edge, facts, {name}, ctx, (*way, made)).get(name, _UNKNOWN) for edge in callers]
    first = found[0]
    return first if all(type(item) is type(first) and item == first for item in found) else _UNKNOWN


def _is_bound_in(name: str, facts: FunctionFacts) -> bool:
    """Whether a name may be anything else in a function than the parameter that it is called after."""
    params = {param.name.lstrip("=") for param in _own_parameters(facts)}
    looped = any(name in loop.targets for loop in facts.loops)
    return name not in params or name in facts.binds or name in facts.unclear or looped


def _is_plain(call: CallFacts, edge: Edge, facts: FunctionFacts, ctx: Context) -> bool:
    """Whether a call passes what stands in it, and no more: it is of the function itself, by its name, and neither of
    a `partial` of it nor of a method that the class is asked for.
    """
    names = {facts.name, facts.in_class.rpartition(".")[2]} if facts.name == "__init__" else {facts.name}
    if last_name(call.func) not in names:
        return False
    owner = call.func.rpartition(".")[0] if isinstance(call.func, str) else ""
    if not facts.in_class or not owner or owner == "self":
        return owner != "self"
    if {"staticmethod", "classmethod"}.isdisjoint(_plain_names(facts.decorators)):
        return not any(ref.kind == CLASS for ref in ctx.program.refs(owner, edge.caller))
    return True


def _plain_names(decorators: Sequence[Value]) -> list[str]:
    return [item for item in decorators if isinstance(item, str)]


def _own_parameters(facts: FunctionFacts) -> list[Param]:
    """What a call passes: `self` is not."""
    params = [param for param in facts.params if not param.name.startswith("*")]
    return params[1:] if facts.in_class and "staticmethod" not in facts.decorators else params


def _literal(value: Value) -> object:
    """The value of a literal of which all is known."""
    if not (isinstance(value, tuple) and value[0] == "const"):
        return _UNKNOWN
    _, kind, literal = value
    return literal if kind == "NoneType" or (kind in ("bool", "int", "str") and literal is not None) else _UNKNOWN


def _outcome(test: ast.expr, known: Mapping[str, object]) -> bool | None:
    """What a test comes to, None where what is `known` does not tell."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = _outcome(test.operand, known)
        return None if found is None else not found
    if isinstance(test, ast.BoolOp):
        outcomes = [_outcome(value, known) for value in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in outcomes:
            return decisive
        return None if None in outcomes else not decisive
    if isinstance(test, (ast.Name, ast.Attribute, ast.Call)):
        key = _asks_for(test) if isinstance(test, ast.Call) else _key(test)
        return bool(known[key]) if key in known else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(known.get(_key(test.left), _UNKNOWN), test.ops[0], test.comparators[0])
    return None


def _compared(value: object, op: ast.cmpop, other: ast.expr) -> bool | None:
    if value is _UNKNOWN or not isinstance(other, ast.Constant):
        return None
    if isinstance(op, (ast.Is, ast.IsNot)):
        is_same = type(value) is type(other.value) and value == other.value
        return is_same is isinstance(op, ast.Is)
    if isinstance(op, (ast.Eq, ast.NotEq)):
        return (value == other.value) is isinstance(op, ast.Eq)
    return None
