"""Parents and names that are looked for only when they are asked about."""

from __future__ import annotations

import ast
import textwrap
from itertools import pairwise
from typing import TypeGuard

from perflint.syntax.file import SourceFile
from perflint.syntax.tree import FUNCTIONS, LOOPS, SCOPES, Tree
from perflint.syntax.walk import SOMETIMES, STATEMENTS, children, walk

TEXT = textwrap.dedent(
    """
    import a; from b import c as a1; a = b; b(a)
    @a(lambda b: a)
    class A(B[a], metaclass=c):
        a: b = c; b = a
        @property
        @a.b(
            c)
        def f(self, a=b, *, c: a = [b for b in c if a]) -> a[b]:
            if (a and
                    b): c(a); a = b
            elif a: b
            else:
                c = f"{a!r:>{b}} {c.a(b)}"; a(
                    b); c
            try: a.b.c
            except (a, b) as c: b
            except c: a
            else: b
            finally:
                c
            match a:
                case b.c if a: c
                case A(b, [c, *a]): b(lambda: a, b)
                case {"a": b, **c}: pass
            def g(a=a): return a

            async def h():
                async with a as b, c: await b
                async for a in b: yield c
        f(a)
        if a:
            def f(self): del a, b[c]
    while (a :=
           b(c)): a += (
        b); continue
    else: c
    with a(b) as (c, *a): global b
    for a in b, c: print(f'''
        {a}
        {b} {a}''')
    """
)


def _tree() -> Tree:
    return Tree(SourceFile("f.py", TEXT), ast.parse(TEXT))


def test_the_parent_of_every_node_whichever_is_asked_first() -> None:
    for number, _ in enumerate(walk(ast.parse(TEXT))):
        tree = _tree()
        node = walk(tree.module)[number]
        expected = {id(below): above for above in walk(tree.module) for below in children(above)}
        assert tree.parent(node) is expected.get(id(node)), ast.dump(node)


def test_the_parents_of_all_nodes() -> None:
    tree = _tree()
    for above in walk(tree.module):
        assert all(tree.parent(below) is above for below in children(above))
    assert tree.parent(tree.module) is None


def test_a_node_of_another_tree_has_no_parent() -> None:
    tree = _tree()
    for node in walk(ast.parse("def f(a):\n    return [a for a in a]")):
        assert tree.parent(node) is None


def test_where_a_node_stands_is_what_its_parents_say() -> None:
    tree = _tree()
    for node in walk(tree.module):
        way = [node, *tree.ancestors(node)]
        end = next((place for place, outer in enumerate(way) if type(outer) in STATEMENTS), len(way) - 1)
        assert tree.standing(node) == (way[end], not any(type(outer) in SOMETIMES for outer in way[1 : end + 1]))
        assert tree.function_of(node) is next((outer for outer in way[1:] if isinstance(outer, FUNCTIONS)), None)
        loops = []
        for child, outer in pairwise(way):
            if isinstance(outer, SCOPES):
                break
            if isinstance(outer, LOOPS) and (child in outer.body or child is getattr(outer, "test", None)):
                loops.append(outer)
        assert tree.loops_around(node) == loops, ast.dump(node)


def test_names_are_found_by_the_text() -> None:
    tree = _tree()
    for region in walk(tree.module):
        if isinstance(region, (ast.stmt, ast.Module, ast.Lambda)):
            for name in ("a", "b", "c", "self"):
                expected = {id(node) for node in walk(region) if isinstance(node, ast.Name) and node.id == name}
                assert set(map(id, tree.named(name, region))) == expected, (name, ast.dump(region))


def test_what_names_a_word_comes_in_the_order_of_the_source() -> None:
    tree = _tree()
    lines = [getattr(item, "lineno", 0) for item in tree.naming(["b"], tree.module) if isinstance(item, ast.stmt)]
    assert lines == sorted(lines)


def test_parts_of_words_name_nothing() -> None:
    text = "abc\nx_a\na_x\nxa\na1\nfoo(ab, a)\n"
    tree = Tree(SourceFile("f.py", text), ast.parse(text))
    assert tree.naming(["a"], tree.module) == [tree.module.body[-1]]


def test_a_callee_is_named_where_a_bracket_follows() -> None:
    text = "f\nx = f\ng(f)\nh(f=1)\nf(1)\n(f)(2)\nf[int](3)\n(f  # one ) of many\n(4))\na.f (5)\nf \\\n(6)\n"
    tree = Tree(SourceFile("f.py", text), ast.parse(text))
    named = tree.naming(["f"], tree.module, called=["f"])
    assert [item for item in tree.module.body if item in named] == tree.module.body[4:]


def test_the_block_of_a_statement_is_what_stands_beside_it() -> None:
    text = "try:\n    a; b\nexcept E:\n    c\nelse:\n    d; e\nfinally:\n    f\n"
    tree = Tree(SourceFile("a.py", text), ast.parse(text))
    lines = {statement.lineno: tree.block_of(statement) for statement in ast.walk(tree.module) if _is_name(statement)}
    assert {line: [ast.unparse(item) for item in block] for line, block in lines.items()} == {
        2: ["a", "b"],
        4: ["c"],
        6: ["d", "e"],
        8: ["f"],
    }


def _is_name(node: ast.AST) -> TypeGuard[ast.stmt]:
    return isinstance(node, ast.Expr)
