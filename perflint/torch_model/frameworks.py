"""What training frameworks call, how often, and what they already do for the user: names and look-ups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perflint.finding import Heat
from perflint.torch_model.framework_tables import FRAMEWORKS
from perflint.torch_model.hooks import Does, Framework, Hook
from perflint.torch_model.names import last, root, words

_BY_ROOT = {top: framework for framework in FRAMEWORKS for top in framework.roots}
_BY_NAME = {name: framework for framework in FRAMEWORKS for name in framework.distinctive}

#: What a driver imports whose workers train in processes of their own, on data that it sends them.
WORKER_MODULES = words("ray")

#: `Function.apply` runs forward; autograd runs backward once for each. Gradients are off in both.
AUTOGRAD_FUNCTION = "torch.autograd.Function"
#: The names that it may be imported by.
AUTOGRAD_FUNCTIONS = (AUTOGRAD_FUNCTION, "torch.autograd.function.Function")

#: Keywords that hand a function to something that calls it per sample or per batch.
COLLATE_KEYWORDS = words("collate_fn data_collator")

#: ignite: `@engine.on(Events.X)` and `engine.add_event_handler(Events.X, f)`.
IGNITE_EVENTS: Mapping[str, Heat] = {
    "ITERATION_STARTED": Heat.STEP,
    "ITERATION_COMPLETED": Heat.STEP,
    "GET_BATCH_STARTED": Heat.STEP,
    "GET_BATCH_COMPLETED": Heat.STEP,
    "FORWARD_STARTED": Heat.STEP,
    "BACKWARD_STARTED": Heat.STEP,
    "BACKWARD_COMPLETED": Heat.STEP,
    "OPTIM_STEP_COMPLETED": Heat.STEP,
    "LOSS_COMPLETED": Heat.STEP,
    "EPOCH_STARTED": Heat.EPOCH,
    "EPOCH_COMPLETED": Heat.EPOCH,
    "STARTED": Heat.ONCE,
    "COMPLETED": Heat.ONCE,
    "EXCEPTION_RAISED": Heat.ONCE,
    "TERMINATE": Heat.ONCE,
    "INTERRUPT": Heat.ONCE,
    "DATALOADER_STOP_ITERATION": Heat.EPOCH,
}
#: The first argument is the function that processes one batch: `Engine(update)`; its parameters are (engine, batch).
IGNITE_ENGINES = words("ignite.engine.Engine ignite.engine.engine.Engine ignite.engine.DeterministicEngine")

#: Megatron: `pretrain(data, model, model_type, forward_step)` runs the last one on every step.
STEP_TAKERS: Mapping[str, tuple[int, str]] = {"pretrain": (3, "forward_step_func")}
#: What starts the training of a framework, whatever it is called on.
STARTING = words("fit train launch pretrain finetune")
#: The modules of frameworks whose runner starts it: `runner.run(loaders, workflow)`.
RUNNER_ROOTS = words("mmcv mmengine")
#: The modules of those that take one.
STEP_TAKER_ROOTS = words("megatron")

#: Registration of functions on modules and tensors: as hot as the module's calls or the backward pass.
FORWARD_HOOKS = words(
    "register_forward_hook register_forward_pre_hook register_module_forward_hook register_module_forward_pre_hook"
)
BACKWARD_HOOKS = words(
    "register_hook register_full_backward_hook register_full_backward_pre_hook register_backward_hook "
    "register_post_accumulate_grad_hook register_module_full_backward_hook register_comm_hook"
)
#: Of these, those on tensors, which no module has.
TENSOR_HOOKS = words("register_hook register_post_accumulate_grad_hook")
OPTIMIZER_HOOKS = words("register_step_pre_hook register_step_post_hook register_optimizer_step_post_hook")

#: accelerate and Fabric: objects whose `prepare`d loaders give batches that are on the device already.
PREPARERS = words("accelerate.Accelerator lightning.Fabric lightning_fabric.Fabric lightning_fabric.fabric.Fabric")
#: Their methods that prepare a loader, alone or with all else.
LOADER_PREPARING = words("prepare prepare_data_loader setup_dataloaders setup_dataloader skip_first_batches")


#: What a framework's base class keeps in `self`, by the dotted name of its class.
ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "transformers Trainer": {
        "accelerator": "accelerate.Accelerator",
        "model": "torch.nn.Module",
        "model_wrapped": "torch.nn.Module",
        "optimizer": "torch.optim.Optimizer",
        "lr_scheduler": "torch.optim.lr_scheduler.LRScheduler",
        "processing_class": "transformers.PreTrainedTokenizer",
        "tokenizer": "transformers.PreTrainedTokenizer",
    },
    "Lightning": {"device": "torch.device"},
    "SpeechBrain": {"optimizer": "torch.optim.Optimizer"},
}


def attribute_of(base: str, name: str) -> str:
    """The class of what a framework's base class keeps in `self.name`; empty when it is not known."""
    framework = framework_of(base)
    return ATTRIBUTES.get(framework.name, {}).get(name, "") if framework is not None else ""


def framework_of(base: str) -> Framework | None:
    """The framework that a base class belongs to, by its dotted name (`lightning.pytorch.LightningModule`)."""
    found = _BY_ROOT.get(root(base)) if "." in base else None
    if found is not None and last(base) in found.bases:
        return found
    return _BY_NAME.get(last(base))


def hooks_of(base: str) -> Mapping[str, Hook]:
    """The methods of a base class that its framework calls; empty for any other class."""
    found = framework_of(base)
    return found.bases[last(base)] if found is not None else {}


def hook_of(bases: Iterable[str], method: str) -> Hook | None:
    """How a framework calls `method` of a class with these bases."""
    for base in bases:
        hook = hooks_of(base).get(method)
        if hook is not None:
            return hook
    return None


def does_for(bases: Iterable[str]) -> frozenset[Does]:
    """What the frameworks of these base classes take over."""
    found: frozenset[Does] = frozenset()
    for base in bases:
        framework = framework_of(base)
        if framework is not None:
            found |= framework.does
    return found
