"""Observes the training programs in `programs`, which are this project's own, and scores `check` by them.

    python tests/accuracy/own_programs.py [OUT] [--lines] [--write [FILE]]

Each runs in a child of this process, on the simulated device, for three steps after a warm-up of two. They are written
as people write them, for no rule; what is missed or refuted there is work to do, not a reason to change a program.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import runpy
import sys
import tempfile
import traceback
from pathlib import Path

import score

PROGRAMS = Path(__file__).parent / "programs"
#: What was found last, which is the least that the tests ask for.
RESULT = Path(__file__).parent / "results" / "own_programs.json"
STEPS, WARMUP, SECONDS = 3, 2, 60


def observed(out: Path) -> list[str]:
    """Write an observation of each program into `out`; the names of those that failed."""
    import torch

    from perflint.observe.recording.session import Wanted, observing

    with observing(Wanted()):  # what every child needs
        torch.zeros(1, device="cuda")
    names = sorted(file.stem for file in PROGRAMS.glob("*.py"))
    return [name for name in names if not _in_a_child(name, out / f"{name}.json")]


def _in_a_child(name: str, result: Path) -> bool:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0 and result.exists()
    code = 1
    try:
        with open(os.devnull, "w", encoding="utf-8") as nothing, contextlib.redirect_stdout(nothing):  # noqa: PTH123
            _observe(name, result)
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it raises is reported, and the child ends
        traceback.print_exc()
    os._exit(code)


def _observe(name: str, result: Path) -> None:
    import signal
    import warnings

    import torch

    from perflint.observe.document import write
    from perflint.observe.recording.recorder import EnoughError
    from perflint.observe.recording.session import Wanted, observing

    signal.alarm(SECONDS)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sys.path.insert(0, str(PROGRAMS))

    def enough() -> None:
        raise EnoughError

    wanted = Wanted(steps=STEPS, warmup=WARMUP, root=PROGRAMS.parent, project=[PROGRAMS])
    with observing(wanted, on_end=enough) as session:
        try:
            runpy.run_path(str(PROGRAMS / f"{name}.py"), run_name="__main__")
        except EnoughError:
            write(session.observation(is_hashed=False), result)
            return
    raise RuntimeError(f"{name} ended before {STEPS} steps were seen")


def scored(out: Path) -> score.Score:
    failed = observed(out)
    made = score.score(
        "own programs", "", score.seen_in(sorted(out.glob("*.json")), None), score.findings_of(PROGRAMS), len(failed)
    )
    made.lines_missed += [f"failed: {name}" for name in failed]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--lines", action="store_true", help="print what was missed and refuted")
    parser.add_argument("--write", type=Path, nargs="?", const=RESULT, help="keep the outcome (for the tests)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = given.out or Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        made = scored(out)
    for line in (*made.lines_missed, *made.findings_wrong) if given.lines else ():
        print("   ", line)
    print(score.summary(made))
    if given.write is not None:
        given.write.write_text(json.dumps(score.plain(made), indent=1) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))
    main()
