"""Poisson numbers, from uniform ones."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.backends import Generator
from leafgrad.ops.define import op

SMALL = 10.0  # below it by inversion, from it on by rejection
TERMS = 64  # of the distribution below SMALL; what lies beyond is less probable than 1e-28
ROUNDS = 24  # of rejection; each accepts at least four of five


@op("random", "any_dtype")
def poisson(xp: Any, rate: Any, *, generator: Generator) -> Any:
    """How many events happen in a unit of time at these rates, of the rates' dtype. (...) -> (...)

    No step waits for a value, so all elements go through all terms and rounds.
    """
    wide = rate.astype("float64")
    few = inversion(xp, xp.minimum(wide, SMALL), generator)
    many = rejection(xp, xp.maximum(wide, SMALL), generator)
    return xp.where(wide < SMALL, few, many).astype(rate.dtype)


poisson.batched(lambda call: call.again(call.front(0)))  # each element is drawn by itself
poisson.vjp(rate=lambda g: None)


def inversion(xp: Any, rate: Any, generator: Generator) -> Any:
    """The first count up to which the probabilities add up to more than a uniform number."""
    u = generator.uniform(rate.shape, "float64")
    term = xp.exp(-rate)
    total, count = term, xp.zeros(rate.shape)
    for k in range(1, TERMS):
        count = count + (u >= total)
        term = term * rate / k
        total = total + term
    return count


def rejection(xp: Any, rate: Any, generator: Generator) -> Any:
    """W. Hörmann, "The transformed rejection method for generating Poisson random variables" (1993), algorithm PTRS."""
    b = 0.931 + 2.53 * xp.sqrt(rate)
    a = -0.059 + 0.02483 * b
    scale = 1.1239 + 1.1328 / (b - 3.4)
    count = xp.floor(rate)
    waiting = xp.ones(rate.shape, dtype=bool)
    for _ in range(ROUNDS):
        u, v = generator.uniform(rate.shape, "float64") - 0.5, 1 - generator.uniform(rate.shape, "float64")
        edge = xp.maximum(0.5 - xp.abs(u), 1e-300)
        k = xp.floor((2 * a / edge + b) * u + rate + 0.43)
        inside = (k >= 0) & ((edge >= 0.013) | (v <= edge))
        safe = xp.maximum(k, 0)
        level = xp.log(v * scale / (a / (edge * edge) + b))
        likely = level <= safe * xp.log(rate) - rate - log_factorial(xp, safe)
        accepted = waiting & (((edge >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))) | (inside & likely))
        count = xp.where(accepted, k, count)
        waiting = waiting & ~accepted
    return count


def log_factorial(xp: Any, k: Any) -> Any:
    """log(k!) of whole numbers, by Stirling's series of (k + 8)!, to 1e-10."""
    below = k + 1.0
    for n in range(2, 9):
        below = below * (k + n)
    z = k + 9.0
    series = 1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5)
    return (z - 0.5) * xp.log(z) - z + 0.5 * math.log(2 * math.pi) + series - xp.log(below)
