"""The process in which trials run: `python -m perflint.verify.worker`.

With `--live OUTPUT` it is one trial, which is talked to over its standard streams. With `--serve` it imports torch,
does nothing with it, and forks one fresh process for each trial that is asked for: a process as good as new, without
the seconds that importing takes. What a trial prints goes to a file, so nothing it writes can be mistaken for protocol.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import IO, Any


def main(arguments: list[str]) -> int:
    """One trial, or processes for trials as they are asked for."""
    if arguments[:1] == ["--serve"]:
        serve()
        return 0
    if arguments[:1] == ["--live"] and len(arguments) == 2:
        commands, answers = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
        _redirect(arguments[1])
        converse(commands, answers)
        return 0
    sys.stderr.write("usage: python -m perflint.verify.worker --serve | --live OUTPUT\n")
    return 2


def converse(commands: IO[bytes], answers: IO[bytes]) -> None:
    """Begin the trial that the first line asks for, then do what the others say, until there are no more."""
    from perflint.verify import trial

    def say(reply: dict[str, Any]) -> None:
        answers.write(json.dumps(reply).encode() + b"\n")

    line = commands.readline()
    if not line:
        return
    session: trial.Session | None = None

    def begin() -> dict[str, Any]:
        nonlocal session
        reply, session = trial.begin(json.loads(line))
        return reply

    say(guarded(begin))
    while session is not None:
        line = commands.readline()
        if not line:
            return
        if "end" in json.loads(line):
            say(guarded(session.end))
            return
        say(guarded(session.block))


def guarded(action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `action` gives, or what went wrong."""
    try:
        return action()
    except MemoryError:
        return {"error": "ran out of memory"}
    except Exception as error:  # noqa: BLE001 - whatever the workload raises is its answer
        return {"error": _described(error), "trace": _trace(error)}
    except SystemExit as error:
        return {"error": f"ended with sys.exit({error.code!r})", "trace": _trace(error)}


def _trace(error: BaseException) -> str:
    """The traceback without the frames of perflint's own above the workload's; empty where it is perflint's error."""
    told = traceback.TracebackException.from_exception(error)
    own = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - no more imports than there are
    theirs = [number for number, frame in enumerate(told.stack) if not frame.filename.startswith(own)]
    first = next((number for number in theirs if "importlib" not in told.stack[number].filename), None)
    if first is None or told.stack[-1].filename.startswith(own):
        return ""
    told.stack = traceback.StackSummary.from_list(told.stack[first:])
    return "".join(told.format())


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
    """Have torch loaded, and fork a process for each trial that is asked for."""
    # The way to ask for CUDA that does not initialise it: a forked process could not use it then.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    import torch._dynamo  # noqa: F401 - the point of this process: making an optimizer imports it, in seconds

    from perflint.verify import trial  # noqa: F401

    # Forking beside the threads of a linear algebra library is safe: they have nothing to do yet.
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interruption ends
    # A collection in a fork would touch, and so copy, all that torch brought in.
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=0)
    control.send(json.dumps({"ready": True}).encode())
    forks: set[int] = set()
    while True:
        line, handles, _, _ = socket.recv_fds(control, 65536, 2)
        if not line:
            for process in forks:
                _end(process)
            return
        message = json.loads(line)
        if "reap" in message:
            process = int(message["reap"])
            forks.discard(process)
            control.send(json.dumps({"exit": _reap(process)}).encode())
            continue
        process = _fork(message, handles)
        forks.add(process)
        control.send(json.dumps({"process": process}).encode())


def _fork(message: dict[str, Any], handles: list[int]) -> int:
    """A process for one trial, which is given `handles`: where it is told what to do, and where it answers."""
    if message.get("compiles"):
        _load_compiler(message["device"])
    process = os.fork()
    if process == 0:
        _be_a_trial(message["output"], *handles)
    for handle in handles:
        os.close(handle)
    with contextlib.suppress(OSError):
        os.setpgid(process, process)  # also done by the child: whoever comes first
    return process


def _load_compiler(device: str) -> None:
    """Import it once, with what it only imports when it is used: it takes seconds, which are no part of compiling."""
    import torch

    os.environ.setdefault("TORCH_WARM_POOL", "0")
    if device == "cpu":
        # Its pool of processes takes longer to start than a few small kernels to compile.
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    # What cannot be imported here is the trial's to tell.
    with contextlib.suppress(ImportError):
        importlib.import_module("torch._inductor.compile_fx")
        torch.compile(torch.relu, backend="eager")(torch.ones(1))
        torch.compiler.reset()
    if device == "cpu":
        # What the processor can do is found out by small programs, made anew in every process.
        with contextlib.suppress(ImportError, AttributeError, OSError, RuntimeError):
            importlib.import_module("torch._inductor.cpu_vec_isa").valid_vec_isa_list()
    gc.collect()
    gc.freeze()


def _be_a_trial(output: str, commands: int, answers: int) -> None:
    """Never returns."""
    import fcntl

    code = 1
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # Programs that the workload starts must not keep the line open.
        for handle in (commands, answers):
            fcntl.fcntl(handle, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
        _redirect(output)
        converse(os.fdopen(commands, "rb", buffering=0), os.fdopen(answers, "wb", buffering=0))
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


def _reap(process: int) -> int:
    """End it with all that it started and left behind; its exit code."""
    _end(process)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _end(process: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
