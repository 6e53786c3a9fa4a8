"""Where work on files is done: in this process, in forked ones, or on a cluster, where texts travel with the work."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

from perflint.analysis.linking import files_of
from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.engine.options import Options
from perflint.engine.parallel import map_chunks
from perflint.engine.texts import Texts
from perflint.engine.worker import Worker, gc_paused, room_to_nest
from perflint.errors import SourceError
from perflint.project.discovery import FoundFile

if TYPE_CHECKING:
    from perflint.ir.summary import FunctionFacts, Summary
    from perflint.syntax.beside import Beside

Result = TypeVar("Result")

#: A file and what it holds.
_Carried: TypeAlias = "tuple[FoundFile, bytes]"


def spread(
    worker: Worker,
    work: Callable[[Sequence[FoundFile]], Result],
    files: Sequence[FoundFile],
    lost: Callable[[FoundFile], Result],
    program: Program | None = None,
    *,
    apart: bool = False,
) -> Iterator[tuple[Sequence[FoundFile], Result]]:
    """`work`, a method of `worker`, over chunks of `files`, wherever the options say.

    `lost` gives what stands for the result of a file that no process survives. `program` is for work that asks it.
    With `apart` no file is worked on in this process where others can be had.
    """
    options = worker.options
    if options.executor is None or worker.texts.overlay:
        yield from map_chunks(work, files, options.jobs, lost, apart=apart)
        return
    carried: list[_Carried] = []
    for file in files:
        try:
            carried.append((file, worker.texts.data(file)))
        except SourceError:
            yield [file], work([file])  # says why it cannot be read
    afar: Afar[Result] = _afar(worker, work.__name__, program)
    for chunk, result in options.executor.map_chunks(afar, carried, lambda one: lost(one[0])):
        yield [file for file, _ in chunk], result


class Linking:
    """Up to `jobs` forked processes that help with the link, which goes on in this one."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def share(
        self, work: Callable[[range], bytes], functions: Sequence[tuple[Scope, FunctionFacts]]
    ) -> Iterator[bytes]:
        def some(files: Sequence[range]) -> bytes:
            return work(range(files[0].start, files[-1].stop))

        for _, words in map_chunks(some, files_of(functions), self._jobs, lambda file: some([file])):
            yield words


def _afar(worker: Worker, work: str, program: Program | None) -> Afar[Any]:
    options = dataclasses.replace(
        worker.options, settings=dataclasses.replace(worker.options.settings), stdin=None, progress=None, executor=None
    )
    known = None
    if program is not None:
        known = Known(
            {**program.summaries, **program.unimportable.whole},
            program.torch_version,
            program.pinned_torch,
            program.base,
            program.torch_in,
            program.configured(),
            program.beside,
            worker.all_texts(),
        )
    return Afar(work, options, known, worker.texts.digests if worker.reuse is not None else None)


class Known(NamedTuple):
    """What makes a program, on a machine with another working directory as well."""

    summaries: Mapping[str, Summary]
    torch_version: tuple[int, int] | None
    pinned_torch: tuple[int, int] | None
    base: str
    torch_in: Mapping[str, tuple[tuple[int, int] | None, tuple[int, int] | None]]
    #: What its configurations name.
    configured: frozenset[str]
    beside: Beside
    #: What all of its files hold, which those that are inspected ask about.
    texts: Mapping[str, bytes]


@dataclass(frozen=True)
class Afar(Generic[Result]):
    """Work on files that travel with what they hold: the name of a method of `Worker`. `known` makes the program, for
    work that asks it; `digests` are there where what was asked is to be kept.
    """

    work: str
    options: Options
    known: Known | None
    digests: dict[str, bytes] | None

    def ready(self) -> Callable[[Sequence[_Carried]], Result]:
        texts = Texts((), None, {})
        worker = Worker(self.options, texts)
        if self.known is not None:
            with gc_paused(), room_to_nest():
                known = self.known
                program = Program(
                    *known[:3],
                    base=known.base,
                    torch_in=known.torch_in,
                    configured=lambda: known.configured,
                    beside=known.beside,
                )
            texts.carried = self.known.texts
            worker.ask_of(program, lambda path: FoundFile(path, Path(path)))
            if self.digests is not None:
                from perflint.engine.reuse import Reuse  # late, as the cache is

                texts.digests = self.digests
                worker.reuse = Reuse(None, b"", program, self.digests)

        around = self.known.texts if self.known is not None else {}

        def do(chunk: Sequence[_Carried]) -> Result:
            texts.carried = {**around, **{file.display: data for file, data in chunk}}
            texts.moved = set()
            with gc_paused(), room_to_nest():
                return cast("Result", getattr(worker, self.work)([file for file, _ in chunk]))

        return do
