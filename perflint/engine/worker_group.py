"""Processes that work side by side from the first file to the last, and keep what they have made.

Where `parallel` maps one function over items and forgets its workers, the members of a crew go through several steps
together: each takes from common queues what nobody has taken yet, tells what it found, and hears in between what all
others have to say. A crew that loses a member is lost as a whole: the caller has what was told until then.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, NamedTuple

from perflint.engine.parallel import end_with

_SIZE: Final = 4
#: Numbers in all queues: what a pipe takes at once, and holds however little it may hold.
MOST_NUMBERS: Final = 4096 // _SIZE


class LostMemberError(Exception):
    """A member of the crew has ended before its work."""


class _Said(NamedTuple):
    """What a member has to say to all others, who wait for it."""

    words: bytes


class Exchanged(NamedTuple):
    """What all members said to each other, in the order of their numbers."""

    words: list[bytes]


class Member:
    """One process of a crew of `size`, and what it may ask for."""

    def __init__(self, number: int, queues: Sequence[tuple[int, int]], pipe: Connection) -> None:
        self.number = number
        #: The last queue holds what is common, the others belong to a member each.
        self.size = len(queues) - 1
        self._queues = queues
        self._pipe = pipe

    def common(self) -> Iterator[int]:
        """Numbers that no other member has taken, until there are none left."""
        return self._taken(self.size)

    def keep(self, numbers: Sequence[int]) -> None:
        """Put aside what this member had better do itself. Once, and before an `exchange`."""
        _put(self._queues[self.number][1], numbers)

    def kept(self) -> Iterator[int]:
        """Numbers that this member has put aside, and when it has done them those of the others."""
        for step in range(self.size):
            yield from self._taken((self.number + step) % self.size)

    def tell(self, message: object) -> None:
        """To the process that the crew works for."""
        self._pipe.send(message)

    def exchange(self, words: bytes) -> list[bytes]:
        """What all members say, in the order of their numbers, this one's words among them."""
        self._pipe.send(_Said(words))
        return self._pipe.recv()  # type: ignore[no-any-return]

    def _taken(self, queue: int) -> Iterator[int]:
        while True:
            try:
                taken = os.read(self._queues[queue][0], _SIZE)
            except BlockingIOError:
                return
            yield int.from_bytes(taken, "big")


class Crew:
    """`size` forked processes that run `work`, which finds `numbers`, `MOST_NUMBERS` at most, in the common queue."""

    def __init__(self, size: int, numbers: Sequence[int], work: Callable[[Member], None]) -> None:
        context = multiprocessing.get_context("fork")
        self._queues = [os.pipe() for _ in range(size + 1)]
        for reading, _ in self._queues:
            os.set_blocking(reading, False)
        _put(self._queues[-1][1], numbers)
        #: Steps of work for this process, for when the members say nothing.
        self.meanwhile: Iterator[object] = iter(())
        self._processes: list[BaseProcess] = []
        self._pipes: list[Connection] = []
        try:
            for number in range(size):
                ours, theirs = context.Pipe()
                self._pipes.append(ours)
                member = Member(number, self._queues, theirs)
                process = context.Process(target=_run, args=(work, member, os.getpid()), daemon=True)
                with theirs:  # the end of the process is the end of the pipe
                    process.start()
                self._processes.append(process)
        except BaseException:
            self.close()
            raise

    def messages(self) -> Iterator[Any]:
        """What the members tell, as it comes. While they say nothing, does what is to be done `meanwhile`.

        Raises LostMemberError when a member ends before its work is done.
        """
        working = dict(enumerate(self._pipes))
        said: dict[int, bytes] = {}
        while working:
            for pipe in self._speaking(list(working.values())):
                number = self._pipes.index(pipe)  # type: ignore[arg-type]
                try:
                    message = self._pipes[number].recv()
                except (EOFError, OSError):
                    raise LostMemberError from None
                if message is None:
                    del working[number]
                elif isinstance(message, _Said):
                    said[number] = message.words
                    if len(said) == len(self._pipes):
                        words = [said[each] for each in sorted(said)]
                        said = {}
                        self._pass_on(words)
                        yield Exchanged(words)
                else:
                    yield message

    def _speaking(self, pipes: Sequence[Connection]) -> Sequence[object]:
        while not (speaking := wait(pipes, 0)):
            if next(self.meanwhile, self) is self:
                return wait(pipes)
        return speaking

    def _pass_on(self, words: list[bytes]) -> None:
        try:
            for pipe in self._pipes:
                pipe.send(words)
        except OSError:
            raise LostMemberError from None

    def close(self) -> None:
        """End all members, done or not."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
            process.close()
        for pipe in self._pipes:
            pipe.close()
        for ends in self._queues:
            for end in ends:
                os.close(end)


def _put(queue: int, numbers: Sequence[int]) -> None:
    assert len(numbers) <= MOST_NUMBERS
    os.write(queue, b"".join(number.to_bytes(_SIZE, "big") for number in numbers))


def _run(work: Callable[[Member], None], member: Member, parent: int) -> None:
    """The life of a member. What goes wrong ends it: whoever does its work instead finds out what it was."""
    end_with(parent)
    with contextlib.suppress(BaseException):
        work(member)
        member.tell(None)
    os._exit(0)
