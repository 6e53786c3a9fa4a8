"""Which options the commands of a project give its programs, from the words of its configurations, for `Options`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import CallFacts, Value
from perflint.torch_model.packages import RUN

_OFF = frozenset({"false", "off", "no", "0", "0.0", "null", "none", "~"})
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_FLAGS: dict[Value, Value] = {
    ("const", "str", "store_true"): ("const", "bool", True),
    ("const", "str", "store_false"): ("const", "bool", False),
}


class _Run(NamedTuple):
    programs: frozenset[str]
    options: Mapping[str, Any]


class Commands:
    """The commands of one program's tree. Worked out when somebody asks."""

    def __init__(self, resolver: Resolver, configured: Callable[[], frozenset[str]]) -> None:
        self._resolver = resolver
        self._configured = configured
        self._reached: dict[str, frozenset[str]] = {}
        self._known: dict[tuple[str, frozenset[str]], list[_Run]] = {}

    def switches(self, name: str) -> bool | None:
        """Whether any command, of whatever program, switches an option on; None where none gives it."""
        return self._switched.get(name)

    @cached_property
    def _switched(self) -> Mapping[str, bool]:
        found: dict[str, bool] = {}
        for run in self._runs:
            for name, given in run.options.items():
                is_off = type(given) is list and (given[0] or "?").lower() in _OFF
                found[name] = found.get(name, False) or not is_off
        return found

    def of(self, path: str, declaring: frozenset[str]) -> list[_Run]:
        """The commands that run a program whose options a file declares: the file itself, where it is run, else those
        that import it and do not declare the option themselves.
        """
        key = path, declaring
        if key not in self._known:
            own = [run for run in self._runs if path in run.programs]
            self._known[key] = own or [run for run in self._runs if self._is_for(run, path, declaring)]
        return self._known[key]

    def _is_for(self, run: _Run, path: str, declaring: frozenset[str]) -> bool:
        return declaring.isdisjoint(run.programs) and any(path in self._imported(item) for item in run.programs)

    def _imported(self, program: str) -> frozenset[str]:
        """The files that a program imports, and that these import."""
        if program not in self._reached:
            seen, waiting = {program}, [program]
            while waiting:
                for other in self._imports(waiting.pop()):
                    if other not in seen:
                        seen.add(other)
                        waiting.append(other)
            self._reached[program] = frozenset(seen)
        return self._reached[program]

    def _imports(self, path: str) -> Iterator[str]:
        modules = self._resolver.modules
        for target in self._resolver.summaries[path].imports.values():
            if modules.is_library(target):
                continue
            dotted = modules.absolute(target, path)
            for name in (dotted, dotted.rpartition(".")[0]):
                other = modules.find(name, path) if name else None
                if other is not None and other in self._resolver.summaries:
                    yield other

    @cached_property
    def _runs(self) -> list[_Run]:
        """The commands that run a file of the project."""
        found = []
        for word in sorted(item for item in self._configured() if item.startswith(RUN)):
            program, options = json.loads(word[len(RUN) :])
            programs = self._programs(program)
            if programs:
                found.append(_Run(programs, options))
        return found

    def _programs(self, program: str) -> frozenset[str]:
        ends = (f"/{program}", f"/{program.removesuffix('.py')}/__main__.py")
        places = self._by_name.get(program.rpartition("/")[2], ()) if program else ()
        mains = self._by_name.get("__main__.py", ())
        return frozenset(path for path in (*places, *mains) if f"/{path}".endswith(ends))

    @cached_property
    def _by_name(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self._resolver.summaries:
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found


def given(option: Any, call: CallFacts) -> Value:
    """What a command gives an option that `call` declares, as its type reads it; None for what is not told."""
    keywords = dict(call.keywords)
    flag = _FLAGS.get(keywords.get("action"))
    if flag is not None or option is True:
        return flag
    if "nargs" in keywords and keywords["nargs"] != ("const", "str", "?"):
        items = tuple(_read(text, keywords.get("type")) for text in option)
        return None if None in items else ("seq", items)
    return _read(option[0], keywords.get("type"))


def _read(text: str | None, type_of: Value) -> Value:
    if text is None:
        return None
    if type_of is None or type_of == "str":
        return ("const", "str", text)
    if type_of in ("int", "float"):
        try:
            number: int | float = int(text) if type_of == "int" else float(text)
        except ValueError:
            return None
        return ("const", type_of, number)
    truth = _TRUTHS.get(text.lower())
    return None if truth is None else ("const", "bool", truth)
