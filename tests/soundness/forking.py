"""The process behind `programs.Runner`: reads jobs as lines of JSON, runs each in a child, writes what became of it."""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fixes"))

import torch
from on_cpu import OnCpu
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader
from torch.utils.data._utils.pin_memory import pin_memory


def main() -> None:
    """Until the input ends. What a child leaves behind (threads, modules, settings) ends with it."""
    torch.set_num_threads(1)
    _import_what_is_late()
    for line in sys.stdin:
        print(json.dumps(_outcome(json.loads(line))), flush=True)


def _import_what_is_late() -> None:
    """What torch imports when it is first used, such as its compiler by an optimizer: once, not in each child."""
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for inputs in DataLoader(torch.ones(4, 2), batch_size=2):
        torch.nn.functional.mse_loss(layer(inputs), inputs).backward()
        optimizer.step()


def _outcome(job: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as error:
        child = os.fork()
        if not child:
            os.setsid()  # what it starts ends with it
            _become(job, printed.fileno(), error.fileno())
        status = _wait(child, time.monotonic() + job["seconds"])
        printed.seek(0)
        error.seek(0)
        return {"status": status, "printed": printed.read(), "error": error.read()}


def _wait(child: int, until: float) -> int:
    """The exit code of a child, -1 when it has to be ended."""
    pause = 0.002
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def _become(job: dict[str, Any], printed: int, error: int) -> None:
    """Run the program in this process, and end."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for target, source in ((0, nowhere), (1, printed), (2, nowhere)):
        os.dup2(source, target)
    status = 1
    try:
        os.chdir(job["folder"])
        sys.path.insert(0, job["folder"])
        sys.argv = [job["main"]]
        torch.manual_seed(0)
        with _pretending(job["simulate"]):
            runpy.run_path(job["main"], run_name="__main__")
        status = 0
    except SystemExit as ending:
        status = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException as raised:  # noqa: BLE001  # whatever ends a program is what became of it
        if not isinstance(raised, Exception):
            traceback.print_exc()
        os.write(error, f"{type(raised).__name__}: {raised}".splitlines()[0].encode())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(status)


@contextlib.contextmanager
def _pretending(simulate: list[str]) -> Iterator[None]:
    """Devices mean the host; what else the job asks for is simulated."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(OnCpu())
        if "pinning" in simulate:
            _pretend_pinning()
        if "late copies" in simulate:
            stack.enter_context(LateCopies())
        yield


class LateCopies(TorchFunctionMode):  # type: ignore[misc]  # torch is not followed
    """Copies that are not waited for are made when something first needs their result."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[tuple[torch.Tensor, torch.Tensor]] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in {torch.Tensor.to, torch.Tensor.cuda}:
            late = kwargs.pop("non_blocking", False)
            result = func(*args, **kwargs)
            if late and result is not args[0]:
                self._waiting.append((result, args[0]))
            return result
        if func is not torch.Tensor.pin_memory and self._needs(args, kwargs):
            self._copy()
        return func(*args, **kwargs)

    def _needs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call takes the result of a copy that waits, by itself or in a list."""
        flat = [
            part
            for value in (*args, *kwargs.values())
            for part in (value if isinstance(value, (list, tuple)) else [value])
        ]
        return any(part is result for part in flat for result, _ in self._waiting)

    def _copy(self) -> None:
        waiting, self._waiting = self._waiting, []
        with torch.no_grad():
            for result, source in waiting:
                result.data.copy_(source)


def _pretend_pinning() -> None:
    """CUDA is said to be there. A loader that pins does so as torch's own loop does, without the thread."""
    torch.cuda.is_available = lambda: True
    iterate = DataLoader.__iter__

    def pinned(loader: DataLoader[Any]) -> Iterator[Any]:
        asked, loader.pin_memory = loader.pin_memory, False
        loader.__dict__["num_workers"] = 0  # who reads the rows makes no difference to how they are pinned
        try:
            for batch in iterate(loader):
                yield pin_memory(batch) if asked else batch
        finally:
            loader.pin_memory = asked

    DataLoader.__iter__ = pinned


if __name__ == "__main__":
    main()
