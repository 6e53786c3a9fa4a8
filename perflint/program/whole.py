"""What is asked of all files at once, with one answer each.

A rule that goes through the summaries of all files itself has its findings hang on all that these say, so that its file
is inspected again after any change of any other. Here it hangs on the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from perflint.facts.summary import CallFacts, Summary, Value
from perflint.patterns import pattern
from perflint.program.conventions import last_name
from perflint.program.heat import is_test
from perflint.program.refs import CLASS, Ref, Scope

if TYPE_CHECKING:
    from perflint.program.program import Program

#: Methods that set a module up, or anew, and are no part of a forward.
_SETS_UP = pattern(r"^__init__$|init|set|setup|build|make|create|load|save|train|eval|config|register|add|hook|__")


class Whole:
    """Questions about a whole program. Nothing is worked out before somebody asks."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def has_derived(self, name: str) -> bool:
        """Whether any class has a base of that last name."""
        return name in self._bases

    def has_class(self, name: str) -> bool:
        """Whether any file defines a class of that name at its top."""
        return any(name in summary.classes for summary in self._program.summaries.values())

    @cached_property
    def _bases(self) -> set[str]:
        summaries = self._program.summaries.values()
        return {last_name(base) for summary in summaries for item in summary.classes.values() for base in item.bases}

    @cached_property
    def differentiates(self) -> bool:
        """Whether any `forward` asks for gradients itself, as models of energies do for their forces."""
        return any(
            isinstance(call.func, str) and (call.func == "grad" or call.func.endswith("autograd.grad"))
            for _, facts in self._program.resolver.nesting.by_name.get("forward", ())
            if facts.in_class
            for call in facts.calls
        )

    @cached_property
    def files_of_modules(self) -> tuple[str, ...]:
        """The files with classes of modules, but for tests."""
        is_module = self._program.is_module
        return tuple(
            path
            for path, summary in self._program.summaries.items()
            if not is_test(path) and any(is_module(Ref(CLASS, path, name)) for name in summary.classes)
        )

    def keeps_as_it_runs(self, path: str) -> bool:
        """Whether a module of a file sets an attribute of its own, to more than a constant, where it is run."""
        running = self.methods_that_run(path)
        return any(
            value[:1] != ("const",) and where in running
            for item in self._program.summaries[path].classes.values()
            for values in item.attributes.values()
            for value, where in values
        )

    def methods_that_run(self, path: str) -> tuple[str, ...]:
        """The methods of a file's modules that may be part of a forward, by their qualified names."""
        return tuple(
            f"{name}.{method}"
            for name, item in self._program.summaries[path].classes.items()
            if self._program.is_module(Ref(CLASS, path, name))
            for method in item.methods
            if not _SETS_UP.search(method)
        )

    def is_method_called_without_grad(self, name: str) -> bool:
        """Whether anything but tests calls a method of that name on something, with gradients off."""
        return any(
            last_name(call.func) == name and call.func != name and self._program.grad_off(scope, call.context)
            for path, summary in self._program.summaries.items()
            if not is_test(path) and self._program.mentions((name,), (path,))
            for scope, call in _calls(path, summary)
        )

    def is_unknown_called_without_grad(self, names: tuple[str, ...]) -> bool:
        """Whether a method of one of these names is called with gradients off, of which nobody can tell what it is."""
        return any(
            isinstance(call.func, str)
            and last_name(call.func) in names
            and self._program.grad_off(caller, call.context)
            for caller, calls in self._program.graph.unresolved.items()
            for call in calls
        )

    def given(self, name: str) -> tuple[Value, ...]:
        """What parameters of that name have as a default, and what is passed for keywords of that name; a `_` around
        either makes no difference.
        """
        said: list[Value] = []
        for _, facts in self._program.resolver.nesting.functions:
            said += [item.default for item in facts.params if item.name.strip("_=") == name]
            said += [value for call in facts.calls for word, value in call.keywords if word.strip("_") == name]
        return tuple(said)

    def option_defaults(self, name: str, path: str) -> tuple[object, ...]:
        """What the command line's options called `name` are unless told otherwise: those of one file where it has any,
        else those of all files. None is for what is not written as a literal.
        """
        own = tuple(self._option_defaults(name, path))
        if own:
            return own
        return tuple(default for other in self._program.summaries for default in self._option_defaults(name, other))

    def _option_defaults(self, name: str, path: str) -> Iterator[object]:
        for facts in self._program.summaries[path].functions.values():
            for call in facts.calls:
                if not (isinstance(call.func, str) and call.func.endswith("add_argument")):
                    continue
                names = [item[2] for item in call.args if isinstance(item, tuple) and item[0] == "const"]
                if any(isinstance(item, str) and item.lstrip("-").replace("-", "_") == name for item in names):
                    given = dict(call.keywords).get("default")
                    yield given[2] if isinstance(given, tuple) and given[0] == "const" else None


def _calls(path: str, summary: Summary) -> Iterator[tuple[Scope, CallFacts]]:
    for qualname, facts in summary.functions.items():
        for call in facts.calls:
            yield Scope(path, qualname), call
