"""What holds for every program: generated ones, with layout, comments, line ends and characters mixed at random."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator

from hypothesis import given, note, settings
from hypothesis import strategies as st

from perflint.finding import Applicability, Confidence, Edit, Finding, Fix, Impact, Report, Span
from perflint.fixes.apply import apply_fixes
from perflint.fixes.codemods import Codemods
from perflint.fixes.layout import NOWHERE
from perflint.fixes.rounds import fix_files
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse
from perflint.syntax.tree import Tree

NAMES = st.sampled_from(["a", "bé", "torch", "x1", "_p", "𝛼"])
ATOMS = NAMES | st.sampled_from(["1", "1.5", "'s # ,)'", '"é\\""', "None", "f'{a} ü'", "[]", "...", '"""t\n ,# """'])
#: What may stand between the tokens of a bracketed expression.
GAPS = st.sampled_from(["", "", "", " ", "  ", "\n", "\n    ", " \\\n ", "  # é, (\n  ", "\t"])


@st.composite
def bracketed(draw: st.DrawFn, inner: st.SearchStrategy[str], callee: str) -> str:
    """A call of `callee` with arguments of every sort, laid out at random."""
    count = draw(st.integers(0, 4))
    parts = [draw(inner) for _ in range(count)]
    named = [f"k{index}={draw(inner)}" for index in range(draw(st.integers(0, 2)))]
    mapping = [f"**{draw(NAMES)}"] if draw(st.booleans()) else []
    arguments = [*parts, *named, *mapping]
    if not arguments and draw(st.booleans()):
        return f"{callee}({draw(inner)} for y in {draw(NAMES)})"
    text = f"{callee}({draw(GAPS)}"
    for index, argument in enumerate(arguments):
        last = index + 1 == len(arguments)
        comma = "," if not last or draw(st.booleans()) else ""
        text += f"{draw(GAPS)}{argument}{draw(GAPS)}{comma}{draw(GAPS)}"
    return f"{text})"


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        bracketed(inner, "f"),
        bracketed(inner, "g.h"),
        pair.map(lambda two: f"({two[0]} + {two[1]})"),
        pair.map(lambda two: f"({two[0]}\n  if {two[1]} else c)"),
        pair.map(lambda two: f"[{two[0]}, {two[1]}]"),
        pair.map(lambda two: f"({two[0]}, {two[1]})"),
        inner.map(lambda one: f"(lambda u, v=1: {one})"),
        inner.map(lambda one: f"(not {one})"),
        inner.map(lambda one: f"({one}) ** 2 "),
        inner.map(lambda one: f"({one})[0]"),
    )


EXPRESSIONS = st.recursive(ATOMS, _grow, max_leaves=6)
#: Outside brackets a line may not simply end.
SIMPLE = st.one_of(
    EXPRESSIONS.map(lambda one: f"x = ({one})"),
    EXPRESSIONS.map(lambda one: f"y = -({one})"),
    EXPRESSIONS.map(lambda one: f"({one})"),
    bracketed(EXPRESSIONS, "f"),
    st.just("pass"),
    st.just("import os, re as rx"),
)
COMMENTS = st.sampled_from(["", "", "  # why; é", " #"])


@st.composite
def block(draw: st.DrawFn, indent: str, depth: int) -> str:
    lines = ""
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.integers(0, 5)) == 0:
            lines += draw(st.sampled_from([f"{indent}# alone, (\n", "\n", "# out\n", f"{indent}\n"]))
        kind = draw(st.integers(0, 6 if depth else 3))
        if kind <= 2:
            lines += f"{indent}{draw(SIMPLE)}{draw(COMMENTS)}\n"
        elif kind == 3:
            separator = draw(st.sampled_from(["; ", ";", " ; "]))
            ending = draw(st.sampled_from(["", ";", " ;"]))
            line = separator.join(draw(st.lists(SIMPLE, min_size=2, max_size=3)))
            lines += f"{indent}{line}{ending}{draw(COMMENTS)}\n"
        elif kind == 4:
            lines += f"{indent}if {draw(NAMES)}: {draw(SIMPLE)}{draw(COMMENTS)}\n"
        else:
            deeper = indent + draw(st.sampled_from(["    ", "\t", "  "]))
            header = draw(
                st.sampled_from(
                    [
                        f"if {draw(NAMES)}:",
                        "for i in f(1):",
                        f"@f(1)\n{indent}def function(q):",
                        "with f(a) as w:",
                        "while a:",
                    ]
                )
            )
            lines += f"{indent}{header}{draw(COMMENTS)}\n{draw(block(deeper, depth - 1))}"
            if header.startswith("if") and draw(st.booleans()):
                lines += f"{indent}else:\n{draw(block(deeper, depth - 1))}"
    return lines


HEADS = ["", '"""Doc é."""\n', "# cookie\n", '"""D."""\nfrom __future__ import annotations\n', "import os\n\n", "\f\n"]


@st.composite
def programs(draw: st.DrawFn) -> SourceFile:
    text = draw(st.sampled_from(HEADS)) + draw(block("", 2))
    if draw(st.booleans()):
        text = text.rstrip("\n")
    ending = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    return SourceFile("generated.py", text.replace("\n", ending))


class Program:
    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.tree = Tree(source, parse(source))
        self.codemods = Codemods(self.tree)
        self.nodes = list(ast.walk(self.tree.module))

    def check(self, edits: tuple[Edit, ...], change: Callable[[], Callable[[], None]]) -> None:
        """The edited text reads as the tree does after `change`, and is untouched outside the edits."""
        if NOWHERE in edits:
            return
        applied = apply_fixes(self.source, [Fix("Edit", Applicability.SAFE, edits)])
        assert not applied.refused
        undo = change()
        wanted = ast.dump(self.tree.module)
        undo()
        note(repr(self.source.text))
        note(repr(applied.text))
        assert ast.dump(parse(SourceFile("x.py", applied.text))) == wanted
        assert_untouched(self.source, applied.text, edits)


def assert_untouched(source: SourceFile, after: str, edits: tuple[Edit, ...]) -> None:
    before = source.text.splitlines(keepends=True)
    first = min(edit.span.line for edit in edits) - 1
    last = max(edit.span.end_line for edit in edits)
    lines = source.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert len(lines) >= last, before
    start = sum(len(line) for line in itertools.islice(_with_ends(source.text), first))
    rest = sum(len(line) for line in itertools.islice(_with_ends(source.text), last, None))
    assert after[:start] == source.text[:start]
    assert rest == 0 or after[-rest:] == source.text[-rest:]
    if source.newline != "\n":
        assert "\n" not in after.replace(source.newline, "")


def _with_ends(text: str) -> Iterator[str]:
    """Lines as Python source has them, with their ends."""
    line = ""
    for index, letter in enumerate(text):
        line += letter
        if letter == "\n" or (letter == "\r" and text[index + 1 : index + 2] != "\n"):
            yield line
            line = ""
    yield line


def _set(owner: ast.AST, name: str, value: object) -> Callable[[], None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    return lambda: setattr(owner, name, before)


def _put(parent: ast.AST, node: ast.AST, new: ast.AST) -> Callable[[], None]:
    for name in parent._fields:
        value = getattr(parent, name, None)
        if value is node:
            return _set(parent, name, new)
        if isinstance(value, list) and node in value:
            return _set(parent, name, [new if item is node else item for item in value])
    raise LookupError


@settings(max_examples=150, deadline=None)
@given(programs(), st.data())
def test_keywords(source: SourceFile, data: st.DataObject) -> None:
    program = Program(source)
    calls = [node for node in program.nodes if isinstance(node, ast.Call)]
    if not calls:
        return
    call = data.draw(st.sampled_from(calls))
    size = len(call.keywords)
    while size and call.keywords[size - 1].arg is None:
        size -= 1
    keyword = ast.keyword(arg="new", value=ast.Constant(value=1))
    added = [*call.keywords[:size], keyword, *call.keywords[size:]]
    program.check((program.codemods.set_keyword(call, "new", "1"),), lambda: _set(call, "keywords", added))
    for item in call.keywords:
        left = [other for other in call.keywords if other is not item]
        program.check((program.codemods.remove_argument(call, item),), lambda left=left: _set(call, "keywords", left))  # type: ignore[misc]


@settings(max_examples=150, deadline=None)
@given(programs(), st.data(), st.sampled_from(["a or b", "a, b", "lambda: a", "-a", "a ** b", "1", "a\n+ b", "[\n a]"]))
def test_expressions(source: SourceFile, data: st.DataObject, text: str) -> None:
    program = Program(source)
    nodes = [
        node
        for node in program.nodes
        if isinstance(node, ast.expr)
        and not isinstance(getattr(node, "ctx", ast.Load()), ast.Store)
        and not isinstance(program.tree.parent(node), (ast.JoinedStr, ast.FormattedValue, ast.Expr))
    ]
    if not nodes:
        return
    node = data.draw(st.sampled_from(nodes))
    parent = program.tree.parent(node)
    assert parent is not None
    codemods = program.codemods
    new = ast.parse(f"({text}\n)", mode="eval").body
    program.check((codemods.replace(node, text),), lambda: _put(parent, node, new))
    method = ast.Call(ast.Attribute(node, "m", ast.Load()), [], [])
    program.check((codemods.append_method(node, "m()"),), lambda: _put(parent, node, method))
    wrapped = ast.Call(ast.Name("w", ast.Load()), [node], [])
    program.check((codemods.wrap(node, "w(", ")"),), lambda: _put(parent, node, wrapped))
    if isinstance(node, ast.Call) and node.args and not isinstance(node.args[0], ast.Starred):
        program.check((codemods.unwrap(node),), lambda: _put(parent, node, node.args[0]))


@settings(max_examples=150, deadline=None)
@given(programs(), st.data())
def test_statements(source: SourceFile, data: st.DataObject) -> None:
    program = Program(source)
    # What stands first may be a docstring, and `__future__` has to stay there.
    statements = [node for node in program.nodes if isinstance(node, ast.stmt)]
    statement = data.draw(st.sampled_from(statements[1:] or statements))
    parent = program.tree.parent(statement)
    assert parent is not None
    name = next(name for name in ("body", "orelse") if statement in getattr(parent, name, []))
    body = getattr(parent, name)
    index = body.index(statement)
    codemods = program.codemods
    if isinstance(statement, ast.ImportFrom) or (program.source.text.startswith('"""') and statement is body[0]):
        return
    empty = [] if isinstance(parent, ast.Module) else [ast.Pass()]
    left = [*body[:index], *body[index + 1 :]] or empty
    program.check(codemods.delete_statement(statement), lambda: _set(parent, name, left))
    new = ast.parse("new()").body[0]
    more = [*body[:index], new, *body[index:]]
    program.check((codemods.insert_before(statement, "new()"),), lambda: _set(parent, name, more))
    after = [*body[: index + 1], new, *body[index + 1 :]]
    program.check((codemods.insert_after(statement, "new()"),), lambda: _set(parent, name, after))
    if index + 1 < len(body):
        swapped = [*body[:index], body[index + 1], statement, *body[index + 2 :]]
        program.check(codemods.swap_statements(statement, body[index + 1]), lambda: _set(parent, name, swapped))


@settings(max_examples=150, deadline=None)
@given(programs(), st.sampled_from([("torch", None), ("torch", "no_grad"), ("os", None), ("re", None), ("zz.y", "q")]))
def test_imports_stand_at_the_top_and_shadow_nothing(source: SourceFile, wanted: tuple[str, str | None]) -> None:
    program = Program(source)
    spelling, edits = program.codemods.ensure_import(*wanted)
    if not edits:
        return
    text = apply_fixes(source, [Fix("Import", Applicability.SAFE, edits)]).text
    module = parse(SourceFile("x.py", text))
    # Every statement of the file is still there, in its order, and it still compiles with `__future__` first.
    old = [ast.dump(item) for item in program.tree.module.body]
    new = [ast.dump(item) for item in module.body]
    assert len(new) == len(old) + 1
    place = next((index for index, item in enumerate(old) if item != new[index]), len(old))
    assert new[:place] + new[place + 1 :] == old
    assert ast.get_docstring(module) == ast.get_docstring(program.tree.module)
    bound = spelling.partition(".")[0]
    stores = [node.id for node in program.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    assert bound not in {*stores, *(node.arg for node in program.nodes if isinstance(node, ast.arg))}
    compile(text.replace("\r\n", "\n").replace("\r", "\n"), "x.py", "exec", dont_inherit=True)


@settings(max_examples=60, deadline=None)
@given(programs())
def test_fixing_comes_to_rest_and_a_second_time_changes_nothing(source: SourceFile) -> None:
    def findings_of(text: str) -> list[Finding]:
        program = Program(SourceFile(source.path, text))
        found = []
        for call in program.nodes:
            if isinstance(call, ast.Call) and not any(item.arg in {"done", None} for item in call.keywords):
                edit = program.codemods.set_keyword(call, "done", "True")
                made = Fix("Say done", Applicability.SAFE, (edit,)) if edit != NOWHERE else None
                span = program.tree.span(call)
                found.append(Finding("T1", "t", source.path, span, "It is.", Confidence.HIGH, Impact.LOW, fix=made))
            if isinstance(call, ast.Import):
                span = Span(call.lineno, 1, call.lineno, 1)
                edits = program.codemods.delete_statement(call)
                made = Fix("Drop", Applicability.SAFE, edits) if NOWHERE not in edits else None
                found.append(Finding("T2", "t", source.path, span, "It is.", Confidence.HIGH, Impact.LOW, fix=made))
        return found

    def fix(text: str) -> str:
        outcome = fix_files(
            {source.path: SourceFile(source.path, text)},
            findings_of(text),
            lambda overlay: Report(tuple(findings_of(overlay[source.path])), (), 1),
            lambda _: True,
        )
        assert not outcome.dropped
        return outcome.files[0].text if outcome.files else text

    once = fix(source.text)
    assert not [item for item in findings_of(once) if item.fix is not None]
    assert fix(once) == once
