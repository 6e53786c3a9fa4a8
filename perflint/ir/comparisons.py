"""What a comparison says of how often it holds: counters, limits, what is missing. Pure functions over `ast`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.ir import words
from perflint.ir.bodies import (
    counts,
    fills,
    hands_to_self,
    keeps,
    raises,
    sets,
    sets_back,
    stands_in,
    steps_with_gathered,
    supplies,
    trains,
    written_name,
)
from perflint.ir.rarity import ACCUMULATION, FIRST, LAZY, PERIODIC, RARE
from perflint.syntax.walk import walk

_SELDOM = 0.05
#: A period of so few turns makes nothing rare.
OFTEN = 4
#: Turns that are the first ones, of one loop and of a whole training.
_FIRST_OF_EACH = 10
_FIRST_OF_ALL = 1000


def _missing(value: ast.expr, body: list[ast.stmt] | None) -> str | None:
    """The guard of what runs only where `value` is None."""
    if body is None:
        return None
    return RARE if stands_in(body, value) else LAZY if supplies(body, value) else None


def negated_comparison(left: ast.expr, op: ast.cmpop, right: ast.expr, body: list[ast.stmt] | None) -> str | None:
    told = _COMPARED_OF_NEGATED.get(type(op))
    if told is not None:
        return told(left, right, body)
    if isinstance(op, (ast.Lt, ast.LtE)) and _is_since(left, right):
        return PERIODIC  # `if step - last_moved < interval: return`
    is_order = isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    if (
        is_order
        and body is not None
        and any(words.is_best(written_name(at)) and raises(body, at) for at in (left, right))
    ):
        return PERIODIC  # `if score < best: wait += 1`, and `else: best = score; save()`
    if isinstance(op, ast.Gt) and isinstance(left, ast.BinOp) and _is_zero(right):
        return modulo(left)
    if isinstance(op, ast.Lt) and isinstance(right, ast.BinOp) and isinstance(right.op, ast.Add):
        # `if images < began + images_per_tick: continue`
        return PERIODIC if any(words.INTERVAL.search(written_name(part)) for part in _names(right)) else None
    return None


def comparison(left: ast.expr, op: ast.cmpop, right: ast.expr, body: list[ast.stmt] | None) -> str | None:
    told = _COMPARED.get(type(op))
    return told(left, right, body) if told is not None else None


def _equal(left: ast.expr, right: ast.expr, body: list[ast.stmt] | None) -> str | None:
    """The guard of `left == right`."""
    if isinstance(right, ast.Constant) and right.value == 1 and words.FAILED.search(_asked_for(left)):
        return RARE  # `if found_oom == 1`
    if _is_infinite(left) or _is_infinite(right) or _is_unset_variable(left, right):
        return RARE  # `if norm_type == inf`, `if os.environ.get("DUMP", "0") == "1"`
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
        return modulo(left, body)
    if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Mod):
        return modulo(right, body)
    if body is not None and sets_back(body, left) and _is_interval(left, right):
        return _above(left, right, body)
    if _is_key(left) or _is_key(right):
        return PERIODIC  # `if cv2.waitKey(1) == ord("r")`: a person strikes a key in few turns
    is_counted = _is_counter(left)
    if (is_counted and _is_awaited(right)) or (_is_awaited(left) and _is_counter(right)):
        return PERIODIC  # `if step == self.next_save_step`
    if not is_counted:
        return None
    is_number = isinstance(right, ast.Constant) and isinstance(right.value, int)
    return FIRST if is_number or _is_last(right) or _is_first(right) or _is_next(left) or _is_chosen(right) else None


def _among(left: ast.expr, right: ast.expr, _body: list[ast.stmt] | None) -> str | None:
    """The guard of `left in right`."""
    if isinstance(left, ast.Constant) and left.value in words.EPISODE_KEYS:
        return PERIODIC
    # `if i in self.plot_steps`: a counter looked up in a collection of chosen steps. Keys are looked up in tables.
    if isinstance(right, ast.Call) and written_name(right.func) in {"keys", "values", "items"}:
        return None
    return PERIODIC if _is_counter(left) and written_name(left) not in ("n", "t", "k") else None


def _not_among(_left: ast.expr, right: ast.expr, body: list[ast.stmt] | None) -> str | None:
    """`if key not in self._cache: self._cache[key] = ...`: computed once for each key."""
    return LAZY if body is not None and fills(body, right) else None


def _same(left: ast.expr, right: ast.expr, body: list[ast.stmt] | None) -> str | None:
    if not (isinstance(right, ast.Constant) and right.value is None):
        return None
    if body is not None and isinstance(left, ast.Attribute) and left.attr == "momentum" and _averages(body):
        return RARE
    return _missing(left, body)


def _averages(body: list[ast.stmt]) -> bool:
    """`share = 1.0 / self.seen`: a batch norm that averages over all batches, which hardly any does. Each copy of one
    asks for it; an optimizer without a momentum is a common one.
    """
    return any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Div)
        and isinstance(part.left, ast.Constant)
        and part.left.value == 1
        for statement in body
        for part in walk(statement)
    )


def _different(left: ast.expr, right: ast.expr, body: list[ast.stmt] | None) -> str | None:
    """`if self.size != size: ...; self.size = size`, `if self.grid.shape != x.shape: self.grid = make(x)`: made anew
    only when what it was made for changes. The number of the turn does on each: `if step == self.last_step: return`.
    """
    if body is not None and any(_is_of_kept(side, body) for side in (left, right)):
        return LAZY
    if body is None or any(words.TURNS_ON.match(written_name(side)) for side in (left, right)):
        return None
    return LAZY if keeps(body, left, right) or keeps(body, right, left) else None


def _is_of_kept(side: ast.expr, body: list[ast.stmt]) -> bool:
    """Whether a side of a test is the size, the type or the place of what an object keeps and the body makes anew, also
    where that has a name: `grid = self.grids[k]`.
    """
    while isinstance(side, ast.Subscript):
        side = side.value
    if isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) and side.func.attr == "size":
        side = side.func
    if isinstance(side, ast.Call) and written_name(side.func) == "len" and len(side.args) == 1:
        side = ast.Attribute(side.args[0], "shape", ast.Load())
    if not isinstance(side, ast.Attribute) or side.attr not in ("shape", "size", "device", "dtype"):
        return False
    kept = side.value
    if isinstance(kept, ast.Name):
        return hands_to_self(body, kept.id)
    root = kept
    while isinstance(root, (ast.Subscript, ast.Attribute)):
        root = root.value
    return kept is not root and isinstance(root, ast.Name) and root.id == "self" and sets(body, kept)


def _is_interval(count: ast.expr, limit: ast.expr) -> bool:
    """Whether a count is held against an interval, by the name of either: `calls_since_draw`, `redraw_interval`."""
    name = written_name(limit)
    return bool(words.SINCE.search(written_name(count)) or (words.INTERVAL.search(name) and "_per_" not in name))


def _is_since(left: ast.expr, limit: ast.expr) -> bool:
    """Whether what has gone by since something is held against an interval: `step - last_saved`, `time.time() - t`."""
    if not isinstance(left, ast.BinOp) or not isinstance(left.op, ast.Sub):
        return False
    is_interval = words.INTERVAL.search(written_name(limit)) is not None
    return is_interval or _mentions(left, {"time", "perf_counter", "monotonic", "now"})


def _is_unset_variable(asked: ast.expr, wanted: ast.expr) -> bool:
    """Whether a variable of the environment is asked for another value than it has where nobody sets it."""
    if not isinstance(asked, ast.Call) or not asked.args or not isinstance(wanted, ast.Constant):
        return False
    func = asked.func
    is_asked = isinstance(func, ast.Attribute) and func.attr == "get" and written_name(func.value) == "environ"
    if not is_asked and written_name(func) != "getenv":
        return False
    if isinstance(asked.args[0], ast.Constant) and words.LAUNCHED.search(str(asked.args[0].value)):
        return False  # `os.environ.get("RANK") == "0"`: one process does it, as often as ever
    default = asked.args[1] if len(asked.args) > 1 else ast.Constant(None)
    return isinstance(default, ast.Constant) and default.value != wanted.value


def _asked_for(node: ast.expr) -> str:
    """`found_oom` of `found_oom.item()` too."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        node = node.func.value
    return written_name(node)


def _above(left: ast.expr, right: ast.expr, body: list[ast.stmt] | None) -> str | None:
    """The guard of `left > right`."""
    if isinstance(right, ast.Constant) and words.DEBUG.match(written_name(left)):
        return RARE  # `if options.debug > 1`
    if body is not None and _is_of_kept(right, body):
        return LAZY  # `if length > self.table.size(0): self.table = make(2 * length)`: it only grows
    name = written_name(right)
    if _is_since(left, right):
        return PERIODIC  # `if step - last_saved >= save_interval`, `if time.time() - last_saved > 60`
    if body is not None and sets_back(body, left) and _is_interval(left, right):
        gathers = words.ACCUMULATES.search(name) or steps_with_gathered(body)
        return ACCUMULATION if gathers else PERIODIC  # `if since >= every: ...; since = 0`
    if body is not None and counts(body, right):
        return PERIODIC  # `if elapsed // interval >= saved: save(); saved += 1`
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
    return _above(right, left, body)


_COMPARED: dict[type[ast.cmpop], Callable[[ast.expr, ast.expr, list[ast.stmt] | None], str | None]] = {
    ast.Eq: _equal,
    ast.NotEq: _different,
    ast.In: _among,
    ast.NotIn: _not_among,
    ast.Is: _same,
    ast.Lt: _below,
    ast.LtE: _below,
    ast.Gt: _above,
    ast.GtE: _above,
}
_COMPARED_OF_NEGATED = {ast.Eq: _different, ast.NotEq: _equal, ast.IsNot: _same, ast.In: _not_among}


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


def modulo(node: ast.BinOp, body: list[ast.stmt] | None = None) -> str | None:
    """The guard of code that runs when `step % n` is zero, where that is a block `body`."""
    if not isinstance(node.op, ast.Mod):
        return None
    if body is not None and is_step_of_training(node, body):
        return None
    if is_frequent(node):
        return None
    if isinstance(node.left, (ast.Constant, ast.JoinedStr)):
        return None
    if any(words.TELLS.search(written_name(part)) for part in _names(node.right)):
        return PERIODIC  # `accumulation * logging_steps`; `eval_accumulation_steps`: how many turns stay on the device
    if "accum" in written_name(node.right).lower() or _mentions_text(node.right, "accum"):
        return ACCUMULATION
    if body is not None and steps_with_gathered(body):
        return ACCUMULATION
    return PERIODIC


def is_frequent(node: ast.expr) -> bool:
    """`step % 2`, `step % 4 == 0`: every few turns, which is no seldom thing."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        node = node.left
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.right, ast.Constant)):
        return False
    return type(node.right.value) is int and 1 <= node.right.value <= OFTEN


def is_step_of_training(test: ast.expr, body: list[ast.stmt]) -> bool:
    """Whether the block behind `step % train_frequency` is a whole step of training: the turns between two such steps
    only play, and nothing of training is more frequent.
    """
    if isinstance(test, ast.Compare):
        test = test.left
    if not (isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod)):
        return False
    return words.TRAINS_EVERY.match(written_name(test.right)) is not None and trains(body)


def _is_counter(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return _is_counter(node.left)
    if isinstance(node, ast.Attribute) and words.SETTINGS.match(written_name(node.value)):
        return False  # `args.step`: what is set beforehand counts no turns
    return words.is_counted(_counted(node))


def _counted(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        return written_name(node.func).removeprefix("get_")  # `self.get_num_updates() == 0`
    return written_name(node)


def _is_last(node: ast.expr) -> bool:
    """`len(loader) - 1`, `last_batch`, `num_steps - 1`, `total_iters`; `len(loader) // 2` comes once as well."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return isinstance(node.right, ast.Constant)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
        return isinstance(node.left, ast.Call) and isinstance(node.right, ast.Constant) and _is_last(node.left)
    if isinstance(node, ast.Call):
        return written_name(node.func) == "len"
    return bool(words.LAST_NUMBER.search(written_name(node)))


def _is_first(node: ast.expr) -> bool:
    """`start_step`, `first_iteration + 1`, of a run that goes on where another one ended."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant):
        return _is_first(node.left)
    return bool(words.FIRST_NUMBER.search(written_name(node)))


def _is_chosen(node: ast.expr) -> bool:
    """`args.pretrain_steps`: a turn of the settings, which comes once. `args.accumulation_steps` comes again."""
    if not (isinstance(node, ast.Attribute) and words.SETTINGS.match(written_name(node.value))):
        return False
    return words.NUMBER_OF_TURNS.search(node.attr) is not None and words.ACCUMULATES.search(node.attr) is None


def _is_next(node: ast.expr) -> bool:
    """`step + 1`, which equals the number of steps at the last one."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant)


def _is_awaited(node: ast.expr) -> bool:
    """`next_save_step`, an attribute or a name."""
    return words.NEXT.match(written_name(node)) is not None


def _is_key(node: ast.expr) -> bool:
    """The code of a character, `ord("q")`."""
    return isinstance(node, ast.Call) and written_name(node.func) == "ord" and _is_text(node.args)


def _is_text(args: list[ast.expr]) -> bool:
    return len(args) == 1 and isinstance(args[0], ast.Constant)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _names(node: ast.expr) -> list[ast.expr]:
    return [part for part in walk(node) if isinstance(part, (ast.Name, ast.Attribute))]


def _mentions(node: ast.expr, names: set[str]) -> bool:
    return any(written_name(part) in names for part in walk(node) if isinstance(part, (ast.Name, ast.Attribute)))


def _mentions_text(node: ast.expr, text: str) -> bool:
    return any(text in written_name(part).lower() for part in walk(node) if isinstance(part, (ast.Name, ast.Attribute)))
