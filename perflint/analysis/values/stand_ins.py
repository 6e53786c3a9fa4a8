"""What functions give that the program only hands over, and objects that decorate functions, by their names."""

from __future__ import annotations

from perflint.analysis.values.kind import Kind, Place, Tag, tensor
from perflint.analysis.values.origin import Origin, Provenance
from perflint.analysis.values.ranks import SCALAR
from perflint.finding import Confidence
from perflint.torch_model.hooks import CLOSURE
from perflint.torch_model.wrappers import DECORATING, DECORATOR

KNOWN = DECORATING | {CLOSURE}


def called(name: str) -> Kind:
    """The result of calling one of the `KNOWN` ones: the loss of the model that an optimizer's closure runs."""
    if name in DECORATING:
        return Kind(Tag.FUNCTION, qualified=DECORATOR)
    origin = Origin(Provenance.FRAMEWORK, "closure")
    return tensor(Place.MODULE, rank=SCALAR, requires_grad=True, certainty=Confidence.MEDIUM, origin=origin)
