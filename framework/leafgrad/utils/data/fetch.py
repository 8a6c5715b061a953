"""From indices to a batch: what a DataLoader does for each batch, in its own process or in a worker."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from leafgrad.tensor.data import tensor
from leafgrad.tensor.tensor import Tensor
from leafgrad.utils.data.collate import default_collate
from leafgrad.utils.data.dataset import IterableDataset, Subset, TensorDataset, samples

Collate = Callable[[Any], Any]
Fetch = Callable[[Any], Any]
"""From what a sampler gave to a batch; Exhausted when a stream has ended."""


class Exhausted(Exception):
    """A stream has no more samples, or too few for a batch that must be full."""


def fetcher(dataset: Any, batched: bool, collate: Collate, drop_last: bool) -> Fetch:
    """How to make batches of a dataset. A new one starts a stream anew."""
    if isinstance(dataset, IterableDataset):
        return stream(iter(dataset), batched, collate, drop_last)
    if not batched:
        return lambda index: collate(dataset[index])
    if collate is default_collate and (gather := columns(dataset)) is not None:
        return lambda indices: gather(indices) if _are_ints(indices) else collate(samples(dataset, indices))
    return lambda indices: collate(samples(dataset, indices))


def stream(items: Iterator[Any], batched: bool, collate: Collate, drop_last: bool) -> Fetch:
    """Batches of a stream; the sampler's indices only say how many samples belong to one."""

    def fetch(indices: Any) -> Any:
        batch = list(itertools.islice(items, len(indices) if batched else 1))
        if not batch or (batched and drop_last and len(batch) < len(indices)):
            raise Exhausted
        return collate(batch if batched else batch[0])

    return fetch


def columns(dataset: Any) -> Callable[[list[int]], list[Tensor]] | None:
    """A function that gathers a whole batch of a TensorDataset, or of a Subset of one; None for any other dataset.

    One look-up for each tensor gives what ``default_collate`` makes of all samples one by one. A subclass that changes
    how samples are found is another dataset.
    """
    kind = type(dataset)
    if isinstance(dataset, TensorDataset):
        own = kind.__getitem__ is not TensorDataset.__getitem__ or hasattr(kind, "__getitems__")
        return None if own else lambda indices: _gathered(dataset.tensors, indices)
    if kind is Subset and (inner := columns(dataset.dataset)) is not None:
        return lambda indices: inner([dataset.indices[i] for i in indices])
    return None


def _gathered(tensors: tuple[Tensor, ...], indices: list[int]) -> list[Tensor]:
    where = tensor(indices)
    return [t[where] for t in tensors]


def _are_ints(indices: Any) -> bool:
    return type(indices) is list and set(map(type, indices)) == {int}
