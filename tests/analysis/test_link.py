"""Linking ends, and says nothing false, on programs that are odd, deep or circular."""

from __future__ import annotations

import ast
import json

import pytest

from perflint.analysis.names.declared import is_abstract
from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.program import Program
from perflint.finding import Confidence, Heat
from perflint.ir.packing import packed, unpacked
from perflint.ir.sharing import Sharing
from perflint.ir.survey import survey


def program_of(**texts: str) -> Program:
    files = {f"{name.replace('__', '/')}.py": text for name, text in texts.items()}
    return Program({path: survey(ast.parse(text), text.split("\n")) for path, text in files.items()})


def chain(form: str, length: int) -> str:
    return "x0 = start()\n" + "\n".join(f"x{i + 1} = {form.format(f'x{i}')}" for i in range(length))


@pytest.mark.parametrize("form", ["{}", "{}.to('cpu')", "list({})", "[{}]", "{}[0]", "{} or None", "f({})"])
def test_a_long_chain_of_names_ends(form: str) -> None:
    program = program_of(main=f"{chain(form, 600)}\nx600.run()\nfor y in x600:\n    y()\n")
    assert program.refs("x600", Scope("main.py", "<module>")) in ((), program.refs("x0", Scope("main.py", "<module>")))


def test_functions_that_return_each_other_end() -> None:
    functions = "\n".join(f"def f{i}():\n    return f{i + 1}()" for i in range(400))
    program = program_of(main=f"{functions}\ndef f400():\n    return f0()\nf0()()\n")
    assert program.heat(Scope("main.py", "f0")) is Heat.ONCE


def test_functions_that_hand_on_one_argument_less_or_more_each_time_end() -> None:
    text = """
class Tree:
    def fold(self, first, *others):
        first.run()
        return self.unfold(first, *others)

    def unfold(self, *others):
        return self.fold(*others)

    def grow(self, *others):
        return self.grow(*others, Tree())

    def shrink(self, first, second, *others):
        second.run()
        return self.shrink(first, *others)

Tree().fold(1, *parts)
Tree().shrink(1, 2, Tree())
"""
    program = program_of(main=text)
    assert program.heat(Scope("main.py", "Tree.unfold")) is Heat.ONCE


def test_circular_bases_imports_and_aliases_end() -> None:
    program = program_of(
        a="from b import B, x\nclass A(B):\n    def run(self):\n        self.run()\n        x()\n",
        b="from a import A, x\nclass B(A):\n    pass\nB().run()\n",
        c="y = z\nz = y\ny()\nfor i in y:\n    i()\n",
    )
    assert program.heat(Scope("a.py", "A.run")) is Heat.ONCE


def test_a_star_import_of_oneself_ends() -> None:
    program = program_of(a="from a import *\nfrom b import *\nf()\n", b="from a import *\ng()\n")
    assert program.graph.unresolved[Scope("a.py", "<module>")]


def test_deep_expressions_are_surveyed() -> None:
    text = f"x = {'+'.join(['a'] * 600)}\n" + "if a:\n    pass\n" + "elif a:\n    pass\n" * 2000
    assert survey(ast.parse(text), text.split("\n")).functions


def test_a_summary_survives_json() -> None:
    text = (
        "import torch\nclass A(B, metaclass=C):\n    x: int = 3\n    @property\n    def p(self): return self.q.r\n"
        "def f(a, *b, c=None, **d) -> 'T':\n    with torch.no_grad():\n        for i, j in enumerate(a):\n"
        "            if i % 3 == 0:\n                k = {'a': (lambda z: z)(i), 'b': [m for m in j]}\n"
        "                yield k\n"
        # To a table, 1 and True are one.
        "def g(x, y=True, z=1): return h(1, True, x[1], x[True], 0, False, None, key=1)\n"
    )
    summary = survey(ast.parse(text), text.split("\n"))
    for sharing in (None, Sharing()):
        assert repr(unpacked(json.loads(json.dumps(packed(summary))), sharing)) == repr(summary)


def test_a_guess_is_never_sure() -> None:
    program = program_of(
        main=(
            "def train(loader, thing):\n    for batch in loader:\n        thing.polish_everything(batch)\n"
            "class Tool:\n    def polish_everything(self, x):\n        return x\n"
        )
    )
    heat, _, confidence = program.route(Scope("main.py", "Tool.polish_everything"), -1)
    assert heat is Heat.STEP
    assert confidence.label == "medium"


def test_what_two_classes_define_is_not_guessed() -> None:
    classes = "".join(f"class T{i}:\n    def polish_everything(self, x):\n        return x\n" for i in range(2))
    program = program_of(main=f"def train(loader, t):\n    for b in loader:\n        t.polish_everything(b)\n{classes}")
    assert program.heat(Scope("main.py", "T0.polish_everything")) is Heat.ONCE
    assert [call.func for call in program.graph.unresolved[Scope("main.py", "train")]] == ["t.polish_everything"]


def test_what_a_family_of_classes_defines_may_be_any_of_them() -> None:
    hooks = (
        "class Hook:\n    def on_train_step(self): ...\n"
        "class A(Hook):\n    def on_train_step(self): ...\n"
        "class B(A):\n    def on_train_step(self): ...\n"
    )
    main = "for batch in loader:\n    loss.backward()\n    for hook in hooks:\n        hook.on_train_step()\n"
    program = program_of(hooks=hooks, main=main)
    for name in ("Hook", "A", "B"):
        scope = Scope("hooks.py", f"{name}.on_train_step")
        assert program.heat(scope) is Heat.STEP
        assert all(edge.confidence is Confidence.MEDIUM for edge in program.graph.incoming[scope])


def test_classes_that_share_a_base_without_the_method_are_no_family() -> None:
    hooks = (
        "class Hook:\n    pass\n"
        "class A(Hook):\n    def on_train_step(self): ...\n"
        "class B(Hook):\n    def on_train_step(self): ...\n"
    )
    main = "for batch in loader:\n    loss.backward()\n    for hook in hooks:\n        hook.on_train_step()\n"
    program = program_of(hooks=hooks, main=main)
    assert program.heat(Scope("hooks.py", "A.on_train_step")) is Heat.ONCE


def test_a_family_is_followed_by_a_name_that_says_much() -> None:
    hooks = "class Hook:\n    def {0}(self): ...\nclass A(Hook):\n    def {0}(self): ...\n"
    main = "for batch in loader:\n    loss.backward()\n    hook.{0}()\n"
    heats = []
    for name in ("on_train_step", "advance"):
        program = program_of(hooks=hooks.format(name), main=main.format(name))
        heats.append(program.heat(Scope("hooks.py", f"A.{name}")))
    assert heats == [Heat.STEP, Heat.ONCE]


@pytest.mark.parametrize(
    ("method", "abstract"),
    [
        ("def f(self, x):\n        raise NotImplementedError", True),
        ("def f(self, x):\n        raise NotImplementedError(f'of {type(self)}')", True),
        ("@abstractmethod\n    def f(self, x):\n        return x", True),
        ("def f(self, x):\n        self.tell(x)\n        raise NotImplementedError", False),
        ("def f(self, x):\n        if x:\n            raise NotImplementedError", False),
        ("def f(self, x):\n        pass", False),
    ],
)
def test_a_method_that_only_says_it_is_missing_is_abstract(method: str, *, abstract: bool) -> None:
    text = f"class A:\n    {method}\n"
    assert is_abstract(survey(ast.parse(text), text.split("\n")).functions["A.f"]) is abstract


@pytest.mark.parametrize(("mark", "stands_in"), [("", True), ("@abstractmethod\n    ", False)])
def test_what_stands_for_a_missing_method_is_not_known_to_be_given_its_arguments(mark: str, *, stands_in: bool) -> None:
    heads = (
        f"class Head:\n    {mark}def answer(self, make):\n        raise NotImplementedError\n"
        "class Span(Head):\n    def answer(self, make):\n        make()\n"
    )
    main = "from heads import Head\ndef tool(): ...\ndef run(head: Head):\n    head.answer(tool)\n"
    program = program_of(heads=heads, main=main)
    below = Scope("heads.py", "Span.answer")
    assert [edge.stands_in for edge in program.callers(below)] == [stands_in]
    assert bool(program.graph.passed(below, "make")) is not stands_in


def test_a_module_that_imports_a_driver_is_one_unless_it_uses_a_device() -> None:
    program = program_of(
        driver="import ray\ndef measure(batch): ...\n",
        reports="from driver import measure\nmeasure(1)\n",
        worker="from driver import measure\nmeasure(1).cuda()\n",
        loops="from driver import measure\ndef go(loader):\n    for batch in loader:\n        measure(batch.cuda())\n",
    )
    assert [program.drives(f"{name}.py") for name in ("driver", "reports", "worker", "loops")] == [
        True,
        True,
        False,
        False,
    ]
    assert program.role(Scope("driver.py", "measure")) == "driver"
    assert program.role(Scope("loops.py", "go"), 0) == "batches"


def classes(order: list[int], length: int, last: str) -> str:
    """A chain of classes, `C0` the lowest, written down in some order; the first has the method that runs them all."""
    text = "import torch\n"
    for number in order:
        base = f"C{number + 1}" if number + 1 < length else last
        text += f"class C{number}({base}):\n    def own{number}(self):\n        pass\n"
    return text


TRAINING = """from chain import C0
def train(loader, opt):
    m = C0()
    for b in loader:
        opt.step()
        m.own{}()
"""


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("last", ["torch.nn.Module", "C0", "Missing"])
def test_a_long_chain_of_classes_is_followed_to_its_end(order: int, last: str) -> None:
    length = 1000
    program = program_of(chain=classes(list(range(length))[::order], length, last), train=TRAINING.format(length - 1))
    assert program.heat(Scope("chain.py", f"C{length - 1}.own{length - 1}")) is Heat.STEP


def test_a_long_chain_of_classes_over_files_is_followed_to_its_end() -> None:
    length = 1000
    files = {
        f"m{number}": f"from m{number + 1} import C{number + 1}\nclass C{number}(C{number + 1}):\n    pass\n"
        for number in range(length)
    }
    files[f"m{length}"] = f"import torch\nclass C{length}(torch.nn.Module):\n    def own(self):\n        pass\n"
    files["train"] = TRAINING.replace("from chain", "from m0").replace("own{}", "own")
    program = program_of(**files)
    assert program.heat(Scope(f"m{length}.py", f"C{length}.own")) is Heat.STEP
    assert program.is_module(Ref(CLASS, "m0.py", "C0"))
