"""Whether a tree is an application: programs that are run where they lie, and nothing that anybody could install.

Nobody calls what its own programs do not call. A package by itself, as one lies among installed ones, is none.
"""

from __future__ import annotations

from perflint.analysis.call_graph.definitions import is_main_guard
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.summary import MODULE, Summary
from perflint.torch_model.packages import holds_installed

_PARSES = frozenset({"parse_args", "parse_known_args"})


def is_application(resolver: Resolver, configured: frozenset[str]) -> bool:
    """As the words of its configurations and its files tell; not where no configuration is known."""
    if not configured or holds_installed(configured) or "__init__.py" in resolver.summaries:
        return False
    if any(path.rpartition("/")[2] == "setup.py" for path in resolver.summaries):
        return False
    return any(
        path not in resolver.tests and _is_run(summary) and _imports_others(path, summary, resolver)
        for path, summary in resolver.summaries.items()
    )


def _is_run(summary: Summary) -> bool:
    """Whether a file says what it does when it is run, or reads a command line when it is."""
    module = summary.functions[MODULE]
    return any(is_main_guard(branch.test) for branch in module.branches) or any(
        last_name(call.func) in _PARSES for call in module.calls
    )


def _imports_others(path: str, summary: Summary, resolver: Resolver) -> bool:
    modules = resolver.modules
    found = (modules.find(modules.absolute(target, path), path) for target in summary.imports.values())
    if any(other is not None and other != path for other in found):
        return True
    owners = (target.rpartition(".")[0] for target in summary.imports.values())
    return any(modules.find(modules.absolute(owner, path), path) not in (None, path) for owner in owners if owner)
