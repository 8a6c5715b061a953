"""Random numbers. ``generator`` is a backend's stream of them; each call advances it."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.backends import Generator
from leafgrad.ops.define import op

Shape = tuple[int, ...]


@op("random", "nondifferentiable")
def uniform(xp: Any, *, generator: Generator, shape: Shape, dtype: str, low: float = 0.0, high: float = 1.0) -> Any:
    """Numbers uniform in [low, high). -> shape"""
    drawn = generator.uniform(shape, dtype)
    return drawn if (low, high) == (0.0, 1.0) else drawn * (high - low) + low


@op("random", "nondifferentiable")
def normal(xp: Any, *, generator: Generator, shape: Shape, dtype: str, mean: float = 0.0, std: float = 1.0) -> Any:
    """Normal numbers of the given mean and standard deviation. -> shape"""
    drawn = generator.normal(shape, dtype)
    return drawn if (mean, std) == (0.0, 1.0) else drawn * std + mean


@op("random", "nondifferentiable")
def exponential(xp: Any, *, generator: Generator, shape: Shape, dtype: str, rate: float) -> Any:
    """Exponential numbers of the given rate. -> shape"""
    return -xp.log1p(-generator.uniform(shape, dtype)) / rate


@op("random", "nondifferentiable")
def log_normal(xp: Any, *, generator: Generator, shape: Shape, dtype: str, mean: float, std: float) -> Any:
    """Numbers whose logarithm is normal, of the given mean and standard deviation. -> shape"""
    return xp.exp(generator.normal(shape, dtype) * std + mean)


@op("random", "nondifferentiable")
def cauchy(xp: Any, *, generator: Generator, shape: Shape, dtype: str, median: float, sigma: float) -> Any:
    """Cauchy numbers: the density is half its largest value at ``median`` plus and minus ``sigma``. -> shape"""
    return xp.tan((generator.uniform(shape, dtype) - 0.5) * math.pi) * sigma + median


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
        return (drawn[..., None] >= edges[..., None, :]).sum(axis=-1)
    waited = -xp.log(1 - generator.uniform(p.shape, "float64"))  # exponential
    clock = xp.where(p > 0, waited / xp.where(p > 0, p, 1), math.inf)
    return xp.argsort(clock, axis=-1)[..., :count]


multinomial.batched(lambda call: call.again(call.front(0)))  # each row is drawn by itself
