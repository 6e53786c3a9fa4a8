"""Which attributes anything of a program has: what `hasattr(self, "name")` comes to."""

from __future__ import annotations

from perflint.analysis.evidence import last_name
from perflint.analysis.feasibility.lattice import BOOL, NO, Possible
from perflint.analysis.feasibility.options import Options
from perflint.analysis.names.refs import CLASS, Ref, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.summary import Value

#: What sets attributes that nobody sees.
_SETTING = ("setattr", "__dict__", "__setattr__", "vars")
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

    def mentions(self, path: str, names: tuple[str, ...]) -> bool:
        """Whether a file uses one of the identifiers."""
        words = self._words.get(path)
        if words is None:
            words = self._words[path] = self._resolver.summaries[path].words()
        return not words.isdisjoint(names)

    def of_attribute(self, base: Value, name: Value, scope: Scope) -> Possible:
        """What `hasattr(base, name)` gives: no object has what nothing of the program sets."""
        if base != "self" or not (type(name) is tuple and name[:2] == ("const", "str") and name[2]):
            return BOOL
        text = name[2]
        if text in _GIVEN or text.startswith("_") or not self._has_plain_bases(scope) or self.is_set_anywhere(text):
            return BOOL
        return NO

    def _has_plain_bases(self, scope: Scope) -> bool:
        """Whether the class of a method has what the project gives it by name, and little else: no layer's `weight`."""
        cls = self._resolver.summaries[scope.path].functions[scope.function].in_class
        bases = self._resolver.mro(Ref(CLASS, scope.path, cls)) if cls else ()
        if not bases or not all(base.path or base.name.rpartition(".")[2] in _PLAIN_BASES for base in bases):
            return False
        own = [base for base in bases if base.path]
        if any("__getattr__" in self._resolver.summaries[base.path].classes[base.name].methods for base in own):
            return False  # it has what something else has
        return not any(self.mentions(base.path, _SETTING) for base in own)

    def is_set_anywhere(self, attribute: str) -> bool:
        """Whether anything has an attribute or a method of that name, or is given it as text: `register_buffer` is."""
        if attribute in self._options.set_from_outside:
            return True
        for summary in self._resolver.summaries.values():
            for item in summary.classes.values():
                if (
                    attribute in item.attributes
                    or attribute in item.annotations
                    or attribute in item.methods
                    or attribute in item.computed
                    or attribute in item.unclear
                ):
                    return True
        text = ("const", "str", attribute)
        return any(
            text in call.args and last_name(call.func) not in _ASKING
            for _, facts in self._resolver.nesting.functions
            for call in facts.calls
        )
