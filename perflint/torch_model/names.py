"""One spelling for each thing of a library, however it was imported."""

from __future__ import annotations

from functools import lru_cache

from perflint.system.patterns import pattern

#: Inner modules whose names a public module re-exports, by the first word of the name; the first match wins.
_INNER = {
    "torch": (
        (pattern(r"^torch\.nn\.modules(?:\.\w+)?\.(?=[A-Z])"), "torch.nn."),
        (pattern(r"^torch\.nn\.parameter\.(?=[A-Z])"), "torch.nn."),
        (pattern(r"^torch\.nn\.parallel\.(?:distributed|data_parallel)\.(?=[A-Z])"), "torch.nn.parallel."),
        (pattern(r"^torch\.nn\.utils\.(?:clip_grad|rnn|convert_parameters)\.(?=[a-z])"), "torch.nn.utils."),
        (
            pattern(r"^torch\.utils\.data\.(?:dataloader|dataset|sampler|distributed|_utils\.collate)\.(?=[A-Za-z])"),
            "torch.utils.data.",
        ),
        (pattern(r"^torch\.optim\.(?!lr_scheduler|swa_utils)\w+\.(?=[A-Z])"), "torch.optim."),
        (pattern(r"^torch\.cuda\.memory\.(?=[a-z])"), "torch.cuda."),
        (pattern(r"^torch\.(?:cuda\.)?amp\.(?:autocast_mode|grad_scaler)\.(?=\w)"), "torch.amp."),
        (pattern(r"^torch\.distributed\.distributed_c10d\.(?=\w)"), "torch.distributed."),
        (pattern(r"^torch\._tensor\.Tensor"), "torch.Tensor"),
        (pattern(r"^torch\.autograd\.function\.(?=[A-Z])"), "torch.autograd."),
        (pattern(r"^torch\.autograd\.grad_mode\.(?=\w)"), "torch."),
    ),
    "transformers": ((pattern(r"^transformers\.(?!Auto)[\w.]+\.(?=[A-Z])"), "transformers."),),
    "lightning": ((pattern(r"^lightning\.(?:\w+\.)*(?=[A-Z])"), "lightning."),),
    "pytorch_lightning": ((pattern(r"^pytorch_lightning\.(?:\w+\.)*(?=[A-Z])"), "lightning."),),
    "accelerate": ((pattern(r"^accelerate\.(?:\w+\.)*(?=[A-Z])"), "accelerate."),),
    "tqdm": ((pattern(r"^tqdm\.(?:\w+\.)*(?=t?qdm$|trange$)"), "tqdm."),),
    "torch_geometric": (
        (pattern(r"^torch_geometric\.loader\.(?:\w+\.)*(?=[A-Z])"), "torch_geometric.loader."),
        (pattern(r"^torch_geometric\.utils\.(?:\w+\.)+(?=[a-z])"), "torch_geometric.utils."),
        (pattern(r"^torch_geometric\.nn\.pool\.(?:\w+\.)*(?=[a-z])"), "torch_geometric.nn."),
    ),
    "torch_scatter": ((pattern(r"^torch_scatter\.(?:\w+\.)+(?=[a-z])"), "torch_scatter."),),
    "torchdata": ((pattern(r"^torchdata\.(?:\w+\.)*(?=[A-Z])"), "torchdata."),),
}


@lru_cache(maxsize=4096)
def canonical(dotted: str) -> str:
    """The public spelling of a dotted library name: `torch.nn.modules.conv.Conv2d` is `torch.nn.Conv2d`."""
    for inner, public in _INNER.get(root(dotted), ()):
        match = inner.match(dotted)
        if match:
            return public + dotted[match.end() :]
    return dotted


def root(dotted: str) -> str:
    """The distribution's top module."""
    return dotted.partition(".")[0]


def last(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def within(prefix: str, text: str) -> frozenset[str]:
    """Names below one module, written without repeating it."""
    return frozenset(f"{prefix}.{name}" for name in text.split())
