"""A program is told the same when each of its functions and classes stands in a file of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from splitting import split

from perflint import testing

FIXTURES = Path(__file__).parents[2] / "fixtures"
CASES = {str(case): case for case in testing.find_cases(FIXTURES) if case.path.is_file() and case.group[0] != "_"}


#: Programs of which the parts are told otherwise, each with the reason; whoever mends one takes it out.
_AT_THE_LOOP = "where the encoder stands in another file, the finding stands at the loop's call of the model"
LEFT = {
    "TPL201-sync-in-hot-loop/layers_of_a_list_made_elsewhere": (
        "what a call of an unnamed part passes is known only in a file that names the class of the part"
    ),
    "TPL312-redundant-clone/slices_in_order": "what stands behind a layer is looked for in the file of its class",
    "TPL620-frozen-encoder-recomputed/example": _AT_THE_LOOP,
    "TPL620-frozen-encoder-recomputed/in_training_mode": _AT_THE_LOOP,
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_files_tell_what_one_file_tells(name: str) -> None:
    marked = dict(CASES[name].read())
    ((path, item),) = marked.items()
    parts = split(item.text, CASES[name].path.stem)
    if parts is None:
        pytest.skip("no program of several functions that can be told apart by their text")
    rules = [rule() for rule in testing.rules_for(CASES[name], marked)]
    findings = testing.checked({path: item.text}, rules).findings
    whole = {(finding.span.line, finding.code) for finding in findings}
    apart = {
        (parts.lines[finding.path][finding.span.line], finding.code)
        for finding in testing.checked(parts.texts, rules).findings
    }
    lost, new = whole - apart, apart - whole
    if name in LEFT:
        assert lost, "it is told the same now: take the case out of LEFT"
        return
    assert (lost, new) == (set(), set())
