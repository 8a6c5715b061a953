"""Random numbers. ``generator`` is a backend's stream of them; each call advances it."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import dtypes
from leafgrad.backends import Generator
from leafgrad.ops.define import op
from leafgrad.ops.sort import searchsorted

Shape = tuple[int, ...]

DIGITS = {"float16": 11, "bfloat16": 8}
"""The binary digits of dtypes whose numbers are drawn and computed in float32, and rounded last."""


def wide(dtype: str) -> str:
    """The dtype to draw and to compute in."""
    return "float32" if dtype in DIGITS else dtype


def rounded(drawn: Any, dtype: str) -> Any:
    """What was drawn in the ``wide`` dtype in its own. bfloat16 is rounded by those who call the op."""
    return drawn.astype(dtype) if dtype == "float16" else drawn


def narrower(xp: Any, x: Any, digits: int) -> Any:
    """float32 rounded to fewer binary digits."""
    fraction, exponent = xp.frexp(x)
    return xp.ldexp(xp.rint(xp.ldexp(fraction, digits)), exponent - digits)


@op("random", "nondifferentiable")
def uniform(xp: Any, *, generator: Generator, shape: Shape, dtype: str, low: float = 0.0, high: float = 1.0) -> Any:
    """Numbers uniform in [low, high). -> shape"""
    if (low, high) == (0.0, 1.0):
        return generator.uniform(shape, dtype)
    drawn = generator.uniform(shape, wide(dtype)) * (high - low) + low
    if dtype in DIGITS:  # what is rounded up to ``high`` becomes ``low``, as in PyTorch
        drawn = narrower(xp, drawn, DIGITS[dtype])
        drawn = xp.where(drawn < high, drawn, low)
    return rounded(drawn, dtype)


@op("random", "nondifferentiable")
def normal(xp: Any, *, generator: Generator, shape: Shape, dtype: str, mean: float = 0.0, std: float = 1.0) -> Any:
    """Normal numbers of the given mean and standard deviation. -> shape"""
    drawn = generator.normal(shape, dtype)
    return drawn if (mean, std) == (0.0, 1.0) else drawn * std + mean


@op("random", "nondifferentiable")
def exponential(xp: Any, *, generator: Generator, shape: Shape, dtype: str, rate: float) -> Any:
    """Exponential numbers of the given rate, never 0: a logarithm of them is finite. -> shape"""
    drawn = generator.uniform(shape, wide(dtype))
    least = dtypes.finfo(dtypes.of(drawn)).eps / 2  # the next above 0
    return rounded(-xp.log1p(-xp.maximum(drawn, least)) / rate, dtype)


@op("random", "nondifferentiable")
def log_normal(xp: Any, *, generator: Generator, shape: Shape, dtype: str, mean: float, std: float) -> Any:
    """Numbers whose logarithm is normal, of the given mean and standard deviation. -> shape"""
    return rounded(xp.exp(generator.normal(shape, wide(dtype)) * std + mean), dtype)


@op("random", "nondifferentiable")
def cauchy(xp: Any, *, generator: Generator, shape: Shape, dtype: str, median: float, sigma: float) -> Any:
    """Cauchy numbers: the density is half its largest value at ``median`` plus and minus ``sigma``. -> shape"""
    return rounded(xp.tan((generator.uniform(shape, wide(dtype)) - 0.5) * math.pi) * sigma + median, dtype)


@op("random", "nondifferentiable")
def geometric(xp: Any, *, generator: Generator, shape: Shape, dtype: str, p: float) -> Any:
    """How many trials it takes until one succeeds, each with probability p < 1. -> shape"""
    trials = xp.ceil(xp.log1p(-generator.uniform(shape, "float64")) / math.log1p(-p))
    return xp.maximum(trials, 1.0).astype(dtype)


@op("random", "nondifferentiable")
def integers(xp: Any, *, generator: Generator, shape: Shape, dtype: str, low: int, high: int) -> Any:
    """Integers uniform in [low, high). -> shape"""
    return generator.integers(low, high, shape, dtype)


@op("random", "nondifferentiable")
def permutation(xp: Any, *, generator: Generator, count: int, dtype: str) -> Any:
    """0, ..., count - 1 in random order. -> (count,)"""
    return generator.permutation(count).astype(dtype)


@op("random", "nondifferentiable")
def bernoulli_full(xp: Any, *, generator: Generator, shape: Shape, dtype: str, p: float) -> Any:
    """Ones with probability p, zeros otherwise. -> shape"""
    return generator.bernoulli(p, shape, dtype)


bernoulli_full.lower("native", lambda c, e: c.draw())


@op("random", "any_dtype")
def bernoulli(xp: Any, p: Any, *, generator: Generator) -> Any:
    """Ones with the probabilities p, zeros otherwise, of p's dtype. (...) -> (...)"""
    return generator.bernoulli(p, p.shape, p.dtype.name)


bernoulli.batched(lambda call: call.again(call.front(0)))  # each element is drawn by itself
bernoulli.vjp(p=lambda g: None)
bernoulli.shape(lambda p: p.shape)


@op("random", "nondifferentiable")
def multinomial(xp: Any, p: Any, *, generator: Generator, count: int, replacement: bool) -> Any:
    """``count`` positions along the last dimension, drawn with weights p. (..., n) -> (..., count), int64

    Without replacement these are the positions of the largest p**(1/u), u uniform (Efraimidis and Spirakis 2006).
    """
    if replacement:
        edges = xp.cumsum(p.astype("float64"), axis=-1)
        drawn = generator.uniform((*p.shape[:-1], count), "float64") * edges[..., -1:]
        return searchsorted.forward(xp, edges, drawn, right=True)
    waited = -xp.log(1 - generator.uniform(p.shape, "float64"))  # exponential
    clock = xp.where(p > 0, waited / xp.where(p > 0, p, 1), math.inf)
    return xp.argsort(clock, axis=-1)[..., :count]


multinomial.batched(lambda call: call.again(call.front(0)))  # each row is drawn by itself
