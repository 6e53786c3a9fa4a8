"""The process in which trials run: `python -m perflint.verify.worker`.

With `--once REQUEST ANSWER` it runs one trial. With `--serve` it imports torch, does nothing with it, and forks one
fresh process for each request that comes in by line: a process as good as new, without the seconds that importing
takes. What a trial prints goes to files, its answer too, so nothing it writes can be mistaken for protocol.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--serve"]:
        serve()
        return 0
    if arguments[:1] == ["--once"] and len(arguments) == 3:
        request = json.loads(Path(arguments[1]).read_text(encoding="utf-8"))
        answer(request, Path(arguments[2]))
        return 0
    sys.stderr.write("usage: python -m perflint.verify.worker --serve | --once REQUEST ANSWER\n")
    return 2


def answer(request: dict[str, Any], file: Path) -> None:
    """Run a trial and write its answer, or what went wrong, to `file` in one step."""
    from perflint.verify import trial

    try:
        reply = trial.run(request)
    except MemoryError:
        reply = {"error": "ran out of memory"}
    except Exception as error:  # noqa: BLE001 - whatever the workload raises is its answer
        reply = {"error": _described(error), "trace": traceback.format_exc(limit=-8)}
    except SystemExit as error:
        reply = {"error": f"ended with sys.exit({error.code!r})"}
    partial = file.with_suffix(".part")
    partial.write_text(json.dumps(reply), encoding="utf-8")
    partial.replace(file)


def _described(error: Exception) -> str:
    if type(error).__name__ == "OutOfMemoryError" or "out of memory" in str(error).lower():
        return "ran out of memory"
    from perflint.verify.contract import ContractError
    from perflint.verify.device import DeviceError

    text = " ".join(str(error).split())
    if isinstance(error, (ContractError, DeviceError)):
        return text
    return f"crashed: {type(error).__name__}: {text}"[:300]


def serve() -> None:
    # The way to ask for CUDA that does not initialise it: a forked process could not use it then.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    import torch._dynamo  # making an optimizer imports it, in seconds
    import torch.utils.benchmark  # noqa: F401 - the point of this process

    from perflint.verify import trial  # noqa: F401

    # Forking beside the threads of a linear algebra library is safe: they have nothing to do yet.
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interruption ends
    # A collection in a fork would touch, and so copy, all that torch brought in.
    gc.collect()
    gc.freeze()
    _say({"ready": True})
    while True:
        line = sys.stdin.buffer.raw.readline() if hasattr(sys.stdin.buffer, "raw") else sys.stdin.buffer.readline()
        if not line:
            return
        request = json.loads(line)
        if request.get("compiles"):
            _load_compiler(request["device"])
        process = os.fork()
        if process == 0:
            _be_a_trial(request)
        with contextlib.suppress(OSError):
            os.setpgid(process, process)  # also done by the child: whoever comes first
        _say({"process": process})
        status = _await(process)
        _end(process)  # what it started and left behind
        _say({"exit": os.waitstatus_to_exitcode(status)})


def _load_compiler(device: str) -> None:
    """Import it once: it takes seconds, which are no part of compiling."""
    os.environ.setdefault("TORCH_WARM_POOL", "0")
    if device == "cpu":
        # Its pool of processes takes longer to start than a few small kernels to compile.
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    # What cannot be imported here is the trial's to tell.
    with contextlib.suppress(ImportError):
        pass

    gc.collect()
    gc.freeze()


def _be_a_trial(request: dict[str, Any]) -> None:
    """Never returns."""
    code = 1
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _redirect(request["output"])
        answer(request, Path(request["answer"]))
        code = 0
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _redirect(output: str) -> None:
    with open(os.devnull, "rb") as nothing, open(output, "ab") as sink:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
        os.dup2(sink.fileno(), 1)
        os.dup2(sink.fileno(), 2)


def _await(process: int) -> int:
    """Wait for the trial to end; end it when the parent is gone."""
    try:
        handle = os.pidfd_open(process)
    except (AttributeError, OSError):
        return _poll(process)
    try:
        ready, _, _ = select.select([handle, 0], [], [])
        if handle not in ready:
            _end(process)
    finally:
        os.close(handle)
    return os.waitpid(process, 0)[1]


def _poll(process: int) -> int:
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return status
        if select.select([0], [], [], 0.01)[0]:
            _end(process)


def _end(process: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process, signal.SIGKILL)


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
