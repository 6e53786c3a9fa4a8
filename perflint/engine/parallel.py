"""A map over files on worker processes.

A worker that dies loses nothing: its share is done again, one file at a time and never in this process, which is the
one that must not die of what the worker died of. A file that ends its process once more is said to be lost.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Fewer files than this are done before a pool has started.
WORTH_IT = 48
#: Files next to each other ask about the same things, so the first chunks are large; the last are small, so that no
#: worker has long to wait for another. None is so large that a progress bar stands still for long.
_SHARE_OF_THE_REST = 0.5
_SMALLEST_CHUNK, _LARGEST_CHUNK = 4, 100
_LOOK_SECONDS = 0.5


def can_fork() -> bool:
    """Workers inherit the linked program by forking; sending it to spawned ones would cost more than it saves."""
    return sys.platform.startswith("linux")


def map_chunks(
    work: Callable[[Sequence[Item]], Result],
    items: Sequence[Item],
    jobs: int,
    lost: Callable[[Item], Result],
    *,
    apart: bool = False,
) -> Iterator[tuple[Sequence[Item], Result]]:
    """`work` over chunks of `items`, each with its result, in order, on up to `jobs` forked processes.

    `lost` gives what stands for the result of an item that no process survives. Few items are done in this process,
    unless they are to be kept `apart` from it, as a process has died of one of them.
    `work` may be a bound method of an object that cannot be sent: it is inherited, only chunks and results travel.
    """
    if jobs <= 1 or not can_fork() or (len(items) < WORTH_IT and not apart):
        for item in items:
            yield [item], work([item])
        return
    chunks = list(_chunks(items, jobs))
    pool, futures = _submit(work, chunks, jobs)
    single = _OneByOne(work, lost)
    try:
        for chunk, future in zip(chunks, futures):
            if _has_died(future):
                yield from (([item], single.result(item)) for item in chunk)
            else:
                yield chunk, future.result()
    finally:
        # A pool that is left to the end of the interpreter complains of pipes that are closed already.
        pool.shutdown(wait=True, cancel_futures=True)
        single.close()


def _chunks(items: Sequence[Item], jobs: int) -> Iterator[Sequence[Item]]:
    start = 0
    while start < len(items):
        share = int((len(items) - start) * _SHARE_OF_THE_REST / jobs)
        size = min(max(_SMALLEST_CHUNK, share), _LARGEST_CHUNK)
        yield items[start : start + size]
        start += size


_inherited: Callable[[Sequence[object]], object] | None = None


def _submit(
    work: Callable[[Sequence[Item]], Result], chunks: Sequence[Sequence[Item]], jobs: int
) -> tuple[ProcessPoolExecutor, list[Future[Result]]]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    global _inherited  # noqa: PLW0603 - forked workers find the work here; it cannot be pickled
    _inherited = work  # type: ignore[assignment]
    others = {process.pid for process in multiprocessing.active_children()}
    pool = ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("fork"), initializer=end_with, initargs=(os.getpid(),)
    )
    futures: list[Future[Result]] = []
    try:
        for chunk in chunks:
            futures.append(pool.submit(_call, chunk))  # type: ignore[arg-type]  # noqa: PERF401 - keeps those before a break
    except BrokenProcessPool:
        pass
    except BaseException:
        # Interrupted while it was starting, a pool has workers and nobody yet who would tell them to end; the
        # interpreter would wait for them for ever.
        for process in multiprocessing.active_children():
            if process.pid not in others:
                process.kill()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    return pool, futures + [_broken() for _ in chunks[len(futures) :]]


def end_with(parent: int) -> None:
    """Have this worker end when the run does, of whatever it ends: a worker holds the pipe open that it waits at."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _broken() -> Future[Result]:
    from concurrent.futures import Future
    from concurrent.futures.process import BrokenProcessPool

    future: Future[Result] = Future()
    future.set_exception(BrokenProcessPool())
    return future


def _call(chunk: Sequence[object]) -> object:
    assert _inherited is not None
    return _inherited(chunk)


def _has_died(future: Future[Result]) -> bool:
    from concurrent.futures.process import BrokenProcessPool

    return isinstance(future.exception(), BrokenProcessPool)


class _OneByOne(Generic[Item, Result]):
    """One worker, and a new one for each that dies."""

    def __init__(self, work: Callable[[Sequence[Item]], Result], lost: Callable[[Item], Result]) -> None:
        self._work = work
        self._lost = lost
        self._pool: ProcessPoolExecutor | None = None

    def result(self, item: Item) -> Result:
        for _ in range(2):
            if self._pool is None:
                self._pool, (future,) = _submit(self._work, [[item]], 1)
            else:
                future = self._pool.submit(_call, [item])  # type: ignore[arg-type]
            if not _has_died(future):
                return future.result()
            self.close()
        return self._lost(item)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = None
