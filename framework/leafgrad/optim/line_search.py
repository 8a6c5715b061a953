"""A line search for the strong Wolfe conditions.

Source: Nocedal and Wright (2006), "Numerical Optimization", algorithms 3.5 and 3.6, with cubic interpolation
(eq. 3.59) and the safeguards of M. Schmidt's minFunc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from leafgrad.tensor.tensor import Tensor


@dataclass(frozen=True)
class Point:
    """A point on the line: step ``t``, the loss there, its gradient (n) and its slope along the line."""

    t: float
    loss: float
    gradient: Tensor
    slope: float


def strong_wolfe(
    at: Callable[[float], Point],
    start: Point,
    t: float,
    scale: float,
    *,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_evaluations: int = 25,
) -> tuple[Point, int]:
    """A point that lowers the loss enough and flattens the slope enough, or the best found.

    Args:
        at: evaluates the point at a step.
        start: the point at step 0, where the slope is negative.
        t: the first step to try.
        scale: the largest change of a parameter at step 1; measures what a change of step changes.
        c1: share of the decrease promised by the slope at ``start`` that is enough.
        c2: share of that slope that is flat enough.
        tolerance_change: give up when the bracket changes parameters by less.
        max_evaluations: give up after so many trials of new steps.

    Returns:
        The point, and how often ``at`` was called.
    """

    def high(p: Point) -> bool:
        return p.loss > start.loss + c1 * p.t * start.slope

    def flat(p: Point) -> bool:
        return abs(p.slope) <= -c2 * start.slope

    before, new = start, at(t)
    tried = 0
    while tried < max_evaluations:
        if high(new) or (tried > 1 and new.loss >= before.loss):
            break
        if flat(new):
            return new, tried + 1
        if new.slope >= 0:
            break
        farther = cubic(before, new, new.t + 0.01 * (new.t - before.t), new.t * 10)
        before, new = new, at(farther)
        tried += 1
    else:
        before = start
    bracket = [before, new]  # a good point lies between them
    lower, upper = (0, 1) if before.loss <= new.loss else (1, 0)
    stuck = False
    while tried < max_evaluations and abs(bracket[1].t - bracket[0].t) * scale >= tolerance_change:
        t, stuck = inside(bracket, stuck)
        new = at(t)
        tried += 1
        if high(new) or new.loss >= bracket[lower].loss:
            bracket[upper] = new
            lower, upper = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
            continue
        if flat(new):
            return new, tried + 1
        if new.slope * (bracket[upper].t - bracket[lower].t) >= 0:
            bracket[upper] = bracket[lower]
        bracket[lower] = new
    return bracket[lower], tried + 1


def inside(bracket: list[Point], stuck: bool) -> tuple[float, bool]:
    """The step to try next in a bracket, and whether it lies close to an end.

    A step close to an end twice in a row, or at it, is moved a tenth of the bracket inwards.
    """
    a, b = sorted(p.t for p in bracket)
    t = cubic(bracket[0], bracket[1], a, b)
    margin = 0.1 * (b - a)
    if min(b - t, t - a) >= margin:
        return t, False
    if stuck or t >= b or t <= a:
        return (b - margin if abs(t - b) < abs(t - a) else a + margin), False
    return t, True


def cubic(p: Point, q: Point, low: float, high: float) -> float:
    """Where the cubic through two points with their slopes is least, within [low, high]; the middle if nowhere."""
    if p.t > q.t:
        p, q = q, p
    middle = (low + high) / 2
    if p.t == q.t:
        return middle
    d1 = p.slope + q.slope - 3 * (p.loss - q.loss) / (p.t - q.t)
    square = d1 * d1 - p.slope * q.slope
    if not square >= 0:
        return middle
    d2 = math.sqrt(square)
    below = q.slope - p.slope + 2 * d2
    if below == 0 or not math.isfinite(d2):
        return middle
    return min(max(q.t - (q.t - p.t) * ((q.slope + d2 - d1) / below), low), high)
