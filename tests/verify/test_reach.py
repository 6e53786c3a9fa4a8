"""Whether a workload runs what a fix changes: which lines are looked for, and what is seen of real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from perflint.verify.reach import Changed, Seen, Tracer, changed, is_seen, why_not

BEFORE = """\
import torch


def train(loader):
    for batch in loader:
        total = batch.sum()
        total = total.item()
    return total


def other():
    return 1
"""


def _change(after: str, before: str = BEFORE) -> tuple[set[int], set[int]]:
    found = changed({"a.py": (before, after)})
    return set(found.before["a.py"]), set(found.after["a.py"])


def test_the_lines_of_what_is_taken_away_and_what_is_put_there() -> None:
    assert _change(BEFORE.replace(".item()", ".detach()")) == ({7}, {7})
    assert _change(BEFORE.replace("        total = total.item()\n", "")) == ({7}, set())
    assert _change(BEFORE.replace("    return total", "    total = total.item()\n    return total")) == (set(), {8})


def test_a_statement_over_several_lines_is_one() -> None:
    before = "def f(a):\n    return g(\n        a,\n        1,\n    )\n"
    assert _change(before.replace("1,", "2,"), before) == ({2, 3, 4, 5}, {2, 3, 4, 5})


def test_for_the_head_of_a_function_stands_its_body() -> None:
    assert _change(BEFORE.replace("def other", "@torch.no_grad()\ndef other")) == (set(), {13})


def test_what_runs_with_the_import_counts_only_where_no_function_is_changed() -> None:
    assert _change(BEFORE.replace("import torch\n", "import gc\nimport torch\n")) == (set(), set())
    setting = BEFORE.replace("import torch\n", "import torch\ntorch.backends.cudnn.benchmark = True\n")
    assert _change(setting) == (set(), {2})
    hoisted = BEFORE.replace("import torch\n", "import torch\nONE = 1\n").replace("return 1", "return ONE")
    assert _change(hoisted) == ({12}, {13})


CHANGE = Changed({"a.py": frozenset({7})}, {"a.py": frozenset({8, 9})})


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({7}, {9}, ""),
        (set(), {9}, "never runs a.py:7"),
        (set(), set(), "never runs a.py:7"),
        ({7}, set(), "never runs what the fix changes: a.py:8 of the fixed file"),
    ],
)
def test_both_versions_have_to_run_it(before: set[int], after: set[int], said: str) -> None:
    one, other = (Seen({"a.py": frozenset(lines)}, is_known=True) for lines in (before, after))
    found = why_not(CHANGE, one, other)
    assert said in found
    assert bool(said) == bool(found)
    assert is_seen(CHANGE, one, other) == (not said)


def test_what_could_not_be_watched_is_not_called_not_reached() -> None:
    unknown = Seen(why_unknown="parts of the workload ran compiled")
    assert why_not(CHANGE, unknown, unknown) == ""
    assert not is_seen(CHANGE, unknown, unknown)


def _seen(tmp_path: Path, text: str, lines: set[int], *options: str) -> Seen:
    """What a Python that runs `text` shows of its own lines."""
    tree, folder = tmp_path / "tree", tmp_path / "folder"
    tree.mkdir()
    folder.mkdir()
    (tree / "program.py").write_text(textwrap.dedent(text))
    tracer = Tracer(folder, tree, {"program.py": frozenset(lines)})
    subprocess.run(
        [sys.executable, *options, "program.py"],
        cwd=tree,
        env={**os.environ, **tracer.environment(os.environ.get("PYTHONPATH", ""))},
        check=True,
        timeout=120,
    )
    return tracer.seen()


def test_a_process_says_which_lines_it_ran(tmp_path: Path) -> None:
    seen = _seen(tmp_path, "def f():\n    return 1\n\ndef g():\n    return 2\nf()\n", {2, 5})
    assert seen == Seen({"program.py": frozenset({2})}, is_known=True)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
def test_its_worker_processes_and_threads_say_so_too(method: str, tmp_path: Path) -> None:
    text = f"""\
        import multiprocessing, threading
        def work():
            return 1
        def aside():
            return 2
        if __name__ == "__main__":
            process = multiprocessing.get_context({method!r}).Process(target=work)
            process.start()
            process.join()
            thread = threading.Thread(target=aside)
            thread.start()
            thread.join()
        """
    seen = _seen(tmp_path, text, {3, 5})
    assert seen.lines == {"program.py": frozenset({3, 5})}


def test_a_python_that_cannot_be_watched_says_nothing(tmp_path: Path) -> None:
    seen = _seen(tmp_path, "def f():\n    return 1\nf()\n", {2}, "-I")
    assert not seen.is_known
    assert seen.why_unknown == "the workload starts no Python process that could be traced"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="watched by other means than a trace function")
def test_a_workload_with_a_trace_function_of_its_own_leaves_it_open(tmp_path: Path) -> None:
    seen = _seen(tmp_path, "import sys\nsys.settrace(lambda *_: None)\ndef f():\n    return 1\nf()\n", {4})
    assert not seen.is_known


def test_the_sitecustomize_of_the_user_still_runs(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    tracer = Tracer(tmp_path, tmp_path, {})
    environment = {**os.environ, **tracer.environment(str(own))}
    subprocess.run([sys.executable, "-c", "pass"], env=environment, check=True, timeout=60)
    assert (tmp_path / "ran").exists()
    assert tracer.seen().is_known
    assert json.loads(environment["PERFLINT_VERIFY_TRACE"])["lines"] == {}
