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

_METRIC = {
    **hooks(Heat.STEP, Role.EVAL, "update", grad=False, contract=True),
    **hooks(Heat.EPOCH, Role.EVAL, "compute reset", grad=False, contract=True),
}
#: Metrics of torchmetrics, torcheval and ignite: https://lightning.ai/docs/torchmetrics/stable/pages/implement.html
METRICS = Framework("torchmetrics", words("torchmetrics torcheval ignite"), {"Metric": _METRIC})

#: Classes of libraries whose objects run a method of their subclass when they are called, and containers that run it on
#: all that they hold.
RUN_BY_CALLS = {"torchmetrics.Metric": "update", "torchmetrics.metric.Metric": "update"}
CONTAINERS_OF_CALLED = {"MetricCollection": "update"}

SKORCH = Framework(
    "skorch",
    words("skorch"),
    {
        base: {
            **hooks(Heat.STEP, Role.TRAIN, "train_step train_step_single get_loss infer"),
            **hooks(Heat.STEP, Role.EVAL, "validation_step evaluation_step", grad=False),
        }
        for base in words("NeuralNet NeuralNetClassifier NeuralNetRegressor NeuralNetBinaryClassifier")
    }
    | {
        "Callback": {
            **hooks(Heat.STEP, Role.TRAIN, "on_batch_begin on_batch_end on_grad_computed"),
            **hooks(Heat.EPOCH, Role.TRAIN, "on_epoch_begin on_epoch_end"),
            **hooks(Heat.ONCE, Role.TRAIN, "on_train_begin on_train_end"),
        }
    },
    frozenset({Does.STEPS, Does.ZEROES_GRAD, Does.TRANSFERS, Does.EVALUATES_WITHOUT_GRAD}),
)

#: A network gives the parameters of a distribution, and of a transformation that depends on something, on every step:
#: who is given tensors is made there. https://docs.pytorch.org/docs/stable/distributions.html
_DISTRIBUTION = {
    **hooks(Heat.STEP, Role.TRAIN, "rsample sample entropy", contract=True),
    **hooks(Heat.STEP, Role.TRAIN, "log_prob cdf icdf", contract=True, tensors=(1,)),
    **hooks(Heat.STEP, Role.TRAIN, "__init__", contract=True, given_tensors=True),
}
_TRANSFORM = {
    **hooks(Heat.STEP, Role.TRAIN, "_call _inverse", contract=True, tensors=(1,)),
    **hooks(Heat.STEP, Role.TRAIN, "log_abs_det_jacobian", contract=True, tensors=(1, 2)),
    **hooks(Heat.STEP, Role.TRAIN, "__init__", contract=True, given_tensors=True),
}

#: Of torch's and PyG's own base classes, the methods that whoever trains with them calls on every step:
#: https://pytorch.org/docs/stable/optim.html, https://pytorch-geometric.readthedocs.io/en/latest/tutorial/create_gnn.html
CONTRACTS = {
    "Optimizer": hooks(Heat.STEP, Role.OPTIMIZER, "step", grad=False, contract=True, closures=(1,)),
    "MessagePassing": hooks(
        Heat.STEP, Role.TRAIN, "message aggregate update message_and_aggregate edge_update", contract=True
    ),
    **dict.fromkeys(words("Distribution ExponentialFamily TransformedDistribution"), _DISTRIBUTION),
    "Transform": _TRANSFORM,
    "LRScheduler": hooks(Heat.EPOCH, Role.TRAIN, "get_lr", grad=False, contract=True),
    "_LRScheduler": hooks(Heat.EPOCH, Role.TRAIN, "get_lr", grad=False, contract=True),
}

STEP_FRAMEWORKS = (PARLAI, CATALYST, METRICS, SKORCH)
