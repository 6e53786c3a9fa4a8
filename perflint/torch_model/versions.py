"""Facts that hold from some torch version on, checked up to torch 2.13. Versions are (major, minor)."""

from __future__ import annotations

from collections.abc import Mapping

Version = tuple[int, int]

SINCE: Mapping[str, Version] = {
    "torch.inference_mode": (1, 9),
    "zero_grad sets to none": (2, 0),
    "torch.compile": (2, 0),
    "torch.nn.functional.scaled_dot_product_attention": (2, 0),
    "fused Adam": (2, 0),
    "fused AdamW": (2, 0),
    "fused SGD": (2, 3),
    "fused Adagrad": (2, 4),
    "torch.amp.GradScaler": (2, 3),
    "torch.device as context": (2, 0),
    "torch.set_default_device": (2, 0),
    "torch.nn.Buffer": (2, 5),
    "multinomial without sync": (2, 6),
    "compile keeps one graph for equal modules": (2, 5),
    "torch.accelerator": (2, 6),
    "load_state_dict assign": (2, 1),
    "set_stance": (2, 6),
}


def parse(text: str) -> Version | None:
    """`2.4.1+cu121` as (2, 4); None when it is not a version."""
    major, _, rest = text.strip().partition(".")
    minor = rest.partition(".")[0].partition("+")[0]
    if not major.isdigit():
        return None
    return int(major), int(minor) if minor.isdigit() else 0


def has(fact: str, target: Version) -> bool:
    """Whether `fact`, a key of `SINCE`, holds in torch `target`."""
    return target >= SINCE[fact]
