"""What `--explain-heat` says about lines of the pinned programs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from perflint.analysis.frequency.explain import explain_heat
from perflint.analysis.program import Program
from perflint.ir.summary import Summary
from perflint.ir.survey import survey
from perflint.syntax.roles import holds_tests

FOLDER = Path(__file__).parents[2] / "fixtures" / "_engine" / "heat"


def _surveyed(path: str, text: str) -> Summary:
    module = ast.parse(text)
    return survey(module, text.split("\n"), outlined=holds_tests(path, module))


def program_of(*paths: Path, base: Path = FOLDER) -> Program:
    texts = {path.relative_to(base).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    return Program({path: _surveyed(path, text) for path, text in texts.items()})


def line_of(name: str, text: str) -> int:
    lines = (FOLDER / name).read_text(encoding="utf-8").split("\n")
    found, *_ = (number for number, line in enumerate(lines, 1) if line.strip().startswith(text))
    return found


def explained(name: str, text: str) -> str:
    return "\n".join(explain_heat(program_of(FOLDER / name), name, line_of(name, text)))


def test_a_hot_line_tells_its_way() -> None:
    said = explained("loops_with_optimizer.py", "def one_step(")
    assert "loops_with_optimizer.py:63 runs every step, as part of training" in said
    assert "The way there:" in said
    assert "for x in data" in said
    assert "one_step" in said


def test_the_way_leads_through_other_files() -> None:
    folder = FOLDER / "inheritance"
    program = program_of(*folder.glob("*.py"), base=folder)
    said = explain_heat(program, "other.py", 3)
    way = said[said.index("The way there:") + 1 :]
    assert [line.split()[0] for line in way[:3]] == ["base.py:4", "base.py:5", "child.py:8"]


def test_the_guard_that_cools_a_line_is_named() -> None:
    said = explained("guards_in_loop.py", "logger.graph(model)")
    assert "runs every epoch" in said
    assert "a guard: what it holds runs only in the first or last turn" in said


def test_the_guard_that_cools_a_caller_is_named() -> None:
    said = explained("guards_in_loop.py", "def report(step)")
    assert "guards_in_loop.py:135  in `conditional_expression`, runs every few steps" in said
    assert "around it every step" in said


def test_cold_callers_are_listed_with_their_heat() -> None:
    said = explained("cold_setup.py", "def convert(tensor)")
    assert "Called from (2 in all):" in said
    assert "in `weights`, runs once" in said


def test_what_nobody_calls_is_said_to_be_uncalled() -> None:
    said = explained("calls.py", "def not_passed(x)")
    assert "No call of it was found" in said


def test_calls_that_could_not_be_followed_are_listed() -> None:
    folder = FOLDER / "registry"
    program = program_of(*folder.glob("*.py"), base=folder)
    line = program.summaries["train.py"].functions["release_all"].line
    said = "\n".join(explain_heat(program, "train.py", line))
    assert "Calls by the name `release_all` that could not be followed (1 in all):" in said
    assert "in `dynamic`, runs every step" in said


def test_a_cache_is_named() -> None:
    assert "A decorator keeps its result" in explained("caches.py", "def table(n)")


def test_a_loop_that_is_not_hot_says_so() -> None:
    said = explained("cold_setup.py", "build(config)")
    assert "nothing says that its turns are steps" in said


def test_the_header_of_a_loop_tells_of_its_body() -> None:
    said = explained("loops_by_next.py", "while step < max_steps:")
    assert "The loop that begins here:" in said
    assert "its turns are batches" in said


def test_evaluation_is_told_from_training() -> None:
    assert "Gradients are off here." in explained("gradients.py", "def score(batch)")


def test_tests_are_not_inspected_and_their_calls_not_counted() -> None:
    folder = FOLDER / "test_loops"
    program = program_of(*folder.rglob("*.py"), base=folder)
    assert "is in a test" in explain_heat(program, "tests/test_library.py", 8)[0]
    assert any("No call of it was found outside tests" in line for line in explain_heat(program, "library.py", 2))


def test_module_level_and_empty_lines_can_be_asked() -> None:
    program = program_of(FOLDER / "caches.py")
    assert "the module's own code" in "\n".join(explain_heat(program, "caches.py", 1))
    assert explain_heat(program, "caches.py", 10_000)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("train_dataloader", "once for each fit, validation, test or prediction. With `Trainer(reload_dataloaders"),
        ("val_dataloader", "once for each fit, validation, test or prediction. With `Trainer(reload_dataloaders"),
        ("setup", "once for each fit, validation, test or prediction."),
        ("on_train_epoch_end", "once for each epoch, or less often."),
    ],
)
@pytest.mark.parametrize("base", ["LightningDataModule", "LightningModule"])
def test_what_a_framework_calls_seldom_is_said_to_be_called(base: str, method: str, said: str) -> None:
    text = f"import lightning\nclass Data(lightning.{base}):\n    def {method}(self):\n        return 1\n"
    program = Program({"data.py": survey(ast.parse(text), text.split("\n"))})
    words = "\n".join(explain_heat(program, "data.py", 4))
    assert f"The framework calls it, as `{base}.{method}`: {said}" in words
    assert "No call of it was found" not in words
