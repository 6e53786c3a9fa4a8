"""Frameworks that call a step of their users by its name and leave the rest of the class to them."""

from __future__ import annotations

from perflint.finding import Heat
from perflint.torch_model.hooks import Does, Framework, Hook, Role, hooks
from perflint.torch_model.names import words

PARLAI = Framework(
    "ParlAI",
    words("parlai"),
    {
        base: {
            "train_step": Hook(Heat.STEP, Role.TRAIN, managed=(1,)),
            "compute_loss": Hook(Heat.STEP, Role.TRAIN, managed=(1,)),
            "eval_step": Hook(Heat.STEP, Role.EVAL, grad=False, managed=(1,)),
            **hooks(Heat.STEP, Role.TRAIN, "batch_act update_params backward"),
        }
        for base in words("TorchAgent TorchGeneratorAgent TorchRankerAgent TorchClassifierAgent")
    },
    frozenset({Does.TRANSFERS, Does.EVALUATES_WITHOUT_GRAD}),
    words("TorchAgent TorchGeneratorAgent TorchRankerAgent TorchClassifierAgent"),
)

CATALYST = Framework(
    "Catalyst",
    words("catalyst"),
    {
        **{
            base: {
                **hooks(Heat.STEP, Role.TRAIN, "handle_batch _handle_batch on_batch_start on_batch_end"),
                **hooks(Heat.EPOCH, Role.TRAIN, "on_epoch_start on_epoch_end on_loader_start on_loader_end"),
            }
            for base in words("Runner SupervisedRunner SelfSupervisedRunner CustomRunner")
        },
        "Callback": {
            **hooks(Heat.STEP, Role.TRAIN, "on_batch_start on_batch_end"),
            **hooks(Heat.EPOCH, Role.TRAIN, "on_epoch_start on_epoch_end on_loader_start on_loader_end"),
        },
    },
    frozenset({Does.TRANSFERS, Does.EVALUATES_WITHOUT_GRAD}),
)

STEP_FRAMEWORKS = (PARLAI, CATALYST)
