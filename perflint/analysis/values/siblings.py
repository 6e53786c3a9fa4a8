"""The inferences of one program's files: each reads its own file's tree, and asks the others for what stands in theirs.

They share their queries, so that cycles through several files come to the same fixed point as those in one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perflint.analysis.values.queries import Queries

if TYPE_CHECKING:
    from perflint.analysis.values.inference import Inference
    from perflint.analysis.values.linked import Linked
    from perflint.syntax.flow import Flow

#: Answers that are kept from the inspection of one file to that of the next, some 100 MB of them.
_MOST_ANSWERS = 250_000
#: After the inspection of how many files they are counted.
_COUNTED_EACH = 8


class Siblings:
    """Made when they are first asked for. Of a file whose text is not at hand there is none."""

    def __init__(self, program: Linked) -> None:
        self.program = program
        self.queries = Queries()
        self._known: dict[str, Inference | None] = {}
        self._trims = 0

    def add(self, inference: Inference) -> None:
        self._known[inference.path] = inference

    def at(self, path: str) -> Inference | None:
        if path not in self._known:
            flow = self.program.flow(path)
            if flow is None:
                self._known[path] = None
            else:
                self.of(flow)
        return self._known[path]

    def of(self, flow: Flow) -> Inference:
        """The inference of a file that is at hand."""
        from perflint.analysis.values.inference import Inference

        known = self._known.get(flow.tree.source.path)
        if known is None or known.flow is not flow:
            known = Inference(flow.tree, self.program, flow, self)
        return known

    def trim(self) -> None:
        """Keep no more answers than there is room for: all of them or none. Counted now and then."""
        self._trims += 1
        if self._trims % _COUNTED_EACH:
            return
        answers = sum(known.size() for known in self._known.values() if known is not None)
        if answers > _MOST_ANSWERS:
            self.close()

    def close(self) -> None:
        for inference in self._known.values():
            if inference is not None:
                inference.let_go()
        self._known.clear()


def siblings_of(program: Linked) -> Siblings:
    """Those of a program, the same ones whenever they are asked for."""
    if program.siblings is None:
        program.siblings = Siblings(program)
    return program.siblings
