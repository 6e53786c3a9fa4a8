"""Observes models of a library, one training step each on the pretended device, and writes an observation for each.

    python tests/accuracy/drive.py timm OUT [--shard 1/4] [--only NAME ...] [--seconds 120]

Run it with an interpreter that has the library. For each item OUT gets `NAME.json`, an observation, or a line in
`failed.jsonl` that says where it failed; what is there already is not run again. The step is a forward in training
mode, a backward of the mean of all outputs that are floats, and a step of SGD; it runs twice, and the second is
observed. Inputs are moved to the device outside of the library.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpora

# Scripted functions run as the Python they are written in, so that their lines are seen. Read when torch is imported.
os.environ.setdefault("PYTORCH_JIT", "0")

#: Bytes of memory that one process may take.
_MOST_MEMORY = 12 << 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", choices=sorted(corpora.LIBRARIES))
    parser.add_argument("out", type=Path)
    parser.add_argument("--shard", default="1/1", metavar="I/N")
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--seconds", type=int, default=90, help="of processor time for one item")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    library = corpora.LIBRARIES[given.corpus]()
    _warm_up()
    index, count = map(int, given.shard.split("/"))
    names = [name for at, name in enumerate(library.names()) if at % count == index - 1]
    for name in names if given.only is None else given.only:
        if (given.out / f"{name}.json").exists():
            continue
        error = _forked(library, name, given.out, given.seconds)
        if error is not None:
            with (given.out / "failed.jsonl").open("a") as failed:
                failed.write(json.dumps({"name": name, **error}) + "\n")
        print(f"{name}: {'observed' if error is None else error['error']}", flush=True)


def _warm_up() -> None:
    """What every item needs, before the first is forked."""
    import torch

    from perflint.observe.recording.session import Wanted, observing

    with observing(Wanted()):
        torch.zeros(1, device="cuda")


def _forked(library: corpora.Library, name: str, out: Path, seconds: int) -> dict[str, str] | None:
    """Observe one item in a child of this process, so that no item sees what another left behind."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        # Of the processor's time: how busy the machine is says nothing of an item. What only sleeps ends too.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(10 * seconds)
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
        said: dict[str, str] = {}
        try:
            _observe(library, name, out / f"{name}.json")
        except BaseException as error:  # noqa: BLE001 - whatever it raises is what is reported
            said = {"error": f"{type(error).__name__}: {error}"[:300], "where": _where(error)}
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        return {"error": f"ended by a signal, or after {seconds} s", "where": ""}
    found: dict[str, str] = json.loads(text)
    return found or None


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return " < ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in reversed(frames))


def _observe(library: corpora.Library, name: str, result: Path) -> None:
    import torch

    from perflint.observe.document import write
    from perflint.observe.recording.session import Wanted, observing

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, inputs = library.make(name)
    model.train()
    wanted = Wanted(steps=1, warmup=1, root=library.folder.parent, project=[library.folder])
    with observing(wanted) as session:
        model.to("cuda")
        moved = _to_cuda(inputs)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        for _ in range(2):
            loss = sum(value.float().mean() for value in _floats(library.call(model, moved)))
            if isinstance(loss, torch.Tensor) and loss.requires_grad:
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        write(session.observation(is_hashed=False), result)


def _to_cuda(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().to("cuda").requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {key: _to_cuda(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_to_cuda(one) for one in value)
    return value


def _floats(value: Any) -> Iterator[Any]:
    """The floating-point tensors of an output, however it nests."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _floats(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _floats(one)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))
    main()
