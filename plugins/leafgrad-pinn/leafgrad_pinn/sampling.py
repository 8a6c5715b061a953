"""Points in the unit cube."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SAMPLERS = ("grid", "uniform", "sobol", "latin", "stratified")


def check_sampler(sampler: str) -> None:
    """ValueError unless ``sampler`` is one of SAMPLERS."""
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler: expected one of {', '.join(SAMPLERS)}, got {sampler!r}")


def reals(what: str, values: Any) -> Array:
    """Numbers as float64; TypeError for complex ones, and for what is no number."""
    array = np.asarray(values)
    if array.dtype.kind not in "biufO":
        raise TypeError(f"{what}: expected real numbers, got {array.dtype}")
    return np.asarray(array, dtype=np.float64)


def paired(what: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays as (n,) each, element by element; ValueError where it is open which elements belong together.

    That is so unless they have one shape, but for axes of one element: (n, 1) fits (n,), and does not fit (1, n).
    """
    shapes = {array.shape for array in arrays.values()}
    without = {tuple(size for size in shape if size != 1) for shape in shapes}
    if len(without) > 1 or len({len(shape) for shape in shapes}) < len(shapes):
        got = {name: array.shape for name, array in arrays.items()}
        raise ValueError(f"{what}: expected arrays of one shape, (n,) or as np.meshgrid makes them, got {got}")
    return {name: array.reshape(-1) for name, array in arrays.items()}


def columns_given(what: str, points: Any, weights: Any) -> dict[str, Array]:
    """Given points by coordinate, and their weights, as arrays (n,); ValueError if they do not fit together."""
    if not isinstance(points, Mapping) or not points:
        raise TypeError(f'{what}: points: expected arrays by name, as {{"x": x}}, got {type(points).__name__}')
    given = {name: reals(f"{what}: points: {name}", values) for name, values in points.items()}
    first = next(iter(given.values()))
    given["weights"] = np.ones_like(first) if weights is None else reals(f"{what}: weights", weights)
    arrays = paired(f"{what}: points", given)
    if not first.size:
        raise ValueError(f"{what}: points: expected at least 1, got none")
    if wrong := [name for name, array in arrays.items() if not np.isfinite(array).all()]:
        raise ValueError(f"{what}: points: expected finite numbers, got nan or inf in {', '.join(wrong)}")
    if (arrays["weights"] < 0).any() or not arrays["weights"].any():
        raise ValueError(f"{what}: weights: expected none below 0, and some above, got others")
    return arrays


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
