"""Datasets: by index (Dataset) or as a stream (IterableDataset), and datasets made of others, or of parts of them."""

from __future__ import annotations

import bisect
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from leafgrad.tensor.random import Generator, default_generator, randperm
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Samples by index: a subclass defines ``__getitem__``, and ``__len__`` for samplers that need it.

    A subclass may also define ``__getitems__``, which takes a list of indices and returns the list of their samples
    where that is faster than one by one. ``a + b`` is the ConcatDataset of two.
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> Any:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], ABC):
    """Samples as a stream: a subclass defines ``__iter__``.

    Each worker process of a DataLoader iterates over a copy of the dataset, so ``__iter__`` has to share the work by
    ``get_worker_info()``, or every sample comes once from each worker. ``a + b`` is the ChainDataset of two.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[T]:
        """The samples, from the first on."""

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples that are slices of tensors along their first dimension: sample i is ``(t[i] for each tensor)``.

    Args:
        tensors: of one length, (n, ...).

    Raises:
        AssertionError: the lengths differ.
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError(f"Size mismatch between tensors: got lengths {[len(t) for t in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Datasets of one length side by side: sample i is a tuple, or with keywords a dict, of their samples i.

    Raises:
        ValueError: no datasets, positional ones and keywords mixed, or lengths that differ.
        TypeError: one has no length.
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "StackDataset: expected positional datasets, which make tuples, or keywords, which make dicts; got both"
            )
        parts = args or tuple(kwargs.values())
        if not parts:
            raise ValueError("StackDataset: At least one dataset should be passed")
        if unsized := [type(part).__name__ for part in parts if not isinstance(part, Sized)]:
            raise TypeError(f"StackDataset: expected datasets with a length, which have __len__, got {unsized[0]}")
        self._length = len(parts[0])
        if any(len(part) != self._length for part in parts):
            raise ValueError(f"Size mismatch between datasets: got lengths {[len(part) for part in parts]}")
        self.datasets = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple([part[index] for part in self.datasets])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """The samples at a list of indices."""
        if isinstance(self.datasets, dict):
            columns = [samples(part, indices) for part in self.datasets.values()]
            return [dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*[samples(part, indices) for part in self.datasets], strict=True))

    def __len__(self) -> int:
        return self._length


def samples(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """The samples of any dataset at a list of indices, through its ``__getitems__`` if it has one."""
    if callable(at_once := getattr(dataset, "__getitems__", None)):
        found: list[Any] = at_once(indices)
        if len(found) != len(indices):
            raise ValueError(
                f"{type(dataset).__name__}.__getitems__: expected {len(indices)} samples, one for each index, got "
                f"{len(found)}"
            )
        return found
    return [dataset[index] for index in indices]


class ConcatDataset(Dataset[T]):
    """Datasets one after the other.

    Args:
        datasets: datasets with a length.

    Raises:
        AssertionError: no datasets, or an IterableDataset among them (ChainDataset is for these).
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset[T]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset: datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset; use ChainDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(part) for part in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> T:
        if not -len(self) <= index < len(self):
            kind = ValueError if index < 0 else IndexError  # as PyTorch has it
            raise kind(
                f"ConcatDataset: absolute value of index should not exceed dataset length {len(self)}, got {index}"
            )
        index %= len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        sample: T = self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]
        return sample


class ChainDataset(IterableDataset[Any]):
    """Streams one after the other.

    Args:
        datasets: iterable datasets.
    """

    datasets: Iterable[Any]

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for part in self._checked():
            yield from part

    def __len__(self) -> int:
        return sum(len(part) for part in self._checked())

    def _checked(self) -> Iterator[Any]:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError(
                    f"ChainDataset only supports IterableDataset, got {type(part).__name__}; use ConcatDataset"
                )
            yield part


class Subset(Dataset[T]):
    """The samples of a dataset at some of its indices.

    Args:
        dataset: a dataset.
        indices: places in it.
    """

    dataset: Dataset[T]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """The samples at a list of indices into this subset."""
        return samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


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
        lengths = whole(lengths, count)
    if sum(lengths) != count:
        raise ValueError(
            "random_split: Sum of input lengths does not equal the length of the input dataset! Expected lengths that "
            f"sum to {count}, or fractions that sum to 1, got {list(lengths)}"
        )
    order = randperm(count, generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[int(end - length) : int(end)]) for length, end in zip(lengths, ends, strict=True)]


def whole(fractions: Sequence[float], count: int) -> list[int]:
    """Lengths of parts that are these fractions of a count."""
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"random_split: Fraction at index {i} is not between 0 and 1: {fraction}")
    lengths = [math.floor(count * fraction) for fraction in fractions]
    for i in range(count - sum(lengths)):
        lengths[i % len(lengths)] += 1
    return lengths
