from __future__ import annotations

import pytest
from editing import Editing


@pytest.mark.parametrize(
    ("before", "node", "text", "after"),
    [
        ("x = a", "a", "b + c", "x = b + c"),
        ("x = a * 2", "a", "b + c", "x = (b + c) * 2"),
        ("x = (a) * 2", "a", "b + c", "x = (b + c) * 2"),
        ("x = 2 ** a", "a", "-b", "x = 2 ** -b"),
        ("x = a ** 2", "a", "-b", "x = (-b) ** 2"),
        ("x = a - b", "b", "c - d", "x = a - (c - d)"),
        ("x = a - b", "a", "c - d", "x = c - d - b"),
        ("x = not a", "a", "b or c", "x = not (b or c)"),
        ("x = a.b", "a", "1", "x = (1).b"),
        ("x = a.b", "a", "'s'", "x = 's'.b"),
        ("x = a.b", "a", "c[0]", "x = c[0].b"),
        ("x = a.b", "a", "await c", "x = (await c).b"),
        ("f(a)", "a", "b, c", "f((b, c))"),
        ("f(a)", "a", "b if c else d", "f(b if c else d)"),
        ("f((a))", "a", "b, c", "f((b, c))"),
        ("x = a if b else c", "a", "d if e else g", "x = (d if e else g) if b else c"),
        ("x = a if b else c", "c", "d if e else g", "x = a if b else d if e else g"),
        ("for x in[1]: pass", "[1]", "y", "for x in y: pass"),
        ("x = 1 if[1]else 2", "[1]", "y", "x = 1 if y else 2"),
        ("x = f(y for y in z)", "(y for y in z)", "a", "x = f(a)"),
        ("x = f(y for y in z)", "(y for y in z)", "a, b", "x = f((a, b))"),
        ("with a: pass", "a", "b, c", "with ((b, c)): pass"),
        ("with a: pass", "a", "(b, c)", "with (((b, c))): pass"),
        ("x = [y for y in a if y]", "a", "b or c", "x = [y for y in b or c if y]"),
        ("x = [y for y in a]", "a", "b if c else d", "x = [y for y in (b if c else d)]"),
        ("x = a", "a", "b\n+ c", "x = (b\n+ c)"),
        ("x = [a]", "a", "b\n+ c", "x = [b\n+ c]"),
        ("x = a", "a", "f(\n  b\n)", "x = f(\n  b\n)"),
        ("x = {**a}", "a", "b or c", "x = {**(b or c)}"),
        ("x = a == b", "a", "c == d", "x = (c == d) == b"),
    ],
)
def test_a_replacement_gets_the_parentheses_it_needs(before: str, node: str, text: str, after: str) -> None:
    wrapped = "async def g():\n    " if "await" in text else ""
    file = Editing(wrapped + before)
    edited = file.apply(file.codemods.replace(file.expr(node), text))
    edited = edited.removeprefix(wrapped)
    assert edited == after


@pytest.mark.parametrize(
    ("before", "node", "after"),
    [
        ("x = a", "a", "x = a.detach()"),
        ("x = a + b", "a + b", "x = (a + b).detach()"),
        ("x = (a + b)", "a + b", "x = (a + b).detach()"),
        ("x = (  # sum\n    a + b\n)", "a + b", "x = (  # sum\n    a + b\n).detach()"),
        ("f(a + b)", "a + b", "f((a + b).detach())"),
        ("f((a + b))", "a + b", "f((a + b).detach())"),
        ("f((a + b), c)", "a + b", "f((a + b).detach(), c)"),
        ("f(k=(a + b))", "a + b", "f(k=(a + b).detach())"),
        ("x = -a", "-a", "x = (-a).detach()"),
        ("x = -a", "a", "x = -a.detach()"),
        ("x = a[0](1)", "a[0](1)", "x = a[0](1).detach()"),
        ("x = f(y for y in z)", "(y for y in z)", "x = f((y for y in z).detach())"),
        ("x += a", "a", "x += a.detach()"),
        ("x = 1", "1", "x = (1).detach()"),
        ("x = 'é' , a", "a", "x = 'é' , a.detach()"),
    ],
)
def test_a_method_is_appended(before: str, node: str, after: str) -> None:
    file = Editing(before)
    assert file.apply(file.codemods.append_method(file.expr(node), "detach()")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = f(a)", "x = a"),
        ("x = f(a + b) * 2", "x = (a + b) * 2"),
        ("x = f((a + b)) * 2", "x = (a + b) * 2"),
        ("x = f(\n    a\n    + b\n)", "x = (a\n    + b)"),
        ("x = [f(\n    a\n    + b\n)]", "x = [a\n    + b]"),
        ("x = f(a, True)[0]", "x = a[0]"),
        ("x = f(y for y in z)", "x = (y for y in z)"),
        ("return_ = f(lambda: 0)()", "return_ = (lambda: 0)()"),
        ("for x in f(a): pass", "for x in a: pass"),
    ],
)
def test_a_call_becomes_its_argument(before: str, after: str) -> None:
    file = Editing(before)
    assert file.apply(file.codemods.unwrap(file.call())) == after


@pytest.mark.parametrize(
    ("before", "node", "after"),
    [
        ("x = a", "a", "x = g(a)"),
        ("x = a, b", "(a, b)", "x = g((a, b))"),
        ("x = (a, b)", "(a, b)", "x = g((a, b))"),
        ("x = f(y for y in z)", "(y for y in z)", "x = f(g((y for y in z)))"),
        ("x = a ** 2", "a", "x = g(a) ** 2"),
    ],
)
def test_an_expression_is_wrapped(before: str, node: str, after: str) -> None:
    file = Editing(before)
    assert file.apply(file.codemods.wrap(file.expr(node), "g(", ")")) == after


@pytest.mark.parametrize(
    ("source", "lost", "lost_when_unwrapped"),
    [
        ("x = f(a)", False, False),
        ("x = f(  # why\n  a)", True, True),
        ("x = f([  # why\n  a])", True, False),
        ("x = f('# no')", False, False),
    ],
)
def test_comments_inside_an_expression_are_known(source: str, lost: bool, lost_when_unwrapped: bool) -> None:
    file = Editing(source)
    call = file.call()
    assert file.codemods.would_lose_comment(call) is lost
    assert file.codemods.would_lose_comment(call, kept=call.args[0]) is lost_when_unwrapped


@pytest.mark.parametrize(
    ("part", "template", "built"),
    [
        ("n or 0", "{n} > 0", "(n or 0) > 0"),
        ("a + b", "{n} > 0", "a + b > 0"),
        ("a if b else c", "{n} > 0", "(a if b else c) > 0"),
        ("a > b", "{n} > 0", "(a > b) > 0"),
        ("a + b", "{n}.detach()", "(a + b).detach()"),
        ("a.b", "{n}.detach()", "a.b.detach()"),
        ("-a", "{n}[0]", "(-a)[0]"),
        ("lambda: a", "f({n})", "f(lambda: a)"),
        ("a and b", "not {n}", "not (a and b)"),
        ("a + b", "{n} * {n}", "(a + b) * (a + b)"),
        ("a + b", "[{n}, {n} * 2]", "[(a + b), (a + b) * 2]"),
    ],
)
def test_an_expression_is_built_with_its_parts_in_parentheses(part: str, template: str, built: str) -> None:
    edit = Editing(f"x = ({part})")
    assert edit.codemods.expression(template, n=edit.expr(part)) == built


def test_what_stands_before_a_dot_is_in_parentheses() -> None:
    edit = Editing("x = (a + b).item()")
    assert edit.codemods.receiver(edit.expr("a + b")) == "(a + b)"
    edit = Editing("x = (a\n  .b).item()")
    assert edit.codemods.receiver(edit.expr("a.b")) == "(a\n  .b)"
