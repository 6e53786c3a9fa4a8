"""The tables name things that exist, in one spelling, and answer the questions rules ask."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from perflint.finding import Heat
from perflint.torch_model import distributed, frameworks, loaders, modules, names, randomness, tensors, versions
from perflint.torch_model.hooks import Does, Role

#: Gone from the newest torch or found on other builds only.
_ELSEWHERE = {
    "torch.npu.synchronize",
    "torch.symeig",
    "torch.eig",
    "torch.lstsq",
    "torch.lu",
    "torch.matrix_rank",
    "torch.ops.torchvision.nms",
    # One spelling for what `torch.nn.utils.rnn` has and what it exports (`names.canonical`).
    "torch.nn.utils.pad_packed_sequence",
    "torch.nn.utils.pad_sequence",
}
#: What looks as if it waited and does not.
_NOT_WAITING = names.words(
    "builtins.sum builtins.abs builtins.len builtins.isinstance builtins.id builtins.type torch.stack torch.cat "
    "torch.clamp torch.lerp torch.multinomial torch.topk torch.sort torch.masked_fill torch.where torch.is_tensor "
    "torch.isnan torch.isinf torch.isfinite torch.numel torch._assert_async torch.nonzero_static torch.linalg.inv_ex "
    "torch.linalg.cholesky_ex torch.linalg.solve_ex"
)


def torch_names() -> Iterator[str]:
    for module in (tensors, modules, randomness, distributed):
        for key, table in vars(module).items():
            if key.isupper() and isinstance(table, (frozenset, dict)):
                yield from (item for item in table if isinstance(item, str) and item.startswith("torch."))


def test_functions_exist() -> None:
    pytest.importorskip("torch")
    missing = [name for name in sorted(set(torch_names()) - _ELSEWHERE) if not exists(name)]
    assert not missing


def exists(dotted: str) -> bool:
    module, _, name = dotted.rpartition(".")
    while module:
        try:
            owner: object = importlib.import_module(module)
        except ImportError:
            module, _, last = module.rpartition(".")
            name = f"{last}.{name}"
            continue
        for part in name.split("."):
            owner = getattr(owner, part, None)
            if owner is None:
                return False
        return True
    return False


def test_methods_exist() -> None:
    torch = pytest.importorskip("torch")
    tables = (
        tensors.NEW_METHODS,
        tensors.VIEW_METHODS,
        tensors.CAST_METHODS,
        tensors.FRESH_METHODS,
        tensors.TUPLE_METHODS,
        tensors.NUMBER_METHODS,
        tensors.TELLING_METHODS,
        tensors.REDUCTIONS,
    )
    found = {name for table in tables for name in table if not hasattr(torch.Tensor, name)}
    assert not found


def test_telling_methods_are_not_those_of_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    assert not [name for name in tensors.TELLING_METHODS if hasattr(numpy.ndarray, name)]


def test_what_does_not_wait_is_not_said_to_wait() -> None:
    assert not _NOT_WAITING & set(tensors.SYNC_FUNCTIONS)
    assert not _NOT_WAITING & tensors.READING_FUNCTIONS


@pytest.mark.parametrize(
    ("written", "public"),
    [
        ("torch.nn.modules.conv.Conv2d", "torch.nn.Conv2d"),
        ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("torch.optim.adam.Adam", "torch.optim.Adam"),
        ("torch.optim.lr_scheduler.StepLR", "torch.optim.lr_scheduler.StepLR"),
        ("pytorch_lightning.LightningModule", "lightning.LightningModule"),
        ("lightning.pytorch.LightningModule", "lightning.LightningModule"),
        ("tqdm.auto.tqdm", "tqdm.tqdm"),
        ("transformers.models.bert.modeling_bert.BertModel", "transformers.BertModel"),
        ("torch.cat", "torch.cat"),
    ],
)
def test_one_spelling(written: str, public: str) -> None:
    assert names.canonical(written) == public


@pytest.mark.parametrize(
    ("base", "method", "heat", "role", "grad"),
    [
        ("lightning.pytorch.LightningModule", "training_step", Heat.STEP, Role.TRAIN, True),
        ("pytorch_lightning.LightningModule", "validation_step", Heat.STEP, Role.EVAL, False),
        ("LightningModule", "training_step", Heat.STEP, Role.TRAIN, True),
        ("pytorch_lightning.Callback", "on_train_epoch_end", Heat.EPOCH, Role.TRAIN, True),
        ("transformers.Trainer", "compute_loss", Heat.STEP, Role.TRAIN, True),
        ("fastai.callback.core.Callback", "after_batch", Heat.STEP, Role.TRAIN, True),
        ("mmengine.hooks.Hook", "after_train_iter", Heat.STEP, Role.TRAIN, True),
        ("torch.utils.data.Dataset", "__getitem__", Heat.SAMPLE, Role.DATA, True),
    ],
)
def test_hooks(base: str, method: str, heat: Heat, role: Role, grad: bool) -> None:
    hook = frameworks.hook_of([base], method)
    assert hook is not None
    assert (hook.heat, hook.role, hook.grad) == (heat, role, grad)


@pytest.mark.parametrize("base", ["my.project.Trainer", "Trainer", "Callback", "keras.callbacks.Callback", "object"])
def test_other_bases_have_no_hooks(base: str) -> None:
    assert frameworks.hook_of([base], "training_step") is None
    assert frameworks.hook_of([base], "after_batch") is None


def test_what_frameworks_do() -> None:
    assert Does.TRANSFERS in frameworks.does_for(["lightning.LightningModule"])
    assert Does.PINS in frameworks.does_for(["transformers.Trainer"])
    assert not frameworks.does_for(["torch.nn.Module"])


def test_loaders() -> None:
    assert loaders.is_loader("torch.utils.data.DataLoader")
    assert loaders.is_loader("torch_geometric.loader.NeighborLoader")
    assert not loaders.is_loader("torch.utils.data.Dataset")
    assert not loaders.is_loader("jinja2.FileSystemLoader")
    assert not loaders.is_loader("yaml.SafeLoader")
    assert loaders.is_dataset("torchvision.datasets.ImageFolder")
    assert loaders.is_device_loader("torch_geometric.loader.PrefetchLoader")


def test_makers() -> None:
    assert modules.makes_optimizer("torch.optim.AdamW")
    assert not modules.makes_optimizer("torch.optim.lr_scheduler.StepLR")
    assert modules.makes_scheduler("transformers.get_cosine_schedule_with_warmup")
    assert modules.makes_tokenizer("transformers.AutoTokenizer.from_pretrained")
    assert modules.makes_module("transformers.AutoModelForCausalLM.from_pretrained")
    assert not modules.makes_module("transformers.AutoTokenizer.from_pretrained")
    assert not modules.makes_module("transformers.AutoConfig.from_pretrained")
    assert not modules.makes_module("torch.nn.Parameter")
    assert not modules.makes_module("torch.nn.functional.relu")


def test_versions() -> None:
    assert versions.parse("2.4.1+cu121") == (2, 4)
    assert versions.parse("main") is None
    assert versions.has("torch.compile", (2, 0))
    assert not versions.has("torch.compile", (1, 13))
