"""Solutions of families of problems, by solvers of one's own."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping

import numpy as np

from leafgrad_pinn.domains import Domain
from leafgrad_pinn.references.reference import EPS, Reference, relative_l2
from leafgrad_pinn.sampling import Array


def family(
    domain: Domain,
    *,
    n: int = 50,
    points: int | Mapping[str, int] = 51,
    steps: int = 256,
    name: str = "classical solver",
    functions: Mapping[str, Array] | None = None,
    **fields: Callable[..., Array],
) -> Reference:
    """Solutions for several input functions, by a solver of one's own.

    Errors are then means over these functions of relative L2 errors. The floor compares with half as many steps.

    Args:
        domain: of the family, with input functions.
        n: how many functions are drawn, apart from those of any training.
        points: of each axis, its ends included.
        steps: of the solver, of which more are more exact.
        name: of the solver.
        functions: for each input function rows of values at the sensors, (n, m) or (n, mx, my), in place of draws.
        fields: for each field a solver, which takes by name axes, as arrays (k,), input functions, as functions of
            NumPy arrays, and ``steps``, and gives the field on the grid: ``u=lambda x, f, steps: ...``.

    Raises:
        ValueError: a domain without input functions, a solver whose parameters name nothing, or whose values are not
            finite or of another shape.
    """
    if not isinstance(domain, Domain) or not domain.functions:
        raise ValueError(f"family: domain: expected one with input functions, got {domain!r}")
    if not fields:
        raise ValueError("family: expected a solver for each field, as u=lambda x, f, steps: ..., got none")
    counts = {c: points if isinstance(points, int) else points[c] for c in domain.names}
    axes = {c: np.linspace(low, high, counts[c]) for c, (low, high) in zip(domain.names, domain.bounds, strict=True)}
    rng = np.random.default_rng([2, n])
    given = {f.name: f.draw(n, rng) if functions is None else f.values(functions[f.name]) for f in domain.functions}
    begin = time.perf_counter()
    values = {field: solved(field, solver, domain, axes, given, steps) for field, solver in fields.items()}
    seconds = time.perf_counter() - begin
    floor = {}
    for field, solver in fields.items():
        coarse = solved(field, solver, domain, axes, given, steps // 2)
        gaps = [relative_l2(one, other) for one, other in zip(coarse, values[field], strict=True)]
        floor[field] = max(float(np.mean(gaps)), EPS)
    return Reference(f"{name}, {len(gaps)} unseen functions", axes, values, floor, seconds, functions=given)


def solved(
    field: str, solver: Callable[..., Array], domain: Domain, axes: Mapping[str, Array], given: Mapping[str, Array],
    steps: int,
) -> Array:  # fmt: skip
    """A field of a family for each of its functions: (n, *grid)"""
    wanted = [p.name for p in inspect.signature(solver).parameters.values() if p.default is p.empty]
    known = {**axes, "steps": steps}
    if unknown := [name for name in wanted if name not in {*known, *given}]:
        raise ValueError(
            f"family: {field}: there is no coordinate or input function {', '.join(unknown)}; there are "
            f"{', '.join([*known, *given])}"
        )
    found, shape = [], tuple(map(len, axes.values()))
    for i in range(len(next(iter(given.values())))):
        each = known | {function.name: function.function(given[function.name][i]) for function in domain.functions}
        values = np.asarray(solver(*[each[name] for name in wanted]), dtype=np.float64)
        if values.shape != shape or not np.isfinite(values).all() or not values.any():
            what = f"shape {values.shape}" if values.shape != shape else "nan, inf or zero alone"
            raise ValueError(f"family: {field}: expected finite values of shape {shape}, not all zero, got {what}")
        found.append(values)
    return np.array(found)
