"""A map over files on worker processes. A worker that dies loses nothing: its share is done again in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Fewer files than this are done before a pool has started.
_WORTH_IT = 48
_CHUNKS_A_WORKER = 4


def can_fork() -> bool:
    """Workers inherit the linked program by forking; sending it to spawned ones would cost more than it saves."""
    return sys.platform.startswith("linux")


def map_chunks(
    work: Callable[[Sequence[Item]], Result], items: Sequence[Item], jobs: int
) -> Iterator[tuple[Sequence[Item], Result]]:
    """`work` over chunks of `items`, each with its result, in order, on up to `jobs` forked processes.

    `work` may be a bound method of an object that cannot be sent: it is inherited, only chunks and results travel.
    """
    if jobs <= 1 or len(items) < _WORTH_IT or not can_fork():
        for item in items:
            yield [item], work([item])
        return
    size = max(1, -(-len(items) // (jobs * _CHUNKS_A_WORKER)))
    chunks = [items[start : start + size] for start in range(0, len(items), size)]
    pool, futures = _submit(work, chunks, jobs)
    try:
        for chunk, future in zip(chunks, futures):
            yield chunk, _result(work, chunk, future)
    finally:
        # A pool that is left to the end of the interpreter complains of pipes that are closed already.
        pool.shutdown(wait=True, cancel_futures=True)


_inherited: Callable[[Sequence[object]], object] | None = None


def _submit(
    work: Callable[[Sequence[Item]], Result], chunks: Sequence[Sequence[Item]], jobs: int
) -> tuple[ProcessPoolExecutor, list[Future[Result]]]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    global _inherited  # noqa: PLW0603 - forked workers find the work here; it cannot be pickled
    _inherited = work  # type: ignore[assignment]
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork"))
    futures: list[Future[Result]] = []
    try:
        for chunk in chunks:
            futures.append(pool.submit(_call, chunk))  # type: ignore[arg-type]  # noqa: PERF401 - keeps those before a break
    except BrokenProcessPool:
        pass
    return pool, futures + [_broken() for _ in chunks[len(futures) :]]


def _broken() -> Future[Result]:
    from concurrent.futures import Future
    from concurrent.futures.process import BrokenProcessPool

    future: Future[Result] = Future()
    future.set_exception(BrokenProcessPool())
    return future


def _call(chunk: Sequence[object]) -> object:
    assert _inherited is not None
    return _inherited(chunk)


def _result(work: Callable[[Sequence[Item]], Result], chunk: Sequence[Item], future: Future[Result]) -> Result:
    from concurrent.futures.process import BrokenProcessPool

    try:
        return future.result()
    except BrokenProcessPool:
        return work(chunk)
