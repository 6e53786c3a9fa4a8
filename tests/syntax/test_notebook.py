"""A notebook as one module: what is passed over, how places are told in cells, and what a rewrite leaves alone."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflint.errors import SourceError
from perflint.finding import Applicability, Confidence, Edit, Finding, Fix, Impact, Span
from perflint.syntax.notebook import Notebook
from perflint.syntax.read import decode_source


def code(source: str | list[str], **more: object) -> dict[str, Any]:
    outputs = [{"name": "stdout", "output_type": "stream", "text": ["\U0001f525 é\n"]}]
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": outputs, "source": source, **more}


def words(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def dump(cells: list[dict[str, Any]], *, indent: int | None = 1, ascii_only: bool = False, **metadata: Any) -> str:
    document = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=indent, ensure_ascii=ascii_only) + "\n"


def sources(raw: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(raw)["cells"]]


def statements(text: str) -> list[str]:
    """What of a cell's text is left to be checked."""
    tree = ast.parse(Notebook("n.ipynb", dump([code(text)])).text)
    return [ast.unparse(statement) for statement in tree.body]


# Passing over


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("%matplotlib inline\nx = 1", ["pass", "x = 1"]),
        ("!pip install 'a' it's\nx = 1", ["pass", "x = 1"]),
        ("!pip install \\\n  'torch\nx = 1", ["pass", "x = 1"]),
        ("files = !ls *.py\nx = 1", ["pass", "x = 1"]),
        ("a, b = %sql select 'x\nx = 1", ["pass", "x = 1"]),
        ("model?\nmodel.fit??\n?print\nx = 1", ["pass", "pass", "pass", "x = 1"]),
        ("pip install torch\nx = 1", ["pass", "x = 1"]),
        ("for x in y:\n    %time f(x)\n    g(x)", ["for x in y:\n    pass\n    g(x)"]),
        ("%%time\nx = 1\n!ls 'a", ["x = 1", "pass"]),
        ("\n%%capture out\nx = 1", ["x = 1"]),
        ("%%bash\necho 'x\nx = 1", []),
        ("%%writefile a.py\nx = 1", []),
        ("x = (a\n     % b)", ["x = a % b"]),
        ('x = """\n%time\n!ls\n"""\n%time y', ["x = '\\n%time\\n!ls\\n'", "pass"]),
        ("x = f(\n  a,\n!ls\n)", None),
        ("await f()", ["await f()"]),
        ("x != y", ["x != y"]),
        ("", []),
    ],
)
def test_what_is_no_python_is_passed_over(text: str, left: list[str] | None) -> None:
    notebook = Notebook("n.ipynb", dump([code(text)]))
    if left is None:
        assert notebook.faults
    else:
        assert not notebook.faults
        assert statements(text) == left
    assert notebook.raw_of(notebook.text) == notebook.raw


def test_a_cell_that_does_not_parse_is_named_and_the_others_are_checked() -> None:
    raw = dump([words("# T"), code("x = 1\n"), code(["y = 2\n", "z = = 3\n"]), code("w = 4")])
    notebook = Notebook("n.ipynb", raw)
    (fault,) = notebook.faults
    assert fault.message.startswith("cell 3, line 2: does not parse")
    assert fault.line is not None
    assert "z = = 3" in raw.splitlines()[fault.line - 1]
    assert "x = 1" in ast.unparse(ast.parse(notebook.text))
    assert "w = 4" in ast.unparse(ast.parse(notebook.text))


@pytest.mark.parametrize("metadata", [{"kernelspec": {"language": "R"}}, {"language_info": {"name": "julia"}}])
def test_other_languages_are_nobodys_business(metadata: dict[str, Any]) -> None:
    notebook = Notebook("n.ipynb", dump([code("x <- 1")], **metadata))
    assert (notebook.text, notebook.faults) == ("", ())
    assert not Notebook("n.ipynb", dump([code("x <- 1", metadata={"vscode": {"languageId": "r"}})])).text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        '{"cells": 3}',
        '{"cells": [{"source": null}]}',
        "[" * 100_000,
        '{"cells": []} x',
        '{"cells": []}\n<<<<<<< ours',
        '{"cells": [],}',
        '{"cells": [{"cell_type": "code", "source": "x = 1\x0c"}]}',
    ],
)
def test_what_is_no_notebook_is_said_to_be_none(text: str) -> None:
    with pytest.raises(SourceError, match=r"notebook|JSON|deep"):
        Notebook("n.ipynb", text)


def test_the_old_format_has_its_cells_in_worksheets() -> None:
    raw = json.dumps({"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"]}]}], "nbformat": 3})
    assert "x = 1\n" in Notebook("n.ipynb", raw).text


def test_hostile_cells_take_no_more_than_linear_time_to_read() -> None:
    # Each of these, read carelessly, makes the reader look at the rest again and again.
    for piece in (" ", "a ", "a.", "= ", "!", "f'{", 'f"""{', "(\n", "x?\n", "a \\\n", "'"):
        Notebook("n.ipynb", dump([code("x = = 1\n" + piece * 20_000)]))


# Places


def finding(span: Span, *edits: Edit, message: str = "Odd.") -> Finding:
    fix = Fix("mend it", Applicability.SAFE, edits) if edits else None
    return Finding("TPL501", "odd", "n.ipynb", span, message, Confidence.HIGH, Impact.LOW, fix=fix)


def span_of(notebook: Notebook, text: str) -> Span:
    line = next(number for number, one in enumerate(notebook.lines, 1) if text in one)
    column = notebook.lines[line - 1].index(text) + 1
    return Span(line, column, line, column + len(text))


def test_places_are_told_in_cells_of_every_type_and_back() -> None:
    notebook = Notebook("n.ipynb", dump([words("# T"), code("a = 1\n"), words("x"), code("%time\nb = f(2)")]))
    inside = finding(span_of(notebook, "f(2)"), message="As line 2 says, `line 2` is `x`.")
    placed = notebook.placed(inside)
    assert (placed.cell, placed.span) == (4, Span(2, 5, 2, 9))
    assert placed.message == "As line 1 of cell 2 says, `line 2` is `x`."
    assert notebook.unplaced(placed).span == inside.span


def test_a_comment_at_the_end_of_a_cell_says_nothing_about_the_next() -> None:
    from perflint.syntax.suppressions import Suppressions

    notebook = Notebook("n.ipynb", dump([code("a = 1\n# perflint: ignore[TPL501]"), code("b = 1")]))
    line = span_of(notebook, "b = 1").line
    assert Suppressions.read(notebook).silences("TPL501", "odd", (line, line)) is None


def test_an_edit_below_the_last_line_of_a_cell_is_one_at_its_end() -> None:
    notebook = Notebook("n.ipynb", dump([code("import a"), code("b = 1")]))
    line = span_of(notebook, "import a").line + 1
    placed = notebook.placed(finding(span_of(notebook, "b = 1"), Edit(Span(line, 1, line, 1), "import c\n")))
    assert placed.fix is not None
    assert placed.fix.edits == (Edit(Span(1, 9, 1, 9), "\nimport c", 1),)


# Writing

LINES = st.text(st.sampled_from("ab \t'\"\\#%!?é\U0001f525()"), max_size=8)
TEXTS = st.lists(LINES, max_size=5).map("\n".join)


def split(text: str, *, as_list: bool) -> str | list[str]:
    return text.splitlines(keepends=True) if as_list else text


@given(
    st.lists(st.tuples(TEXTS, st.booleans(), st.booleans()), min_size=1, max_size=4),
    st.sampled_from([None, 0, 1, 2, 4]),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
def test_a_notebook_that_nothing_changes_stays_as_it_is_to_the_byte(
    cells: list[tuple[str, bool, bool]], indent: int | None, ascii_only: bool, newline: str
) -> None:
    made = [code(split(text, as_list=listed)) if runs else words(text) for text, listed, runs in cells]
    raw = dump(made, indent=indent, ascii_only=ascii_only).replace("\n", newline)
    data = raw.encode()
    source = decode_source(data, "n.ipynb")
    assert source.encode(source.text) == data
    marked = b"\xef\xbb\xbf" + data
    source = decode_source(marked, "n.ipynb")
    assert source.encode(source.text) == marked


@given(
    st.lists(st.sampled_from(["x = 1", "é = '\\n'", "!ls 'a", "", "  # c", "%time y"]), min_size=1, max_size=6),
    st.data(),
    st.sampled_from([None, 1, 4]),
    st.booleans(),
    st.booleans(),
)
def test_a_rewrite_touches_the_lines_it_changes_and_nothing_else(
    lines: list[str], data: st.DataObject, indent: int | None, ascii_only: bool, as_list: bool
) -> None:
    text = "\n".join([*lines, "old = 1"])
    raw = dump(
        [words("# é"), code("a = 0\n"), code(split(text, as_list=as_list))], indent=indent, ascii_only=ascii_only
    )
    notebook = Notebook("n.ipynb", raw)
    after = data.draw(st.sampled_from(["new = 2", "new = 'é\U0001f525'", "new = 2\nnewer = 3", "new\n", ""]))
    rewritten = notebook.raw_of(notebook.text.replace("old = 1", after))
    assert sources(rewritten) == ["# é", "a = 0\n", text.replace("old = 1", after)]
    assert rewritten.isascii() == raw.isascii() or "é" in after
    if indent and as_list and after.startswith("new") and after.count("\n") <= 1:
        changed = [line for line in rewritten.split("\n") if line not in raw.split("\n")]
        assert len(changed) <= 1 + after.count("\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('["old"]', '["new"]'),
        ('[ "old" ]', '[ "new" ]'),
        ('["a\\n","old"]', '["a\\n","new"]'),
        ('[\n\t"a\\u00e9\\n",\n\t"old"\n]', '[\n\t"a\\u00e9\\n",\n\t"new"\n]'),
        ('"\\u0061\\/\\nold"', '"\\u0061\\/\\nnew"'),
        ('"\\u0061\\u000aold"', '"\\u0061\\u000anew"'),
        ('["a", "b\\n", "old"]', '["ab\\n", "new"]'),
    ],
)
def test_the_json_of_other_lines_stays_however_it_is_written(before: str, after: str) -> None:
    raw = f'{{"nbformat":4, "cells" :[{{"cell_type":"code","source":{before}, "x": 1.50}}]}}'
    notebook = Notebook("n.ipynb", raw)
    assert notebook.raw_of(notebook.text.replace("old", "new")) == raw.replace(before, after)


def test_lines_come_and_go() -> None:
    raw = dump([code(["a\n", "b\n", "c"]), code([])])
    notebook = Notebook("n.ipynb", raw)
    for before, after, wanted in (
        ("b\n", "", ["a\n", "c"]),
        ("c\n", "", ["a\n", "b\n"]),
        ("a\n", "x\na\n", ["x\n", "a\n", "b\n", "c"]),
    ):
        rewritten = notebook.raw_of(notebook.text.replace(before, after, 1))
        assert sources(rewritten)[0].removesuffix("\n") == "".join(wanted).removesuffix("\n")
        assert len(set(rewritten.split("\n")) - set(raw.split("\n"))) <= 1
    into_the_empty_one = notebook.raw_of(notebook.text.rstrip("\n") + "\nimport x\n")
    assert sources(into_the_empty_one)[1] == "import x"


def test_cells_that_cannot_be_told_apart_are_not_written() -> None:
    notebook = Notebook("n.ipynb", dump([code("a"), code("b")]))
    with pytest.raises(SourceError, match="told apart"):
        notebook.raw_of(notebook.text.replace("# %% [cell 2, perflint]\n", ""))
