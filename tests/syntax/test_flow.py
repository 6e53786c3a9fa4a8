"""Definitions that reach a use, uses of a definition, and what regions of code change."""

from __future__ import annotations

import ast
import textwrap

import pytest

from perflint.syntax.file import SourceFile
from perflint.syntax.flow import Definition, Flow
from perflint.syntax.tree import Tree


class Program:
    def __init__(self, text: str) -> None:
        self.text = textwrap.dedent(text).strip("\n") + "\n"
        self.tree = Tree(SourceFile("f.py", self.text), ast.parse(self.text))
        self.flow = Flow(self.tree)

    def use(self, name: str = "x", last: bool = True) -> ast.Name:
        """The last (or first) load of a name."""
        found = [
            node
            for node in ast.walk(self.tree.module)
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]
        found.sort(key=lambda node: (node.lineno, node.col_offset))
        return found[-1 if last else 0]

    def lines(self, name: str = "x", last: bool = True) -> list[int]:
        """The lines of the definitions that reach it."""
        return sorted(line_of(item) for item in self.flow.definitions(self.use(name, last)))

    def loop(self) -> ast.For | ast.While:
        return next(node for node in ast.walk(self.tree.module) if isinstance(node, (ast.For, ast.While)))


def line_of(definition: Definition) -> int:
    node = definition.node
    if isinstance(node, ast.comprehension):
        node = node.target
    if isinstance(node, ast.match_case):
        node = node.pattern
    return int(getattr(node, "lineno", 0))


REACHING = {
    "the last of two": ("x = 1\nx = 2\nprint(x)", [2]),
    "either arm": ("if a:\n    x = 1\nelse:\n    x = 2\nprint(x)", [2, 4]),
    "one arm only": ("x = 0\nif a:\n    x = 1\nprint(x)", [1, 3]),
    "an arm that leaves": ("x = 0\nif a:\n    x = 1\n    raise E\nprint(x)", [1]),
    "the other arm": ("x = 0\nif a:\n    x = 1\nelse:\n    print(x)", [1]),
    "a chain of arms": ("if a:\n    x = 1\nelif b:\n    x = 2\nelse:\n    x = 3\nprint(x)", [2, 4, 6]),
    "around a loop": ("x = 0\nfor i in r:\n    print(x)\n    x = i", [1, 4]),
    "hidden inside a loop": ("x = 0\nfor i in r:\n    x = i\n    print(x)", [3]),
    "after a loop": ("x = 0\nfor i in r:\n    x = i\nprint(x)", [1, 3]),
    "a loop's target": ("x = 0\nfor x in r:\n    print(x)", [2]),
    "a loop's target afterwards": ("x = 0\nfor x in r:\n    pass\nprint(x)", [1, 2]),
    "before continue": (
        "x = 0\nfor i in r:\n    print(x)\n    if a:\n        x = 1\n        continue\n    x = 2",
        [1, 5, 7],
    ),
    "before break": ("x = 0\nfor i in r:\n    if a:\n        x = 1\n        break\nprint(x)", [1, 4]),
    "out of an endless loop": ("x = 0\nwhile True:\n    x = 1\n    if a:\n        break\nprint(x)", [3]),
    "a test of while": ("x = 0\nwhile x:\n    x = 1", [1, 3]),
    "for else": ("x = 0\nfor i in r:\n    pass\nelse:\n    x = 1\nprint(x)", [1, 5]),
    "a handler": ("x = 0\ntry:\n    x = f()\nexcept E:\n    print(x)", [1, 3]),
    "after a handler that sets it": ("try:\n    x = f()\nexcept E:\n    x = 1\nprint(x)", [2, 4]),
    "after a handler that leaves": ("x = 0\ntry:\n    x = f()\nexcept E:\n    raise\nprint(x)", [3]),
    "finally": ("x = 0\ntry:\n    x = f()\nfinally:\n    print(x)", [1, 3]),
    "with": ("x = 0\nwith f() as x:\n    print(x)", [2]),
    "inside with": ("x = 0\nwith f():\n    x = 1\nprint(x)", [3]),
    "its own value": ("x = 1\nx = f(x)", [1]),
    "augmented": ("x = 1\nx += 2\nprint(x)", [2]),
    "a walrus in a test": ("x = 0\nif (x := f()):\n    print(x)", [2]),
    "a walrus later in the test": ("if (x := f()) and x.y:\n    pass", [1]),
    "a deleted name": ("x = 1\ndel x\nx = 2\nprint(x)", [3]),
    "a comprehension's own": ("x = 1\ny = [x for x in r]", [2]),
    "a comprehension's iterable": ("x = 1\ny = [x for x in x]", [2]),
    "a nested comprehension": ("x = 1\ny = [x for a in r for x in a]", [2]),
    "an import": ("import x\nprint(x)", [1]),
    "an import that may fail": ("try:\n    import x\nexcept ImportError:\n    x = None\nprint(x)", [2, 4]),
    "nothing": ("print(x)", []),
    "a match": ("x = 0\nmatch v:\n    case 1:\n        x = 1\nprint(x)", [1, 4]),
    "a captured pattern": ("match v:\n    case x:\n        print(x)", [2]),
}


@pytest.mark.parametrize("where", ["module", "function"])
@pytest.mark.parametrize("name", REACHING)
def test_reaching(name: str, where: str) -> None:
    text, wanted = REACHING[name]
    if where == "function":
        text = "def f():\n" + textwrap.indent(text, "    ")
        wanted = [line + 1 for line in wanted]
    assert Program(text).lines() == wanted


def test_scopes() -> None:
    assert Program("x = 1\ndef f():\n    print(x)\nx = 2").lines() == [1, 4]
    assert Program("x = 1\ndef f(x):\n    print(x)").lines() == [2]
    assert Program("x = 1\ndef f(x):\n    x = 2\n    print(x)").lines() == [3]
    assert Program("def f(x):\n    if a:\n        x = 2\n    print(x)").lines() == [1, 3]
    assert Program("x = 1\ndef f(y=x):\n    pass").lines() == [1]
    assert Program("x = 1\ny = lambda x: x").lines() == [2]
    assert Program("def f(x):\n    def g():\n        return x\n    return g").lines() == [1]
    assert Program("class A:\n    x = 1\n    y = x").lines() == [2]
    # Methods do not see the names of their class.
    assert Program("x = 0\nclass A:\n    x = 1\n    def f(self):\n        return x").lines() == [1]
    assert Program("x = 0\nclass A:\n    x = 1\n    f = lambda self: x").lines() == [1]
    # What is evaluated where a method is made does see them.
    assert Program("x = 0\nclass A:\n    x = 1\n    def f(self, y=x):\n        pass").lines() == [3]
    assert Program("x = 0\nclass A:\n    x = 1\n    @x\n    def f(self):\n        x = 2").lines() == [3]
    # Default values of a lambda are no business of its own.
    assert Program("x = 0\nf = lambda x=x: 1").lines() == [1]


def test_global_names_have_the_definitions_of_functions() -> None:
    program = Program("""
        x = 0
        def f():
            global x
            x = 1
        def g():
            print(x)
        """)
    assert program.lines() == [1, 4]


def test_parts_of_a_value_that_is_taken_apart() -> None:
    program = Program("(a, (b, *c)), d = f()\nprint(a, b, c, d)")
    paths = {name: program.flow.definitions(program.use(name))[0].path for name in "abcd"}
    assert paths == {"a": (0, 0), "b": (0, 1, 0), "c": (0, 1, "*"), "d": (1,)}


def test_pairs_are_taken_apart_at_once() -> None:
    program = Program("a, b = f(), g()\nprint(b)")
    (found,) = program.flow.definitions(program.use("b"))
    assert found.value is not None
    assert ast.unparse(found.value) == "g()"
    assert found.path == ()


def test_counted_from_the_end_after_a_star() -> None:
    program = Program("a, *b, c = f()\nprint(c)")
    assert program.flow.definitions(program.use("c"))[0].path == (-1,)


class TestStores:
    @staticmethod
    def stores(text: str, expression: str) -> tuple[list[int], bool]:
        program = Program(text)
        found = [
            node
            for node in ast.walk(program.tree.module)
            if isinstance(node, (ast.Attribute, ast.Subscript))
            and isinstance(node.ctx, ast.Load)
            and ast.unparse(node) == expression
        ]
        last = max(found, key=lambda node: node.lineno)
        stores, through = program.flow.definitions_of(last)
        return sorted(line_of(item) for item in stores), through

    def test_item(self) -> None:
        assert self.stores("b['x'] = 1\nprint(b['x'])", "b['x']") == ([1], False)

    def test_other_item(self) -> None:
        assert self.stores("b['y'] = 1\nprint(b['x'])", "b['x']") == ([], True)

    def test_maybe(self) -> None:
        assert self.stores("if a:\n    b['x'] = 1\nprint(b['x'])", "b['x']") == ([2], True)

    def test_base_bound_again(self) -> None:
        assert self.stores("b['x'] = 1\nb = f()\nprint(b['x'])", "b['x']") == ([], True)

    def test_attribute(self) -> None:
        assert self.stores("def f(self):\n    self.h = 1\n    print(self.h)", "self.h") == ([2], False)

    def test_every_item(self) -> None:
        assert self.stores("for k in b:\n    b[k] = 1\nprint(b['x'])", "b['x']") == ([2], False)

    def test_some_items(self) -> None:
        assert self.stores("for k in b:\n    if a:\n        b[k] = 1\nprint(b['x'])", "b['x']") == ([3], True)

    def test_stores_under_all_keys_but_some(self) -> None:
        text = "for k in b:\n    if k != 'x':\n        b[k] = 1\nprint(b['x'], b['y'])"
        assert self.stores(text, "b['x']") == ([], True)
        assert self.stores(text, "b['y']") == ([3], False)

    def test_stores_under_one_key_where_the_others_are_left_out(self) -> None:
        text = "for k in b:\n    if k != 'x':\n        pass\n    else:\n        b[k] = 1\nprint(b['x'])"
        assert self.stores(text, "b['x']") == ([5], True)

    def test_stores_under_a_test_of_something_else_than_the_key(self) -> None:
        text = "for k in b:\n    if d != 'x':\n        b[k] = 1\nprint(b['x'], b['y'])"
        assert self.stores(text, "b['x']") == ([3], True)
        assert self.stores(text, "b['y']") == ([3], True)


def test_uses_of_a_definition() -> None:
    program = Program("x = 1\nprint(x)\nx = 2\nprint(x)\nprint(x)")
    definition = program.flow.definitions(program.use())[0]
    assert [use.lineno for use in program.flow.uses_of(definition)] == [4, 5]


def test_uses_after() -> None:
    program = Program("""
        def f():
            print(x)
            for i in r:
                print(x)
                g(i)
                print(x)
            print(x)
        """)
    call = next(
        node for node in ast.walk(program.tree.module) if isinstance(node, ast.Call) and ast.unparse(node) == "g(i)"
    )
    assert [use.lineno for use in program.flow.uses_after(call, "x")] == [4, 6, 7]


def test_what_a_loop_writes_and_changes() -> None:
    program = Program("""
        for i, (a, b) in r:
            c = 1
            d += 1
            e.append(1)
            f['k'] = 1
            g.h = 1
            i.zero_()
            with q() as j: pass
            k = [m for m in n]
        """)
    loop = program.loop()
    assert {"i", "a", "b", "c", "d", "f['k']", "g.h", "j", "k"} <= program.flow.names_written(loop)
    assert {"d", "e", "f", "g", "i"} <= program.flow.names_mutated(loop)
    assert "r" not in program.flow.names_written(loop)
    assert not program.flow.is_mutated("n", loop)


INVARIANT = {
    "a + b": True,
    "i + 1": False,
    "changed": False,
    "filled[0]": False,
    "self.fixed": True,
    "self.moved": False,
    "len(a)": False,
    "pure(a)": True,
    "pure(i)": False,
    "[q for q in a]": True,
    "'text'": True,
}


@pytest.mark.parametrize("expression", INVARIANT)
def test_invariant(expression: str) -> None:
    program = Program(f"""
        for i in r:
            changed = g(i)
            filled.append(i)
            self.moved = i
            print({expression})
        """)
    call = program.tree.module.body[0].body[-1].value  # type: ignore[attr-defined]

    def pure(node: ast.Call) -> bool:
        return isinstance(node.func, ast.Name) and node.func.id == "pure"

    assert program.flow.is_invariant(call.args[0], program.loop(), pure) is INVARIANT[expression]


def test_hundreds_of_arms() -> None:
    arms = "\n".join(f"    elif a == {number}:\n        pass" for number in range(900))
    program = Program(f"def f(a, r):\n  for x in r:\n    if a:\n        pass\n{arms}\n    else:\n        print(x)")
    assert program.tree.loops_around(program.use("print")) == [program.loop()]


def test_what_runs_once_after_a_loop_stands_in_no_loop() -> None:
    program = Program("def f(r):\n    for x in r:\n        pass\n    else:\n        print(r)")
    assert program.tree.loops_around(program.use("print")) == []


def test_what_runs_with_a_function() -> None:
    inner = "    if c:\n        g = lambda: h\n    while i:\n        def j(k=l):\n            m\n"
    text = f"@d\ndef f(a=e):\n    b\n{inner}    return n"
    module = ast.parse(text)
    tree = Tree(SourceFile("f.py", text), module)
    names = {node.id for node in tree.body(module.body[0]) if isinstance(node, ast.Name)}  # type: ignore[arg-type]
    assert names == {"b", "c", "g", "i", "n"}
