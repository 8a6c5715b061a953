"""Huber's losses and the power transforms of Box and Cox."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from leafgrad import exp, hypot, log, log1p, op, relu
from leafgrad.ops.exponential import xlogy
from leafgrad.ops.select import clamp, where
from leafgrad_special.entropy import xlog1py
from leafgrad_special.exponential import exprel
from leafgrad_special.functions import special
from leafgrad_special.precision import array, finely, keep


@op("elementwise", "float", c="delta < 0 ? -log(0) : abs(r) <= delta ? 0.5 * r * r : delta * (abs(r) - 0.5 * delta)")
def huber(xp: Any, delta: Any, r: Any) -> Any:
    """r**2 / 2 up to abs(r) = delta, from there on linear; inf for a negative delta. (...), (...) -> (...)"""
    return keep(special().huber(delta, r), delta, r)


huber.vjp(
    delta=lambda g, delta, r: g * relu(abs(r) - delta),
    r=lambda g, delta, r: g * clamp(r, -delta, delta),
)  # fmt: skip


@op(
    "elementwise",
    "float",
    c="delta < 0 ? -log(0) : delta == 0 || r == 0 ? 0 : abs(r) * (delta / (abs(delta / r) + hypot(1, delta / r)))",
)
def pseudo_huber(xp: Any, delta: Any, r: Any) -> Any:
    """delta**2 (sqrt(1 + (r / delta)**2) - 1), a smooth huber; inf for a negative delta. (...), (...) -> (...)

    Computed as |r| delta / (t + sqrt(1 + t**2)) with t = delta / |r|, which neither cancels nor overflows.
    """
    none = (delta == 0) | (r == 0)
    size = xp.abs(xp.where(none, 1.0, r))
    t = delta / size
    value = xp.where(none, 0.0, size * (delta / (t + xp.hypot(t, 1.0))))
    return keep(xp.where(delta < 0, math.inf, value), delta, r)


def _pseudo_huber_delta(g: Any, delta: Any, r: Any) -> Any:
    h = hypot(array(delta, g), array(r, g))
    return g * ((r * r / (h + delta)) ** 2 / h)


finely(pseudo_huber, delta=_pseudo_huber_delta, r=lambda g, delta, r: g * (delta * r / hypot(array(delta, g), r)))


@op("elementwise", "float")
def boxcox(xp: Any, x: Any, lmbda: Any) -> Any:
    """(x**lmbda - 1) / lmbda, and log(x) at lmbda = 0; nan for a negative x. (...), (...) -> (...)"""
    return keep(special().boxcox(x, lmbda), x, lmbda)


@op("elementwise", "float")
def boxcox1p(xp: Any, x: Any, lmbda: Any) -> Any:
    """boxcox(1 + x, lmbda), accurate for small x. (...), (...) -> (...)"""
    return keep(special().boxcox1p(x, lmbda), x, lmbda)


def _power(base: Any, of: Any, power: Any, term: Callable[[Any, Any], Any]) -> Any:
    """``base`` to a power, exp(term(power, of)); where it is 0 as a power, whose derivatives have their limits."""
    zero = base == 0
    return where(zero, where(zero, base, 1.0) ** power, exp(term(power, where(zero, 1.0, of))))


def _in_power(g: Any, logarithm: Any, lmbda: Any) -> Any:
    """The gradient in lmbda of exprel(lmbda log x) log x."""
    return g * (logarithm * logarithm * exprel(lmbda * logarithm, order=1))


finely(
    boxcox,
    x=lambda g, x, lmbda: g * _power(x, x, lmbda - 1, xlogy),
    lmbda=lambda g, x, lmbda: _in_power(g, log(array(x, g)), lmbda),
)
finely(
    boxcox1p,
    x=lambda g, x, lmbda: g * _power(1 + x, x, lmbda - 1, xlog1py),
    lmbda=lambda g, x, lmbda: _in_power(g, log1p(array(x, g)), lmbda),
)
