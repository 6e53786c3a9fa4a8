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
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

import score

PROGRAMS = Path(__file__).parent / "programs"
#: What was found last, which is the least that the tests ask for.
RESULT = Path(__file__).parent / "results" / "own_programs.json"
STEPS, WARMUP, SECONDS = 3, 2, 60


def observed(programs: Path, out: Path) -> list[str]:
    """Write an observation of each program into `out`; the names of those that failed."""
    import torch

    from perflint.observe.recording.session import Wanted, observing

    with observing(Wanted()):  # what every child needs
        torch.zeros(1, device="cuda")
    files = sorted(programs.glob("*.py"))
    return [file.stem for file in files if not _in_a_child(file, out / f"{file.stem}.json")]


def _in_a_child(program: Path, result: Path) -> bool:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0 and result.exists()
    code = 1
    try:
        with open(os.devnull, "w", encoding="utf-8") as nothing, contextlib.redirect_stdout(nothing):  # noqa: PTH123
            _observe(program, result)
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it raises is reported, and the child ends
        traceback.print_exc()
    os._exit(code)


def _observe(program: Path, result: Path) -> None:
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
    sys.path.insert(0, str(program.parent))

    def enough() -> None:
        raise EnoughError

    wanted = Wanted(steps=STEPS, warmup=WARMUP, root=program.parent.parent, project=[program.parent])
    with observing(wanted, on_end=enough) as session:
        try:
            runpy.run_path(str(program), run_name="__main__")
        except EnoughError:
            write(session.observation(is_hashed=False), result)
            return
    raise RuntimeError(f"{program.name} ended before {STEPS} steps were seen")


def scored(out: Path) -> score.Score:
    """Observe and check a copy outside of this project, whose settings and texts would bear on what is found."""
    with tempfile.TemporaryDirectory() as folder:
        programs = Path(shutil.copytree(PROGRAMS, Path(folder).resolve() / "programs"))
        failed = observed(programs, out)
        findings = score.findings_of(programs)
    made = score.score("own programs", "", score.seen_in(sorted(out.glob("*.json")), None), findings, len(failed))
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
