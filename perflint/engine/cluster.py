"""A map over files on a Ray cluster, for repositories and sweeps that are too large for one machine.

A worker need not share the disk: whatever work needs travels to it. Work whose worker dies is done again elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from perflint.errors import PerflintError

Item = TypeVar("Item")
Result = TypeVar("Result")
Item_contra = TypeVar("Item_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)

_RETRIES = 3
_CHUNKS_A_WORKER = 4


class Work(Protocol[Item_contra, Result_co]):
    """What travels to the workers, once. `ready` is called once in each of them and gives what is called for chunks."""

    def ready(self) -> Callable[[Sequence[Item_contra]], Result_co]: ...


class RayExecutor:
    """Workers of the Ray cluster at `address`; of one that is started on this machine where there is none.

    Raises PerflintError when Ray is not installed, or nothing answers at the address.
    """

    def __init__(self, address: str | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise PerflintError(
                "--executor ray needs Ray: pip install 'torch-perflint[cluster]', here and on the cluster"
            ) from None
        self._ray = ray
        if not ray.is_initialized():
            try:
                ray.init(address or os.environ.get("RAY_ADDRESS") or None, log_to_driver=False, logging_level="ERROR")
            except Exception as error:  # Ray's own errors have no common parent
                raise PerflintError(f"--executor ray: {_one_line(error)}") from error
        self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def map_chunks(
        self, work: Work[Item, Result], items: Sequence[Item], lost: Callable[[Item], Result]
    ) -> Iterator[tuple[Sequence[Item], Result]]:
        """`work` over chunks of `items`, each with its result, in order.

        `lost` gives what stands for the result of an item that no worker survives.
        """
        if not items:
            return
        remote = self._ray.remote(max_retries=_RETRIES)(_call)
        # In a list, so that Ray does not unpack it for every chunk: a worker does so once.
        shared = [self._ray.put(work)]
        size = max(1, -(-len(items) // (self.workers * _CHUNKS_A_WORKER)))
        chunks = [items[start : start + size] for start in range(0, len(items), size)]
        waiting = [remote.remote(shared, chunk) for chunk in chunks]
        for chunk, future in zip(chunks, waiting):
            try:
                yield chunk, self._ray.get(future)
            except self._ray.exceptions.RayTaskError:
                raise  # a mistake of ours, not the cluster's
            except self._ray.exceptions.RayError:
                for item in chunk:
                    yield [item], self._alone(remote, shared, item, lost)

    def _alone(self, remote: Any, shared: Any, item: Item, lost: Callable[[Item], Result]) -> Result:
        try:
            return self._ray.get(remote.remote(shared, [item]))  # type: ignore[no-any-return]
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError:
            return lost(item)


class _Ready(Generic[Item, Result]):
    """What a worker has made ready last, by the name of what it was sent."""

    known: tuple[str, Callable[[Sequence[Any]], Any]] | None = None


def _call(shared: Sequence[Any], chunk: Sequence[Any]) -> Any:
    """Runs on a worker."""
    import ray

    (sent,) = shared
    if _Ready.known is None or _Ready.known[0] != sent.hex():
        _Ready.known = (sent.hex(), ray.get(sent).ready())
    return _Ready.known[1](chunk)


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
