"""Whether a fused optimizer would be refused, or has little to do."""

from __future__ import annotations

from perflint.analysis.feasibility.passed_keywords import file_passes
from perflint.analysis.file_facts import FileFacts
from perflint.ir.summary import CallFacts
from perflint.torch_model import modules

_NOTHING = ("const", "NoneType", None)


def refuses_fused(trainer: CallFacts) -> bool:
    """Whether a Trainer scales losses of half precision and clips gradients: a fused optimizer raises under it."""
    given = dict(trainer.keywords)
    if "" in given:
        return True  # `**options` may hold both
    precision = given.get("precision", ("const", "str", "32"))
    literal = str(precision[2]) if isinstance(precision, tuple) and precision[0] == "const" else ""
    halved = not literal or literal.startswith("16")
    return halved and given.get("gradient_clip_val", _NOTHING) != _NOTHING


def cannot_be_fused(ctx: FileFacts) -> bool:
    """Whether gradients are sparse, or parameters of a kind that the fused way refuses."""
    return ctx.mentions(*modules.NEVER_FUSED) or file_passes(ctx, ("sparse",))
