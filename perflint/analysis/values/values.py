"""Kinds of values written in the notation of summaries: all that is known of other files.

The same tables as for trees, without flow: a name is whatever any of its assignments gives it.
"""

from __future__ import annotations

from perflint.analysis.evidence import last_name, looks_like_loader
from perflint.analysis.names.refs import CLASS, EXTERNAL, FUNCTION, MODULE_REF, Ref, Scope
from perflint.analysis.values import operations, promises, transfers
from perflint.analysis.values.arguments import Arguments, Thunk
from perflint.analysis.values.evaluating import Evaluating
from perflint.analysis.values.kind import (
    ARRAY,
    NAMED_LOADER,
    NONE,
    NUMBER,
    STRING,
    UNKNOWN,
    Device,
    Kind,
    Place,
    Tag,
    join,
    mapping,
    sequence,
)
from perflint.analysis.values.origin import Origin, Provenance
from perflint.finding import Confidence
from perflint.ir.summary import MODULE, FunctionFacts, Value

_MOVERS = ("to", "cuda")


class Env(dict[str, Kind]):
    """The kinds of a function's parameters in one call, with what is known of the values written in it."""

    def __init__(self) -> None:
        super().__init__()
        self.memo: dict[tuple[Value, Scope], Kind] = {}
        #: The name that is being moved, which is then what it was before.
        self.moving = ""


class Values:
    """Kinds of values in the notation of summaries, remembered by what is known of the parameters."""

    def __init__(self, inference: Evaluating) -> None:
        self.inference = inference
        self._empty = Env()
        #: One environment for the same parameters of a function: answers are known by its identity.
        self._envs: dict[object, Env] = {}

    def value(self, value: Value, scope: Scope, env: Env | None = None) -> Kind:
        """The kind of a value written in `scope`; `env` gives parameters their kinds."""
        if value is None or scope.path not in self.inference.program.summaries:
            return UNKNOWN
        key = (value, scope)
        env = self._empty if env is None else env
        memo = env.memo
        known = memo.get(key)
        if known is not None:
            return known
        # A name that is only made of itself is whatever the function is given.
        floor = _anything if isinstance(value, str) else None
        return self.inference.queries.ask((key, id(memo)), memo, key, self._evaluate, value, scope, env, floor=floor)

    def _same(self, env: Env) -> Env:
        """The environment that has the same parameters as `env`, with what is known in it already."""
        return self._envs.setdefault((env.moving, tuple(env.items())), env)

    def run(self, function: Ref, arguments: Arguments, receiver: Kind | None) -> Kind:
        """What a function of another file returns for these arguments."""
        summary = self.inference.program.summaries.get(function.path)
        facts = summary.functions.get(function.name) if summary is not None else None
        if facts is None:
            return UNKNOWN
        scope = Scope(function.path, function.name)
        env = self._same(self._bound(facts, arguments, receiver, scope))
        if facts.is_generator:
            given = [self.value(value, scope, env) for value, _ in facts.yields]
            return sequence(join(given) if given else UNKNOWN)
        found = join(self.value(value, scope, env) for value in facts.returns) if facts.returns else NONE
        if facts.returns_annotation:
            found = promises.kept(
                found, self.inference.promised(facts.returns_annotation, Scope(function.path, MODULE))
            )
        # Without flow the answer may be of an assignment that comes later.
        return found.at_most(Confidence.MEDIUM) if found.holds_tensors else found

    def _bound(self, facts: FunctionFacts, arguments: Arguments, receiver: Kind | None, scope: Scope) -> Env:
        bound = Env()
        names = [param.name for param in facts.params if not param.name.startswith(("=", "*"))]
        if receiver is not None and names:
            bound[names[0]] = receiver
            names = names[1:]
        for param in facts.params:
            name = param.name.lstrip("=*")
            if name in bound or param.name.startswith("*"):
                continue
            place = names.index(name) if name in names else 1_000_000
            given = arguments.at(place, name)
            if given is None:
                given = (
                    self.value(param.default, Scope(scope.path, facts.owner or MODULE)) if param.default else UNKNOWN
                )
            if param.annotation:
                given = promises.kept(given, self.inference.promised(param.annotation, Scope(scope.path, MODULE)))
            bound[name] = given
        return bound

    def class_attribute(self, owner: Ref, name: str) -> Kind | None:
        """What a class of another file assigns to `self.name`."""
        summary = self.inference.program.summaries.get(owner.path)
        facts = summary.classes.get(owner.name) if summary is not None else None
        if facts is None:
            return None
        if name in facts.attributes:
            kinds = []
            for value, where in facts.attributes[name]:
                kind = self.value(value, Scope(owner.path, where))
                if where == MODULE and kind.device is not None and kind.device.may_be_cuda:
                    kind = kind.but(device=Device.MAYBE)  # a default in the body of a class
                if kind.tag is Tag.TENSOR and _is_parameter(value):
                    kind = kind.but(place=Place.MODULE)
                kinds.append(kind)
                if kind is UNKNOWN:
                    break  # whatever the others are
            found = join(kinds)
            if found.known:
                return found
        if name in facts.annotations:
            return self.inference.promised(facts.annotations[name], Scope(owner.path, MODULE))
        return UNKNOWN if name in facts.attributes else None

    def exported(self, path: str, name: str) -> Kind:
        """A name of another module: what it assigns, or what it refers to."""
        summary = self.inference.program.summaries.get(path)
        if summary is not None and name in summary.functions[MODULE].binds:
            return self.value(name, Scope(path, MODULE))
        return self.inference.of_refs(self.inference.program.resolver.attribute(Ref(MODULE_REF, path, ""), name))

    def imported(self, target: str, importer: str) -> Kind | None:
        """What `from module import name` (given as `module.name`) binds; None when nothing is known of it."""
        resolver = self.inference.program.resolver
        refs = resolver.imported(target, importer)
        if len(refs) == 1 and refs[0].kind in (CLASS, FUNCTION, EXTERNAL):
            return self.inference.of_refs(refs)
        module, _, name = target.rpartition(".")
        holders = resolver.imported(module, importer) if module.strip(".") else ()
        for holder in holders:
            if holder.kind == MODULE_REF:
                found = self.exported(holder.path, name)
                if found.known:
                    return found
        return self.inference.of_refs(refs) if refs else None

    # Forms.

    def _evaluate(self, value: Value, scope: Scope, env: Env) -> Kind:
        if isinstance(value, str):
            found = self._dotted(value, scope, env)
            return NAMED_LOADER if found is UNKNOWN and looks_like_loader(value) else found
        form = value[0]
        if form == "call":
            return self._call(value, scope, env)
        if form == "const":
            return _constant(value[1], value[2])
        if form == "item":
            return self._item(value, scope, env)
        if form == "attr":
            return self.inference.member(self.value(value[1], scope, env), value[2])
        if form == "either":
            return join(self.value(part, scope, env) for part in value[1])
        if form == "seq":
            items = [self.value(part, scope, env) for part in value[1]]
            return sequence(items=items) if items else sequence(qualified="empty")
        if form == "map":
            return mapping(items=[(key, self.value(part, scope, env)) for key, part in value[1]])
        if form == "each":
            return sequence(self.value(value[1], scope, env))
        if form == "table":
            return mapping(self.value(value[1], scope, env))
        return UNKNOWN

    def _dotted(self, dotted: str, scope: Scope, env: Env) -> Kind:
        first, *rest = dotted.split(".")
        facts = self._function(scope)
        for size in range(len(rest), 0, -1):
            held = ".".join([first, *rest[:size]])
            if held in facts.binds:
                kind = join(self.value(part, scope, env) for part in facts.binds[held])
                return self._members(kind, rest[size:])
        return self._members(self._name(first, scope, env), rest)

    def _members(self, kind: Kind, names: list[str]) -> Kind:
        for name in names:
            kind = self.inference.member(kind, name)
        return kind

    def _name(self, name: str, scope: Scope, env: Env) -> Kind:
        facts = self._function(scope)
        if env.moving == name:
            return env[name]
        if name in facts.binds:
            kinds = []
            for part in facts.binds[name]:
                if part != name and _moved_entry(part, name) is None and not _moves(part, name):
                    kinds.append(ARRAY if _becomes_array(part, name) else self.value(part, scope, env))
                    if kinds[-1] is UNKNOWN:
                        break  # whatever the others are
            if name in env and env[name].known and not (kinds and all(kind.known for kind in kinds)):
                kinds.append(env[name])
            found = self._moved(join(kinds) if kinds else UNKNOWN, name, facts, scope, env)
            if found.tag is Tag.NUMBER and name in facts.unclear:
                return UNKNOWN  # `total = 0.0` and then `total += loss`
            if found.known or found.tag is Tag.NEVER:
                return found
        elif name in env:
            return env[name]
        for param in facts.params:
            if param.name.lstrip("=") == name and param.annotation:
                promised = self.inference.promised(param.annotation, Scope(scope.path, MODULE))
                if promised.known:
                    return promised
        imports = self.inference.program.summaries[scope.path].imports
        if name in imports:
            held = self.imported(imports[name], scope.path)
            if held is not None:
                return held
        return self.inference.of_refs(self.inference.program.resolver.refs(name, scope))

    def _moved(self, found: Kind, name: str, facts: FunctionFacts, scope: Scope, env: Env) -> Kind:
        """`labels` after `labels = labels.to(device)`: what is done with it later is done on the device."""
        for part in facts.binds[name]:
            entry = _moved_entry(part, name)
            if entry is not None:
                return self._with_entries(found, entry, scope, env)
        for part in facts.binds[name]:
            if _moves(part, name):
                inner = Env()
                inner.update(env)
                inner[name], inner.moving = found, name
                made = self.value(part, scope, self._same(inner))
                if found.place is Place.HOST and found.holds_tensors:
                    if made.place.is_accelerator:
                        return made
                else:
                    found = join((found, made))
        return found

    def _with_entries(self, found: Kind, entry: Value, scope: Scope, env: Env) -> Kind:
        """What holds tensors, after each of them was moved as `entry` says."""
        inner = Env()
        inner.update(env)
        inner.moving = _owner(entry)
        inner[inner.moving] = Kind(Tag.TENSOR, Place.HOST)
        made = self.value(entry, scope, self._same(inner))
        place = made.place
        if place is Place.HOST:
            # Of another type; or, without flow, taken to the host before whatever is done with it.
            return found if found.place is Place.HOST else mapping(made)
        if not (place.is_accelerator and found.place is Place.HOST and found.holds_tensors):
            return UNKNOWN
        return found.but(place=Place.TARGET, device=Device.MAYBE, items=(), origin=Origin(Provenance.MOVE))

    def _item(self, value: Value, scope: Scope, env: Env) -> Kind:
        base = self.value(value[1], scope, env)
        key = value[2]
        if base.tag is Tag.CLASS:
            return base
        if key is None:
            # A loop target or an index that is not a literal.
            return operations.iterate(base) if base.tag in (Tag.LOADER, Tag.SEQUENCE) else operations.index(base, None)
        if isinstance(key, int) and base.tag is not Tag.TENSOR:
            return operations.unpack(base, (key,))
        return operations.index(base, key)

    def _call(self, value: Value, scope: Scope, env: Env) -> Kind:
        func = value[1]
        arguments = self._arguments(value, scope, env)
        if isinstance(func, str):
            base_name, _, last = func.rpartition(".")
            base: Kind | None = self.value(base_name, scope, env) if base_name else None
        elif func[0] == "attr":
            base, last = self.value(func[1], scope, env), func[2]
        else:
            base, last = None, ""
        if base is not None and not (base.tag in (Tag.FUNCTION, Tag.CLASS) and not base.path):
            first = value[2][0] if value[2] else None
            return self.inference.calls.method(base, last, arguments, first if isinstance(first, str) else "")
        return self.inference.calls.value(self.value(func, scope, env), arguments)

    def _arguments(self, value: Value, scope: Scope, env: Env) -> Arguments:
        constants: dict[int | str, object] = {}
        for place, item in enumerate(value[2]):
            if isinstance(item, tuple) and item[0] == "const":
                constants[place] = item[2]
        for name, item in value[3]:
            if isinstance(item, tuple) and item[0] == "const":
                constants[name] = item[2]
        exact = all(name for name, _ in value[3])
        return Arguments(
            [self._thunk(item, scope, env) for item in value[2]],
            {name: self._thunk(item, scope, env) for name, item in value[3] if name},
            constants,
            exact=exact,
        )

    def _thunk(self, value: Value, scope: Scope, env: Env) -> Thunk:
        return lambda: self.value(value, scope, env)

    def _function(self, scope: Scope) -> FunctionFacts:
        functions = self.inference.program.summaries[scope.path].functions
        return functions.get(scope.function) or functions[MODULE]


def _anything() -> Kind:
    return UNKNOWN


def _constant(name: str, value: object) -> Kind:
    if name == "NoneType":
        return NONE
    if name == "str":
        device = transfers.device_named(value) if isinstance(value, str) and len(value) < 16 else None
        return STRING if device is None else STRING.but(device=device)
    return NUMBER if name in ("int", "float", "bool", "complex") else UNKNOWN


def _is_parameter(value: Value) -> bool:
    if not isinstance(value, tuple) or value[0] != "call" or not isinstance(value[1], str):
        return False
    return value[1].rpartition(".")[2] in ("Parameter", "Buffer")


def _becomes_array(value: Value, name: str) -> bool:
    """Whether a name is bound again to the array of what it was: `target = target.cpu().numpy()`. Without flow any use
    of the name may come after that.
    """
    if not (isinstance(value, tuple) and value[0] == "call" and last_name(value[1]) == "numpy"):
        return False
    base: Value = value
    while isinstance(base, tuple) and base[0] in ("call", "attr"):
        base = base[1]
    return isinstance(base, str) and base.partition(".")[0] == name


def _moved_entry(value: Value, name: str) -> Value:
    """How each entry is moved where a name is bound again to all that it holds: `x.to(device)` of `{key: x.to(device)
    for key, x in batch.items()}`.
    """
    if not (isinstance(value, tuple) and value[0] == "table" and value[2] == ("call", f"{name}.items", (), ())):
        return None
    return value[1] if _owner(value[1]) else None


def _owner(value: Value) -> str:
    """`x` of `x.to(device)`, `x.cuda()`, `x.detach().cpu()`."""
    moves = False
    while isinstance(value, tuple) and value[0] == "call":
        owner, _, last = value[1].rpartition(".") if isinstance(value[1], str) else ("", "", last_name(value[1]))
        moves = moves or last in _MOVERS or last == "cpu"
        if owner:
            return owner if moves and "." not in owner else ""
        value = value[1][1] if isinstance(value[1], tuple) and value[1][0] == "attr" else None
    return ""


def _moves(value: Value, name: str) -> bool:
    """Whether a name is moved to be bound again: `x.to(device)`, `x.cuda(0)`, `x.float().to(device)`."""
    moves = False
    while isinstance(value, tuple) and value[0] == "call":
        func = value[1]
        if isinstance(func, str):
            owner, _, last = func.rpartition(".")
            return owner == name and (moves or last in _MOVERS)
        if not isinstance(func, tuple) or func[0] != "attr":
            return False
        moves = moves or func[2] in _MOVERS
        value = func[1]
    return moves and value == name
