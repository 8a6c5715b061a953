"""Samplers: in which order a DataLoader takes the samples.

A sampler that shuffles draws its seed, and nothing else, from the generator when iteration starts. So the state of the
generator at that time is all that it takes to go through the same order again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from leafgrad import dtypes
from leafgrad.distributed.process_group import get_rank, get_world_size
from leafgrad.tensor.data import as_tensor
from leafgrad.tensor.random import Generator, randint, randperm
from leafgrad.tensor.sampling import multinomial

__all__ = [
    "BatchSampler",
    "DistributedSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T = TypeVar("T", covariant=True)


def draw_seed(generator: Generator | None) -> int:
    """A seed from a generator, None for the default one."""
    return int(randint(0, 2**63 - 1, (1,), generator=generator).item())


def positive(value: Any, name: str) -> int:
    """``value`` if it is an int above 0, else a ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")
    return value


def boolean(value: Any, name: str, error: type[Exception] = ValueError) -> bool:
    """``value`` if it is a bool, else an error."""
    if not isinstance(value, bool):
        raise error(f"{name} should be a boolean value, but got {name}={value}")
    return value


class Sampler(Generic[T]):
    """Indices of samples, in some order: a subclass defines ``__iter__``, and ``__len__`` if it knows."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, … in this order.

    Args:
        data_source: a dataset with a length.
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order, a new one at each iteration.

    Args:
        data_source: the dataset.
        replacement: draw each index from all of them, rather than go through permutations.
        num_samples: how many to draw, by default as many as there are samples.
        generator: where the seed of an order is drawn from; by default the default generator.

    Raises:
        ValueError: there is nothing to draw, or ``num_samples`` is not a positive int.
        TypeError: ``replacement`` is not a bool.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = boolean(replacement, "replacement", TypeError)
        self._num_samples = num_samples
        self.generator = generator
        if num_samples is None and not len(data_source):
            raise ValueError(
                "num_samples should be a positive integer value, but got num_samples=0: the dataset is empty; "
                "give one with samples"
            )
        positive(self.num_samples, "num_samples")

    @property
    def num_samples(self) -> int:
        """How many indices one iteration gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, drawn = len(self.data_source), self.num_samples
        if drawn and not count:
            raise ValueError(f"RandomSampler: expected a dataset of which to draw {drawn} samples, got an empty one")
        generator = Generator().manual_seed(draw_seed(self.generator))
        if self.replacement:
            blocks = (randint(0, count, (1024,), generator=generator) for _ in itertools.count())
        else:
            blocks = (randperm(count, generator=generator) for _ in itertools.count())
        return itertools.islice(itertools.chain.from_iterable(block.tolist() for block in blocks), drawn)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order, a new one at each iteration.

    Args:
        indices: what is drawn from.
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        generator = Generator().manual_seed(draw_seed(self.generator))
        return (self.indices[i] for i in randperm(len(self.indices), generator=generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given weights, which need not sum to 1.

    Args:
        weights: (n,), one for each index.
        num_samples: how many to draw.
        replacement: whether an index can come twice.
        generator: where the seed of an order is drawn from; by default the default generator.

    Raises:
        ValueError: an argument is of the wrong kind. RuntimeError: without replacement, more samples than weights.
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        self.weights = as_tensor(weights, dtype=dtypes.float64)
        self.num_samples = positive(num_samples, "num_samples")
        self.replacement = boolean(replacement, "replacement")
        self.generator = generator
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )

    def __iter__(self) -> Iterator[int]:
        generator = Generator().manual_seed(draw_seed(self.generator))
        return iter(multinomial(self.weights, self.num_samples, self.replacement, generator=generator).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` indices from another sampler; the last one may be shorter, unless ``drop_last``.

    Args:
        sampler: of indices.
        batch_size: how many make a batch.
        drop_last: whether a last batch of fewer is left out.

    Raises:
        ValueError: ``batch_size`` is not a positive int, or ``drop_last`` no bool.
    """

    sampler: Any  # an iterable, with a length where the number of batches is asked for

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = positive(batch_size, "batch_size")
        self.drop_last = boolean(drop_last, "drop_last")

    def __iter__(self) -> Iterator[list[int]]:
        return self._batches(iter(self.sampler))  # the order is drawn now, not at the first batch

    def _batches(self, indices: Iterator[int]) -> Iterator[list[int]]:
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full + (rest > 0 and not self.drop_last)


class DistributedSampler(Sampler[int]):
    """The share of one process among several that train together: every ``num_replicas``-th index of one order.

    Args:
        dataset: anything with a length.
        num_replicas: how many processes there are.
        rank: which of them this is, from 0.
        shuffle: whether the order is random, by ``seed`` and the epoch; see ``set_epoch``.
        seed: the same in all processes.
        drop_last: make the shares equal by leaving out indices at the end, rather than by repeating some.

    Raises:
        ValueError: ``num_replicas`` or ``rank`` is missing or out of range.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        num_replicas = get_world_size() if num_replicas is None else num_replicas
        rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        self.num_samples = len(dataset) // num_replicas if drop_last else math.ceil(len(dataset) / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order: Iterable[int] = range(count)
        if self.shuffle:
            order = randperm(count, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        return itertools.islice(itertools.cycle(order), self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of this epoch; call it in every process before iteration starts."""
        self.epoch = epoch
