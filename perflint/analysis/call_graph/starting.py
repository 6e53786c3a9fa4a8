"""Which files run in a process whose workers are started anew: what a start method is set for.

A start method holds for the whole process. So it holds for all files that an entry point imports which comes to the
call that sets it.
"""

from __future__ import annotations

from collections.abc import Mapping

from perflint.analysis.call_graph.references import References
from perflint.analysis.names.module_names import ModuleTable
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts, Summary

#: Start methods that import everything again in each worker.
_ANEW = ("spawn", "forkserver")


def files_starting_anew(setters: tuple[str, ...], summaries: Mapping[str, Summary], modules: ModuleTable) -> set[str]:
    """The files that share a process with a call of one of `setters` for such a start method."""
    setting = {path for path, summary in summaries.items() if _sets(summary, setters)}
    if not setting:
        return set()
    references = References(summaries, modules, frozenset)
    found = set(setting)
    for path in references.summaries:
        if not path.endswith("__init__.py"):
            imported = closure(path, references)
            if not setting.isdisjoint(imported):
                found |= imported
    return found


def _sets(summary: Summary, setters: tuple[str, ...]) -> bool:
    calls = (call for facts in summary.functions.values() for call in facts.calls)
    return any(last_name(call.func) in setters and _is_anew(call) for call in calls)


def _is_anew(call: CallFacts) -> bool:
    given = (*call.args, *(value for _, value in call.keywords))
    return any(isinstance(item, tuple) and item[0] == "const" and item[2] in _ANEW for item in given)


def closure(path: str, references: References) -> set[str]:
    """A file, and those it imports, directly or not."""
    found, waiting = {path}, [path]
    while waiting:
        for other in references.imported_files(waiting.pop()) - found:
            found.add(other)
            if other in references.summaries:
                waiting.append(other)
    return found
