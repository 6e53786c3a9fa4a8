"""What makes code rarer than the loop around it, told from the test alone. Pure functions over `ast`.

`if rank == 0` and its kin make nothing rarer: one process still waits every step, and the others wait for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from perflint.facts import words
from perflint.facts.bodies import (
    assigns,
    counts,
    fills,
    keeps,
    makes,
    raises,
    sets_back,
    stands_in,
    supplies,
    switches_off,
    trains,
    undoes,
    written_name,
)
from perflint.source.walk import walk

#: Once every N turns: `step % n == 0`, `should_log`, `time.time() - last > 5`.
PERIODIC = "periodic"
#: Once per optimizer step of an accumulating loop: `(step + 1) % accumulation == 0`.
ACCUMULATION = "accumulation"
#: Once per pass of the loop: `i == 0`, `step == last`.
FIRST = "first"
#: Once in the object's life: `if self._cache is None`.
LAZY = "lazy"
#: Only when something went wrong or got better, or under a debugging switch.
RARE = "rare"

#: Only in evaluation: the other side of `if model.training`.
EVALUATION = "evaluation"

#: Once per pass of the loop as well: the block ends by leaving the loop.
LEAVES = "leaves"

_COLDEST_FIRST = (RARE, LAZY, FIRST, EVALUATION, PERIODIC, ACCUMULATION)

#: Local names that hold a test, with the guard where it is true and where it is false.
Tests: TypeAlias = "dict[str, tuple[str | None, str | None]]"
NO_TESTS: Tests = {}

_SELDOM = 0.05
#: Turns that are the first ones, of one loop and of a whole training.
_FIRST_OF_EACH = 10
_FIRST_OF_ALL = 1000
_EXPORTING = {"is_scripting", "is_tracing", "is_in_onnx_export", "is_exporting", "is_compiling", "is_dynamo_compiling"}
_BROKEN = {"isnan", "isinf"}
_HEALTHY = {"isfinite"}
_SOUND = {"isfinite", "all"}
_MODULES = {"torch", "np", "numpy"}
_TELLING_CALLS = _SOUND | {"get"}
_PLAIN = (ast.Name, ast.Subscript, ast.Tuple, ast.List, ast.Dict, ast.ListComp, ast.JoinedStr, ast.Lambda)


def classify(test: ast.expr, body: list[ast.stmt] | None = None, known: Tests = NO_TESTS) -> str | None:
    """The guard that code under `if test:` stands under, None when it is as hot as its surroundings."""
    if isinstance(test, ast.Compare):
        if len(test.ops) != 1:
            return None
        kept = _kept_comparison(test, known) if known else None
        return kept[0] if kept else _comparison(test.left, test.ops[0], test.comparators[0], body)
    if isinstance(test, (ast.Name, ast.Attribute, ast.Subscript)):
        return _named(test, body, known)
    if isinstance(test, ast.BoolOp):
        kinds = [classify(value, body, known) for value in test.values]
        if isinstance(test.op, ast.And):
            return coldest(kinds)
        if all(kinds):
            return hottest(kinds)
        # `if self.cache is None or self.cache.shape != x.shape`: filled anew only when it no longer fits.
        return LAZY if LAZY in kinds else None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, (ast.Not, ast.Invert)):
        return classify_negated(test.operand, body, known)
    if isinstance(test, ast.NamedExpr):
        return classify(test.value, body, known)
    if isinstance(test, ast.Call):
        name = written_name(test.func)
        if name in _EXPORTING or name in _BROKEN:
            return RARE
        if name in {"any", "all"} and isinstance(test.func, ast.Attribute):
            return _of_elements(test, test.func, classify, body, known)
        return PERIODIC if words.is_due(name) or name in words.DIVIDES else None
    if isinstance(test, ast.BinOp) and isinstance(test.op, (ast.BitAnd, ast.BitOr)):
        kinds = [classify(side, body, known) for side in (test.left, test.right)]
        if isinstance(test.op, ast.BitAnd):
            return coldest(kinds)
        return hottest(kinds) if all(kinds) else None  # `x.isnan().any() | x.isinf().any()`
    if isinstance(test, ast.Constant) and not test.value:
        return RARE  # `if False:`: code that is switched off
    return None


def _named(
    test: ast.Name | ast.Attribute | ast.Subscript, body: list[ast.stmt] | None, known: Tests = NO_TESTS
) -> str | None:
    """The guard of a test that is a name, by what it is called."""
    if isinstance(test, ast.Name):
        held = known.get(test.id)
        if held is not None and held[0] is not None:
            return held[0]
    elif isinstance(test, ast.Attribute) and body is not None and (switches_off(body, test) or undoes(body, test)):
        return LAZY  # `if self.first: ...; self.first = False`
    name = written_name(test)
    kind = _flag(name)
    if kind is not None:
        return kind
    if isinstance(test, ast.Name) and words.ONCE.search(name) and body is not None and switches_off(body, test):
        return FIRST  # `if first: ...; first = False`
    return PERIODIC if words.is_turning_point(name) else None


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
    if isinstance(test, ast.Compare):
        if len(test.ops) != 1:
            return None
        kept = _kept_comparison(test, known) if known else None
        return kept[1] if kept else _negated_comparison(test.left, test.ops[0], test.comparators[0], body)
    if isinstance(test, ast.Name):
        return known[test.id][1] if test.id in known else None
    if isinstance(test, ast.Attribute):
        if _is_done(test) or (body is not None and assigns(body, test)):
            return LAZY  # `if not self.ready: ...; self.ready = True`
        return EVALUATION if is_mode(test) else None
    if isinstance(test, ast.UnaryOp):
        return classify(test.operand, body, known) if isinstance(test.op, (ast.Not, ast.Invert)) else None
    if isinstance(test, ast.NamedExpr):
        return classify_negated(test.value, body, known)
    if isinstance(test, ast.BoolOp):
        kinds = [classify_negated(value, body, known) for value in test.values]
        if isinstance(test.op, ast.Or):
            return coldest(kinds)
        return hottest(kinds) if all(kinds) else None
    if isinstance(test, ast.Call):
        return _negated_call(test, body, known)
    if isinstance(test, ast.BinOp):
        if isinstance(test.op, ast.Mod):
            return _modulo(test)
        if isinstance(test.op, ast.BitAnd):
            kinds = [classify_negated(side, body, known) for side in (test.left, test.right)]
            return hottest(kinds) if all(kinds) else None  # `isfinite(boxes).all() & isfinite(scores).all()`
    return RARE if isinstance(test, ast.Constant) and test.value else None


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
    if isinstance(value, ast.Call):
        return written_name(value.func) not in _TELLING_CALLS
    if isinstance(value, ast.Attribute):
        return value.attr != "training"
    return isinstance(value, _PLAIN)


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


def chosen(name: str, word: str) -> str:
    """How a test `name == "word"` is known."""
    return f"{name} == {word!r}"


def _missing(value: ast.expr, body: list[ast.stmt] | None) -> str | None:
    """The guard of what runs only where `value` is None."""
    if body is None:
        return None
    return RARE if stands_in(body, value) else LAZY if supplies(body, value) else None


def _negated_comparison(left: ast.expr, op: ast.cmpop, right: ast.expr, body: list[ast.stmt] | None) -> str | None:
    if isinstance(op, ast.NotEq):
        return _comparison(left, ast.Eq(), right, body)
    if isinstance(op, ast.IsNot):
        return _comparison(left, ast.Is(), right, body)
    if isinstance(op, ast.In):
        return _comparison(left, ast.NotIn(), right, body)
    is_order = isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    if (
        is_order
        and body is not None
        and any(words.is_best(written_name(at)) and raises(body, at) for at in (left, right))
    ):
        return PERIODIC  # `if score < best: wait += 1`, and `else: best = score; save()`
    if isinstance(op, ast.Gt) and isinstance(left, ast.BinOp) and _is_zero(right):
        return _modulo(left)
    if isinstance(op, ast.Lt) and isinstance(right, ast.BinOp) and isinstance(right.op, ast.Add):
        # `if images < began + images_per_tick: continue`
        return PERIODIC if any(words.INTERVAL.search(written_name(part)) for part in _names(right)) else None
    return None


def _comparison(left: ast.expr, op: ast.cmpop, right: ast.expr, body: list[ast.stmt] | None) -> str | None:
    if isinstance(op, ast.Eq):
        if isinstance(right, ast.Constant) and right.value == 1 and words.FAILED.search(_asked_for(left)):
            return RARE  # `if found_oom == 1`
        if _is_infinite(left) or _is_infinite(right):
            return RARE  # `if norm_type == inf`
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
            return _modulo(left, body)
        if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Mod):
            return _modulo(right, body)
        if body is not None and sets_back(body, left) and _is_interval(left, right):
            return _above(left, right, body)
        if (_is_counter(left) and _is_awaited(right)) or (_is_counter(right) and _is_awaited(left)):
            return PERIODIC  # `if step == self.next_save_step`
        if not _is_counter(left):
            return None
        is_number = isinstance(right, ast.Constant) and isinstance(right.value, int)
        return FIRST if is_number or _is_last(right) or _is_first(right) or _is_next(left) else None
    if isinstance(op, ast.NotIn):
        # `if key not in self._cache: self._cache[key] = ...`: computed once for each key.
        return LAZY if body is not None and fills(body, right) else None
    if isinstance(op, ast.In):
        if isinstance(left, ast.Constant) and left.value in words.EPISODE_KEYS:
            return PERIODIC
        # `if i in self.plot_steps`: a counter looked up in a collection of chosen steps.
        return PERIODIC if _is_counter(left) and written_name(left) not in ("n", "t") else None
    if isinstance(op, ast.Is) and isinstance(right, ast.Constant) and right.value is None:
        return _missing(left, body)
    if isinstance(op, ast.NotEq):
        # `if self.size != size: ...; self.size = size`: made anew only when what it was made for changes.
        return LAZY if body is not None and (keeps(body, left, right) or keeps(body, right, left)) else None
    if isinstance(op, (ast.Lt, ast.LtE)):
        return _below(left, right, body)
    if isinstance(op, (ast.Gt, ast.GtE)):
        return _above(left, right, body)
    return None


def _is_interval(count: ast.expr, limit: ast.expr) -> bool:
    """Whether a count is held against an interval, by the name of either: `calls_since_draw`, `redraw_interval`."""
    name = written_name(limit)
    return bool(words.SINCE.search(written_name(count)) or (words.INTERVAL.search(name) and "_per_" not in name))


def _asked_for(node: ast.expr) -> str:
    """`found_oom` of `found_oom.item()` too."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        node = node.func.value
    return written_name(node)


def _above(left: ast.expr, right: ast.expr, body: list[ast.stmt] | None) -> str | None:
    """The guard of `left > right`."""
    name = written_name(right)
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Sub):
        # `if step - last_saved >= save_interval`, `if time.time() - last_saved > 60`
        if words.INTERVAL.search(name) or _mentions(left, {"time", "perf_counter", "monotonic", "now"}):
            return PERIODIC
    if body is not None and sets_back(body, left) and _is_interval(left, right):
        return ACCUMULATION if words.ACCUMULATES.search(name) else PERIODIC  # `if since >= every: ...; since = 0`
    if (body is not None and raises(body, right)) or words.CACHED.search(name):
        return PERIODIC  # `if length > self.longest: self.longest = length`: ever more rarely
    if _is_counter(left) and words.ALL_TURNS.match(name):
        return FIRST  # `if step >= total_steps`
    if _is_counter(left) and _is_awaited(right):
        return PERIODIC  # `if step >= self.next_eval_step`
    return PERIODIC if words.is_best(name) or words.is_best(written_name(left)) else None


def _below(left: ast.expr, right: ast.expr, body: list[ast.stmt] | None) -> str | None:
    """The guard of `left < right`."""
    if _is_seldom(left, right):
        return PERIODIC
    if _is_counter(left) and isinstance(right, ast.Constant) and isinstance(right.value, int):
        # What counts on through all epochs is soon past its first hundreds.
        if right.value <= (_FIRST_OF_ALL if words.OF_ALL_EPOCHS.search(_counted(left)) else _FIRST_OF_EACH):
            return FIRST
    if body is not None and counts(body, left):
        return FIRST  # `if shown < 5: shown += 1; ...`
    return _comparison(right, ast.Gt(), left, body)


def _is_infinite(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return written_name(node.func) == "float" and len(node.args) == 1 and _is_word(node.args[0], "inf")
    return written_name(node) in {"inf", "infty"}


def _is_word(node: ast.expr, word: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == word


def _is_seldom(drawn: ast.expr, share: ast.expr) -> bool:
    """`random.random() < 0.001`"""
    if not (isinstance(drawn, ast.Call) and written_name(drawn.func) in {"random", "rand", "uniform"}):
        return False
    return isinstance(share, ast.Constant) and isinstance(share.value, float) and share.value <= _SELDOM


def _modulo(node: ast.BinOp, body: list[ast.stmt] | None = None) -> str | None:
    """The guard of code that runs when `step % n` is zero, where that is a block `body`."""
    if not isinstance(node.op, ast.Mod):
        return None
    if body is not None and is_step_of_training(node, body):
        return None
    if isinstance(node.right, ast.Constant) and node.right.value in (1, 2) and not isinstance(node.right.value, bool):
        return None
    if isinstance(node.left, (ast.Constant, ast.JoinedStr)):
        return None
    if any(words.TELLS.search(written_name(part)) for part in _names(node.right)):
        return PERIODIC  # `accumulation * logging_steps`; `eval_accumulation_steps`: how many turns stay on the device
    if "accum" in written_name(node.right).lower() or _mentions_text(node.right, "accum"):
        return ACCUMULATION
    return PERIODIC


def is_step_of_training(test: ast.expr, body: list[ast.stmt]) -> bool:
    """Whether the block behind `step % train_frequency` is a whole step of training: the turns between two such steps
    only play, and nothing of training is more frequent.
    """
    if isinstance(test, ast.Compare):
        test = test.left
    if not (isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod)):
        return False
    return words.TRAINS_EVERY.match(written_name(test.right)) is not None and trains(body)


def coldest(kinds: Sequence[str | None]) -> str | None:
    return next((kind for kind in _COLDEST_FIRST if kind in kinds), None) if any(kinds) else None


def hottest(kinds: Sequence[str | None]) -> str | None:
    return next((kind for kind in reversed(_COLDEST_FIRST) if kind in kinds), None)


def _is_done(test: ast.Attribute) -> bool:
    """`if self.inited: return`, `if not self._calibrated: self.calibrate(x)`."""
    return isinstance(test.value, ast.Name) and test.value.id == "self" and bool(words.DONE.search(test.attr))


def _is_counter(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return _is_counter(node.left)
    return words.is_counted(_counted(node))


def _counted(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        return written_name(node.func).removeprefix("get_")  # `self.get_num_updates() == 0`
    return written_name(node)


def _is_last(node: ast.expr) -> bool:
    """`len(loader) - 1`, `last_batch`, `num_steps - 1`, `total_iters`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return isinstance(node.right, ast.Constant)
    if isinstance(node, ast.Call):
        return written_name(node.func) == "len"
    return bool(re.search(r"last|^_?max_|^_?num_|^total|^n_|warm_?up", written_name(node)))


def _is_first(node: ast.expr) -> bool:
    """`start_step`, `first_iteration + 1`, of a run that goes on where another one ended."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant):
        return _is_first(node.left)
    return bool(re.search(r"(?:^|_)(?:start|first|begin|initial|resume)(?:ed)?(?:_|$)", written_name(node)))


def _is_next(node: ast.expr) -> bool:
    """`step + 1`, which equals the number of steps at the last one."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant)


def _is_awaited(node: ast.expr) -> bool:
    """`next_save_step`, an attribute or a name."""
    return words.NEXT.match(written_name(node)) is not None


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _names(node: ast.expr) -> list[ast.expr]:
    return [part for part in walk(node) if isinstance(part, (ast.Name, ast.Attribute))]


def _mentions(node: ast.expr, names: set[str]) -> bool:
    return any(written_name(part) in names for part in walk(node) if isinstance(part, (ast.Name, ast.Attribute)))


def _mentions_text(node: ast.expr, text: str) -> bool:
    return any(text in written_name(part).lower() for part in walk(node) if isinstance(part, (ast.Name, ast.Attribute)))
