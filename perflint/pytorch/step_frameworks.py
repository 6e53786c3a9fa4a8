"""Frameworks that call a step of their users by its name and leave the rest of the class to them."""

from __future__ import annotations

from perflint.finding import Heat
from perflint.pytorch.hooks import Does, Framework, Hook, Role, hooks
from perflint.pytorch.names import words

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

SKORCH = Framework(
    "skorch",
    words("skorch"),
    {
        **{
            base: {
                **hooks(
                    Heat.STEP,
                    Role.TRAIN,
                    "train_step train_step_single get_loss on_batch_begin on_batch_end on_grad_computed",
                ),
                **hooks(Heat.STEP, Role.EVAL, "validation_step evaluation_step", grad=False),
            }
            for base in words("NeuralNet NeuralNetClassifier NeuralNetRegressor NeuralNetBinaryClassifier")
        },
        "Callback": {
            **hooks(Heat.STEP, Role.TRAIN, "on_batch_begin on_batch_end on_grad_computed"),
            **hooks(Heat.EPOCH, Role.TRAIN, "on_epoch_begin on_epoch_end"),
        },
    },
    frozenset({Does.TRANSFERS, Does.EVALUATES_WITHOUT_GRAD, Does.ZEROES_GRAD, Does.STEPS}),
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

COQUI = Framework(
    "Coqui Trainer",
    words("trainer TTS"),
    {
        base: {
            "train_step": Hook(Heat.STEP, Role.TRAIN, managed=(1,)),
            "eval_step": Hook(Heat.STEP, Role.EVAL, grad=False, managed=(1,)),
            **hooks(Heat.STEP, Role.TRAIN, "format_batch format_batch_on_device optimize"),
        }
        for base in words("TrainerModel BaseTrainerModel BaseTTS BaseVocoder")
    },
    frozenset({Does.TRANSFERS, Does.AUTOCASTS, Does.EVALUATES_WITHOUT_GRAD, Does.ZEROES_GRAD, Does.STEPS}),
    words("TrainerModel BaseTrainerModel"),
)

TIANSHOU = Framework(
    "Tianshou",
    words("tianshou"),
    {
        "BasePolicy": hooks(Heat.STEP, Role.TRAIN, "learn process_fn post_process_fn update"),
        "Policy": hooks(Heat.STEP, Role.TRAIN, "learn"),
    },
    frozenset(),
)

STEP_FRAMEWORKS = (PARLAI, SKORCH, CATALYST, COQUI, TIANSHOU)
