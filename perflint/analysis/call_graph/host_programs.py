"""Which programs of a project run on the host alone: nothing in the files that one is made of could move a tensor.

A project may hold many programs, of which some train on a card. What says of one that it has a card at all stands in
its own files: in the one that is run, and in those that it imports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from perflint.analysis.call_graph.references import References
from perflint.analysis.call_graph.starting import closure
from perflint.analysis.names.module_names import ModuleTable
from perflint.ir.summary import Summary
from perflint.torch_model.devices import ACCELERATOR_WORDS

#: With the words that name an accelerator, those by which tensors come there with none of them, and by which other
#: files than those that are imported come to run: all of a program's files that move a tensor have one.
_MOVING = ACCELERATOR_WORDS | frozenset(
    "to gpu gpus Trainer set_default_tensor_type mps parallel import_module __import__ exec".split()
)


class HostPrograms:
    """Answers for one program. `mentions` tells whether any of some files has one of some words."""

    def __init__(
        self,
        summaries: Mapping[str, Summary],
        modules: ModuleTable,
        mentions: Callable[[frozenset[str], tuple[str, ...]], bool],
    ) -> None:
        self._references = References(summaries, modules, frozenset)
        self._mentions = mentions
        self._known: dict[str, bool] = {}

    def is_alone(self, path: str) -> bool:
        """Whether a file is a program of its own, which nothing imports, and never moves anything."""
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = (
                path in self._references.summaries
                and not self._mentions(_MOVING, (path,))
                and not any(path in self._references.imported_files(other) for other in self._references.summaries)
                and not self._mentions(_MOVING, tuple(sorted(closure(path, self._references))))
            )
        return known
