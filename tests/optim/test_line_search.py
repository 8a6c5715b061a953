"""The strong Wolfe line search where the loss is not defined everywhere."""

from __future__ import annotations

import math

import pytest

import leafgrad as lg
from leafgrad.optim.line_search import Point, strong_wolfe


def walled(t):
    """(t - 0.3)^2 - 0.001 log(1 - t), nan from 1 on: its loss and slope."""
    if t >= 1:
        return math.nan, math.nan
    return (t - 0.3) ** 2 - 0.001 * math.log(1 - t), 2 * (t - 0.3) + 0.001 / (1 - t)


def steep(t):
    """The same, infinite from 1 on."""
    return walled(t) if t < 1 else (math.inf, math.inf)


def sloped(t):
    """The same with a loss, but no slope, from 1 on."""
    return walled(t) if t < 1 else (-5.0, math.nan)


@pytest.mark.parametrize("line", [walled, steep, sloped])
@pytest.mark.parametrize("first", [0.01, 0.3, 0.99, 1.0, 2.0, 1e6])
def test_a_step_to_where_there_is_no_loss_was_too_long(line, first):
    def at(t):
        loss, slope = line(t)
        return Point(t, loss, lg.tensor([slope]), slope)

    start = at(0.0)
    found, tried = strong_wolfe(at, start, first, 1.0, max_evaluations=50)
    assert found.loss <= start.loss + 1e-4 * found.t * start.slope
    assert abs(found.slope) <= 0.9 * abs(start.slope)
    assert tried <= 30


def test_the_start_is_returned_where_no_step_has_a_loss():
    def at(t):
        return Point(t, math.nan, lg.tensor([math.nan]), math.nan)

    start = Point(0.0, 1.0, lg.tensor([-1.0]), -1.0)
    assert strong_wolfe(at, start, 1.0, 1.0)[0] is start


def test_lbfgs_steps_over_no_cliff():
    """The minimum of x - log(x) - log(1 - x) is at (3 - sqrt(5)) / 2; there is no loss outside of (0, 1)."""
    x = lg.tensor([0.9999], dtype=lg.float64, requires_grad=True)
    optimizer = lg.optim.LBFGS([x], lr=1.0, max_iter=50, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (x - x.log() - (1 - x).log()).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert x.item() == pytest.approx((3 - math.sqrt(5)) / 2, abs=1e-5)
