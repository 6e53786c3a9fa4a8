"""Findings in notebooks: cell and line for people, the line of the JSON text for viewers of the file."""

import json

import pytest
from report_samples import shown

from perflint.finding import Confidence, Finding, Impact, Report, Span
from perflint.report import FORMATS
from perflint.report.order import Layout

SOURCE = ["import torch\n", "x = '🔥'; y = f(x)\n", "z"]
NOTEBOOK = {"cells": [{"cell_type": "markdown", "source": "# T"}, {"outputs": [], "source": SOURCE}], "nbformat": 4}
TEXT = json.dumps(NOTEBOOK, indent=1)
FINDING = Finding("TPL501", "odd", "n.ipynb", Span(2, 14, 2, 18), "Odd.", Confidence.HIGH, Impact.LOW, cell=2)
REPORT = Report((FINDING,), (), 1, {"n.ipynb": TEXT})
RAW_LINE = next(number for number, line in enumerate(TEXT.splitlines(), 1) if "f(x)" in line)


def test_people_see_cell_and_line() -> None:
    assert shown(REPORT, "text").splitlines()[:4] == [
        "n.ipynb:cell 2:2:14  TPL501 odd [low impact, high confidence]",
        "  Odd.",
        "     2 | x = '🔥'; y = f(x)",
        "       |               ^^^^",
    ]
    assert json.loads(shown(REPORT, "json"))["findings"][0]["cell"] == 2


def test_viewers_of_the_file_get_its_own_line() -> None:
    location = json.loads(shown(REPORT, "sarif"))["runs"][0]["results"][0]["locations"][0]
    region = location["physicalLocation"]["region"]
    assert (region["startLine"], region["endLine"], region["startColumn"]) == (RAW_LINE, RAW_LINE, 1)
    assert region["snippet"] == {"text": "f(x)"}
    place = f"file=n.ipynb,line={RAW_LINE},endLine={RAW_LINE}"
    assert shown(REPORT, "github") == f"::notice {place},title=TPL501 odd::cell 2, line 2: Odd.\n"


def test_text_that_is_no_notebook_is_no_reason_to_fail() -> None:
    for text in ("", "{", "[1]", '{"cells": 3}', '{"cells": [{"source": null}]}', "[" * 100_000):
        report = Report((FINDING,), (), 1, {"n.ipynb": text})
        assert shown(report, "text").startswith("n.ipynb:cell 2:2:14")
        shown(report, "sarif")


@pytest.mark.parametrize("output_format", [*FORMATS])
def test_every_format_names_the_cell(output_format: str) -> None:
    text = shown(REPORT, output_format, layout=Layout(impact=Impact.LOW))
    assert "cell 2" in text or '"cell": 2' in text
