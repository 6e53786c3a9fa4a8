"""A small project checked by a crew: whoever surveys a file keeps its tree, and inspects it if it comes to that."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perflint.analysis.linking import share_of
from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.engine.reuse import Reuse
from perflint.engine.worker import Inspected, Surveyed, Worker
from perflint.project.discovery import FoundFile
from perflint.system.time_limit import lift

if TYPE_CHECKING:
    from perflint.engine.governing import Torches
    from perflint.engine.worker_group import Member
    from perflint.ir.summary import FunctionFacts, Summary
    from perflint.project.configured import Configured
    from perflint.syntax.beside import Beside


@dataclass
class Crewed:
    """One run of a crew over the files of a project. `known` are the summaries of those that need no survey."""

    worker: Worker
    #: Of the crew.
    size: int
    files: Sequence[FoundFile]
    reported: frozenset[str]
    known: Mapping[str, Summary]
    torches: Torches
    configured: Configured
    beside: Beside
    #: Whether what was asked while a file was inspected is wanted.
    asks: bool
    #: What is to be done with the summaries, in steps.
    store: Callable[[Iterator[tuple[str, Summary]]], Iterator[None]] | None = None
    #: Whether everything was done.
    complete: bool = False
    _packed: list[bytes] = field(default_factory=list)

    def parts(self) -> Generator[tuple[FoundFile, Surveyed | Inspected], None, None]:
        """What was found of files, as it is found: of surveys all but the summary. Ends early when a member dies."""
        from perflint.engine.worker_group import Crew, Exchanged, LostMemberError

        texts = self.worker.texts
        unknown = [number for number, file in enumerate(self.files) if file.display not in self.known]
        # The largest first: who is ready has not long to wait for the others.
        unknown.sort(key=lambda number: -texts.size(self.files[number]))
        crew = Crew(self.size, unknown, self._work)
        try:
            for message in crew.messages():
                if not isinstance(message, Exchanged):
                    number, part = message
                    yield self.files[number], part
                elif not self._packed:
                    self._packed = message.words
                    if self.store is not None:
                        crew.meanwhile = self.store(self.summaries())
            for _ in crew.meanwhile:
                pass
            self.complete = True
        except LostMemberError:
            pass
        finally:
            crew.close()

    def summaries(self) -> Iterator[tuple[str, Summary]]:
        """What the surveys gave, by display path. Nothing where a member died before all files were surveyed."""
        for words in self._packed:
            fresh, _ = pickle.loads(words)  # noqa: S301 - what our own processes have just said
            yield from fresh.items()

    def _work(self, member: Member) -> None:
        worker = self.worker
        program = self._program(member)
        gc.freeze()
        files = {file.display: file for file in self.files}
        worker.ask_of(program, files.get)
        if self.asks:
            worker.reuse = Reuse(None, b"", program, worker.texts.digests)
        for number in member.kept():
            member.tell((number, worker.inspect(self.files[number])))

    def _program(self, member: Member) -> Program:
        """Survey what no other member does, hear of the rest, and link it all."""
        worker = self.worker
        worker.texts.trees.keep_here()
        fresh: dict[str, Summary] = {}
        wanted: list[int] = []
        if member.number == 0:
            wanted += [
                number
                for number, file in enumerate(self.files)
                if file.display in self.known and file.display in self.reported
            ]
        for number in member.common():
            file = self.files[number]
            part = worker.survey(file)
            if part.summary is not None:
                fresh[file.display] = part.summary
                if file.display in self.reported:
                    wanted.append(number)
            member.tell((number, part._replace(summary=None)))
        member.keep(wanted)
        summaries = {**self.known, **fresh}
        for number, words in enumerate(member.exchange(pickle.dumps((fresh, worker.texts.moved), -1))):
            if number != member.number:
                others, moved = pickle.loads(words)  # noqa: S301 - what our own processes have just said
                summaries.update(others)
                worker.texts.moved |= moved
        for path in worker.texts.moved:
            worker.texts.digests.pop(path, None)
        lift()
        return Program(
            summaries,
            *self.torches.whole,
            _Linking(member),
            torch_in=self.torches.parts,
            configured=self.configured,
            beside=self.beside,
        )


class _Linking:
    """The members of a crew while all of them link the program."""

    def __init__(self, member: Member) -> None:
        self.member = member

    def share(self, work: Callable[[range], bytes], functions: Sequence[tuple[Scope, FunctionFacts]]) -> list[bytes]:
        member = self.member
        return member.exchange(work(share_of(functions, member.number, member.size)))
