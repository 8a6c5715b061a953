"""Points in the unit cube."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SAMPLERS = ("grid", "uniform", "sobol", "latin", "stratified")


def check_sampler(sampler: str) -> None:
    """ValueError unless ``sampler`` is one of SAMPLERS."""
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler: expected one of {', '.join(SAMPLERS)}, got {sampler!r}")


def unit(sampler: str, n: int, dim: int, rng: np.random.Generator) -> Array:
    """Points of [0, 1)^dim: float64 (n, dim).

    ``grid`` gives the midpoints of m^dim equal cells, m^dim as near to n as can be; the others give n points:
    ``uniform`` independent ones, ``sobol`` a scrambled Sobol' sequence, ``latin`` a Latin hypercube, ``stratified`` one
    point in each of n equal slices of the last coordinate, independent in the others.
    """
    check_sampler(sampler)
    if dim == 0:
        return np.zeros((n, 0))
    if sampler == "grid":
        m = max(1, round(n ** (1 / dim)))
        axis = (np.arange(m) + 0.5) / m
        grid: Array = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), -1).reshape(-1, dim)
        return grid
    if sampler == "sobol":
        from scipy.stats import qmc  # slow to import

        sequence: Array = qmc.Sobol(dim, rng=rng).random_base2(math.ceil(math.log2(max(n, 1))))
        return sequence[:n]
    if sampler == "latin":
        from scipy.stats import qmc

        cube: Array = qmc.LatinHypercube(dim, rng=rng).random(n)
        return cube
    points = rng.random((n, dim))
    if sampler == "stratified":
        points[:, -1] = (rng.permutation(n) + points[:, -1]) / n
    return points
