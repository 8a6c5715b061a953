"""The gamma function's logarithm and the derivatives of that, and gamma distributed numbers with their derivative."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from leafgrad import dtypes
from leafgrad.backends import Generator
from leafgrad.ops.define import op

FAR = 12.0  # from here on the asymptotic series give float64
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)  # B_2, B_4, ...
ROUNDS = 16  # of rejection; each accepts at least nineteen of twenty
NODES, NOTHING = 64, 50.0  # of the quadrature, and minus the exponent at which what it integrates is nothing
TERMS = 18  # of the series below 1


@op("elementwise", "float")
def log_gamma(xp: Any, x: Any) -> Any:
    """log gamma(x) of positive numbers, by Stirling's series (DLMF 5.11.1). (...) -> (...)

    At its poles, 0 and the whole numbers below, it is inf, and between these nan.
    """
    wide = x.astype("float64")
    near = wide < FAR
    low = xp.where(near & (wide > 0), wide, 1.0)
    below = low
    for k in range(1, int(FAR)):
        below = below * (low + k)
    z = xp.where(near, low + FAR, wide)
    w = 1 / z
    series = z * 0
    for k, b in reversed(list(enumerate(BERNOULLI, 1))):
        series = series * w * w + b / (2 * k * (2 * k - 1))
    value = (z - 0.5) * xp.log(z) - z + 0.5 * math.log(2 * math.pi) + series * w
    value = value - xp.where(near, xp.log(below), 0.0)
    value = xp.where(wide == math.inf, math.inf, value)
    return xp.where(wide > 0, value, xp.where(wide == xp.floor(wide), math.inf, math.nan)).astype(x.dtype)


@op("elementwise", "float")
def psi(xp: Any, x: Any, *, order: int = 0) -> Any:
    """The derivative of the given order of digamma, of positive numbers; nan below 0. (...) -> (...)

    DLMF 5.11.2 and 5.15.9, after steps by 5.15.5.
    """
    wide = x.astype("float64")
    sign = (-1.0) ** (order + 1)
    steps = int(FAR) + 2 * order
    near = wide < steps
    low = xp.where(near & (wide > 0), wide, 1.0)
    z = xp.where(near, low + steps, wide)
    w = 1 / z
    series = z * 0
    for k, b in reversed(list(enumerate(BERNOULLI, 1))):
        series = series * w * w + b * math.factorial(2 * k + order - 1) / math.factorial(2 * k)
    first = -xp.log(z) if order == 0 else math.factorial(order - 1) * w**order
    value = first + (math.factorial(order) / 2 * w + series * w * w) * w**order
    for k in reversed(range(steps)):
        value = value + xp.where(near, math.factorial(order) / (low + k) ** (order + 1), 0.0)
    value = xp.where(wide == math.inf, -math.inf if order == 0 else 0.0, value)
    return xp.where(wide > 0, sign * value, xp.where(wide == 0, sign * math.inf, math.nan)).astype(x.dtype)


log_gamma.vjp(x=lambda g, x: g * psi(x))
psi.vjp(x=lambda g, x, *, order: g * psi(x, order=order + 1))


@op("random", "any_dtype")
def standard_gamma(xp: Any, alpha: Any, *, generator: Generator, log: bool = False) -> Any:
    """Gamma distributed numbers of shape parameters ``alpha`` and rate 1, none of them 0. (...) -> (...)

    Or their logarithms, with ``log``, which tell apart those that are too small for the dtype.

    G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables" (2000). No step waits for values,
    so all elements go through all rounds. The derivative is that at a fixed value of the distribution function.
    """
    wide = alpha.astype("float64")
    d = xp.where(wide < 1, wide + 1, wide) - 1 / 3
    c = 1 / xp.sqrt(9 * d)
    drawn, waiting = d, xp.ones(wide.shape, dtype=bool)
    for _ in range(ROUNDS):
        x, u = generator.normal(wide.shape, "float64"), 1 - generator.uniform(wide.shape, "float64")
        v = (1 + c * x) ** 3
        safe = xp.where(v > 0, v, 1.0)
        accepted = waiting & (v > 0) & (xp.log(u) < 0.5 * x * x + d - d * safe + d * xp.log(safe))
        drawn = xp.where(accepted, d * safe, drawn)
        waiting = waiting & ~accepted
    boost = xp.log(1 - generator.uniform(wide.shape, "float64")) / xp.where(wide < 1, wide, 1.0)
    limits = dtypes.finfo(dtypes.of(alpha))
    if log:
        drawn, least = xp.log(drawn) + xp.where(wide < 1, boost, 0.0), limits.min
    else:
        drawn, least = drawn * xp.where(wide < 1, xp.exp(boost), 1.0), limits.tiny
    return xp.where(xp.isnan(wide), math.nan, xp.maximum(drawn, least)).astype(alpha.dtype)


@cache
def quadrature(n: int) -> list[tuple[float, float]]:
    """Nodes and weights of Gauss and Legendre on [0, 1], by Newton's method (DLMF 3.5.30)."""
    found = []
    for k in range(n):
        x = math.cos(math.pi * (k + 0.75) / (n + 0.5))
        for _ in range(8):
            before, value = 1.0, x
            for m in range(2, n + 1):
                before, value = value, ((2 * m - 1) * x * value - (m - 1) * before) / m
            slope = n * (before - x * value) / (1 - x * x)
            x -= value / slope
        found.append(((1 + x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return found


@op("elementwise", "float")
def standard_gamma_grad(xp: Any, alpha: Any, x: Any, *, log: bool = False) -> Any:
    """The derivative by ``alpha`` of the x at which the distribution function has its value. (...), (...) -> (...)

    With ``log`` x is given by its logarithm, whose derivative is the result.

    -F_alpha / F_x, where F_alpha is the integral of (log t - psi(alpha)) times the density: up to x with t = x exp(-v)
    if x is below alpha, else from x on with t = x exp(v), so that what is integrated only falls. By Gauss and Legendre;
    for x below alpha and 1, where it may fall slowly, term by term of the series in x.
    """
    a, given = alpha.astype("float64"), x.astype("float64")
    logarithm, wide = (given, xp.exp(given)) if log else (xp.log(given), given)
    lower = wide < a
    sign = xp.where(lower, -1.0, 1.0)
    gap = xp.abs(wide - a)
    # Where the exponent reaches -NOTHING, by v - 1 + exp(-v) >= v^2 / (2 + 2 v / 3) and exp(v) - 1 - v >= v^2 / 2.
    square, line = gap * 2 / 3 + wide, 2 * gap - NOTHING * 2 / 3
    below = (xp.sqrt(line * line + 8 * NOTHING * square) - line) / (2 * square)
    above = 2 * NOTHING / (gap + xp.sqrt(gap * gap + 2 * NOTHING * wide))
    above = xp.minimum(above, xp.log1p((NOTHING + a * above) / xp.where(lower, a, wide)))
    length = xp.where(lower, below, above)
    start = logarithm - psi.forward(xp, a)
    total = a * 0
    for node, weight in quadrature(NODES):
        v = sign * length * node
        total = total + weight * (start + v) * xp.exp(a * v - wide * xp.expm1(v))
    series, term = a * 0, a * 0 + 1
    falls = lower & (wide < 1)
    small = xp.where(falls, wide, 0.0)
    for k in range(TERMS):
        series = series + term * (start - 1 / (a + k)) / (a + k)
        term = term * -small / (k + 1)
    slope = xp.where(falls, -xp.exp(small) * series, sign * length * total)
    return (slope if log else wide * slope).astype(alpha.dtype)


standard_gamma.batched(lambda call: call.again(call.front(0)))  # each element is drawn by itself
standard_gamma.vjp(alpha=lambda g, out, alpha, *, log: g * standard_gamma_grad(alpha, out, log=log))
