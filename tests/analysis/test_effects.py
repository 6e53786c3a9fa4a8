"""What functions do beside giving a value, composed over calls: wrappers, recursion, and what is kept where."""

from __future__ import annotations

import ast

import pytest

from perflint.analysis.effects.summary import Effect, Effects
from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.finding import Heat
from perflint.ir.survey import survey
from perflint.rule_api.context import Context
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse
from perflint.syntax.tree import Tree

_HEAD = "import contextlib, functools, gc, random, time\nimport torch\n"
_ATTRIBUTE = """
class A:
    def __init__(self):
        self.free = torch.cuda.empty_cache
    def go(self):
        self.free()
def f():
    A().go()
"""
_DECORATOR = """
def timed(g):
    def inner(*a):
        torch.cuda.synchronize()
        return g(*a)
    return inner
@timed
def f():
    pass
"""
_MANAGER = """
class T:
    def __enter__(self):
        self.t = time.time()
    def __exit__(self, *a):
        pass
def f():
    with T():
        pass
"""
_PROPERTY = """
class A:
    @property
    def free(self):
        torch.cuda.empty_cache()
def f():
    a = A()
    return a.free
"""


def effects(body: str, name: str) -> Effects:
    text = _HEAD + body
    program = Program({"a.py": survey(ast.parse(text), text.splitlines())})
    return program.effects(Scope("a.py", name))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def f():\n    torch.cuda.synchronize()\n", Effect.WAITS),
        ("def f(x):\n    return x.item()\n", Effect.READS),
        ("def f():\n    torch.cuda.empty_cache()\n", Effect.EMPTIES),
        ("def f():\n    gc.collect()\n", Effect.COLLECTS),
        ("def f(m, x):\n    return m.generate(x)\n", Effect.GENERATES),
        ("def f(loss):\n    loss.backward()\n", Effect.BACKWARD),
        ("def f(opt):\n    opt.step()\n", Effect.STEPS),
        ("def f():\n    return time.perf_counter()\n", Effect.CLOCK),
        ("def f():\n    return random.random()\n", Effect.DRAWS),
        ("def f(m):\n    torch.save(m, 'm.pt')\n", Effect.FILES),
        ("def f(m, g):\n    m.register_forward_hook(g)\n", Effect.HOOKS),
        ("def f(m):\n    return torch.compile(m)\n", Effect.COMPILES),
        ("def f(x):\n    print(x)\n", Effect.LOGS),
        ("def f():\n    return torch.cuda.memory_allocated()\n", Effect.MEMORY),
        ("def f(g):\n    return g()\n", Effect.UNKNOWN),
        # Through a call, an alias, a partial, an attribute, a decorator, a context manager.
        ("def f():\n    g()\ndef g():\n    h()\ndef h():\n    torch.cuda.synchronize()\n", Effect.WAITS),
        ("free = gc.collect\ndef f():\n    free()\n", Effect.COLLECTS),
        ("free = functools.partial(gc.collect)\ndef f():\n    free()\n", Effect.COLLECTS),
        (_ATTRIBUTE, Effect.EMPTIES),
        (_DECORATOR, Effect.WAITS),
        (_MANAGER, Effect.CLOCK),
        (_PROPERTY, Effect.EMPTIES),
    ],
)
def test_what_a_function_does(body: str, expected: Effect) -> None:
    assert effects(body, "f").does(expected)


@pytest.mark.parametrize(
    ("body", "sure"),
    [
        ("def f():\n    gc.collect()\n", True),
        ("def f():\n    g()\ndef g():\n    gc.collect()\n", True),
        ("def f(x):\n    if x:\n        gc.collect()\n", False),
        ("def f(x):\n    if x:\n        return\n    gc.collect()\n", False),
        ("def f(x):\n    for _ in x:\n        gc.collect()\n", False),
        ("def f():\n    if torch.cuda.is_available():\n        gc.collect()\n", True),
        ("def f():\n    if not torch.cuda.is_available():\n        return\n    gc.collect()\n", True),
        ("def f():\n    try:\n        gc.collect()\n    finally:\n        pass\n", True),
        ("def f(x):\n    x and gc.collect()\n", False),
        ("def f():\n    g()\ndef g():\n    yield gc.collect()\n", False),
    ],
)
def test_what_every_run_does(body: str, *, sure: bool) -> None:
    found = effects(body, "f")
    assert found.does(Effect.COLLECTS)
    assert found.surely(Effect.COLLECTS) is sure


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("def f(self, x):\n    self.items.append(x)\n", ("x", "append", "self.items")),
        ("def f(self, x):\n    self.items.append({'x': x, 'n': 1})\n", ("x", "append", "self.items")),
        ("def f(self, x):\n    y = x * 2\n    self.items.append(y)\n", ("x", "append", "self.items")),
        ("def f(self, x):\n    self.total = self.total + x.mean()\n", ("x", "sum", "self.total")),
        ("def f(self, x):\n    self.total += x\n", ("x", "sum", "self.total")),
        ("def f(self, k, x):\n    self.seen[k] = x\n", ("x", "item", "self.seen")),
        ("def f(self, x):\n    self.last = x\n", ("x", "set", "self.last")),
        ("ALL = []\ndef f(x):\n    ALL.append(x)\n", ("x", "append", "<ALL>")),
        ("def f(store, x):\n    store.append(x)\n", ("x", "append", "store")),
        ("def f(store, x):\n    g({'x': x}, store)\ndef g(x, to):\n    to.append(x)\n", ("x", "append", "store")),
    ],
)
def test_what_a_function_keeps(body: str, kept: tuple[str, str, str]) -> None:
    assert [item[:3] for item in effects(body, "f").keeps] == [kept]


@pytest.mark.parametrize(
    "body",
    [
        "def f(self, x):\n    self.items.append(x.item())\n",
        "def f(self, x):\n    self.items.append(x.detach())\n",
        "def f(x):\n    items = []\n    items.append(x)\n    return items\n",
        "def f(x):\n    items = []\n    g(items, x)\ndef g(to, x):\n    to.append(x)\n",
    ],
)
def test_what_is_not_kept(body: str) -> None:
    assert effects(body, "f").keeps == ()


def test_what_happens_to_parameters() -> None:
    assert effects("def f(x, y):\n    x.mul_(2)\n    g(y)\ndef g(z):\n    z[0] = 1\n", "f").writes == ("x", "y")
    assert effects("def f(net, x):\n    net(x).sum().backward()\n", "f").trains == ("net",)
    assert effects("def f(x, d):\n    return x.to(d)\n", "f").returns == ("x",)


def test_recursion_reaches_a_fixpoint_with_the_nearest_witness() -> None:
    body = (
        "def f(n):\n    g(n)\n    h(n)\ndef g(n):\n    f(n)\ndef h(n):\n    f(n)\n    gc.collect()\n"
        "class A:\n    def keep(self, x):\n        self.items.append(x)\n        self.child.keep(x)\n"
    )
    for name in "fgh":
        found = effects(body, name)
        assert found.surely(Effect.COLLECTS)
        assert not found.does(Effect.WAITS)
    witness = effects(body, "g").witness(Effect.COLLECTS)
    assert witness is not None
    assert (witness.line, witness.depth, witness.via) == (10, 2, Scope("a.py", "f"))
    assert ("x", "append", "self.items") in [item[:3] for item in effects(body, "A.keep").keeps]


def test_a_call_tells_what_it_runs() -> None:
    text = (
        f"{_HEAD}def free():\n    torch.cuda.empty_cache()\ndef f():\n    free()\n    gc.collect()\n    gc.collect(0)\n"
    )
    program = Program({"a.py": survey(ast.parse(text), text.splitlines())})
    calls = [program.call_effects(Scope("a.py", "f"), index) for index in range(3)]
    assert calls[0].surely(Effect.EMPTIES)
    assert not calls[0].does(Effect.COLLECTS)
    assert calls[1].must == (Effect.COLLECTS,)
    assert calls[2].may == ()


def test_a_call_on_the_result_of_another_is_told_from_it() -> None:
    text = f"{_HEAD}def free():\n    torch.cuda.empty_cache()\n    return []\ndef f():\n    free().sort()\n"
    source = SourceFile("a.py", text)
    tree = Tree(source, parse(source))
    context = Context(tree, Program({"a.py": survey(tree.module, source.lines)}))
    calls = [node for node in ast.walk(tree.module) if isinstance(node, ast.Call) and node.lineno == 7]
    assert [context.effects(call).does(Effect.EMPTIES) for call in calls] == [False, True]


def test_entering_an_object_runs_its_methods_where_it_is_entered() -> None:
    body = (
        "class T:\n    def __enter__(self):\n        return self\n"
        "    def __exit__(self, *error):\n        gc.collect()\n"
        "def f(loader, opt):\n    t = T()\n    for x in loader:\n        with t:\n            x.backward()\n"
        "        opt.step()\n"
    )
    text = _HEAD + body
    program = Program({"a.py": survey(ast.parse(text), text.splitlines())})
    left = Scope("a.py", "T.__exit__")
    assert program.heat(left) >= Heat.STEP
    assert program.callers(left) == []  # nothing hands it arguments
    assert program.effects(Scope("a.py", "f")).does(Effect.COLLECTS)
