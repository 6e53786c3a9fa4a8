"""Abstract values: what an expression is, and where it lives. `Inference(tree, program).kind(node)` answers."""

from perflint.analysis.values.inference import Inference
from perflint.analysis.values.kind import Device, Kind, Place, Tag

__all__ = ["Device", "Inference", "Kind", "Place", "Tag"]
