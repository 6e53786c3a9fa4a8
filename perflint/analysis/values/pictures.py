"""What functions and transforms for images give: a tensor where they are given one, or make one of a picture. Of a
picture nothing is known.
"""

from __future__ import annotations

from perflint.analysis.values.arguments import Arguments
from perflint.analysis.values.kind import UNKNOWN, Kind, Place, Tag, tensor
from perflint.analysis.values.operations import has_parts
from perflint.analysis.values.origin import Origin, Provenance
from perflint.finding import Confidence
from perflint.torch_model import images

#: The tensor of a picture, which was on the host.
_OF_PICTURE = tensor(
    Place.HOST, fresh=True, certainty=Confidence.MEDIUM, origin=Origin(Provenance.FUNCTION, "to_tensor")
)


def function(name: str, arguments: Arguments) -> Kind | None:
    """What a library's function gives; None for one that is not for images."""
    if name in images.MAKING:
        return _OF_PICTURE
    if name in images.COMPOSITIONS:
        return _composed(name, arguments)
    return _transformed(next(arguments.kinds(), UNKNOWN)) if images.keeps_place(name) else None


def transformed(transform: Kind, arguments: Arguments) -> Kind:
    """What calling an instance of a library's class gives; unknown for one that is no transform of images."""
    if transform.element is not None and transform.qualified in images.COMPOSITIONS:
        return transform.element
    return _applied(transform.qualified, next(arguments.kinds(), UNKNOWN))


def _composed(name: str, arguments: Arguments) -> Kind:
    """`Compose([Resize(8), ToTensor(), Normalize(...)])`: what its last transform gives of a picture."""
    steps = arguments.at(0, "transforms")
    given = UNKNOWN
    for _, step in steps.items if steps is not None and has_parts(steps) else ():
        given = _applied(step.qualified, given) if step.tag is Tag.INSTANCE and not step.path else UNKNOWN
    return Kind(Tag.INSTANCE, qualified=name, element=given if given.is_tensor else None)


def _applied(name: str, given: Kind) -> Kind:
    if images.makes_tensor(name):
        return _OF_PICTURE
    return _transformed(given) if images.is_transform(name) else UNKNOWN


def _transformed(first: Kind) -> Kind:
    if not first.holds_tensors:
        return UNKNOWN
    made = tensor(first.place, device=first.device, fresh=True, requires_grad=first.requires_grad, origin=first.origin)
    return made.at_most(min(first.certainty, Confidence.MEDIUM))
