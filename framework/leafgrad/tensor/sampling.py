"""Random tensors whose distributions are given by tensors: of probabilities, weights, rates and shapes."""

from __future__ import annotations

import math

from leafgrad.ops import random as ops
from leafgrad.ops.refuse import refuse
from leafgrad.tensor import arguments
from leafgrad.tensor.public import public
from leafgrad.tensor.random import Generator, draw, stream
from leafgrad.tensor.shapes import broadcast_tensors
from leafgrad.tensor.tensor import Tensor


@public(out="cast")
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Ones with the probabilities in ``input`` (or ``p`` everywhere), zeros otherwise, of its shape and dtype.

    Raises:
        RuntimeError: a probability outside [0, 1].
    """
    arguments.expect_tensor(input, "input", "bernoulli")
    place = input.device.resolve()
    if p is not None:
        shape = tuple(input.shape)
        return draw(
            ops.bernoulli_full,
            "bernoulli",
            generator,
            input.device,
            input.dtype,
            shape=shape,
            p=probability(p, "bernoulli"),
        )
    arguments.expect_floating(input, "bernoulli")
    expect_probabilities(input, "bernoulli")
    return ops.bernoulli(input, generator=stream(generator, place, "bernoulli"))


def expect_probabilities(p: Tensor, function: str) -> None:
    """An error unless all elements are in [0, 1]."""
    plain = p.detach()
    outside = f"{function}: expected probabilities in [0, 1], but some are not"
    refuse(((plain >= 0) & (plain <= 1)).logical_not(), error=RuntimeError, message=outside)


def probability(p: float, function: str) -> float:
    """``p`` if it is in [0, 1]."""
    if not 0 <= arguments.number(p, "p", function) <= 1:
        raise RuntimeError(f"{function}: expected p to be in [0, 1], but got p={p}")
    return float(p)


@public(out="cast")
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """``num_samples`` positions along the last dimension, drawn with the weights in ``input``.

    (n,) or (m, n) -> (num_samples,) or (m, num_samples), int64

    Raises:
        RuntimeError: wrong number of dimensions or samples; a weight that is negative, inf or nan; weights that add
            up to 0.
    """
    arguments.expect_floating(input, "multinomial")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim, got {input.ndim}")
    if num_samples <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples, got {num_samples}")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement, got "
            f"{num_samples} and {input.shape[-1]}"
        )
    plain = input.detach()
    possible = (plain >= 0) & (plain < math.inf)
    unlike = "probability tensor contains either `inf`, `nan` or element < 0"
    refuse(possible.logical_not(), error=RuntimeError, message=unlike)
    nothing = "invalid multinomial distribution (sum of probabilities <= 0)"
    refuse(plain.sum(dim=-1) <= 0, error=RuntimeError, message=nothing)
    source = stream(generator, input.device.resolve(), "multinomial")
    return ops.multinomial(input, generator=source, count=num_samples, replacement=replacement)


@public(only="leafgrad")
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """How many events happen in a unit of time at the rates in ``input``, of its shape and dtype.

    Raises:
        RuntimeError: a negative rate.
    """
    arguments.expect_floating(input, "poisson")
    from leafgrad.ops.poisson import poisson as draw

    refuse(input.detach() < 0, error=RuntimeError, message="poisson: invalid rate, expected rate to be non-negative")
    return draw(input, generator=stream(generator, input.device.resolve(), "poisson"))


@public(only="leafgrad")
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of ``count`` trials succeed, each with probability ``prob``, of their common shape.

    Args:
        count: how many trials.
        prob: of each.

    Raises:
        RuntimeError: dtypes that are no floating ones or differ; counts below 0; probabilities outside [0, 1].
    """
    arguments.expect_floating(count, "binomial")
    arguments.expect_floating(prob, "binomial")
    if count.dtype is not prob.dtype:
        raise RuntimeError(f"binomial: expected count and prob of one dtype, got {count.dtype} and {prob.dtype}")
    from leafgrad.ops.binomial import binomial as draw

    count, prob = broadcast_tensors(count, prob)
    refuse(count.detach() < 0, error=RuntimeError, message="binomial: expected counts not below 0")
    expect_probabilities(prob, "binomial")
    return draw(count, prob, generator=stream(generator, count.device.resolve(), "binomial"))


def standard_gamma(input: Tensor, log: bool = False) -> Tensor:
    """Gamma distributed numbers of rate 1 and of the shape parameters in ``input``, of its shape and dtype.

    Gradients flow to the shape parameters.

    Args:
        log: whether to return their logarithms.
    """
    arguments.expect_floating(input, "standard_gamma")
    from leafgrad.ops.gamma import standard_gamma as draw

    return draw(input, generator=stream(None, input.device.resolve(), "standard_gamma"), log=log)
