"""Binomial numbers, from uniform ones."""

from __future__ import annotations

from typing import Any

from leafgrad.backends import Generator
from leafgrad.ops.define import op
from leafgrad.ops.poisson import ROUNDS, SMALL, TERMS, log_factorial


@op("random", "any_dtype")
def binomial(xp: Any, count: Any, prob: Any, *, generator: Generator) -> Any:
    """How many of ``count`` trials succeed, each with probability ``prob``; of count's dtype. (...), (...) -> (...)

    No step waits for a value, so all elements go through all terms and rounds.
    """
    n, p = count.astype("float64"), prob.astype("float64")
    n, p = n + 0 * p, p + 0 * n
    rare = xp.minimum(p, 1 - p)  # of success or failure, whichever is rarer
    small = n * rare < SMALL
    few = inversion(xp, xp.where(small, n, 0.0), xp.where(small, rare, 0.0), generator)
    many = rejection(xp, xp.where(small, 4 * SMALL, n), xp.where(small, 0.5, rare), generator)
    drawn = xp.where(small, few, many)
    drawn = xp.where(p > 0.5, n - drawn, drawn)
    return xp.where(xp.isnan(n + p), n + p, drawn).astype(count.dtype)


binomial.vjp(count=lambda g: None, prob=lambda g: None)


def inversion(xp: Any, n: Any, p: Any, generator: Generator) -> Any:
    """The first number up to which the probabilities add up to more than a uniform number."""
    u = generator.uniform(n.shape, "float64")
    odds = p / (1 - p)
    term = xp.exp(n * xp.log1p(-p))
    total, count = term, xp.zeros(n.shape)
    for k in range(1, TERMS):
        count = count + (u >= total)
        term = term * odds * xp.maximum(n - k + 1, 0) / k
        total = total + term
    return xp.minimum(count, n)


def rejection(xp: Any, n: Any, p: Any, generator: Generator) -> Any:
    """W. Hörmann, "The generation of binomial random variates" (1993), algorithm BTRS. For p up to 1/2."""
    spread = xp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    scale = (2.83 + 5.1 / b) * spread
    mode = xp.floor((n + 1) * p)
    log_odds = xp.log(p / (1 - p))
    top = log_factorial(xp, mode) + log_factorial(xp, n - mode)
    count, waiting = mode, xp.ones(n.shape, dtype=bool)
    for _ in range(ROUNDS):
        u, v = generator.uniform(n.shape, "float64") - 0.5, 1 - generator.uniform(n.shape, "float64")
        edge = xp.maximum(0.5 - xp.abs(u), 1e-300)
        k = xp.floor((2 * a / edge + b) * u + n * p + 0.5)
        inside = (k >= 0) & (k <= n)
        safe = xp.minimum(xp.maximum(k, 0), n)
        level = xp.log(v * scale / (a / (edge * edge) + b))
        likely = level <= top - log_factorial(xp, safe) - log_factorial(xp, n - safe) + (safe - mode) * log_odds
        accepted = waiting & inside & (((edge >= 0.07) & (v <= 0.92 - 4.2 / b)) | likely)
        count = xp.where(accepted, k, count)
        waiting = waiting & ~accepted
    return count
