"""`perflint observe`."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perflint.cli import console
from perflint.cli.app import CLEAN, FAULT, FOUND, INTERRUPTED
from perflint.errors import PerflintError
from perflint.observe.child import ORDER, Order, how_it_ended, steps_in

if TYPE_CHECKING:
    from perflint.observe.trace import Observation

#: What a call of Python starts with, where the program is not a file, and options of Python that take a value.
_MODULE, _CODE = "-m", "-c"
_WITH_VALUE = ("-X", "-W", "--check-hash-based-pycs")
#: Seconds between two looks at how many steps were made.
_LOOK = 0.2
_BUDGETS = {
    "waits": "max_waits",
    "launches": "max_launches",
    "bytes_to_host": "max_bytes_to_host",
    "bytes_to_device": "max_bytes_to_device",
}


@click.command("observe", context_settings={"ignore_unknown_options": False})
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
@click.option("--call", metavar="MODULE:NAME", help="Call this function instead of a program; each call is a step.")
@click.option(
    "--device",
    type=click.Choice(("simulated", "cuda")),
    help="Use a simulated GPU or a real one. Default: the real one if there is one.",
)
@click.option("--steps", type=click.IntRange(1), default=3, show_default=True, help="Number of steps to observe.")
@click.option("--warmup", type=click.IntRange(0), default=2, show_default=True, help="Number of warm-up steps.")
@click.option("--as", "hardware", default="h100", show_default=True, help="GPU model to simulate.")
@click.option("--timeout", type=click.FloatRange(1), default=600.0, show_default=True, help="Time limit in seconds.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the observation, or the HTML page, to this file.",
)
@click.option(
    "--output-format",
    type=click.Choice(("text", "json", "html")),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option(
    "--what-if",
    is_flag=True,
    help=("Show the gain of removing each line's synchronizations, and the step time on other GPUs."),
)
@click.option(
    "--max-waits", type=click.FloatRange(0), help=("Exit with 1 above this number of synchronizations per step.")
)
@click.option(
    "--max-launches", type=click.FloatRange(0), help=("Exit with 1 above this number of kernel launches per step.")
)
@click.option(
    "--max-bytes-to-host",
    type=click.FloatRange(0),
    help=("Exit with 1 above this number of bytes per step copied to the host."),
)
@click.option(
    "--max-bytes-to-device",
    type=click.FloatRange(0),
    help=("Exit with 1 above this number of bytes per step copied to the device."),
)
@click.option("--stub", multiple=True, metavar="NAME=REFERENCE", help="Replacement for code that needs a GPU.")
@click.option(
    "--project",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of installed code that belongs to your project.",
)
@click.option(
    "--check/--no-check",
    "checks",
    default=True,
    help="Also check the project, and show the rule that found each line.  [default: check]",
)
@click.option("--try-without", is_flag=True, help="If the program fails, run it again without observation.")
def command(
    program: tuple[str, ...],
    call: str | None,
    device: str | None,
    steps: int,
    warmup: int,
    hardware: str,
    timeout: float,
    output: Path | None,
    output_format: str,
    stub: tuple[str, ...],
    project: tuple[Path, ...],
    *,
    checks: bool,
    try_without: bool,
    what_if: bool,
    **budgets: float | None,
) -> int:
    """Run a program for a few steps and report its synchronizations, copies and kernel launches, line by line.

    No GPU is needed: the tensors of a simulated GPU are in host memory. PROGRAM follows two dashes:

        perflint observe -- python train.py --batch-size 2

    Exit code: the program's own; 1 above a budget; 2 for an error in the input.
    """
    from perflint.observe.model.hardware import hardware as hardware_of
    from perflint.observe.stubs import parse

    order = Order(
        what="",
        target="",
        arguments=(),
        device=device or "",
        hardware=hardware_of(hardware).key,
        steps=steps,
        warmup=warmup,
        timeout=timeout,
        result="",
        stubs=parse(stub),
        project=tuple(str(one.resolve()) for one in project),
    )
    started = _started(program, call, order)
    to_stderr = output is None and output_format != "text"
    with tempfile.TemporaryDirectory(prefix="perflint-observe-") as folder:
        result = Path(folder) / "observation.json"
        code, found = _observe(started, result, to_stderr=to_stderr)
        if found is not None:
            _deliver(found, output, output_format, what_if=what_if, checks=checks)
        if try_without and code not in {CLEAN, INTERRUPTED}:
            _try_without(started, "" if found is None else found.ended, to_stderr=to_stderr)
        if found is None:
            return code
    beyond = _beyond(found, budgets)
    for line in beyond:
        console.complain(line)
    return code or (FOUND if beyond else CLEAN)


@dataclass(frozen=True, slots=True)
class _Started:
    """An interpreter with its options, and what it is to run."""

    python: tuple[str, ...]
    order: Order


def _started(program: Sequence[str], call: str | None, order: Order) -> _Started:
    """Raises UsageError for what cannot be observed."""
    if call is not None:
        if ":" not in call:
            raise click.UsageError(f"--call {call}: write package.module:function")
        return _Started((sys.executable,), replace(order, what="call", target=call, arguments=tuple(program)))
    if not program:
        raise click.UsageError(
            "no program given: perflint observe -- python FILE ..., or --call package.module:function"
        )
    words = list(program)
    name = Path(words[0]).name
    if words[0].endswith(".py"):
        words.insert(0, "python")
    elif not name.startswith("python"):
        raise click.UsageError(
            f"{words[0]} is not Python: pass the Python command that it runs, perflint observe -- python FILE ..."
        )
    python = [_interpreter(words.pop(0))]
    while words and words[0].startswith("-") and words[0] not in {_MODULE, _CODE}:
        python.append(words.pop(0))
        if python[-1] in _WITH_VALUE and words:
            python.append(words.pop(0))
    what = {_MODULE: "module", _CODE: "code"}.get(words[0] if words else "", "script")
    if what != "script":
        words.pop(0)
    if not words:
        raise click.UsageError("Python needs a file, -m MODULE or -c CODE to run")
    return _Started(tuple(python), replace(order, what=what, target=words[0], arguments=tuple(words[1:])))


def _interpreter(word: str) -> str:
    """Perflint's own for a plain `python` where it has PyTorch, else the one that the word names."""
    plain = word in {"python", "python3", f"python{sys.version_info[0]}.{sys.version_info[1]}"}
    return sys.executable if plain and importlib.util.find_spec("torch") is not None else word


def _observe(started: _Started, result: Path, *, to_stderr: bool) -> tuple[int, Observation | None]:
    """The exit code of the program, and what was seen."""
    from perflint.observe.reading import read

    code = _child(started, result, to_stderr=to_stderr)
    fault = result.with_suffix(".fault")
    if fault.exists():
        raise PerflintError(fault.read_text(encoding="utf-8"))
    if not result.exists():
        console.complain(f"the program ended with {_described(code)} before anything was recorded")
        return (128 - code if code < 0 else code or FAULT), None
    return code if code >= 0 else 128 - code, read(result)


def _described(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def _child(started: _Started, result: Path, *, to_stderr: bool, observe: bool = True) -> int:
    """Run it to its end. Interrupts go to the child, which ends by them."""
    order = replace(started.order, result=str(result), observe=observe)
    paper = result.with_suffix(".order")
    paper.write_text(json.dumps(asdict(order)), encoding="utf-8")
    environment = os.environ | {ORDER: str(paper)}
    if order.device == "simulated":
        environment["CUDA_VISIBLE_DEVICES"] = ""
    source = Path(__file__).resolve().parents[2]
    start = (
        "import sys; sys.path[:1] = []\n"
        "try: import perflint\n"
        f"except ImportError: sys.path.append({str(source)!r})\n"
        "from perflint.observe.child import main; main()"
    )
    try:
        process = subprocess.Popen(
            [*started.python, "-c", start], env=environment, stdout=sys.stderr if to_stderr else None
        )
    except OSError as error:
        raise PerflintError(f"{started.python[0]}: cannot be started: {error.strerror or error}") from error
    with console.progress("steps") as shown:
        while True:
            try:
                return _waited(process, order, shown)
            except KeyboardInterrupt:
                continue


def _waited(process: subprocess.Popen[bytes], order: Order, shown: console.Progress | None) -> int:
    """Its exit code once it ends. Until then the steps that it has made are shown."""
    if shown is None or order.steps is None or not order.observe:
        return process.wait()
    while True:
        try:
            return process.wait(_LOOK)
        except subprocess.TimeoutExpired:
            done = steps_in(Path(order.result))
            if done:
                shown(done, order.warmup + order.steps)


def _try_without(started: _Started, ended: str, *, to_stderr: bool) -> None:
    """Run the program as it is, and compare how it ends. `ended`: how it did under observation, where that is known."""
    with tempfile.TemporaryDirectory(prefix="perflint-observe-") as folder:
        plain = Path(folder) / "plain"
        code = _child(started, plain, to_stderr=to_stderr, observe=False)
        ended_plain = how_it_ended(plain)
    said = f"without observation the program ends with {ended_plain or _described(code)}"
    if code == CLEAN:
        said += ": only the observed run fails"
    elif ended and ended_plain:
        said += ": the same failure" if ended == ended_plain else f": another failure than under observation, {ended}"
    console.complain(said)


def _deliver(found: Observation, output: Path | None, output_format: str, *, what_if: bool, checks: bool) -> None:
    """Write the observation, or the page that was asked for, to `output`, and print what goes to standard output.

    `checks`: the project is checked for the rules that found the lines, which takes its time where it is large.
    """
    from perflint.cli.joining import codes
    from perflint.observe.document import write
    from perflint.observe.join import text_on_disk
    from perflint.observe.model.hardware import HARDWARE
    from perflint.observe.report import Options, render

    options = Options(
        what_if=what_if,
        hardware=tuple(HARDWARE) if what_if else (),
        color=console.wants_color(None),
        width=console.width(),
        findings=codes(found) if checks else {},
        text_of=text_on_disk,
    )
    if output is not None and output_format != "html":
        write(found, output, options.findings)
    if output is not None and output_format == "html":
        console.write_file(output, render(found, "html", options))
    elif output is None or output_format == "text":
        console.write(render(found, output_format, options))


def _beyond(found: Observation, budgets: dict[str, float | None]) -> list[str]:
    """A sentence for each budget that the mean of the steady steps exceeds."""
    if not found.totals:
        return []
    said = []
    for name, option in _BUDGETS.items():
        most = budgets[option]
        mean = sum(getattr(total, name) for total in found.totals) / len(found.totals)
        if most is not None and mean > most:
            said.append(f"{mean:g} {name.replace('_', ' ')} a step, more than --{option.replace('_', '-')} {most:g}")
    return said
