"""The generators that random numbers come from by default, as ``torch.random``."""

from leafgrad.tensor.public import publish
from leafgrad.tensor.random import (
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]

publish(globals())
