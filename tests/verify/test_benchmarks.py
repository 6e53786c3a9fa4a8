"""Rules' own benchmarks: all of them keep the contract, and their two sides do the same work."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from perflint.rule_api.registry import load_rules
from perflint.verify import outcome
from perflint.verify.benchmarks import MEASURE
from perflint.verify.contract import ContractError, Workload, load_workload
from perflint.verify.trial import seed_all

FIXTURES = Path(__file__).parents[2] / "fixtures"
#: In benchmarks that start or wait for other processes.
_OTHER_PROCESSES = ("distributed", "num_workers")


def _files() -> Iterator[object]:
    for rule in load_rules():
        file = FIXTURES / f"{rule.code}-{rule.name}" / MEASURE
        if file.exists():
            yield pytest.param(file, id=rule.code)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


# Some benchmarks do what torch warns of: that is their point.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("file", list(_files()))
def test_both_sides_of_a_benchmark_give_the_same(file: Path, tmp_path: Path) -> None:
    workload = load_workload(file)
    assert workload.caption.endswith(".")
    if workload.compiles or workload.lacking("cpu"):
        return
    if any(word in file.read_text() for word in _OTHER_PROCESSES):
        _run_apart(file, tmp_path)
    else:
        _run_both(file, tmp_path)


def _run_apart(file: Path, folder: Path) -> None:
    """In a process of its own: one that does not come back would hold up all tests, as a process group has done."""
    command = [sys.executable, "-W", "ignore", __file__, str(file), str(folder)]
    with (folder / "said.txt").open("w") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            code = process.wait(timeout=300)
        finally:
            process.kill()
    assert code == 0, (folder / "said.txt").read_text()


def _run_both(file: Path, folder: Path) -> None:
    workload = load_workload(file)
    for side in ("before", "after"):
        _run(workload, side, folder / "kept")


def _run(workload: Workload, side: str, kept: Path) -> None:
    seed_all(0)
    state = workload.setup(next(iter(workload.sizes.values())), "cpu")
    try:
        seed_all(0)
        # Called again on the same state, as measuring does; a call that needs a fresh state is called once.
        calls = 1 if workload.once else 3
        snapshots = [outcome.snapshot(workload.sides[side](state)) for _ in range(calls)]
    finally:
        if workload.teardown is not None:
            workload.teardown(state)
    if workload.equal is None:
        return
    if side == "before":
        outcome.keep(snapshots, kept)
    else:
        assert outcome.compare(kept, snapshots, workload.equal) == outcome.Comparison("", [])


def test_a_rule_without_an_effect_on_speed_says_so(tmp_path: Path) -> None:
    file = tmp_path / MEASURE
    file.write_text('"""Nothing."""\nUNMEASURABLE = "it is about results"\n')
    assert load_workload(file).lacking("cuda") == "it is about results"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lacks SIZES, setup, before, after, EQUAL"),
        ("SIZES = {}\nEQUAL = None\nsetup = before = after = print\n", "SIZES must map"),
        ("SIZES = {'a': 1}\nEQUAL = 3\nsetup = before = after = print\n", "EQUAL must be"),
        ("SIZES = {'a': 1}\nEQUAL = None\nNEEDS = ('luck',)\nsetup = before = after = print\n", "'luck'"),
    ],
)
def test_a_file_that_does_not_keep_the_contract_says_how(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / MEASURE
    file.write_text(text)
    with pytest.raises(ContractError, match=r"measure\.py") as caught:
        load_workload(file)
    assert said in str(caught.value)


if __name__ == "__main__":
    _run_both(Path(sys.argv[1]), Path(sys.argv[2]))
