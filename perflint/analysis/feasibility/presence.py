"""Which attributes anything of a program has: what `hasattr(self, "name")` comes to."""

from __future__ import annotations

from functools import cached_property

from perflint.analysis.feasibility.lattice import BOOL, NO, Possible
from perflint.analysis.feasibility.options import Options
from perflint.analysis.names.refs import CLASS, INSTANCE, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.summary import ClassFacts, Value
from perflint.torch_model import registries

#: What sets attributes that nobody sees.
_AS_DICT = ("__dict__", "__setattr__", "vars")
_SETTING = ("setattr", *_AS_DICT)
#: What sets attributes of modules, by names that may be computed.
_COMPUTING = ("add_module", "register_buffer", "register_parameter")
#: What asks for an attribute by its name.
_ASKING = ("hasattr", "getattr")
_PLAIN_BASES = frozenset({"object", "ABC", "Module", "LightningModule"})
#: What such a base may bring along.
_GIVEN = frozenset(
    "training device dtype trainer fabric logger loggers hparams current_epoch global_step global_rank local_rank "
    "automatic_optimization example_input_array on_gpu log log_dict print optimizers lr_schedulers manual_backward "
    "toggle_optimizer untoggle_optimizer clip_gradients configure_optimizers training_step validation_step test_step "
    "predict_step save_hyperparameters all_gather freeze unfreeze to_onnx to_torchscript load_from_checkpoint "
    "parameters named_parameters buffers named_buffers modules named_modules children named_children state_dict "
    "load_state_dict forward train eval to to_empty cuda cpu xpu ipu mtia half float double bfloat16 type apply "
    "compile add_module register_module register_buffer register_parameter get_submodule get_parameter get_buffer "
    "set_submodule get_extra_state set_extra_state register_forward_hook register_forward_pre_hook "
    "register_full_backward_hook zero_grad requires_grad_ share_memory extra_repr dump_patches call_super_init".split()
)


class Presence:
    """The attributes of one program's objects, by their names."""

    def __init__(self, resolver: Resolver, options: Options) -> None:
        self._resolver = resolver
        self._options = options
        self._words: dict[str, set[str]] = {}
        self._plain: dict[Ref, bool] = {}

    def mentions(self, path: str, names: tuple[str, ...]) -> bool:
        """Whether a file uses one of the identifiers."""
        words = self._words.get(path)
        if words is None:
            words = self._words[path] = self._resolver.summaries[path].words()
        return not words.isdisjoint(names)

    def is_set_unseen(self, cls: Ref) -> bool:
        """Whether the files of a class set attributes by names that are computed."""
        paths = {base.path for base in self._resolver.mro(cls) if base.path}
        return any(self.mentions(path, _SETTING) for path in paths)

    def is_open_ended(self, cls: Ref) -> bool:
        """The same, but for what they set on a part of an object, `setattr(self.module, name, weight)`."""
        paths = {base.path for base in self._resolver.mro(cls) if base.path}
        if any(self.mentions(path, _AS_DICT) for path in paths):
            return True
        setting = [(scope, call.args[0]) for scope, _, call in self._options.calls.get("setattr", ()) if call.args]
        return any(scope.path in paths and not (type(on) is str and "." in on) for scope, on in setting)

    def of_attribute(self, base: Value, name: Value, scope: Scope) -> Possible:
        """What `hasattr(base, name)` gives: no object has what nothing of the program sets."""
        if base != "self" or not (type(name) is tuple and name[:2] == ("const", "str") and name[2]):
            return BOOL
        return NO if self.is_missing(name[2], scope) else BOOL

    def is_missing(self, attribute: str, scope: Scope) -> bool:
        """Whether nothing of the program gives the object of a method an attribute."""
        if attribute in _GIVEN or attribute.startswith("_") or self.is_set_anywhere(attribute):
            return False
        cls = self._resolver.nesting.enclosing_class(scope)
        if not cls.name:
            return False
        if cls not in self._plain:
            family = (cls, *self._resolver.hierarchy.below(cls))
            self._plain[cls] = all(map(self._has_plain_bases, family)) and self._is_made(cls, family)
        return self._plain[cls]

    def is_lacking(self, dotted: str, method: str, scope: Scope) -> bool:
        """Whether `self.dotted` is always an object of a class that has no such method, whatever other classes have."""
        attribute = dotted.removeprefix("self.")
        if (
            "." in attribute
            or method in _GIVEN
            or method.startswith("_")
            or attribute in self._options.set_from_outside
        ):
            return False
        made = self._resolver.written.definitions(dotted, scope)
        classes = {self._made_by(value, where) for value, where in made}
        cls = next(iter(classes), None)
        if cls is None or len(classes) > 1 or self._may_be_another(attribute, scope):
            return False
        return self._has_plain_bases(cls) and not self._has(cls, method)

    def part_of(self, attribute: str, scope: Scope) -> Scope | None:
        """The plain `forward` that calling `self.attribute` runs, whatever object that a method has."""
        if attribute in self._options.set_from_outside or self._may_be_another(attribute, scope):
            return None
        made = self._resolver.written.definitions(f"self.{attribute}", scope)
        classes = {self._made_by(value, where) for value, where in made}
        cls = next(iter(classes), None)
        if cls is None or len(classes) > 1 or self._resolver.hierarchy.below(cls):
            return None
        found = self._resolver.method(Ref(INSTANCE, cls.path, cls.name), "forward")
        facts = self._resolver.summaries[found.path].functions.get(found.name) if found and found.path else None
        return Scope(found.path, found.name) if found and facts is not None and not facts.decorators else None

    def _made_by(self, value: Value, scope: Scope) -> Ref | None:
        """The class whose object a value is, where it is a call of that class."""
        refs = self._resolver.refs(value[1], scope) if type(value) is tuple and value[0] == "call" else ()
        return refs[0] if len(refs) == 1 and refs[0].kind == CLASS and refs[0].path else None

    def _may_be_another(self, attribute: str, scope: Scope) -> bool:
        """Whether classes above or below give an attribute something else, or nobody can tell."""
        cls = self._resolver.nesting.enclosing_class(scope)
        family = (*self._resolver.mro(cls), *self._resolver.hierarchy.below(cls))
        known = [facts for item in family if item.path and (facts := self._resolver.hierarchy.facts(item)) is not None]
        giving = [facts for facts in known if attribute in facts.attributes]
        unclear = any(attribute in (*facts.unclear, *facts.computed) for facts in known)
        return unclear or len(giving) != 1 or any(self._sets_by_name(item.path) for item in family if item.path)

    def _sets_by_name(self, path: str) -> bool:
        """Whether a file sets attributes by computed names; `"size" in self.__dict__` only asks for them."""
        if self.mentions(path, ("setattr", "__setattr__", "vars")):
            return True
        functions = self._resolver.summaries[path].functions.values() if self.mentions(path, ("__dict__",)) else ()
        return any(_updates(call.func) for facts in functions for call in facts.calls)

    def _has(self, cls: Ref, name: str) -> bool:
        """Whether the objects of a class are given something by that name."""
        if name in self._options.set_from_outside:
            return True
        known = [self._resolver.hierarchy.facts(base) for base in self._resolver.mro(cls) if base.path]
        return any(
            name in (*facts.attributes, *facts.annotations, *facts.methods, *facts.computed, *facts.unclear)
            for facts in known
            if facts is not None
        )

    def _is_made(self, cls: Ref, family: tuple[Ref, ...]) -> bool:
        """Whether the program itself makes objects of a class, and its files set no attributes by computed names: else
        somebody derives from the class, who has what it asks for.
        """
        if any(self.mentions(base.path, _COMPUTING) for base in self._resolver.mro(cls) if base.path):
            return False
        known = [self._resolver.hierarchy.facts(item) for item in family]
        if any(facts is not None and any(map(_registers, facts.decorators)) for facts in known):
            return True
        return any(last_name(call.func) != "replace" for _, _, call in self._options.makings(cls))

    def _has_plain_bases(self, cls: Ref) -> bool:
        """Whether a class has what the project gives it by name, and little else: no layer's `weight`."""
        bases = self._resolver.mro(cls)
        if not bases or not all(base.path or base.name.rpartition(".")[2] in _PLAIN_BASES for base in bases):
            return False
        own = [base for base in bases if base.path]
        known = [self._resolver.hierarchy.facts(base) for base in own]
        if sum(len(facts.bases) for facts in known if facts is not None) > len(bases) - 1:
            return False  # one of them cannot be resolved, or is one twice
        if any(map(_is_open, known)):
            return False
        return not any(self.mentions(base.path, _SETTING) for base in own)

    def is_set_anywhere(self, attribute: str) -> bool:
        """Whether anything has an attribute or a method of that name, or is given it as text: `register_buffer` is."""
        return attribute in self._options.set_from_outside or attribute in self._set

    @cached_property
    def _set(self) -> frozenset[str]:
        found: set[str] = set()
        for summary in self._resolver.summaries.values():
            for name, item in summary.classes.items():
                found.update(item.attributes, item.annotations, item.methods, item.computed, item.unclear)
                found.add(name.rpartition(".")[2])
        for _, facts in self._resolver.nesting.functions:
            for call in facts.calls:
                texts = [item[2] for item in call.args if type(item) is tuple and item[:2] == ("const", "str")]
                if texts and last_name(call.func) not in _ASKING:
                    found.update(texts)
        return frozenset(found)


def _updates(func: Value) -> bool:
    return last_name(func) in ("update", "setdefault") and "__dict__" in str(func)


def _is_open(facts: ClassFacts | None) -> bool:
    """Whether a class has attributes that it does not name: those of something else, or those of a decorator."""
    if facts is None or facts.keywords or "__getattr__" in facts.methods:
        return True
    return not all(map(_adds_nothing, facts.decorators))


def _adds_nothing(decorator: Value) -> bool:
    """Whether a decorator puts a class into a registry, or makes a record of it, and gives it no attributes."""
    return _registers(decorator) or _name(decorator) == "dataclass"


def _registers(decorator: Value) -> bool:
    return _name(decorator) in registries.REGISTERING


def _name(decorator: Value) -> str:
    return last_name(decorator[1] if type(decorator) is tuple and decorator[0] == "call" else decorator)
