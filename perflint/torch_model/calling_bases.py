"""Which methods of a class the library whose base it derives from may call: of these bases they are known."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perflint.system.patterns import pattern

#: The hooks of Lightning, what it logs and moves with, and the methods of a module that it calls.
_LIGHTNING = pattern(
    r"(on|configure|log|optimizer|lr_scheduler|transfer|get|toggle|untoggle|tbptt|amp|clip)_\w+|\w+_(step|dataloader)"
    r"|\w+_(step|epoch)_end|setup|teardown|prepare_data|forward|backward|manual_backward|log|print|freeze|unfreeze"
    r"|train|eval|to|cuda|cpu|apply|state_dict|load_state_dict|load_from_checkpoint|optimizers|lr_schedulers|summarize"
)
_STATE = r"state_dict|load_state_dict"
#: By the last name of a base, the methods that its library may call beside those of two underscores.
CALLED_BY_BASE: Mapping[str, re.Pattern[str]] = {
    "LightningModule": _LIGHTNING,
    "LightningDataModule": _LIGHTNING,
    "Optimizer": pattern(rf"step|zero_grad|add_param_group|{_STATE}"),
    "LRScheduler": pattern(rf"step|get_lr|get_last_lr|_get_closed_form_lr|{_STATE}"),
    "_LRScheduler": pattern(rf"step|get_lr|get_last_lr|_get_closed_form_lr|{_STATE}"),
    "Function": pattern(r"forward|backward|setup_context|vjp|jvp|vmap|generate_vmap_rule|apply"),
}
