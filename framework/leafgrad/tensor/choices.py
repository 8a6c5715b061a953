"""Choices of elements of vectors: products and combinations."""

from __future__ import annotations

import itertools

from leafgrad import dtypes
from leafgrad.tensor.arguments import expect_tensor, integer
from leafgrad.tensor.creation import zeros
from leafgrad.tensor.data import tensor
from leafgrad.tensor.joining import meshgrid, stack
from leafgrad.tensor.public import public
from leafgrad.tensor.tensor import Tensor


@public(only="leafgrad")
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of elements of one-dimensional tensors, the last one fastest. (number, len(tensors))

    Args:
        tensors: of one dimension and one dtype.
    """
    if len(tensors) == 1:
        return expect_tensor(tensors[0], "tensors", "cartesian_prod")
    return stack([x.reshape(-1) for x in meshgrid(*tensors)], 1)


@public(only="leafgrad")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of ``r`` elements, in order; with ``with_replacement`` an element may be chosen again. (n,) -> (m, r)

    Args:
        r: how many elements a choice has.
        with_replacement: whether an element may be in it several times.

    Raises:
        RuntimeError: ``input`` is not a vector, or ``r`` is negative.
    """
    if expect_tensor(input, "input", "combinations").ndim != 1:
        raise RuntimeError(f"combinations: Expect a 1D vector, but got shape {list(input.shape)}")
    if integer(r, "r", "combinations") < 0:
        raise RuntimeError(f"combinations: Expect a non-negative number, but got {r}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    if not r:
        return zeros(0, dtype=input.dtype, device=input.device)
    places = list(itertools.chain.from_iterable(choose(range(input.shape[0]), r)))  # in one list, which is read sooner
    return input[tensor(places, dtype=dtypes.int64, device=input.device).reshape(len(places) // r, r)]
