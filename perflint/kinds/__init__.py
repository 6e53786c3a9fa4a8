"""Abstract values: what an expression is, and where it lives. `Inference(tree, program).kind(node)` answers."""

from perflint.kinds.inference import Inference
from perflint.kinds.kind import Device, Kind, Place, Tag

__all__ = ["Device", "Inference", "Kind", "Place", "Tag"]
