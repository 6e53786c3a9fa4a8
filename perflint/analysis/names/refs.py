"""What a value may be: `Ref`; where it is written: `Scope`; and the small functions on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import NamedTuple

from perflint.ir.callees import last_name
from perflint.ir.summary import MODULE, Summary, Value, record
from perflint.torch_model import loaders, wrappers
from perflint.torch_model.names import canonical

FUNCTION = "function"
CLASS = "class"
INSTANCE = "instance"
MODULE_REF = "module"
EXTERNAL = "external"
EXTERNAL_INSTANCE = "external instance"
BATCH = "batch"

#: Calls that hand back one of their arguments (its index), wrapped or not.
IDENTITY = {
    **wrappers.IDENTITIES,
    **{name: wrapper.argument for name, wrapper in loaders.WRAPPERS.items() if wrapper.shape == "same"},
    "functools.partial": 0,
    "functools.wraps": 0,
}
#: The same by the ends of their names, with the methods that hand back what they are given, or what they are of.
_WRAPPING = frozenset(name.rpartition(".")[2] for name in IDENTITY) | wrappers.PREPARE_METHODS | wrappers.UNWRAP_METHODS
#: The functions that hand back several arguments, by the ends of their names.
_BY_END = {".".join(name.split(".")[-2:]): name for name in wrappers.HANDED_BACK}
_BY_END["ipex.optimize"] = "intel_extension_for_pytorch.optimize"
_CHAINED = wrappers.MODULE_CHAIN | {"compile"}
#: Of the things of libraries that a value may be, as many are kept: past these it is nothing to build on. What may be
#: code of the project is kept as a whole, however many classes a dispatch has.
MOST = 6


class Ref(NamedTuple):
    """One thing a value may be. `path` is the defining file ("" for libraries), `name` the qualname in it, or the
    dotted name of the library thing (for instances: of its class or of the function that made it)."""

    kind: str
    path: str
    name: str


class Scope(NamedTuple):
    """Where a value is written: file and qualname of the function (`MODULE` for module level)."""

    path: str
    function: str


Refs = tuple[Ref, ...]
ParamRefs = Callable[[Scope, str], Refs]
#: What the objects of a class are handed for a parameter of a base's constructor.
MadeRefs = Callable[[Ref, Scope, str], Refs]
#: What callers pass for a parameter, each with where it is written.
ParamValues = Callable[[Scope, str], "list[tuple[Value, Scope]]"]


def given(call: Value) -> tuple[Value, ...]:
    """The positional arguments of a call, or what it is told to iterate: `tqdm(iterable=loader)`."""
    return call[2] or tuple(item for name, item in call[3] if name == "iterable")


def argument(call: Value, name: str, place: int) -> Value:
    """What a call hands the parameter `name`, written with its stars, whose arguments would stand at `place`."""
    if name.startswith("*"):
        return None
    plain = name.lstrip("=")
    for key, value in call[3]:
        if key == plain:
            return value
    return call[2][place] if not name.startswith("=") and place < len(call[2]) else None


def handed_back(library: str, call: Value) -> tuple[Value, ...]:
    """What a call of a library's function gives back of its arguments, in the order of the tuple that holds them."""
    return tuple(argument(call, name, place) for place, name in wrappers.HANDED_BACK.get(canonical(library), ()))


def wraps(value: Value, name: str) -> bool:
    """Whether a value is certainly what goes by `name`, wrapped or not: `DataParallel(model)`, `model.to(device)`."""
    if isinstance(value, str):
        base, _, attribute = value.rpartition(".")
        return value == name or (base == name and attribute in wrappers.WRAPPED_ATTRIBUTES)
    if value is None:
        return False
    if value[0] == "either":
        return all(wraps(part, name) for part in value[1])
    if value[0] == "item":
        call, place = value[1], value[2]
        if not (isinstance(call, tuple) and call[0] == "call" and isinstance(place, int)):
            return False
        if last_name(call[1]) in wrappers.PREPARE_METHODS:
            return place < len(call[2]) and wraps(call[2][place], name)
        given = handed_back(_BY_END.get(".".join(_ends(call[1])), ""), call)
        return place < len(given) and wraps(given[place], name)
    if value[0] != "call":
        return False
    func = value[1]
    if last_name(func) in _CHAINED:
        base = func.rpartition(".")[0] if isinstance(func, str) else func[1]
        if base and wraps(base, name):
            return True
    return last_name(func) in _WRAPPING and any(wraps(item, name) for item in value[2][:2])


def _ends(func: Value) -> list[str]:
    """The last two names of a dotted one."""
    return func.split(".")[-2:] if isinstance(func, str) else []


def instance_of(ref: Ref) -> Ref:
    """What calling a class gives; anything else stays as it is."""
    if ref.kind == CLASS:
        return record(Ref, (INSTANCE, ref.path, ref.name))
    if ref.kind == EXTERNAL:
        return record(Ref, (EXTERNAL_INSTANCE, "", ref.name))
    return ref


def is_of_itself(value: Value, name: str) -> bool:
    """Whether a value that a name is bound to is a call of what the name stood for."""
    return type(value) is tuple and value[0] == "call" and value[1] == name


def instances_rather(refs: Refs) -> Refs:
    """Of what is a class or an object of it, the object: `model = model(width)` has made it."""
    made = {(ref.path, ref.name) for ref in refs if ref.kind == INSTANCE}
    if not made:
        return refs
    return tuple([ref for ref in refs if ref.kind != CLASS or (ref.path, ref.name) not in made])


def few(refs: Iterable[Ref]) -> Refs:
    """Distinct refs: all that are the project's, and a handful of others."""
    if type(refs) is tuple and len(refs) < 2:
        return refs
    found = tuple(dict.fromkeys(refs))
    if len(found) <= MOST:
        return found
    foreign = [ref for ref in found if not ref.path]
    if len(foreign) <= MOST + 1:
        return found
    left_out = set(foreign[MOST + 1 :])
    return tuple([ref for ref in found if ref not in left_out])


def together(answers: list[Refs]) -> Refs:
    """Several answers as one. Calls of many functions often have the very same one, of hundreds of classes."""
    if len(answers) > 1:
        answers = list({id(answer): answer for answer in answers if answer}.values())
    if len(answers) == 1:
        return answers[0]
    return few(chain.from_iterable(answers))


def defined(summary: Summary, path: str, qualname: str) -> Refs:
    """The class or function of that qualname in a file."""
    if qualname in summary.classes:
        return (record(Ref, (CLASS, path, qualname)),)
    if qualname in summary.functions and qualname != MODULE:
        return (record(Ref, (FUNCTION, path, qualname)),)
    return ()
