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

    Where the loss or its slope is nan or infinite, the step was too long.

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

    line = SearchLine(at, start, c1, c2, max_evaluations)
    ends = bracket(line, t)
    return (zoom(line, ends, scale, tolerance_change) if len(ends) > 1 else ends[0]), line.calls


@dataclass
class SearchLine:
    """What is asked of a point, and how often ``at`` was called: once, and for so many new steps at most."""

    at: Callable[[float], Point]
    start: Point
    c1: float
    c2: float
    most: int
    calls: int = 0

    def point(self, t: float) -> Point:
        """The point at a step, infinitely high where its loss or slope is not finite."""
        self.calls += 1
        found = self.at(t)
        finite = math.isfinite(found.loss) and math.isfinite(found.slope)
        return found if finite else Point(t, math.inf, found.gradient, math.inf)

    @property
    def goes_on(self) -> bool:
        return self.calls <= self.most

    def high(self, p: Point) -> bool:
        return p.loss > self.start.loss + self.c1 * p.t * self.start.slope

    def flat(self, p: Point) -> bool:
        return abs(p.slope) <= -self.c2 * self.start.slope


def bracket(line: SearchLine, t: float) -> list[Point]:
    """Two points between which a good one lies, by ever longer steps; or a good one itself."""
    before, new = line.start, line.point(t)
    while line.goes_on:
        if line.high(new) or (line.calls > 2 and new.loss >= before.loss):
            return [before, new]
        if line.flat(new):
            return [new]
        if new.slope >= 0:
            return [before, new]
        before, new = new, line.point(cubic(before, new, new.t + 0.01 * (new.t - before.t), new.t * 10))
    return [line.start, new]


def zoom(line: SearchLine, ends: list[Point], scale: float, narrowest: float) -> Point:
    """A good point between two ends, or the lower end when they, times ``scale``, are closer than ``narrowest``."""
    lower, upper = (0, 1) if ends[0].loss <= ends[1].loss else (1, 0)
    stuck = False
    while line.goes_on and abs(ends[1].t - ends[0].t) * scale >= narrowest:
        t, stuck = inside(ends, stuck)
        new = line.point(t)
        if line.high(new) or new.loss >= ends[lower].loss:
            ends[upper] = new
            lower, upper = (0, 1) if ends[0].loss <= ends[1].loss else (1, 0)
            continue
        if line.flat(new):
            return new
        if new.slope * (ends[upper].t - ends[lower].t) >= 0:
            ends[upper] = ends[lower]
        ends[lower] = new
    return ends[lower]


def inside(ends: list[Point], stuck: bool) -> tuple[float, bool]:
    """The step to try next in a bracket, and whether it lies close to an end.

    A step close to an end twice in a row, or at it, is moved a tenth of the bracket inwards.
    """
    a, b = sorted(p.t for p in ends)
    t = cubic(ends[0], ends[1], a, b)
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
