"""Variables of the environment: those that launchers and machines set, and values that switch nothing on."""

from __future__ import annotations

from typing import Any

#: What reads one, and gives something else where it is not set.
READS = ("os.environ.get", "os.getenv")
#: By default, what such variables are that switch something.
OFF = (None, 0, False, "", "0", "false", "False", "FALSE", "no", "off")
#: Parts of the names of those that are set without anybody's doing, or by whoever starts a run.
_SET = frozenset(
    "RANK WORLD SIZE LOCAL MASTER NODE NODES SLURM OMPI PMI MPI CUDA NCCL JOB HOME PATH USER DIR ROOT SM TORCHELASTIC "
    "KAGGLE COLAB XLA TPU DEVICE DEVICES VISIBLE PORT ADDR HOST HOSTNAME AZUREML AMLT TASK ID".split()
)


def may_be_set(name: Any) -> bool:
    """Whether a variable, in the notation of summaries, need not be set by a user."""
    is_text = isinstance(name, tuple) and name[:2] == ("const", "str") and name[2]
    return not is_text or not _SET.isdisjoint(name[2].upper().split("_"))
