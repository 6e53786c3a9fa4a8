"""The device that a program sets for all tensors it makes: `torch.set_default_tensor_type("torch.cuda.FloatTensor")`.

It holds for the whole process: for every file that the entry point imports whose run comes to the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.call_graph.references import References
from perflint.analysis.call_graph.starting import closure
from perflint.analysis.names.module_names import ModuleTable
from perflint.analysis.names.refs import Scope
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts, Summary

#: What sets the device of new tensors. The first is of `torch.Tensor(...)` as well.
BY_TYPE, BY_DEVICE = "set_default_tensor_type", "set_default_device"
SETTERS = (BY_TYPE, BY_DEVICE)
#: What tells a graphics card in the argument.
_CARD = "cuda"


def files_on_card(
    summaries: Mapping[str, Summary], modules: ModuleTable, incoming: Mapping[Scope, list[Edge]]
) -> dict[str, str]:
    """The files that share a process with a call that makes a graphics card the place of new tensors, each with the
    name of what is called.
    """
    setting = list(_setting(summaries))
    if not setting:
        return {}
    references = References(summaries, modules, frozenset)
    found: dict[str, str] = {}
    for setter in reversed(SETTERS):
        for path in _first_of([scope for name, scope in setting if name == setter], incoming):
            if path in references.summaries:
                found.update(dict.fromkeys(closure(path, references), setter))
    return found


def _setting(summaries: Mapping[str, Summary]) -> Iterator[tuple[str, Scope]]:
    for path, summary in summaries.items():
        if not summary.holds_tests:
            for name, facts in summary.functions.items():
                for call in facts.calls:
                    if last_name(call.func) in SETTERS and _names_card(call):
                        yield last_name(call.func), Scope(path, name)


def _names_card(call: CallFacts) -> bool:
    """Whether a card is written out as the argument: a type or a device of torch, or their text."""
    for given in (*call.args, *(value for _, value in call.keywords)):
        text = given[2] if isinstance(given, tuple) and given[:2] == ("const", "str") else given
        if isinstance(text, str) and _CARD in text.split(".")[:2] + text.split(":")[:1]:
            return True
    return False


def _first_of(scopes: list[Scope], incoming: Mapping[Scope, list[Edge]]) -> set[str]:
    """The files of the functions that nothing calls, of all by which one of `scopes` is come to."""
    waiting, seen, found = list(scopes), set(scopes), set[str]()
    while waiting:
        scope = waiting.pop()
        callers = {edge.caller for edge in incoming.get(scope, ())}
        if not callers - {scope}:
            found.add(scope.path)
        waiting += callers - seen
        seen |= callers
    return found
