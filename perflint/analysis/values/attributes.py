"""What the attributes of known kinds give."""

from __future__ import annotations

from perflint.analysis.values import transfers
from perflint.analysis.values.kind import (
    ARRAY,
    DTYPE,
    NEVER,
    NUMBER,
    SHAPE,
    UNKNOWN,
    Device,
    Kind,
    Place,
    Tag,
    mapping,
    sequence,
    tensor,
)
from perflint.analysis.values.operations import named_part
from perflint.analysis.values.origin import Origin, Provenance
from perflint.analysis.values.ranks import SCALAR
from perflint.analysis.values.record_classes import field
from perflint.analysis.values.records import named_item
from perflint.analysis.values.scattering import unwrapped
from perflint.finding import Confidence
from perflint.torch_model import frameworks, modules, tensors, wrappers
from perflint.torch_model.devices import DEVICE_ATTRIBUTES

#: What an optimizer holds: groups of options, each with the parameters that it steps.
_PARAMETERS = sequence(tensor(Place.MODULE, requires_grad=True, origin=Origin(Provenance.PARAMETER)))
PARAM_GROUPS = sequence(mapping(UNKNOWN, [("params", _PARAMETERS)]))
#: What an optimizer keeps for each parameter, under names of its own.
_STATE = mapping(mapping(UNKNOWN))


def attribute(receiver: Kind, name: str) -> Kind:
    """The value of `receiver.name`, of what libraries define; `UNKNOWN` for anything else."""
    tag = receiver.tag
    if tag is Tag.TENSOR:
        return _tensor_attribute(receiver, name)
    if tag is Tag.MAPPING and (held := named_item(receiver, name)) is not None:
        return held
    if tag in (Tag.BATCH, Tag.OUTPUT):
        return _part_attribute(receiver, name)
    if tag is Tag.MODULE:
        return _module_attribute(receiver, name)
    if tag is Tag.DEVICE:
        return transfers.part_of_device(name)
    if tag is Tag.ARRAY:
        return ARRAY if name == "T" else SHAPE if name == "shape" else NUMBER if name in ("ndim", "size") else UNKNOWN
    if tag is Tag.LOADER:
        return {"dataset": Kind(Tag.DATASET), "batch_size": NUMBER, "num_workers": NUMBER}.get(name, UNKNOWN)
    if tag is Tag.OPTIMIZER and name == "param_groups":
        return PARAM_GROUPS
    if tag is Tag.OPTIMIZER and name == "state":
        return _STATE
    if tag is Tag.SEQUENCE and receiver.qualified and (held := field(receiver, name)) is not None:
        return held
    if tag is Tag.SEQUENCE and receiver.element is not None and receiver.element.is_tensor and name in tensors.PARTS:
        return receiver.element.but(rank=None, dtype=None)  # no list has such: `torch.linalg.lstsq(a, b).solution`
    if tag is Tag.INSTANCE:
        return receiver.item(name) or _instance_attribute(receiver, name)
    if tag is Tag.NEVER:
        return NEVER
    return SHAPE.at_most(Confidence.MEDIUM) if name == "shape" else UNKNOWN


def _tensor_attribute(receiver: Kind, name: str) -> Kind:
    if name in tensors.SAME_ATTRIBUTES:
        grad = False if name == "data" else receiver.requires_grad
        return receiver.but(fresh=False, requires_grad=grad, optional=False)
    if name == "grad":
        return tensor(receiver.place, device=receiver.device, optional=True, certainty=Confidence.MEDIUM)
    if name == "shape":
        return SHAPE
    if name == "dtype":
        return DTYPE
    if name == "device":
        return transfers.device_attribute(receiver)
    return NUMBER if name in tensors.NUMBER_ATTRIBUTES else UNKNOWN


def _part_attribute(receiver: Kind, name: str) -> Kind:
    if name in ("shape", "dtype", "device", *tensors.NUMBER_ATTRIBUTES):
        return _tensor_attribute(receiver, name)
    found = receiver.item(name)
    if found is not None:
        return found
    if name.startswith("_"):
        return UNKNOWN
    if name in tensors.GRAPH_COUNTS:
        return NUMBER
    part = named_part(receiver, name)
    if receiver.tag is Tag.OUTPUT:
        return part.but(rank=SCALAR if name in modules.SCALAR_FIELDS else None, requires_grad=receiver.requires_grad)
    return part


def _module_attribute(receiver: Kind, name: str) -> Kind:
    if name in wrappers.WRAPPED_ATTRIBUTES:
        return unwrapped(receiver)
    if name in ("weight", "bias"):
        return tensor(receiver.place, device=receiver.device, requires_grad=True, origin=Origin(Provenance.PARAMETER))
    if name in DEVICE_ATTRIBUTES:
        return Kind(Tag.DEVICE, device=Device.MAYBE, certainty=Confidence.MEDIUM)
    return {"dtype": DTYPE, "training": NUMBER}.get(name, UNKNOWN)


def _instance_attribute(receiver: Kind, name: str) -> Kind:
    if receiver.qualified in frameworks.PREPARERS:
        if name in DEVICE_ATTRIBUTES:
            return Kind(Tag.DEVICE, device=Device.MAYBE)
        if name in ("is_main_process", "is_local_main_process", "num_processes", "process_index", "sync_gradients"):
            return NUMBER
    if receiver.qualified == "torch.nn.utils.rnn.PackedSequence":
        # Its counts are on the host, wherever its data are.
        return tensor(receiver.place if name == "data" else Place.HOST, device=receiver.device)
    if receiver.qualified.startswith(modules.DISTRIBUTION_PACKAGES):
        if name in ("batch_shape", "event_shape"):
            return SHAPE
        return tensor(receiver.place, device=receiver.device)
    return UNKNOWN
