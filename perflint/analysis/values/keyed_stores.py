"""What a mapping holds under each key that the tests around its stores name, or the loop goes through:
`if key in ("a", "b"): out[key] = ...`, `for key in names: batch[key] = ...`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from perflint.analysis.values.kind import Kind, Tag, join
from perflint.finding import Confidence
from perflint.syntax.backwards import is_left_out, keys_where
from perflint.syntax.bindings import Binding, Definition, key_of
from perflint.syntax.reaching import Reaching
from perflint.syntax.tree import FUNCTIONS, Tree
from perflint.syntax.walk import block_with

_LISTS = (ast.Tuple, ast.List, ast.Set)


def by_text(made: Sequence[tuple[Definition, Kind]], flow: Reaching, tree: Tree) -> tuple[tuple[str, Kind], ...]:
    """The values of stores under one changing key, by those of its texts that the tests around them name, or the loop
    goes through: each is what the stores give that run for it. Nothing of texts that no store runs for.
    """
    tests = [(tuple(_tests_around(item, flow, tree)), kind) for item, kind in made]
    named = dict.fromkeys(key for around, _ in tests for test in around for key in test.named if key[-1:] != "*")
    found = ((key, join(kind for around, kind in tests if all(test.lets(key) for test in around))) for key in named)
    return tuple(
        (key, kind.but(fresh=False).at_most(Confidence.MEDIUM)) for key, kind in found if kind.tag is not Tag.NEVER
    )


def for_key(
    node: ast.Subscript, stores: tuple[Definition, ...], held: Kind, flow: Reaching, tree: Tree
) -> tuple[Definition, ...]:
    """Those of the stores to `x["a"]` and `x[key]` that say what stands under the key of `x["a"]`: none under a
    changing key where the container itself tells (`nets[name] = nets[name].to(device)`), nor those that run for others.
    """
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    plain = tuple(item for item in stores if item.name == key_of(node))
    if held.tag is Tag.MAPPING or (held.tag is Tag.BATCH and isinstance(key, str) and held.item(key) is not None):
        return plain
    if not isinstance(key, str):
        return stores
    return tuple(
        item for item in stores if item in plain or all(test.lets(key) for test in _tests_around(item, flow, tree))
    )


class _Test:
    """A test of the key around a store: the texts `only` for which it runs, and those for which it is `left` out."""

    def __init__(self, only: tuple[str, ...], left: tuple[str, ...]) -> None:
        self.only, self.left = only, left
        self.named = (*only, *left)

    def lets(self, key: str) -> bool:
        """Whether the store runs for a key, as far as this test tells."""
        return not is_left_out(key, self.left) and (not self.only or is_left_out(key, self.only))


def _tests_around(store: Definition, flow: Reaching, tree: Tree) -> Iterator[_Test]:
    target = store.target
    if not (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Name)):
        return
    name, inner = target.slice.id, store.node
    for outer in tree.ancestors(store.node):
        if isinstance(outer, FUNCTIONS):
            return
        yield from (
            _test_of(earlier.test, name, flow, truth=False)
            for earlier in _before(inner, outer)
            if isinstance(earlier, ast.If) and isinstance(earlier.body[-1], ast.Continue) and not earlier.orelse
        )
        if isinstance(outer, ast.If):
            yield _test_of(outer.test, name, flow, truth=inner in outer.body)
        elif isinstance(outer, (ast.For, ast.While)):
            if isinstance(outer, ast.For) and isinstance(outer.target, ast.Name) and outer.target.id == name:
                yield _Test(_texts(_written_out(outer.iter, flow)), ())
            return
        inner = outer


def _before(statement: ast.AST, outer: ast.AST) -> list[ast.stmt]:
    block = block_with(outer, statement)
    return block[: block.index(statement)] if block else []  # type: ignore[arg-type]


def _test_of(test: ast.expr, name: str, flow: Reaching, *, truth: bool) -> _Test:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        test = ast.Compare(test.left, test.ops, [_written_out(test.comparators[0], flow)])
    return _Test(keys_where(test, name, truth=truth), keys_where(test, name, truth=not truth))


def _written_out(names: ast.expr, flow: Reaching) -> ast.expr:
    """The list that a name stands for, where it is bound once."""
    made = flow.definitions(names) if isinstance(names, ast.Name) else ()
    value = made[0].value if len(made) == 1 and made[0].binding is Binding.ASSIGN and not made[0].path else None
    return value if isinstance(value, _LISTS) else names


def _texts(names: ast.expr) -> tuple[str, ...]:
    values = names.elts if isinstance(names, _LISTS) else []
    keys = [item.value for item in values if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return tuple(keys) if len(keys) == len(values) else ()


def always_before(store: Definition, use: ast.AST, tree: Tree) -> bool:
    """Whether the loop that a store stands in has always run before a use."""
    loop = next((outer for outer in tree.ancestors(store.node) if isinstance(outer, ast.For)), None)
    parent = tree.parent(loop) if loop is not None else None
    block = block_with(parent, loop) if parent is not None and loop is not None else None
    if not block or loop not in block:
        return False
    around = [use, *tree.ancestors(use)]
    return any(outer in around for outer in block[block.index(loop) + 1 :])
