"""Whether what is left of residuals can be lowered at all: equations may have no solution, or none of their conditions.

Training then ends where residuals are least, and these may be small. They are smooth, as a network is, but no change of
the fields lowers them by much, not even to first order; residuals at corners and of noise are not smooth.
"""

from __future__ import annotations

import numpy as np

from leafgrad_pinn.linearised import Linearised
from leafgrad_pinn.observations import Data
from leafgrad_pinn.sampling import Array

STEPS = 1.0, 0.5, 0.25, 0.125  # parts of the change that the linearised problem asks for
LOWERS = 1 / 3  # of what it promises: a step that lowers residuals by less does not
ROUGHNESS = 0.1  # of residuals, what polynomials may leave of smooth ones
MANY = 3  # points for each polynomial


def stuck(problem: Linearised, c: Array, n: int) -> bool:
    """Whether residuals are smooth, and no part of the linearised change (k,) lowers them at n points."""
    if roughness(problem) > ROUGHNESS:
        return False
    return all(problem.left(step * c, n, np.random.default_rng(1)) > 1 - LOWERS * step for step in STEPS)


def roughness(problem: Linearised) -> float:
    """What polynomials leave of residuals as functions of their points, relatively; those of data are not smooth."""
    left = total = 0.0
    polynomials = next(basis for _, basis in problem.bases.values())
    n = MANY * polynomials.size
    for index, condition in enumerate(problem.trainee.problem.conditions):
        here, there = (problem.residuals(index, condition, n, np.random.default_rng(seed)) for seed in (6, 7))
        fitted = [polynomials(problem.columns(points), ()) for points, _ in (here, there)]
        c = np.linalg.lstsq(fitted[0], here[1], rcond=1e-10)[0]
        size = float(np.square(there[1]).mean(0).sum())
        rest = float(np.square(fitted[1] @ c - there[1]).mean(0).sum())
        left, total = left + (size if isinstance(condition, Data) else min(rest, size)), total + size
    return (left / total) ** 0.5 if total else 1.0
