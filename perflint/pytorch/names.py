"""One spelling for each thing of a library, however it was imported."""

from __future__ import annotations

import re
from functools import lru_cache

#: Inner modules whose names a public module re-exports; the first match wins.
_INNER = (
    (re.compile(r"^torch\.nn\.modules(?:\.\w+)?\.(?=[A-Z])"), "torch.nn."),
    (re.compile(r"^torch\.nn\.parameter\.(?=[A-Z])"), "torch.nn."),
    (re.compile(r"^torch\.nn\.parallel\.(?:distributed|data_parallel)\.(?=[A-Z])"), "torch.nn.parallel."),
    (re.compile(r"^torch\.nn\.utils\.(?:clip_grad|rnn|convert_parameters)\.(?=[a-z])"), "torch.nn.utils."),
    (
        re.compile(r"^torch\.utils\.data\.(?:dataloader|dataset|sampler|distributed|_utils\.collate)\.(?=[A-Za-z])"),
        "torch.utils.data.",
    ),
    (re.compile(r"^torch\.optim\.(?!lr_scheduler|swa_utils)\w+\.(?=[A-Z])"), "torch.optim."),
    (re.compile(r"^torch\.cuda\.memory\.(?=[a-z])"), "torch.cuda."),
    (re.compile(r"^torch\.(?:cuda\.)?amp\.(?:autocast_mode|grad_scaler)\.(?=\w)"), "torch.amp."),
    (re.compile(r"^torch\.distributed\.distributed_c10d\.(?=\w)"), "torch.distributed."),
    (re.compile(r"^torch\._tensor\.Tensor"), "torch.Tensor"),
    (re.compile(r"^torch\.autograd\.grad_mode\.(?=\w)"), "torch."),
    (re.compile(r"^transformers\.(?!Auto)[\w.]+\.(?=[A-Z])"), "transformers."),
    (re.compile(r"^(?:pytorch_lightning|lightning\.pytorch|lightning)\.(?:\w+\.)*(?=[A-Z])"), "lightning."),
    (re.compile(r"^accelerate\.(?:\w+\.)*(?=[A-Z])"), "accelerate."),
    (re.compile(r"^tqdm\.(?:\w+\.)*(?=t?qdm$|trange$)"), "tqdm."),
    (re.compile(r"^(?:torch_geometric)\.loader\.(?:\w+\.)*(?=[A-Z])"), "torch_geometric.loader."),
    (re.compile(r"^(?:torchdata)\.(?:\w+\.)*(?=[A-Z])"), "torchdata."),
)


@lru_cache(maxsize=4096)
def canonical(dotted: str) -> str:
    """The public spelling of a dotted library name: `torch.nn.modules.conv.Conv2d` is `torch.nn.Conv2d`."""
    for pattern, public in _INNER:
        match = pattern.match(dotted)
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
