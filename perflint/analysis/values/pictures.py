"""What functions and transforms for images give: a tensor where they are given one. Of a picture nothing is known."""

from __future__ import annotations

from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.kind import UNKNOWN, Kind, tensor
from perflint.finding import Confidence
from perflint.torch_model import images


def function(name: str, arguments: Arguments) -> Kind | None:
    """What a library's function gives; None for one that is not for images."""
    return _transformed(arguments) if images.keeps_place(name) else None


def transformed(name: str, arguments: Arguments) -> Kind:
    """What calling an instance of a library's class gives; unknown for one that is no transform of images."""
    return _transformed(arguments) if images.is_transform(name) else UNKNOWN


def _transformed(arguments: Arguments) -> Kind:
    first = next(arguments.kinds(), UNKNOWN)
    if not first.holds_tensors:
        return UNKNOWN
    made = tensor(first.place, device=first.device, fresh=True, requires_grad=first.requires_grad, origin=first.origin)
    return made.at_most(min(first.certainty, Confidence.MEDIUM))
