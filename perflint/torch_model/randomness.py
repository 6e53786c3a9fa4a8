"""What draws from a random stream, or sets one: moving such calls changes the numbers."""

from __future__ import annotations

from perflint.torch_model.names import within, words
from perflint.torch_model.tensors import RANDOM_CONSTRUCTORS

SEEDING = words(
    "torch.manual_seed torch.cuda.manual_seed torch.cuda.manual_seed_all torch.seed torch.set_rng_state "
    "torch.cuda.set_rng_state torch.random.manual_seed numpy.random.seed random.seed lightning.seed_everything "
    "pytorch_lightning.seed_everything lightning.pytorch.seed_everything transformers.set_seed "
    "accelerate.utils.set_seed"
)
#: Functions whose first argument switches deterministic algorithms on or off.
DETERMINISTIC_SWITCHES = within("torch", "use_deterministic_algorithms")
RANDOM_FUNCTIONS = (
    RANDOM_CONSTRUCTORS
    | within(
        "torch.nn.functional",
        "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout rrelu gumbel_softmax",
    )
    | within("torch", "dropout bernoulli normal poisson multinomial rrelu")
)
#: All functions of these modules draw.
RANDOM_PACKAGES = ("random.", "numpy.random.", "torch.distributions.", "torch.nn.init.")


def draws(dotted: str) -> bool:
    """Whether calling it takes numbers from a random stream."""
    return dotted in RANDOM_FUNCTIONS or dotted.startswith(RANDOM_PACKAGES)
