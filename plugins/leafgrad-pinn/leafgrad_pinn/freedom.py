"""What the conditions leave open, told at the end by the rank of the linearised problem.

A direction e is free where A e is nothing beside e: the smallest generalised singular values of A and of the fields.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import linalg

from leafgrad_pinn.linearised import Linearised
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.taylor import Unfit
from leafgrad_pinn.trainee import Trainee

FREE = (
    1e-6  # of the terms, what a direction changes residuals by: well-posed problems have 0.1 and more, free ones 1e-8
)
NAMED = 1e-6  # how far a direction may be from what it is called
DEGREES = {1: 12, 2: 6, 3: 4}  # polynomials of each coordinate, by the number of these


def directions(trainee: Trainee) -> str:
    """What may be added to the fields, in words; "" where all is determined, or where it cannot be told."""
    names = trainee.problem.domain.names
    if len(names) not in DEGREES:
        return ""
    try:
        problem = Linearised(trainee, dict.fromkeys(names, DEGREES[len(names)]))
        size = problem.size - problem.numbers
        rng = np.random.default_rng(0)
        a = problem.everything(3 * DEGREES[len(names)] ** len(names), rng)[0][:, :size]
    except Unfit:
        return ""
    if not np.isfinite(a).all():
        return ""
    points = problem.domain.interior(4 * size, "sobol", rng)
    fields = np.concatenate(
        [
            problem.basis(n, points[problem.within(n, points)])[:, :size] / (problem.fields[n].scale or 1)
            for n in problem.bases
        ]
    )
    r: Array = np.asarray(np.linalg.qr(fields / len(points) ** 0.5, mode="r"))
    _, sizes, rows = np.linalg.svd(linalg.solve_triangular(r.T, a.T, lower=True).T)
    open_ = rows[np.count_nonzero(sizes > FREE) :]
    if not len(open_):
        return ""
    known = [name for name, c in simple(problem, size) if explained(open_, r @ c) > 1 - NAMED]
    if more := len(open_) - len(known):
        known.append(f"{more} {'more' if known else 'without a simple name'}")
    count = "1 direction is" if len(open_) == 1 else f"{len(open_)} directions are"
    return f"{count} free: {', '.join(known)}"


def explained(rows: Array, direction: Array) -> float:
    """The part of a direction (k,) that lies in orthonormal ones (m, k)."""
    return float(np.linalg.norm(rows @ direction) / np.linalg.norm(direction))


def simple(problem: Linearised, size: int) -> Iterator[tuple[str, Array]]:
    """Constants and multiples of coordinates added to each field, by name, as coefficients (size,)."""
    for name, (begin, basis) in problem.bases.items():
        step = basis.size
        for which, (coordinate, degree) in enumerate([("", 1), *zip(basis.domain.names, basis.degrees, strict=True)]):
            step //= degree  # how far apart the next polynomials of a coordinate are
            if coordinate in basis.domain.periodic:
                continue
            c = np.zeros(size)
            c[begin + (step if which else 0)] = 1
            yield f"{name} + {f'multiple of {coordinate}' if which else 'constant'}", c
