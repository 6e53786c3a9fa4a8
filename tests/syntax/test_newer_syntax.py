"""Newer syntax read as Python 3.10 would have to read it: same nodes, same positions."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest

from perflint.syntax.file import SourceFile
from perflint.syntax.newer_syntax import NewerSyntax
from perflint.syntax.parse import parse_newer

OLDEST = (3, 10)

SAMPLES = {
    "type parameters": "def f[T: (int, str), *Ts, **P](x: T) -> T:\n    return g(x)\n",
    "type parameters over lines": "def f[\n    T,\n\n    U,  # a comment\n](x: T, *, y: U):\n    return g(x)\n",
    "generic class": "class A[T](Base[T], meta=M):\n    x: T = make(T)\n\n\nclass B[T]: y = A[T]()\n",
    "async and decorated": "@wrap(a)\nasync def f[T](x): await g(x)\n",
    "type alias": "type X = list[int]\ny = X\n",
    "generic alias": "if a:\n    type X[T: int = str, *Ts] = dict[T, Y]\nz = X\n",
    "generic alias over lines": "type X[\n    T,\n] = list[T]\ny = X\n",
    "alias after a semicolon": "a = 1; type X = b; c = X\n",
    "except star": "try:\n    f(x)\nexcept* E as e:\n    g(e)\nexcept *(A, B):\n    pass\n",
    "except without parentheses": "try:\n    f(x)\nexcept a.A, B, C:\n    g(y)\nexcept* A, B:\n    pass\n",
    "star in an index": "x = f[*Ts](a)\ny: tuple[int, *Ts] = z[a, *b, c]\n",
    "star annotation": "def f(*args: *Ts, k: int = d) -> T:\n    return g(args)\n",
    "unpacked in a comprehension": "x = [*a for a in f(*b, **c)]\ny = {**a for a, (b, *c) in x if [*b, *c]}\n"
    "z = f(*(*a, b) for a in x)\nf(\n    *  a for a in x)\n",
    "lazy import": "lazy import torch\nlazy from a import b, c\nx = torch.f(b)\n",
    "same quotes": 'x = f"{d["k"]} and {e["l"].f(a)}"\n',
    "backslash": "x = f\"{'\\n'.join(names)}{other}\"\n",
    "comment and lines": 'x = f"{  # said\n    f(a)\n}{b!r}"\n',
    "nested deep": 'x = f"{f"{f"{f"{f"{one}"}"}"}"}{two}"\n',
    "format": 'x = f"{a!r:>{width}.{digits}} {b:%Y-%m-%d} {c:=^{n}}{d!s}"\n',
    "debugging": 'x = f"{a=} {b.c = !s} {d["k"]=:>{w}}{e == f}{g != h}{i(j=k)}"\n',
    "joined": 'x = (f"{a["k"]}" "plain" u"other"  # why\n     rf"\\d{b}" f"{c}").strip(d)\n',
    "triple": 'x = f"""\n{a["""k"""]} é {b}\n  {{not}} {c}\n"""\ny = g(z)\n',
    "after wide characters": 'é = f"日本 {a["😀"]} {b}"; z = f(c)\n',
    "named character": 'x = f"\\N{BULLET} {a["k"]} \\x41\\101\\u0042\\\\{b}"\n',
    "tuple in a field": 'x = f"{a, *b} {c,} {*d, e["k"]}"\n',
    "conditional": 'x = f"{a if b else f"{c}"}" if d else f"{(lambda e: e)(g)}"\n',
    "in calls": 'f(f"{a["k"]}", x=f"{b}", *c)[f"{d}"].e(not f"{g}")\n',
    "template string": 'x = t"{a["k"]} {b!r}" t"{c}"\n',
    "statement": 'f"{a["k"]}"\n',
    "match": 'match f"{a["k"]}":\n    case "b":\n        c()\n',
    "carriage returns": 'x = f"{d["k"]}"\r\ntype Y = z\r\ndef f[\r\n  T\r\n](a): g(a)\r\n',
}


def test_async_was_a_name_once() -> None:
    text = "async def f(x):\n    async with g(x, async=True) as y: h(y.async, k=async)\ndef g(x, async=False): ...\n"

    tree = read(text)

    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert {item.arg for call in calls for item in call.keywords} == {"async", "k"}
    assert {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} == {"async"}
    assert [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)] == ["x", "x", "async"]
    assert all(SourceFile("f.py", text).text_of(call).endswith(")") for call in calls)


def read(text: str, version: tuple[int, int] = OLDEST) -> ast.Module:
    tree = parse_newer(text, version)
    assert tree is not None
    return tree


def placed(tree: ast.AST) -> Iterator[ast.Name | ast.arg | ast.Attribute | ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.arg | ast.Attribute | ast.Call):
            yield node


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_positions_are_those_of_the_text(text: str) -> None:
    source = SourceFile("f.py", text)
    seen = 0

    for node in placed(read(text)):
        written = source.text_of(node)
        if isinstance(node, ast.Name):
            assert written == node.id
        elif isinstance(node, ast.arg):
            assert written.startswith(node.arg)
        elif isinstance(node, ast.Attribute):
            assert written.endswith(node.attr)
        else:
            assert written.endswith(")")
            assert source.text_of(node.func) in written
        seen += 1

    assert seen > 0


@pytest.mark.parametrize(
    ("sample", "names"),
    [
        ("type parameters over lines", "T U g x"),
        ("generic class", "A Base M T make x y"),
        ("generic alias over lines", "T X list y"),
        ("except without parentheses", "A B C a f g x y"),
        ("star in an index", "Ts a b c f int tuple x y z"),
        ("nested deep", "one two x"),
        ("unpacked in a comprehension", "a b c f x y z"),
        ("format", "a b c d digits n width x"),
        ("debugging", "a b d e f g h i k w x"),
        ("joined", "a b c d x"),
        ("tuple in a field", "a b c d e x"),
        ("conditional", "a b c d e g x"),
    ],
)
def test_no_name_is_lost(sample: str, names: str) -> None:
    found = {node.id for node in ast.walk(read(SAMPLES[sample])) if isinstance(node, ast.Name)}

    assert found == set(names.split())


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_lines_keep_their_length(text: str) -> None:
    rewritten = NewerSyntax(text, OLDEST).rewriting.text()

    assert [len(line) for line in rewritten.encode().split(b"\n")] == [len(line) for line in text.encode().split(b"\n")]


def native(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


@pytest.mark.skipif(sys.version_info < (3, 12), reason="this interpreter cannot read these itself")
@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_agrees_with_an_interpreter_that_reads_it_itself(text: str) -> None:
    expected = native(text)
    if expected is None or 't"' in text:
        pytest.skip("newer than this interpreter")

    assert kinds_and_places(expected) == kinds_and_places(read(text))


def kinds_and_places(tree: ast.AST) -> list[tuple[str, int, int, int | None, int | None]]:
    for node in ast.walk(tree):
        if hasattr(node, "type_params"):
            node.type_params = []
    return sorted(
        (type(node).__name__, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.FormattedValue | ast.arg | ast.Subscript)
    )


def test_formatted_strings_come_back_as_such() -> None:
    statement = read('x = f"a{{ {d["k"]!r:>{w}} \\x41" "b" f"{y}"\n').body[0]

    assert isinstance(statement, ast.Assign)
    assert isinstance(statement.value, ast.JoinedStr)
    first, value, between, last = statement.value.values
    assert isinstance(first, ast.Constant)
    assert isinstance(between, ast.Constant)
    assert (first.value, between.value) == ("a{ ", " Ab")
    assert isinstance(value, ast.FormattedValue)
    assert value.conversion == ord("r")
    assert ast.unparse(value.value) == "d['k']"
    assert isinstance(value.format_spec, ast.JoinedStr)
    assert isinstance(last, ast.FormattedValue)


def test_debugging_fields_show_their_text() -> None:
    statement = read('f"{ a = }"\n').body[0]

    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.JoinedStr)
    shown, value = statement.value.values
    assert isinstance(shown, ast.Constant)
    assert shown.value == " a = "
    assert isinstance(value, ast.FormattedValue)
    assert value.conversion == ord("r")


def test_alias_is_an_assignment_and_nothing_else() -> None:
    (statement,) = read("type X[T] = list[T]\n").body

    assert isinstance(statement, ast.Assign)
    assert isinstance(statement.targets[0], ast.Name)
    assert isinstance(statement.targets[0].ctx, ast.Store)


def test_what_a_comprehension_unpacks_is_starred() -> None:
    (statement,) = read("x = [*f(row) for row in rows]\n").body

    assert isinstance(statement, ast.Assign)
    assert isinstance(statement.value, ast.ListComp)
    element = statement.value.elt
    assert isinstance(element, ast.Starred)
    assert (ast.unparse(element), element.col_offset, element.end_col_offset) == ("*f(row)", 5, 12)


def test_several_exceptions_are_a_tuple() -> None:
    (statement,) = read("try:\n    pass\nexcept A, b.B, C:\n    pass\n").body

    assert isinstance(statement, ast.Try)
    caught = statement.handlers[0].type
    assert isinstance(caught, ast.Tuple)
    assert [ast.unparse(one) for one in caught.elts] == ["A", "b.B", "C"]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        "type = 3\ntype [0] = 4\nprint(type)\n",
        "type(x)[0] = y\n",
        "lazy = 1\n",
        "x = a[b * c]\ny = [*a]\nf(*a)\n",
        "try:\n    f()\nexcept (A, B):\n    g()\n",
        "x = {'def': a[0]}\n",
    ],
)
def test_what_every_python_reads_is_left_alone(text: str) -> None:
    assert parse_newer(text, OLDEST) is None


@pytest.mark.parametrize(
    "text",
    [
        'print f"{x}"\n',
        'x = f"{a" + b\n',
        'x = f"{a}" "b\n',
        'x = f"{a}" b"c"\n',
        'x = f"{}"\n',
        "def f[T(x): pass\n",
        "type X[T = 3\n",
        'x = (a) f"{b}"\n',
    ],
)
def test_what_is_wrong_stays_wrong(text: str) -> None:
    try:
        tree = parse_newer(text, OLDEST)
    except SyntaxError:
        return
    # Nothing was rewritten, so the interpreter's own refusal stands.
    assert tree is None
    with pytest.raises(SyntaxError):
        ast.parse(text)


def test_only_what_the_interpreter_lacks_is_rewritten() -> None:
    text = 'def f[T](x): return f"{d["k"]}"\ntry: pass\nexcept* E: pass\n'

    assert parse_newer(text, (3, 13)) is None
