"""Configuration: what is read, what is refused with which words, and which rules are selected."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import ClassVar

import pytest

from perflint.errors import SettingsError
from perflint.finding import Confidence, Finding, Heat, Impact, Span
from perflint.project.selection import Selection
from perflint.project.settings import FailOn, Settings, load_settings, settings_of
from perflint.rule_api.registry import load_rules
from perflint.rule_api.rule import Listen, Rule, Tier


class Base(Rule):
    impact: ClassVar[Impact] = Impact.LOW
    listens: ClassVar[tuple[Listen, ...]] = (Listen((ast.Call,)),)


def rule(code: str, name: str, tier: Tier = Tier.CORE) -> type[Rule]:
    return type(name, (Base,), {"code": code, "name": name, "tier": tier})


RULES = [
    rule("TPL101", "blocking-transfer"),
    rule("TPL102", "unpinned-loader"),
    rule("TPL110", "per-item-io", Tier.EXTRA),
    rule("TPL301", "deepcopy-state-dict"),
]
CORE = "TPL101 TPL102 TPL301"


def settings(**table: object) -> Settings:
    return settings_of({key.replace("_", "-"): value for key, value in table.items()}, Path("/p/pyproject.toml"))


def selected(
    table: Settings, select: tuple[str, ...] = (), ignore: tuple[str, ...] = (), *, extra: bool = False
) -> str:
    return " ".join(one.code for one in Selection(table, select, ignore, extra).resolve(RULES))


# Reading


def test_everything_that_can_be_said() -> None:
    read = settings(
        select=["TPL1"],
        ignore=["TPL102"],
        extend_select=["TPL301"],
        extra=True,
        confidence="medium",
        fail_on="impact=high",
        exclude=["old/"],
        per_file_ignores={"tests/**": ["TPL1"]},
        target_torch="2.4",
        output_format="json",
        cache_dir=".cache/perflint",
        jobs=4,
        baseline="baseline.json",
        verify={"repeats": 3},
    )

    assert read == Settings(
        file=Path("/p/pyproject.toml"),
        select=("TPL1",),
        ignore=("TPL102",),
        extend_select=("TPL301",),
        extra=True,
        confidence=Confidence.MEDIUM,
        fail_on=FailOn(Impact.HIGH, Confidence.LOW),
        exclude=("old/",),
        per_file_ignores={"tests/**": ("TPL1",)},
        target_torch="2.4",
        output_format="json",
        cache_dir=Path("/p/.cache/perflint"),
        jobs=4,
        baseline=Path("/p/baseline.json"),
        verify={"repeats": 3},
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"selct": []}, ["unknown key 'selct'", "did you mean 'select'"]),
        ({"per_file_ignores": {}}, ["unknown key 'per_file_ignores'", "'per-file-ignores'"]),
        ({"select": "TPL101"}, ["select must be a list of strings", "'TPL101'"]),
        ({"ignore": [1]}, ["ignore must be a list of strings"]),
        ({"extra": "yes"}, ["extra must be true or false"]),
        ({"confidence": "hgih"}, ["confidence: 'hgih' is not one of low, medium, high", "did you mean 'high'"]),
        ({"confidence": 3}, ["confidence must be a string"]),
        ({"fail-on": "speed=high"}, ["fail-on"]),
        ({"jobs": 0}, ["jobs must be a whole number from 1"]),
        ({"jobs": True}, ["jobs must be a whole number from 1"]),
        ({"target-torch": "newest"}, ["target-torch must be a version"]),
        ({"target-torch": 2.4}, ["target-torch must be a string"]),
        ({"output-format": "xml"}, ["output-format: 'xml' is not one of text, full"]),
        ({"exclude": ["[z-a]"]}, ["bad pattern '[z-a]'"]),
        ({"per-file-ignores": ["a"]}, ["per-file-ignores must be a table"]),
        ({"per-file-ignores": {"a": "TPL1"}}, ["per-file-ignores.a must be a list of strings"]),
        ({"cache-dir": ""}, ["cache-dir must name a path"]),
        ({"verify": []}, ["verify must be a table"]),
    ],
)
def test_what_is_wrong_is_named_with_its_file(table: dict[str, object], words: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_of(table, Path("/p/pyproject.toml"))

    for word in ["/p/pyproject.toml", *words]:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def put(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_nearest_configuration_is_read(tmp_path: Path) -> None:
    put(tmp_path / "pyproject.toml", "[tool.perflint]\njobs = 1\n")
    put(tmp_path / "a/pyproject.toml", "[project]\nname = 'a'\n")
    put(tmp_path / "a/b/perflint.toml", "jobs = 3\n")
    put(tmp_path / "a/b/pyproject.toml", "[tool.perflint]\njobs = 2\n")

    assert load_settings(tmp_path / "a/b/c").jobs == 3
    assert load_settings(tmp_path / "a").jobs == 1
    assert load_settings(tmp_path / "a").root == tmp_path


def test_search_ends_at_the_git_root(tmp_path: Path) -> None:
    put(tmp_path / "perflint.toml", "jobs = 1\n")
    put(tmp_path / "repo/.git/config", "")

    assert load_settings(tmp_path / "repo") == Settings()


def test_file_asked_for_by_name(tmp_path: Path) -> None:
    file = put(tmp_path / "other.toml", "jobs = 7\n")

    assert load_settings(tmp_path / "elsewhere", file).jobs == 7
    with pytest.raises(SettingsError, match=r"no\.toml: cannot be read"):
        load_settings(tmp_path, tmp_path / "no.toml")
    bare = put(tmp_path / "pyproject.toml", "")
    with pytest.raises(SettingsError, match=r"has no table \[tool.perflint\]"):
        load_settings(tmp_path, bare)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"jobs = \n", "not valid TOML"),
        (b"\xff", "not UTF-8"),
        (b"a = " + b"[" * 20_000, "TOML|nested too deep"),
    ],
)
def test_file_that_does_not_read(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "perflint.toml").write_bytes(content)

    with pytest.raises(SettingsError, match=words):
        load_settings(tmp_path)


def test_table_that_is_none(tmp_path: Path) -> None:
    put(tmp_path / "pyproject.toml", "[tool]\nperflint = 3\n")

    with pytest.raises(SettingsError, match=r"tool\.perflint must be a table"):
        load_settings(tmp_path)


# Selecting


def test_core_rules_run_by_default() -> None:
    assert selected(Settings()) == CORE


@pytest.mark.parametrize(
    ("select", "ignore", "extra", "expected"),
    [
        (("TPL1",), (), False, "TPL101 TPL102"),
        (("TPL1",), (), True, "TPL101 TPL102 TPL110"),
        (("TPL110",), (), False, "TPL110"),
        (("per-item-io", "tpl301"), (), False, "TPL110 TPL301"),
        (("ALL",), (), False, "TPL101 TPL102 TPL110 TPL301"),
        (("TPL",), ("TPL1",), False, "TPL301"),
        ((), ("TPL1",), False, "TPL301"),
        ((), ("blocking-transfer",), False, "TPL102 TPL301"),
        (("TPL101",), ("TPL1",), False, "TPL101"),
        (("TPL101",), ("TPL101",), False, ""),
        ((), (), True, "TPL101 TPL102 TPL110 TPL301"),
        ((), ("ALL",), False, ""),
    ],
)
def test_selecting_on_the_command_line(
    select: tuple[str, ...], ignore: tuple[str, ...], extra: bool, expected: str
) -> None:
    assert selected(Settings(), select, ignore, extra=extra) == expected


def test_command_line_goes_before_the_file() -> None:
    table = settings(select=["TPL3"], ignore=["TPL101"], extend_select=["TPL110"])

    assert selected(table) == "TPL110 TPL301"
    assert selected(table, ("TPL101",)) == "TPL101 TPL110"
    assert selected(table, ("TPL1",)) == "TPL102 TPL110"
    assert selected(table, (), ("TPL3",)) == "TPL110"


def test_file_selects_extra_rules() -> None:
    assert selected(settings(extra=True)) == "TPL101 TPL102 TPL110 TPL301"
    assert selected(settings(extend_select=["per-item-io"])) == "TPL101 TPL102 TPL110 TPL301"


@pytest.mark.parametrize(
    ("table", "select", "words"),
    [
        (Settings(), ("TPL999",), "--select: no rule matches 'TPL999'; did you mean"),
        (Settings(), ("blocking-transfr",), "did you mean 'blocking-transfer'"),
        (Settings(), ("",), "--select: no rule matches ''"),
        (settings(ignore=["TPL4"]), (), "/p/pyproject.toml: ignore: no rule matches 'TPL4'; did you mean 'TPL"),
        (settings(per_file_ignores={"a": ["depcopy"]}), (), "per-file-ignores.a: no rule matches 'depcopy'"),
    ],
)
def test_a_selector_that_names_no_rule(table: Settings, select: tuple[str, ...], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        selected(table, select)

    assert words in str(caught.value)


def test_per_file_ignores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = settings_of({"per-file-ignores": {"tests/**": ["TPL1"], "*_old.py": ["ALL"]}}, tmp_path / "pyproject.toml")

    assert table.ignored_in(tmp_path / "tests/a/b.py") == ("TPL1",)
    assert table.ignored_in(tmp_path / "tests/b_old.py") == ("TPL1", "ALL")
    assert table.ignored_in(tmp_path / "src/b.py") == ()
    assert table.ignored_in(tmp_path.parent / "tests/b.py") == ()
    monkeypatch.chdir(tmp_path)
    assert table.ignored_in(Path("tests/b.py")) == ("TPL1",)


@pytest.mark.parametrize(
    ("text", "impact", "confidence", "counts"),
    [
        ("low", Impact.LOW, Confidence.LOW, True),
        ("high", Impact.MEDIUM, Confidence.HIGH, False),
        ("high", Impact.HIGH, Confidence.LOW, True),
        ("impact=medium", Impact.MEDIUM, Confidence.LOW, True),
        ("confidence=high", Impact.HIGH, Confidence.MEDIUM, False),
        ("confidence:medium, impact:medium", Impact.MEDIUM, Confidence.MEDIUM, True),
        ("confidence=medium,impact=high", Impact.MEDIUM, Confidence.HIGH, False),
    ],
)
def test_fail_on(text: str, impact: Impact, confidence: Confidence, counts: bool) -> None:
    finding = Finding("TPL101", "n", "f.py", Span(1, 1, 1, 2), "m", confidence, impact, Heat.STEP)

    assert FailOn.parse(text).counts(finding) is counts


@pytest.mark.parametrize("text", ["", "=high", "heat=step", "impact=", "confidence"])
def test_fail_on_that_does_not_read(text: str) -> None:
    with pytest.raises(SettingsError, match="fail-on"):
        FailOn.parse(text)


def test_a_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    file = put(tmp_path / "pyproject.toml", '[project]\njobs = 1\n[tool.perflint]\nextra = true\njobs = "many"\n')
    with pytest.raises(SettingsError, match=r"pyproject\.toml:5: jobs must be a whole number"):
        load_settings(tmp_path)
    put(file, '[tool.perflint]\n\nslect = ["TPL1"]\n')
    with pytest.raises(SettingsError, match=r"pyproject\.toml:3: unknown key 'slect' in tool\.perflint"):
        load_settings(tmp_path)
    put(file, '[tool.perflint]\nselect = ["TPL1"]\nignore = ["TPL9999"]\n')
    with pytest.raises(SettingsError, match=r"pyproject\.toml:3: ignore: no rule matches 'TPL9999'"):
        Selection(load_settings(tmp_path)).resolve(load_rules())


def test_the_table_of_pyproject_in_a_file_of_our_own_is_told(tmp_path: Path) -> None:
    put(tmp_path / "perflint.toml", "[tool.perflint]\njobs = 1\n")
    with pytest.raises(SettingsError, match=r"perflint\.toml: .*keys stand at the top"):
        load_settings(tmp_path)


def test_a_folder_named_by_way_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "pyproject.toml", '[tool.perflint]\nexclude = ["old/"]\n')
    put(tmp_path / "sub/perflint.toml", "jobs = 1\n")
    monkeypatch.chdir(tmp_path / "sub")

    assert load_settings(Path("..")).root == tmp_path
    assert load_settings(Path(), Path("../pyproject.toml")).root == tmp_path
