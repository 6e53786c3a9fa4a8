"""What a function is given that is registered on a tensor: its gradient, or the tensor itself once that is there."""

from __future__ import annotations

from perflint.analysis.values.kind import UNKNOWN, Kind, Place, tensor
from perflint.analysis.values.origin import Origin, Provenance
from perflint.finding import Confidence
from perflint.torch_model import frameworks


def given(receiver: Kind, method: str) -> Kind:
    """`x.register_hook(lambda grad: ...)`: where the tensor is, and what is not known to be on the host is trained."""
    if method not in frameworks.TENSOR_HOOKS:
        return UNKNOWN
    place = receiver.place if receiver.place is not Place.UNKNOWN else Place.MODULE
    origin = Origin(Provenance.FRAMEWORK, method)
    return tensor(place, device=receiver.device, certainty=Confidence.MEDIUM, origin=origin)
