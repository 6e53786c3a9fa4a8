"""A Ray cluster finds what this machine finds, also when a worker of it dies."""

from __future__ import annotations

import dataclasses
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from perflint.cli.app import group
from perflint.engine import Options, check, spreading
from perflint.finding import Report
from perflint.project.discovery import discover
from perflint.project.settings import load_settings
from perflint.rule_api.registry import load_rules

TRAIN = """\
import gc
from memory{0} import clean_up


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).backward()
        optimizer.step()
        clean_up()
"""
MEMORY = "import gc\n\n\ndef clean_up():\n    gc.collect()  # {0}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.perflint]\n")
    for number in range(12):
        (tmp_path / f"train{number}.py").write_text(TRAIN.format(number))
        (tmp_path / f"memory{number}.py").write_text(MEMORY.format(number))
    (tmp_path / "broken.py").write_text("def (:\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(executor: Any = None, *, cache: bool = False) -> Report:
    settings = load_settings(Path.cwd())
    options = Options(settings, [rule() for rule in load_rules()], cache=cache, executor=executor)
    return check(discover(["."], settings), options)


def test_without_ray_one_line_says_what_to_install(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    result = CliRunner().invoke(group, ["check", ".", "--executor", "ray"])
    assert "pip install 'torch-perflint[cluster]'" in str(result.exception)


def test_an_address_is_for_a_cluster(project: Path) -> None:
    result = CliRunner().invoke(group, ["check", ".", "--ray-address", "auto"])
    assert result.exit_code == 2
    assert "--executor ray" in result.output


class _Elsewhere:
    """A cluster in this process, with the same disk: everything travels as bytes."""

    def map_chunks(self, work: Any, items: Sequence[Any], _lost: object) -> Iterator[tuple[Sequence[Any], Any]]:
        do = pickle.loads(pickle.dumps(work)).ready()
        for start in range(0, len(items), 5):
            chunk = items[start : start + 5]
            yield chunk, pickle.loads(pickle.dumps(do(pickle.loads(pickle.dumps(chunk)))))


@pytest.mark.parametrize("cache", [False, True])
def test_what_travels_gives_the_same(project: Path, cache: bool) -> None:
    here = checked()
    assert {finding.path for finding in here.findings} >= {f"memory{number}.py" for number in range(12)}
    assert checked(_Elsewhere(), cache=cache) == here


@pytest.fixture(scope="module")
def executor() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    from perflint.engine.cluster import RayExecutor

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    # Workers do not have the folder of the tests on their path.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield RayExecutor()
    ray.shutdown()


def test_two_workers_find_the_same(project: Path, executor: Any) -> None:
    here = checked()
    assert {finding.path for finding in here.findings} >= {f"memory{number}.py" for number in range(12)}
    assert here.errors
    assert executor.workers == 2
    assert checked(executor) == here


def test_what_a_cluster_found_is_kept(project: Path, executor: Any) -> None:
    (project / "broken.py").unlink()
    first = checked(executor, cache=True)
    assert checked(cache=True) == first
    (project / "train3.py").write_text(TRAIN.format(3).replace("        clean_up()", "    clean_up()"))
    assert checked(executor, cache=True) == checked()


@dataclasses.dataclass(frozen=True)
class _Dying(spreading.Afar[Any]):
    """Work in the middle of which the first worker to come there is killed."""

    def ready(self) -> Callable[[Sequence[Any]], Any]:
        do = super().ready()
        mark = Path(self.options.settings.file or "").parent / f"killed.{self.work}"

        def die(chunk: Sequence[Any]) -> Any:
            if any(file.display == "train5.py" for file, _ in chunk) and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return do(chunk)

        return die


def test_a_killed_worker_loses_nothing(project: Path, executor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = checked()
    monkeypatch.setattr(spreading, "Afar", _Dying)
    assert checked(executor) == here
    assert (project / "killed.survey_all").exists()
    assert (project / "killed.inspect_all").exists()
