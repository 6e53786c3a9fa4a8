"""Every fixable rule as a libcst codemod command: `perflint.codemods.<rule_name>.Fix`, made when it is imported.

    python -m libcst.tool codemod -x perflint.codemods.deepcopy_state_dict.Fix src/
    python -m libcst.tool codemod -x perflint.codemods.empty_cache_in_hot_loop.Fix --unsafe src/

`-x` tells libcst that the name is a whole module path; with `modules: ['perflint.codemods']` in `.libcst.codemod.yaml`
it is `deepcopy_state_dict.Fix`. The modules do not exist as files: a rule's name says which one is meant, so a new rule
(of a plug-in, too) is a command without another line.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType

from perflint.rule_api.page import fix_of
from perflint.rule_api.registry import load_rules
from perflint.rule_api.rule import Rule


def fixable() -> dict[str, type[Rule]]:
    """The rules with a fix, those of plug-ins included, by the name of their module here."""
    return {rule.name.replace("-", "_"): rule for rule in load_rules() if fix_of(rule) != "-"}


class _Finder(MetaPathFinder, Loader):
    """Finds `perflint.codemods.<rule_name>` for each fixable rule."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != __name__ or name.startswith("_") or name == "command" or name not in fixable():
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:  # noqa: ARG002
        return None

    def exec_module(self, module: ModuleType) -> None:
        from perflint.codemods.command import command_of  # late: it brings libcst's codemods, which are slow to import

        rule = fixable()[module.__name__.rpartition(".")[2]]
        module.__doc__ = f"{rule.code} {rule.name}: {rule.summary()}"
        module.Fix = command_of(rule, module.__name__)  # type: ignore[attr-defined]


if not any(type(one).__name__ == "_Finder" and type(one).__module__ == __name__ for one in sys.meta_path):
    sys.meta_path.append(_Finder())
