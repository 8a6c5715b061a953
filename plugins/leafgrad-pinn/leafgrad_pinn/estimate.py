"""An estimate of the error without a reference: the linearised problem, solved for what is wrong.

What the residuals r leave undone is e with A e = -r, to first order. Polynomials that the network knows nothing of, and
more points than it was trained at, find e by least squares. Points of their own then show what part of r they explain:
where that is little, as at a shock, there is no estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import linalg

import leafgrad
from leafgrad_pinn.field import columns_of
from leafgrad_pinn.linearised import Linearised, numbers
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.taylor import Unfit
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.values import Path

SIZE = 900  # polynomials, of all fields together
POINTS = 2.5  # for each polynomial of a field
LEFT = 0.5  # of the residuals, what polynomials may leave unexplained
ROUNDING = 1e-11  # of the largest column: a smaller one is none
LOOKS = 2048  # points at which the error is measured
RATIOS = 1.0, 4.0, 0.25  # of the numbers of polynomials by the first and the second of two coordinates

Before = Callable[[str, Array, Path], Array]


@leafgrad.enable_grad()
def estimated(trainees: Sequence[Trainee]) -> dict[str, float]:
    """The relative L2 error of each field, of all windows of time together.

    Raises:
        Unfit: there is no estimate; says why.
    """
    squares: dict[str, list[tuple[float, float]]] = {}
    before: Before | None = None
    for trainee in trainees:
        problem, c = solved(trainee, before)
        points = problem.domain.interior(LOOKS, "sobol", np.random.default_rng(2))
        columns = columns_of(problem.domain, points, trainee.dtype, trainee.device)
        for name, values in problem.system.fields(columns).items():
            inside = problem.within(name, points)
            wrong, known = problem.basis(name, points[inside]) @ c, numbers(values)[inside]
            length = 1.0 if problem.domain.time is None else problem.domain.time.stop - problem.domain.time.start
            squares.setdefault(name, []).append((length * wrong @ wrong, length * np.square(known).sum()))
        before = at_the_end(problem, c)
    return {name: math.sqrt(sum(e for e, _ in parts) / sum(u for _, u in parts)) for name, parts in squares.items()}


def at_the_end(problem: Linearised, c: Array) -> Before:
    """What is wrong at the last moment, at points of any."""

    def wrong(name: str, points: Array, path: Path) -> Array:
        last = points.copy()
        last[:, -1] = problem.domain.bounds[-1, 1]
        return np.asarray(problem.basis(name, last, path) @ c)

    return wrong


def solved(trainee: Trainee, before: Before | None) -> tuple[Linearised, Array]:
    """The linearised problem in the polynomials that explain most, and their coefficients."""
    best: tuple[float, Linearised, Array] | None = None
    for degrees in choices(trainee):
        problem = Linearised(trainee, degrees, before)
        size = max(basis.size for _, basis in problem.bases.values())
        a, r = problem.everything(max(64, int(POINTS * size)), np.random.default_rng(0))
        if not (np.isfinite(a).all() and np.isfinite(r).all()):
            raise Unfit("residuals that are not finite")
        scale = np.sqrt(np.square(a).sum(0))
        scale[scale <= ROUNDING * float(np.max(scale))] = 1
        c = -linalg.lstsq(a / scale, r, cond=ROUNDING, lapack_driver="gelsy", check_finite=False)[0] / scale
        a, r = problem.everything(max(64, size // 2), np.random.default_rng(1))
        left = float(np.linalg.norm(a @ c + r)) / max(float(np.linalg.norm(r)), 1e-300)
        if best is None or left < best[0]:
            best = left, problem, c
    assert best is not None
    if not best[0] < LEFT:
        raise Unfit(f"residuals of which {SIZE} polynomials explain {max(0.0, 1 - best[0]):.0%}")
    return best[1:]


def choices(trainee: Trainee) -> list[Mapping[str, int]]:
    """How many polynomials each coordinate may have."""
    names = trainee.problem.domain.names
    if len(names) > 3:
        raise Unfit(f"{len(names)} coordinates, of at most 3")
    count = SIZE / len(trainee.problem.groups) / max(len(group) for group in trainee.problem.groups)
    if len(names) != 2:
        return [dict.fromkeys(names, min(64, int(count ** (1 / len(names)))))]
    return [
        {names[0]: max(4, int((count * ratio) ** 0.5)), names[1]: max(4, int((count / ratio) ** 0.5))}
        for ratio in RATIOS
    ]
