"""How many parameters a module holds at most, by what the constructors of the project make."""

from __future__ import annotations

from functools import cached_property

from perflint.analysis.names.refs import CLASS, EXTERNAL_INSTANCE, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.analysis.naming.models import LAYER_WITH_PARAMETERS
from perflint.ir.callees import last_name
from perflint.ir.summary import Value
from perflint.torch_model import tensors

__all__ = ["ParameterCounts", "of_layer"]

#: Parameters of layers, weights and biases together.
_OF_LAYERS = {
    **dict.fromkeys(
        "Linear Embedding EmbeddingBag Bilinear LayerNorm GroupNorm InstanceNorm1d InstanceNorm2d".split(), 2
    ),
    **dict.fromkeys("Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d RMSNorm PReLU".split(), 2),
    **dict.fromkeys("BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm3d".split(), 2),
    **dict.fromkeys("LSTMCell GRUCell RNNCell MultiheadAttention".split(), 4),
}
#: Those that hold four for each of their layers and directions.
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_LAYERS_AT = 2
#: What holds whatever modules it is given.
_HOLDERS = frozenset("Module Sequential ModuleList ModuleDict ParameterList ParameterDict DataParallel".split())
_OF_NUMBERS = frozenset("int float bool len max min round".split())
#: By which a module may hold more than its attributes say.
_ADD_UNSEEN = frozenset("setattr add_module register_module register_parameter".split())


class ParameterCounts:
    """Answers for one program. None stands for nobody knows how many."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._of_classes: dict[Ref, int | None] = {}

    def of_attribute(self, name: str) -> int | None:
        """The most that a module has which any class of the project keeps under a name."""
        values = self._kept.get(name, [])
        counts = [self._of(value, scope) for value, scope in values]
        known = [count for count in counts if count is not None]
        return max(known) if known and len(known) == len(counts) else None

    def of_class(self, cls: Ref) -> int | None:
        """All that an object of a class of the project has; what it is derived from must be no more than a module."""
        if cls not in self._of_classes:
            self._of_classes[cls] = None  # what holds itself
            self._of_classes[cls] = self._counted(cls)
        return self._of_classes[cls]

    @cached_property
    def _kept(self) -> dict[str, list[tuple[Value, Scope]]]:
        """What classes keep in attributes, by the name."""
        found: dict[str, list[tuple[Value, Scope]]] = {}
        for path, summary in self._resolver.summaries.items():
            for cls in summary.classes.values():
                for name in {*cls.attributes, *cls.unclear}:
                    values = cls.attributes.get(name, ((None, cls.qualname),))
                    found.setdefault(name, []).extend((value, Scope(path, where)) for value, where in values)
        return found

    def _counted(self, cls: Ref) -> int | None:
        summary = self._resolver.summaries.get(cls.path)
        facts = summary.classes.get(cls.name) if summary is not None else None
        if summary is None or facts is None or [last_name(base) for base in facts.bases] != ["Module"]:
            return None  # what it is derived from holds more
        own = [summary.functions[f"{cls.name}.{method}"] for method in facts.methods]
        if any(_ADD_UNSEEN & set(method.identifiers.split()) for method in own):
            return None
        run = {call.func for method in own for call in method.calls if isinstance(call.func, str)}
        total = 0
        for name, values in facts.attributes.items():
            counts = [self._of(value, Scope(cls.path, where)) for value, where in values]
            if None in counts or (f"self.{name}" in run and not any(counts)):
                return None  # may be a module that it makes or is given
            total += max((count for count in counts if count is not None), default=0)
        return total

    def _of(self, value: Value, scope: Scope) -> int | None:
        if not isinstance(value, tuple) or value[0] != "call":
            # A name, a literal or arithmetic, which has no notation; what is given may be a module where it is run.
            return 0 if not isinstance(value, tuple) or value[0] in ("const", "seq", "map") else None
        name = last_name(value[1])
        if name == "Parameter":
            return 1
        if name in _OF_NUMBERS:
            return 0
        refs = self._resolver.refs(value, scope)
        counts = [
            self.of_class(Ref(CLASS, ref.path, ref.name))
            if ref.kind == INSTANCE and ref.path
            else of_layer(ref.name, value)
            if ref.kind == EXTERNAL_INSTANCE
            else None
            for ref in refs
        ]
        known = [count for count in counts if count is not None]
        return max(known) if known and len(known) == len(counts) else None


def of_layer(qualified: str, made: Value = None) -> int | None:
    """What a layer of torch holds, made as it is written."""
    if not qualified.startswith("torch.nn."):
        return 0 if qualified in tensors.CONSTRUCTORS | tensors.FUNCTIONS else None
    name = qualified.rpartition(".")[2]
    if name in _RECURRENT and isinstance(made, tuple):
        given = dict(made[3])
        layers = given.get("num_layers", made[2][_LAYERS_AT] if len(made[2]) > _LAYERS_AT else ("const", "int", 1))
        both = given.get("bidirectional", ("const", "bool", False)) != ("const", "bool", False)
        return 4 * layers[2] * (1 + both) if isinstance(layers, tuple) and layers[:2] == ("const", "int") else None
    if name in _OF_LAYERS:
        return _OF_LAYERS[name]
    is_layer = qualified == f"torch.nn.{name}" and name not in _HOLDERS and not name.startswith("Lazy")
    return 0 if is_layer and not LAYER_WITH_PARAMETERS.match(name) else None
