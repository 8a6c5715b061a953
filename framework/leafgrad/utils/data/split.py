"""random_split: a dataset in random parts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeVar

from leafgrad.tensor.random import Generator, default_generator, randperm
from leafgrad.utils.data.dataset import Dataset, Subset

__all__ = ["random_split"]

T = TypeVar("T")


def random_split(
    dataset: Dataset[T], lengths: Sequence[int | float], generator: Generator | None = default_generator
) -> list[Subset[T]]:
    """Subsets of a dataset that have no sample in common, drawn at random.

    Args:
        dataset: anything with a length.
        lengths: how many samples each part gets, or fractions that sum to 1. What rounding fractions down leaves
            over goes to the first parts, one sample each.
        generator: the random numbers to draw from.

    Raises:
        ValueError: the lengths do not sum to the length of the dataset, or the fractions not to 1.
    """
    sized: Any = dataset
    count = len(sized)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9:
        lengths = _whole(lengths, count)
    if sum(lengths) != count:
        raise ValueError(
            "random_split: Sum of input lengths does not equal the length of the input dataset! Expected lengths that "
            f"sum to {count}, or fractions that sum to 1, got {list(lengths)}"
        )
    order = randperm(count, generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[int(end - length) : int(end)]) for length, end in zip(lengths, ends, strict=True)]


def _whole(fractions: Sequence[float], count: int) -> list[int]:
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"random_split: Fraction at index {i} is not between 0 and 1: {fraction}")
    lengths = [math.floor(count * fraction) for fraction in fractions]
    for i in range(count - sum(lengths)):
        lengths[i % len(lengths)] += 1
    return lengths
