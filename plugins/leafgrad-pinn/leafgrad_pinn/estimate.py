"""An estimate of the error without a reference: the linearised problem, solved for what is wrong.

What the residuals r leave undone is e with A e = -r, to first order. Polynomials that the network knows nothing of, and
more points than it was trained at, find e by least squares. Points of their own then show what part of r they explain:
where that is little, as at a shock, there is no estimate. Energies have no residuals: they are least in polynomials
(`leafgrad_pinn.variation`), and there is an estimate where half as many give the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import linalg

import leafgrad
from leafgrad_pinn.conditions import Interior
from leafgrad_pinn.contradiction import stuck
from leafgrad_pinn.field import columns_of
from leafgrad_pinn.linearised import Before, Linearised, numbers
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.taylor import Contradiction, Unfit
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.variation import least

SIZE = 900  # polynomials, of all fields together
FEW, LARGE = 225, 0.1  # polynomials at the end of a training, and errors that are told
SOME, EACH = 5, 450  # problems of a family, and polynomials for each of them
POINTS = 2.5  # for each polynomial of a field
SURE = 0.1  # of the residuals, what polynomials may leave
SAME = 1.5  # up to this factor half as many give the same error, or there is no estimate where they leave more
ROUGH = 0.5, 0.9  # what they leave where an estimate is rough, and where there is none
ROUNDING = 1e-11  # of the largest column: a smaller one is none
NOTHING = 0.03  # of a field's size: one that is less, and its error, too, is zero
TOLD = 100  # times what polynomials leave of errors: fields that are more can be told from zero
SLIGHT = 1e-3  # of their terms: smaller residuals are no contradiction
LOOKS = 2048  # points at which the error is measured
RATIOS = 1.0, 4.0, 0.25  # of the numbers of polynomials by the first and the second of two coordinates

Earlier = Sequence[tuple[Linearised, Array]]  # of windows before
Fit = tuple[float, float, Linearised, Array]  # what is left of the residuals, a ratio, the problem, and coefficients


class Astray(Unfit):
    """An error as large as the solution: that of each field, where polynomials explain the residuals."""

    def __init__(self, found: dict[str, float]) -> None:
        super().__init__("an error as large as the solution itself")
        self.found = found


@leafgrad.enable_grad()
def estimated(
    trainees: Sequence[Trainee],
    functions: Mapping[str, Array] = {},
    size: float | None = None,
    ratios: Sequence[float] = RATIOS,
) -> tuple[dict[str, float], str]:
    """The L2 error of each field, beside what it should be, of all windows of time together; and a reservation, or "".

    Residuals that oscillate within a cell of the polynomials are not explained and change little: where half as many
    polynomials give the same error, there is a rough estimate.

    Args:
        trainees: what was trained, by windows.
        functions: which problem of a family is meant, by values at sensors, (1, m); none for the mean over some.
        size: how many polynomials all fields have together; None for SIZE.
        ratios: which numbers of polynomials are tried.

    Raises:
        Unfit: there is no estimate; says why.
    """
    if trainees[-1].problem.domain.functions and not functions:
        return of_some(trainees)
    size = size or SIZE
    fits = fitted(trainees, size, [ratios] * len(trainees), functions)
    left, (found, nothing) = max(fit[0] for fit in fits), errors_of(fits)
    large = not max(found.values(), default=1.0) < 1  # what is left of so much is no small part of what it should be
    zero = f"none for {', '.join(nothing)}, of which little more than nothing is left" if nothing else ""
    if left < SURE and large:
        raise Astray(found)
    if left < SURE:
        return found, zero
    explained = f"{size} polynomials explain {max(0.0, 1 - left):.0%}"
    words = f"an energy of whose change {explained}" if fits[0][2].energies else f"residuals of which {explained}"
    if left < ROUGH[1]:
        fewer, _ = errors_of(fitted(trainees, size / 2, [[ratio] for _, ratio, *_ in fits], functions))
        same = found.keys() == fewer.keys()
        if same and all(max(found[name], error) <= SAME * min(found[name], error) for name, error in fewer.items()):
            if large:
                raise Astray(found)
            return found, zero if left < ROUGH[0] else words
        words += ", and half as many give another error"
    raise Astray({}) if large else Unfit(words)


def of_some(trainees: Sequence[Trainee]) -> tuple[dict[str, float], str]:
    """The mean error for some problems of a family, of functions that were not trained."""
    rng, found, why = np.random.default_rng([trainees[-1].seed, 5]), [], ""
    for _ in range(SOME):
        rows = {f.name: f.draw(1, rng) for f in trainees[-1].problem.domain.functions}
        try:
            found.append(estimated(trainees, rows, EACH)[0])
        except Unfit as error:
            why = str(error)
    if 2 * len(found) <= SOME:
        raise Unfit(why)
    mean = {name: float(np.mean([errors[name] for errors in found])) for name in found[0]}
    return mean, f"none for {SOME - len(found)} of {SOME} functions: {why}" if why else ""


@leafgrad.enable_grad()
def suspected(trainees: Sequence[Trainee], residuals: float) -> tuple[dict[str, float], str]:
    """Errors of fields that small residuals stand for, as near a resonance: large ones, by name. And why there is none.

    By few polynomials, which take little time: nothing where there is no estimate by these. Where these do not explain
    the residuals, and no change of the fields lowers them: that, in words.

    Args:
        trainees: what was trained, by windows.
        residuals: how large they are beside their terms.
    """
    if trainees[-1].problem.domain.functions:
        return {}, ""
    try:
        found, reservation = estimated(trainees, size=FEW, ratios=RATIOS[:1])
    except Contradiction as error:
        return {}, str(error)
    except Astray as error:
        found, reservation = error.found, "" if error.found else str(error)
    except Unfit as error:
        found, reservation = {}, str(error)
    why = contradiction(trainees) if reservation and residuals > SLIGHT else ""
    return {name: error for name, error in found.items() if error > LARGE}, why


def contradiction(trainees: Sequence[Trainee]) -> str:
    """That smooth residuals are as small as they can be, in words; "" if they can be lowered, or it cannot be told.

    Windows of time are looked at after what is wrong at their beginning, as far as the one before explains that.
    """
    before: list[tuple[Linearised, Array]] = []
    for number, trainee in enumerate(trainees, 1):
        try:
            left, _, problem, c = fit(trainee, FEW, RATIOS[0], before, {})
        except Unfit:
            return ""
        if not problem.energies and stuck(problem, c, max(64, problem.size // 2)):
            where = f" in window {number}" if len(trainees) > 1 else ""
            words = f"no change of the fields lowers its residuals by much, which are smooth{where}"
            return f"{words}: there may be no solution"
        before = [*before, (problem, c)] if left < ROUGH[0] else []
    return ""


def errors_of(fits: Sequence[Fit]) -> tuple[dict[str, float], list[str]]:
    """Those of each field, of all windows; and the names of others, which are next to nothing beside their size."""
    squares: dict[str, list[Array]] = {}
    for _, _, problem, c in fits:
        trainee, time = problem.trainee, problem.domain.time
        points = problem.domain.interior(LOOKS, "sobol", np.random.default_rng(2))
        columns = columns_of(problem.domain, points, trainee.dtype, trainee.device) | problem.inputs
        for name, values in problem.system.fields(columns).items():
            inside = problem.within(name, points)
            wrong, known = problem.basis(name, points[inside]) @ c, numbers(values)[inside]
            length, size = 1.0 if time is None else time.stop - time.start, problem.taylor.size(name)
            parts = squares.setdefault(name, [])
            parts.append(length * np.array([wrong @ wrong, np.square(known + wrong).sum(), len(known) * size**2]))
    sums = {name: np.sum(parts, 0) for name, parts in squares.items()}
    nothing = [name for name, (e, u, size) in sums.items() if e >= u and max(e, u) < NOTHING**2 * size]
    wrong, known = (np.sqrt(sum(each[k] / each[2] for each in sums.values())) for k in (0, 1))
    if len(nothing) == len(sums) and known > TOLD * max(ROUNDING, *(left for left, *_ in fits)) * wrong:
        nothing = []  # all are far smaller than their sizes say, but not zero
    return {name: math.sqrt(e / u) for name, (e, u, _) in sums.items() if name not in nothing}, nothing


def fitted(
    trainees: Sequence[Trainee], size: float, ratios: Sequence[Sequence[float]], functions: Mapping[str, Array] = {}
) -> list[Fit]:
    """What is wrong in each window, after what is wrong at its beginning."""
    found: list[Fit] = []
    for trainee, some in zip(trainees, ratios, strict=True):
        before = [(problem, c) for _, _, problem, c in found]
        found.append(
            min(
                (fit(trainee, size, ratio, before, functions) for ratio in ways(trainee, some)),
                key=lambda each: each[0],
            )
        )
    return found


def fit(trainee: Trainee, size: float, ratio: float, before: Earlier, functions: Mapping[str, Array]) -> Fit:
    """The linearised problem solved in so many polynomials, and what that leaves of the residuals at other points."""
    if any(isinstance(c, Interior) and c.own is not None for c in trainee.problem.conditions):
        raise Unfit("an equation at given points, where more cannot be drawn")
    problem = Linearised(trainee, degrees(trainee, size, ratio), Before(before) if before else None, functions)
    count = max(basis.size for _, basis in problem.bases.values())
    a, r = problem.everything(max(64, int(POINTS * count)), np.random.default_rng(0))
    if not (np.isfinite(a).all() and np.isfinite(r).all()):
        raise Unfit("residuals that are not finite")
    if problem.energies:
        c, left = least(problem, (a, r))
        return max(left, SURE), ratio, problem, c
    scale = np.sqrt(np.square(a).sum(0))
    scale[scale <= ROUNDING * float(np.max(scale))] = 1
    c = -linalg.lstsq(a / scale, r, cond=ROUNDING, lapack_driver="gelsy", check_finite=False)[0] / scale
    return problem.left(c, max(64, count // 2), np.random.default_rng(1)), ratio, problem, c


def ways(trainee: Trainee, ratios: Sequence[float]) -> Sequence[float]:
    """The ratios that make a difference."""
    return ratios if len(trainee.problem.domain.names) == 2 else ratios[:1]


def degrees(trainee: Trainee, size: float, ratio: float) -> Mapping[str, int]:
    """How many polynomials each coordinate has."""
    names = trainee.problem.domain.names
    if len(names) > 3:
        raise Unfit(f"{len(names)} coordinates, of at most 3")
    count = size / len(trainee.problem.groups) / max(len(group) for group in trainee.problem.groups)
    if len(names) != 2:
        return dict.fromkeys(names, min(64, int(count ** (1 / len(names)))))
    return {names[0]: max(4, int((count * ratio) ** 0.5)), names[1]: max(4, int((count / ratio) ** 0.5))}
