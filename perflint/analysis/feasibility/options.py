"""Defaults of what a user may set: options of a command line, fields of records that hold a configuration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from perflint.analysis.feasibility.commands import Commands, given
from perflint.analysis.names.refs import CLASS, EXTERNAL, EXTERNAL_INSTANCE, FUNCTION, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.computed import written
from perflint.ir.summary import CallFacts, ClassFacts, FunctionFacts, Value
from perflint.torch_model.structures import OF_KEYWORDS

#: What makes a class a record: each name that its body declares is a field, which whoever makes one may set.
_RECORD_MAKERS = frozenset({"dataclass", "define", "frozen", "mutable", "attrs", "s", "chz", "configclass"})
_RECORD_BASES = frozenset(
    {"NamedTuple", "BaseModel", "BaseSettings", "Tap", "Struct", "ModelOutput", "PretrainedConfig"}
)
#: What holds other values without names, in the notation of summaries.
_SEVERAL = frozenset({"seq", "either"})
_OFF: Value = ("const", "bool", False)
_ON: Value = ("const", "bool", True)
_NONE: Value = ("const", "NoneType", None)
_FLAGS: dict[Value, Value] = {("const", "str", "store_true"): _OFF, ("const", "str", "store_false"): _ON}
#: What keeps its keywords as entries.
_FILLING = OF_KEYWORDS | {"update"}
#: What gives back the options that an earlier run has saved.
LOADS = frozenset(
    "pickle.load pickle.loads dill.load joblib.load torch.load json.load json.loads yaml.load yaml.safe_load".split()
)
#: What gives the options of a command line.
_PARSES = frozenset({"parse_args", "parse_known_args", "parse_intermixed_args"})
#: Names by which the options of a command line go where nothing tells what they are.
OPTION_NAMES = frozenset({"args", "opt", "opts", "flags", "FLAGS", "hparams"})
#: Names by which what a configuration file says goes.
CONFIG_NAMES = OPTION_NAMES | {"cfg", "config", "conf", "configs"}


#: The default of an option, where it is declared, and the call that declares it.
_Declared: TypeAlias = "tuple[Value, Scope, CallFacts | None]"


class Options:
    """What is known of one program's options. Worked out when somebody asks."""

    def __init__(self, resolver: Resolver, configured: Callable[[], frozenset[str]] = frozenset) -> None:
        self._resolver = resolver
        self._configured = configured
        self.commands = Commands(resolver, configured)

    @cached_property
    def calls(self) -> Mapping[str, list[tuple[Scope, int, CallFacts]]]:
        """All calls of the program but those of tests, by the last names of what is called, with their places."""
        tests = self._resolver.tests
        return {
            name: [(item.scope, item.place, item.call) for item in items if item.scope.path not in tests]
            for name, items in self._resolver.nesting.calls.items()
        }

    # Command lines.

    def holds(self, name: str, scope: Scope) -> bool:
        """Whether a name holds the options of a command line: by what gives it, or else by what it is called."""
        if name.rpartition(".")[2] in OPTION_NAMES:
            return True
        given = self._resolver.written.definitions(name, scope)
        return bool(given) and all(self._is_parsed(value, where) for value, where in given)

    def _is_parsed(self, value: Value, scope: Scope, deepest: int = 2) -> bool:
        """`parser.parse_args()`, the first of the two that `parse_known_args` gives, and what a function of the project
        gives that returns one of these.
        """
        if isinstance(value, tuple) and value[0] == "item" and value[2] == 0:
            value = value[1]
        if not isinstance(value, tuple) or value[0] != "call" or deepest == 0:
            return False
        if last_name(value[1]) in _PARSES:
            return True
        refs = self._resolver.refs(value[1], scope)
        return bool(refs) and all(ref.kind == FUNCTION and self._parses(ref, deepest - 1) for ref in refs)

    def _parses(self, function: Ref, deepest: int) -> bool:
        """Whether all that a function gives back are options of a command line."""
        scope = Scope(function.path, function.name)
        given: list[tuple[Value, Scope]] = []
        for value in self._resolver.nesting.function(scope).returns:
            given += self._resolver.written.definitions(value, scope) if type(value) is str else [(value, scope)]
        return bool(given) and all(self._is_parsed(value, where, deepest) for value, where in given)

    def defaults(self, name: str, path: str) -> list[tuple[Value, Scope]]:
        """What the options called `name` are where no user sets them: those of one file where it has any, else those
        of all files. None of a value stands for what only a user can tell.
        """
        return [(value, scope) for value, scope, _ in self._declared(name, path)]

    def shown(self, name: str, path: str) -> list[Value] | None:
        """What the commands of the tree give such an option, where they leave it not at its default; None of a value is
        for what is not told. None at all where no command runs a program that has it.
        """
        declarations = [item for item in self._declared(name, path) if item[2] is not None]
        declaring = frozenset(scope.path for _, scope, _ in self._options.get(name, ()))
        found: list[Value] = []
        is_run = bool(declarations)
        for _, scope, call in declarations:
            runs = self.commands.of(scope.path, declaring)
            is_run = is_run and bool(runs)
            names = _names(call.args) if call is not None else ()
            found += [given(run.options[item], call) for run in runs for item in names if item in run.options and call]
        return list(dict.fromkeys(found)) if is_run else None

    def _declared(self, name: str, path: str) -> list[_Declared]:
        found = self._options.get(name, [])
        own = [item for item in found if item[1].path == path]
        return own or found

    @cached_property
    def _options(self) -> Mapping[str, list[_Declared]]:
        found: dict[str, list[_Declared]] = {}
        for scope, _, call in self.calls.get("add_argument", ()):
            for name in _dest(call):
                found.setdefault(name, []).append((_default(call), scope, call))
        for scope, _, call in self.calls.get("set_defaults", ()):
            for name, value in call.keywords:
                found.setdefault(name, []).append((value, scope, None))
        return found

    def decorated(self, facts: FunctionFacts, name: str) -> Value | None:
        """What a parameter is where click makes it an option: `@click.option("--fast", is_flag=True)`."""
        for decorator in facts.decorators:
            if isinstance(decorator, tuple) and decorator[0] == "call" and last_name(decorator[1]) == "option":
                _, _, args, keywords = decorator
                if name in _names(args):
                    given = dict(keywords)
                    is_flag = given.get("is_flag") == _ON or any(
                        "/--" in str(item[2]) for item in args if _is_text(item)
                    )
                    return given.get("default", _OFF if is_flag else _NONE)
        return None

    # Configurations.

    def configured(self, name: str) -> bool | None:
        """Whether any configuration file of the project, or a command, switches something on; None where none says."""
        told = (self.filed(name), self.commands.switches(name))
        return True if True in told else False if False in told else None

    def filed(self, name: str) -> bool | None:
        """As `configured`, but of what commands give."""
        words = self._configured()
        return True if f"{name}=on" in words else False if f"{name}=off" in words else None

    def settings(self, name: str) -> list[tuple[Value, Scope]]:
        """What goes by a key or a keyword anywhere: `dict(fast=False)`, `{"fast": False}`."""
        return [(value, scope) for value, scope, _ in self._settings.get(name, ())]

    def spread(self, name: str) -> list[tuple[Value, Scope]]:
        """The same, but for what is an argument of something that takes it by that name: what a mapping may hold."""
        found = self._settings.get(name, ())
        return [(value, scope) for value, scope, func in found if func is None or not self._takes(func, name, scope)]

    def _takes(self, func: Value, name: str, scope: Scope) -> bool:
        if last_name(func) in _FILLING:
            return False
        for ref in self._resolver.refs(func, scope):
            made = self._resolver.method(Ref(INSTANCE, ref.path, ref.name), "__init__") if ref.kind == CLASS else ref
            facts = self._resolver.summaries[made.path].functions.get(made.name) if made and made.path else None
            if facts is not None and all(param.name.lstrip("=") != name for param in facts.params):
                return False
            if ref.kind not in (CLASS, FUNCTION, EXTERNAL, EXTERNAL_INSTANCE):
                return False
        return bool(self._resolver.refs(func, scope))

    @cached_property
    def _settings(self) -> Mapping[str, list[tuple[Value, Scope, Value]]]:
        found: defaultdict[str, list[tuple[Value, Scope, Value]]] = defaultdict(list)
        for scope, facts in self._resolver.nesting.functions:
            if scope.path in self._resolver.tests:
                continue
            holding = [value for values in facts.binds.values() for value in values if type(value) is tuple]
            holding += [value for value in facts.returns if type(value) is tuple]
            holding += [
                ("call", call.func, call.args, call.keywords) for call in facts.calls if call.args or call.keywords
            ]
            for value in holding:  # grows by what is in it
                form = value[0]
                if form == "call":
                    holding += [item for item in value[2] if type(item) is tuple]
                    items, func = value[3], value[1]
                elif form == "map":
                    items, func = value[1], None
                elif form in _SEVERAL:
                    holding += [item for item in value[1] if type(item) is tuple]
                    continue
                else:
                    continue
                if items:
                    holding += [item for _, item in items if type(item) is tuple]
                    for key, item in items:
                        found[key].append((item, scope, func))
        return found

    # Records.

    def is_record(self, cls: Ref) -> bool:
        """Whether a class of the project holds fields that whoever makes one may set."""
        for base in self._resolver.mro(cls):
            facts = self._resolver.hierarchy.facts(base)
            if facts is None:
                if base.name.rpartition(".")[2] in _RECORD_BASES:
                    return True
            elif any(_makes_record(item) for item in facts.decorators):
                return True
        return False

    def makings(self, cls: Ref) -> Iterator[tuple[Scope, int, CallFacts]]:
        """The calls that make an instance of a class, or of one below it; and `replace(config, fast=True)`."""
        # In their order: of the options that keep one from being made, the first is told.
        wanted = dict.fromkeys([cls, *self._resolver.hierarchy.below(cls)])
        for name in dict.fromkeys([item.name.rpartition(".")[2] for item in wanted]):
            for scope, index, call in self.calls.get(name, ()):
                if any(ref in wanted for ref in self._resolver.refs(call.func, scope)):
                    yield scope, index, call
        yield from (item for item in self.calls.get("replace", ()) if item[2].keywords)

    # What is set on objects from outside.

    @cached_property
    def set_from_outside(self) -> Mapping[str, list[tuple[Value, Scope]]]:
        """By attribute, what it is given on something else than `self`. None of a value is for what is not known."""
        found: dict[str, list[tuple[Value, Scope]]] = {}
        for scope, facts in self._resolver.nesting.functions:
            if scope.path in self._resolver.tests:
                continue
            for name in {**facts.binds, **facts.computed}:
                if _is_outside(name):
                    values = written(facts.binds.get(name, ()), facts.computed.get(name, ()))
                    found.setdefault(name.rpartition(".")[2], []).extend([(value, scope) for value in values])
            for name in facts.unclear:
                if _is_outside(name):
                    found.setdefault(name.rpartition(".")[2], []).append((None, scope))
        return found


def _is_outside(name: str) -> bool:
    return "." in name and not name.startswith("#") and (not name.startswith("self.") or name.count(".") > 1)


def field_place(facts: ClassFacts, name: str) -> int | None:
    """Which positional argument a field is, in a class that has all its fields itself."""
    names = list(facts.annotations)
    return names.index(name) if name in names else None


def typer_default(default: Value) -> Value:
    """What `fast: bool = typer.Option(False)` is by default; None for what is no such option."""
    if type(default) is tuple and default[0] == "call" and last_name(default[1]) in ("Option", "Argument"):
        return default[2][0] if default[2] else None
    return None


def given_for_field(
    facts: FunctionFacts, index: int, call: CallFacts, name: str, place: int | None
) -> tuple[Value, ...]:
    """What a call of a function that makes a record gives one of its fields; nothing where it leaves it out."""
    keywords = dict(call.keywords)
    if name in keywords:
        key, value = name, keywords[name]
    elif place is not None and place < len(call.args):
        key, value = str(place), call.args[place]
    else:
        return ()
    return facts.computed.get(f"#{index}:{key}", (value,))


def _makes_record(decorator: Value) -> bool:
    return (
        last_name(decorator[1] if isinstance(decorator, tuple) and decorator[0] == "call" else decorator)
        in _RECORD_MAKERS
    )


def _is_text(value: Value) -> bool:
    return isinstance(value, tuple) and value[:2] == ("const", "str") and value[2] is not None


def _names(args: tuple[Value, ...]) -> list[str]:
    """The names that an option goes by: of `"--no-cuda"` it is `no_cuda`, of `"--a/--no-a"` it is `a`."""
    texts = [item[2] for item in args if _is_text(item)]
    return [text.partition("/")[0].lstrip("-").replace("-", "_") for text in texts]


def _dest(call: CallFacts) -> list[str]:
    dest = dict(call.keywords).get("dest")
    return _names((dest,)) if _is_text(dest) else _names(call.args)


def _default(call: CallFacts) -> Value:
    given = dict(call.keywords)
    if "default" in given:
        return given["default"]
    action = given.get("action")
    if action in _FLAGS:
        return _FLAGS[action]
    is_positional = not any(_is_text(item) and item[2].startswith("-") for item in call.args)
    return None if is_positional or given.get("required") == _ON else _NONE


def is_command_line(dotted: str) -> bool:
    """Whether what is called so in full gives the options of a command line: `ArgumentParser.parse_args`."""
    return ("arse" in dotted and "args" in dotted) or dotted == "argparse.Namespace"


def is_configuration(base: str) -> bool:
    """Whether a dotted name is one that configurations go by: `cfg.model`, `self.train_cfg`."""
    return any(part in CONFIG_NAMES or part.endswith(("_cfg", "_config")) for part in base.split("."))
