from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observed_samples import TEXTS, observation

from perflint.cli import schemas
from perflint.errors import PerflintError
from perflint.observe import document, reading
from perflint.observe.functions import innermost, regions
from perflint.observe.trace import Observation


def written(**findings: str) -> Any:
    return json.loads(document.as_json(observation(), {int(index[1:]): code for index, code in findings.items()}))


def test_what_is_written_fits_the_published_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = schemas.observation()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(written(), schema)
    jsonschema.validate(json.loads(document.as_json(Observation("cuda", "2.9.1", "t4", 0, 0))), schema)


def test_a_line_says_where_what_how_often_and_what_it_costs() -> None:
    read = written(_4="TPL201")["lines"][4]
    assert read["path"] == "train.py"
    assert [read[key] for key in ("line", "column", "end_line", "end_column")] == [13, 15, 13, 26]
    assert read["kind"] == "read"
    assert read["waits"] is True
    assert read["per_step"] == pytest.approx(2 / 3, abs=1e-6)
    assert read["counts"] == {"1": 1, "3": 1}
    assert read["phase"] == "forward"
    assert read["finding"] == "TPL201"
    assert read["function"] == "train"
    assert read["stack"] == [
        {"path": "train.py", "line": 17, "function": "<module>"},
        {"path": "train.py", "line": 13, "function": "train"},
    ]
    launch = written()["lines"][2]
    assert launch["modelled_ms"] is None
    assert launch["finding"] is None
    assert launch["stack"][2]["library"] is True


def test_the_step_has_the_means_of_all_steady_steps() -> None:
    step = written()["step"]
    assert step["waits"] == pytest.approx(8 / 3, abs=1e-6)
    assert step["launches"] == 7
    assert step["bytes_to_device"] == 4 << 20
    assert step["modelled_ms"] > step["without_waits_ms"] >= max(step["host_ms"], step["device_ms"])
    assert step["bound_by"] == "device"
    assert step["measured_ms"] is None


def test_what_is_written_reads_back_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document.write(observation(), tmp_path / "seen.json")
    assert reading.read(Path("seen.json")) == observation()
    assert reading.parse(document.as_json(observation())) == observation()


def test_paths_are_those_of_the_folder_it_is_read_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project" / "out").mkdir(parents=True)
    for name, text in TEXTS.items():
        (tmp_path / "project" / name).write_text(text)
    monkeypatch.chdir(tmp_path / "project")
    document.write(observation(), Path("out/seen.json"))
    monkeypatch.chdir(tmp_path)
    read = reading.read(Path("project/out/seen.json"))
    assert set(read.ran) == set(read.regions) == {"project/train.py", "project/model.py"}
    assert read.sites[3].path == read.sites[3].stack[0].path == "project/train.py"
    assert read.sites[1].stack[2].path == "/lib/torch/nn/modules/module.py"


def test_a_file_that_was_carried_elsewhere_keeps_its_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "downloads").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "project" / name).write_text(text)
    monkeypatch.chdir(tmp_path / "project")
    text = document.as_json(observation(), directory=".")
    (tmp_path / "downloads" / "seen.json").write_text(text)
    assert set(reading.read(tmp_path / "downloads" / "seen.json").ran) == {"train.py", "model.py"}


def broken(**changes: Any) -> str:
    return json.dumps({**written(), **changes})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not valid JSON"),
        (document.as_json(observation())[:900], "is it truncated?"),
        ("[]", "the document is [], not an object"),
        ("{}", "version is missing"),
        (broken(version=99), "another version (99; this perflint reads 1)"),
        (broken(version="0.1.0"), "another version ('0.1.0'"),
        (broken(hardware="abacus"), "no hardware model 'abacus'; there are a100, h100"),
        (broken(steps=True), "steps is True, not a whole number from 0"),
        (broken(lines=[{"kind": "guess"}]), "lines[0].site is missing"),
        (broken(sites=[]), "lines[0].site is 0, not below 0"),
        (broken(ran={"a.py": [[1, 99_999_999]]}), "ran['a.py'][0] is [1, 99999999], not the first and the last line"),
        (broken(ran={"a.py": [[3]]}), "not the first and the last line"),
        ('{"version": 1, "directory": 3}', "directory is 3, not a text"),
        ('{"version": ' + "[" * 100_000, "not valid JSON"),
    ],
)
def test_what_is_no_observation_is_one_clear_error(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "seen.json"
    file.write_text(text)
    with pytest.raises(PerflintError) as caught:
        reading.read(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: ")
    assert said in message
    assert "perflint observe" in message
    assert "\n" not in message


def test_a_trace_with_a_wrong_number_is_an_error_too() -> None:
    whole = written()
    whole["trace"]["rows"][0][5] = float("nan")
    with pytest.raises(PerflintError, match=r"trace\.rows\[0\]\[5\] is nan"):
        reading.parse(json.dumps(whole))
    whole["trace"]["rows"][0][5] = 10**400
    with pytest.raises(PerflintError, match=r"trace\.rows\[0\]\[5\]"):
        reading.parse(json.dumps(whole))


@pytest.mark.parametrize("name", ["nowhere.json", "."])
def test_a_file_that_cannot_be_read_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(PerflintError, match=r"cannot be read|not a regular file"):
        reading.read(tmp_path / name)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PerflintError, match="not UTF-8"):
        reading.read(tmp_path / "binary.json")


def test_a_function_keeps_its_hash_when_it_moves_and_loses_it_when_it_changes() -> None:
    before = {one.name: one.hash for one in regions(TEXTS["train.py"])}
    moved = {one.name: one.hash for one in regions("import os\n\n" + TEXTS["train.py"])}
    changed = {one.name: one.hash for one in regions(TEXTS["train.py"].replace("loss.item()", "loss"))}
    said = TEXTS["train.py"].replace("loss.backward()", "loss.backward()  # perflint: ignore[TPL201] '#'")
    indented = regions("class Trainer:\n" + "".join(f"    {line}\n" for line in TEXTS["train.py"].splitlines()[6:14]))
    assert before["train"] == moved["train"] != changed["train"]
    assert before["train"] == {one.name: one.hash for one in regions(said)}["train"]
    assert regions("x = '# a'\n")[0].hash != regions("x = '# b'\n")[0].hash
    assert [one.hash for one in indented] == [before["train"]]


def test_lines_belong_to_the_innermost_function() -> None:
    text = "def outer():\n    @wrap\n    def inner():\n        x()\n    y()\nfor i in z:\n    w()\n"
    found = regions(text)
    names = [around.name if around else None for around in (innermost(found, line) for line in range(1, 9))]
    assert names == ["outer", "inner", "inner", "inner", "outer", "", "", None]
    assert regions("def broken(:\n") == ()


def test_importing_it_imports_no_torch() -> None:
    modules = "perflint.observe.document, perflint.observe.reading, perflint.observe.model.cost"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value inside a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in _places(one, (*path, key)))]


_PLACES = _places(written())
_WRONG: st.SearchStrategy[Any] = st.sampled_from(
    [None, -1, 10**30, 1.5, float("inf"), True, "", "x", [], {}, [[]], {"a": 1}, "\ud800"]
)


@given(st.sampled_from(_PLACES[1:]), _WRONG)
def test_a_wrong_value_anywhere_is_an_error_or_harmless(place: tuple[Any, ...], wrong: Any) -> None:
    whole = written()
    at = whole
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = wrong
    # Any other exception is a traceback to the user.
    with contextlib.suppress(PerflintError):
        document.as_json(reading.parse(json.dumps(whole)))


@given(st.integers(0, 100_000))
def test_a_truncated_document_is_an_error(length: int) -> None:
    text = document.as_json(observation())
    with pytest.raises(PerflintError, match="not valid JSON"):
        reading.parse(text[: length % (len(text) - 2)])
