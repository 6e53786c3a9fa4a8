"""What makes code rarer than the loop around it, told from the test alone. Pure functions over `ast`.

`if rank == 0` and its kin make nothing rarer: one process still waits every step, and the others wait for it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from perflint.ir import words
from perflint.ir.bodies import (
    assigns,
    makes,
    sets,
    stores,
    switches,
    trains,
    undoes,
    written_name,
)
from perflint.ir.comparisons import comparison, is_frequent, modulo, negated_comparison
from perflint.ir.global_setters import fills_by_call
from perflint.ir.rarity import (
    ACCUMULATION,
    EVALUATION,
    FIRST,
    LAZY,
    LEAVES,
    PERIODIC,
    RARE,
    TURN,
    coldest,
    hottest,
)
from perflint.torch_model.compiling import TRACING_TESTS

__all__ = [
    "ACCUMULATION",
    "EVALUATION",
    "FIRST",
    "LAZY",
    "LEAVES",
    "NO_TESTS",
    "PERIODIC",
    "RARE",
    "TURN",
    "Tests",
    "chosen",
    "classify",
    "classify_negated",
    "declared",
    "flag_of",
    "is_declared",
    "is_health",
    "is_looked_up",
    "is_mode",
    "is_new_container",
    "is_plain",
    "is_self_test",
    "lacking",
    "looked_into",
    "looked_up_in",
]

#: Local names that hold a test, with the guard where it is true and where it is false.
Tests: TypeAlias = "dict[str, tuple[str | None, str | None]]"
NO_TESTS: Tests = {}

_BROKEN = {"isnan", "isinf"}
_HEALTHY = {"isfinite"}
_SOUND = {"isfinite", "all"}
_MODULES = {"torch", "np", "numpy"}
_TELLING_CALLS = _SOUND | {"get"}
_GLOBAL = "global "
_PLAIN = frozenset({ast.Name, ast.Subscript, ast.Tuple, ast.List, ast.Dict, ast.ListComp, ast.JoinedStr, ast.Lambda})


def classify(test: ast.expr, body: list[ast.stmt] | None = None, known: Tests = NO_TESTS) -> str | None:
    """The guard that code under `if test:` stands under, None when it is as hot as its surroundings."""
    told = _TOLD.get(type(test))
    return told(test, body, known) if told is not None else None


def _compared(test: ast.Compare, body: list[ast.stmt] | None, known: Tests) -> str | None:
    if len(test.ops) != 1:
        return None
    kept = _kept_comparison(test, known) if known else None
    if known and body is not None and isinstance(test.ops[0], ast.Is) and _is_none(test):
        if (_outlives(test.left, known) and sets(body, test.left)) or _is_filled(test.left, body, known):
            return LAZY
        if fills_by_call(body, test.left, known):
            return LAZY
    return kept[0] if kept else comparison(test.left, test.ops[0], test.comparators[0], body)


def _several(test: ast.BoolOp, body: list[ast.stmt] | None, known: Tests) -> str | None:
    kinds = [classify(value, body, known) for value in test.values]
    if isinstance(test.op, ast.And):
        return coldest(kinds)
    kinds = [kind or _of_one_turn(value, test.values) for kind, value in zip(kinds, test.values, strict=True)]
    if any(kinds):  # `step % interval == 0 or stop`
        kinds = [kind or _of_the_end(value) for kind, value in zip(kinds, test.values, strict=True)]
    if all(kinds):
        return hottest(kinds)
    if not any(map(is_frequent, test.values)) and (PERIODIC in kinds or ACCUMULATION in kinds):
        # `requested or step % interval == 0`: that it is asked for on every turn, nobody knows.
        return hottest(kinds)
    # `if self.cache is None or self.cache.shape != x.shape`: filled anew only when it no longer fits. What equals a
    # constant comes again: `if self.positions is None or past_length == 0` in each sequence.
    comes_again = any(not kind and _equals_constant(value) for kind, value in zip(kinds, test.values, strict=True))
    return LAZY if LAZY in kinds and not comes_again else None


def _equals_constant(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.Eq)
        and isinstance(test.comparators[0], ast.Constant)
    )


def _of_one_turn(test: ast.expr, others: list[ast.expr]) -> str | None:
    """`step == turns`, beside `step % interval == 0`: what is counted there equals anything on one turn."""
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and len(test.ops) == 1):
        return None
    counted = [
        ast.dump(other.left.left)
        for other in others
        if isinstance(other, ast.Compare) and isinstance(other.left, ast.BinOp) and isinstance(other.left.op, ast.Mod)
    ]
    return FIRST if ast.dump(test.left) in counted else None


def _of_the_end(test: ast.expr) -> str | None:
    """A flag that ends the loop, `stop`: true on one turn at most. Of settings, `args.early_stop` only allows it."""
    if not isinstance(test, (ast.Name, ast.Attribute)) or not words.ENDS.match(written_name(test)):
        return None
    of_settings = isinstance(test, ast.Attribute) and words.SETTINGS.match(written_name(test.value))
    return None if of_settings else FIRST


def _inverted(test: ast.UnaryOp, body: list[ast.stmt] | None, known: Tests) -> str | None:
    return classify_negated(test.operand, body, known) if isinstance(test.op, (ast.Not, ast.Invert)) else None


def _called(test: ast.Call, body: list[ast.stmt] | None, known: Tests) -> str | None:
    name = written_name(test.func)
    if name in TRACING_TESTS or name in _BROKEN:
        return RARE
    # Where the block trains, the name says that all is well: `if check_nans(loss): loss.backward()`.
    if words.FINDS_BROKEN.match(name) and not (body is not None and trains(body)):
        return RARE
    if name in {"any", "all"} and isinstance(test.func, ast.Attribute):
        return _of_elements(test, test.func, classify, body, known)
    return PERIODIC if words.is_due(name) or name in words.DIVIDES or _is_due_at(test, name) else None


def _is_due_at(test: ast.Call, name: str) -> bool:
    """`self.should_compute_norms(step + 1)`."""
    if not (test.args and words.DUE_AT.match(name)):
        return False
    turn = test.args[0].left if isinstance(test.args[0], ast.BinOp) else test.args[0]
    return words.TURN.match(written_name(turn)) is not None


def _of_both(test: ast.BinOp, body: list[ast.stmt] | None, known: Tests) -> str | None:
    if not isinstance(test.op, (ast.BitAnd, ast.BitOr)):
        return None
    kinds = [classify(side, body, known) for side in (test.left, test.right)]
    if isinstance(test.op, ast.BitAnd):
        return coldest(kinds)
    return hottest(kinds) if all(kinds) else None  # `x.isnan().any() | x.isinf().any()`


def _named(
    test: ast.Name | ast.Attribute | ast.Subscript, body: list[ast.stmt] | None, known: Tests = NO_TESTS
) -> str | None:
    """The guard of a test that is a name, by what it is called."""
    if isinstance(test, ast.Name):
        held = known.get(test.id)
        if held is not None and held[0] is not None:
            return held[0]
    elif (
        isinstance(test, ast.Attribute) and body is not None and (switches(body, test, on=False) or undoes(body, test))
    ):
        return LAZY  # `if self.first: ...; self.first = False`
    name = written_name(test)
    kind = _flag(name)
    if kind is not None:
        return kind
    if isinstance(test, ast.Name) and body is not None and switches(body, test, on=False):
        if words.ONCE.search(name):
            return FIRST  # `if first: ...; first = False`
        if not trains(body):
            return PERIODIC  # `if flush_next: flush(); flush_next = False`: few turns set it
    return PERIODIC if words.is_turning_point(name) else None


_TOLD: dict[type, Callable[..., str | None]] = {
    ast.Compare: _compared,
    ast.Name: _named,
    ast.Attribute: _named,
    ast.Subscript: _named,
    ast.BoolOp: _several,
    ast.UnaryOp: _inverted,
    ast.NamedExpr: lambda test, body, known: classify(test.value, body, known),
    ast.Call: _called,
    ast.BinOp: _of_both,
    ast.Constant: lambda test, _body, _known: None if test.value else RARE,  # `if False:`: code that is switched off
}


def flag_of(test: ast.expr, known: Tests) -> str | None:
    """The name of a flag that is all that is tested, and is no guard by what it is called or holds."""
    flag = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if not isinstance(flag, ast.Name) or classify(test, None, known) is not None:
        return None
    return flag.id


# The same few names are tested all over a project: what they say is remembered.


@lru_cache(words.REMEMBERED)
def _flag(name: str) -> str | None:
    if words.DEBUG.match(name) or words.FAILED.search(name):
        return RARE
    if words.is_due(name):
        return PERIODIC
    return FIRST if words.FIRST_TURN.match(name) or words.LAST_TURN.match(name) else None


def classify_negated(test: ast.expr, body: list[ast.stmt] | None = None, known: Tests = NO_TESTS) -> str | None:
    """The guard of code that runs when `test` is false: the `else`, or what follows `if test: continue`."""
    told = _TOLD_OF_NEGATED.get(type(test))
    return told(test, body, known) if told is not None else None


def _negated_compare(test: ast.Compare, body: list[ast.stmt] | None, known: Tests) -> str | None:
    if len(test.ops) != 1:
        return None
    kept = _kept_comparison(test, known) if known else None
    if known and body is None and isinstance(test.ops[0], ast.IsNot) and _is_none(test) and _outlives(test.left, known):
        return LAZY  # `if _plugin is not None: return _plugin`
    return kept[1] if kept else negated_comparison(test.left, test.ops[0], test.comparators[0], body)


def _negated_name(test: ast.Name, body: list[ast.stmt] | None, known: Tests) -> str | None:
    if test.id in known:
        return known[test.id][1]
    if body is not None and fills_by_call(body, test, known):
        return LAZY
    if body is None or not switches(body, test, on=True):
        return None
    if _outlives(test, known):
        return LAZY
    if trains(body):
        return None
    return PERIODIC  # `if not shown: show(); shown = True`


def _negated_attribute(test: ast.Attribute, body: list[ast.stmt] | None, _known: Tests) -> str | None:
    if _is_done(test) or (body is not None and assigns(body, test)):
        return LAZY  # `if not self.ready: ...; self.ready = True`
    return EVALUATION if is_mode(test) else None


def _negated_several(test: ast.BoolOp, body: list[ast.stmt] | None, known: Tests) -> str | None:
    kinds = [classify_negated(value, body, known) for value in test.values]
    if isinstance(test.op, ast.Or):
        return coldest(kinds)
    if all(kinds) or PERIODIC in kinds or ACCUMULATION in kinds:
        return hottest(kinds)
    # `if size == self.size and ...: use it`, and `else: ...; self.size = size`: made anew when it no longer fits.
    # A switch that has to be on as well, `self.caches and ...`, may be off for good.
    is_kept = body is not None and any(
        kind == LAZY and isinstance(value, ast.Compare) and isinstance(value.ops[0], ast.Eq)
        for kind, value in zip(kinds, test.values, strict=True)
        if not any(isinstance(other, (ast.Name, ast.Attribute)) for other in test.values)
    )
    return LAZY if is_kept else None


def _negated_operation(test: ast.BinOp, body: list[ast.stmt] | None, known: Tests) -> str | None:
    if isinstance(test.op, ast.Mod):
        return modulo(test)
    if isinstance(test.op, ast.BitAnd):
        kinds = [classify_negated(side, body, known) for side in (test.left, test.right)]
        return hottest(kinds) if all(kinds) else None  # `isfinite(boxes).all() & isfinite(scores).all()`
    return None


def _negated_call(test: ast.Call, body: list[ast.stmt] | None, known: Tests) -> str | None:
    name = written_name(test.func)
    if name in _HEALTHY:
        return RARE
    if name == "getattr" and len(test.args) == 3 and body is None:
        return LAZY  # `if getattr(self, "_ready", False): return` before what is set up once
    if name == "hasattr" and len(test.args) == 2 and body is not None and makes(body, *test.args):
        return LAZY  # `if not hasattr(self, "cache"): self.cache = ...`: made when it is first missed
    if name == "all" and isinstance(test.func, ast.Attribute):
        return _of_elements(test, test.func, classify_negated, body, known)
    return PERIODIC if name == "should_skip" or words.SKIPS.search(name) else None


_TOLD_OF_NEGATED: dict[type, Callable[..., str | None]] = {
    ast.Compare: _negated_compare,
    ast.Name: _negated_name,
    ast.Attribute: _negated_attribute,
    ast.UnaryOp: lambda test, body, known: (
        classify(test.operand, body, known) if isinstance(test.op, (ast.Not, ast.Invert)) else None
    ),
    ast.NamedExpr: lambda test, body, known: classify_negated(test.value, body, known),
    ast.BoolOp: _negated_several,
    ast.Call: _negated_call,
    ast.BinOp: _negated_operation,
    ast.Constant: lambda test, _body, _known: RARE if test.value else None,
}


def _of_elements(
    test: ast.Call,
    func: ast.Attribute,
    classified: Callable[[ast.expr, list[ast.stmt] | None, Tests], str | None],
    body: list[ast.stmt] | None,
    known: Tests,
) -> str | None:
    """The guard of `x.any()`. What is compared one by one counts no turns: `torch.all(batch_mask == 0)`."""
    looked_at = _reduced(test, func)
    kind = classified(looked_at, body, known)
    return kind if kind == RARE or not isinstance(looked_at, ast.Compare) else None


def _reduced(test: ast.Call, func: ast.Attribute) -> ast.expr:
    """What `x.all()` or `torch.all(x)` looks at."""
    of_module = isinstance(func.value, ast.Name) and func.value.id in _MODULES and bool(test.args)
    return test.args[0] if of_module else func.value


def is_plain(value: ast.expr) -> bool:
    """Whether a name that is given this value tells nothing when it is tested: told by what sort of thing it is."""
    if type(value) is ast.Call:
        return written_name(value.func) not in _TELLING_CALLS
    if type(value) is ast.Attribute:
        return value.attr != "training"
    return type(value) in _PLAIN


def is_mode(value: ast.expr) -> bool:
    """`self.model.training`: asked by what trains the model. A module that asks its own `self.training` is run for
    inference as well.
    """
    if not (isinstance(value, ast.Attribute) and value.attr == "training"):
        return False
    return not (isinstance(value.value, ast.Name) and value.value.id == "self")


def is_health(value: ast.expr, known: Tests = NO_TESTS) -> bool:
    """`torch.isfinite(boxes).all(dim=1) & ...`: what is false only where something went wrong."""
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, ast.BitAnd) and classify_negated(value, known=known) == RARE
    is_call = isinstance(value, ast.Call) and written_name(value.func) in _SOUND
    return is_call and classify_negated(value, known=known) == RARE


def is_looked_up(value: ast.expr) -> bool:
    """`self._cache.get(key)`: None only when it is asked for the first time."""
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "get"
        and isinstance(value.func.value, (ast.Attribute, ast.Name))
        and bool(words.CACHE.search(written_name(value.func.value)))
    )


def _kept_comparison(test: ast.Compare, known: Tests) -> tuple[str | None, str | None] | None:
    """What is known of `found is not None` for a value that was looked up, with the guards of true and false."""
    left, op, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(left, ast.Name) and isinstance(right, ast.Constant) and isinstance(right.value, str):
        pair = known.get(chosen(left.id, right.value))
        if pair is None or not isinstance(op, (ast.Eq, ast.NotEq)):
            return None
        return pair if isinstance(op, ast.Eq) else (pair[1], pair[0])
    if not (isinstance(left, ast.Name) and left.id in known):
        return None
    if not (isinstance(right, ast.Constant) and right.value is None):
        return None
    truth, falsehood = known[left.id]
    if isinstance(op, ast.Is):
        return falsehood, truth
    return (truth, falsehood) if isinstance(op, ast.IsNot) else None


def looked_up_in(value: ast.expr) -> str | None:
    """The mapping, as `ast.dump` has it, that `tables.get(key)` asks; None for anything else."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr != "get":
        return None
    return ast.dump(value.func.value) if len(value.args) == 1 else None


def is_new_container(value: ast.expr) -> bool:
    """`{}`, `dict()`, `set()`: what is put into it is kept as long as it is."""
    if type(value) is ast.Call:
        return not value.args and written_name(value.func) in {"dict", "set", "OrderedDict", "defaultdict"}
    return type(value) is ast.Dict and not value.keys


def looked_into(test: ast.expr) -> str:
    """`seen` of `key not in seen`, the name of the container that is all that is tested; empty for anything else."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.NotIn):
        return test.comparators[0].id if isinstance(test.comparators[0], ast.Name) else ""
    return ""


def lacking(name: str) -> str:
    """How the mapping is known in which the value of a name was looked up."""
    return f"{name} in"


def _is_filled(value: ast.expr, body: list[ast.stmt], known: Tests) -> bool:
    """`if table is None: ...; tables[key] = table`, of what was looked up there: made once for each key."""
    looked_up = known.get(lacking(value.id)) if isinstance(value, ast.Name) else None
    return looked_up is not None and looked_up[0] is not None and stores(body, looked_up[0])


def is_self_test(test: ast.expr) -> bool:
    """`__name__ == "__main__"`: within a function, it asks whether the file is run by itself."""
    return isinstance(test, ast.Compare) and written_name(test.left) == "__name__" and isinstance(test.ops[0], ast.Eq)


def _is_none(test: ast.Compare) -> bool:
    right = test.comparators[0]
    return isinstance(right, ast.Constant) and right.value is None


def _outlives(value: ast.expr, known: Tests) -> bool:
    return isinstance(value, ast.Name) and declared(value.id) in known


def declared(name: str) -> str:
    """How it is known that `name` is declared by `global`, so that it outlives the call. What is `nonlocal` is only as
    old as the call around it.
    """
    return f"{_GLOBAL}{name}"


def is_declared(known: str) -> bool:
    """Whether that is what `known`, of which tests are kept, stands for."""
    return known.startswith(_GLOBAL)


def chosen(name: str, word: str) -> str:
    """How a test `name == "word"` is known."""
    return f"{name} == {word!r}"


def _is_done(test: ast.Attribute) -> bool:
    """`if self.inited: return`, `if not self._calibrated: self.calibrate(x)`."""
    return isinstance(test.value, ast.Name) and test.value.id == "self" and bool(words.DONE.search(test.attr))
