"""DataLoader: batches of a dataset, in its own process or from workers."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing.context import BaseContext
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from leafgrad.ops.messages import warn
from leafgrad.tensor.random import Generator
from leafgrad.tensor.storage import pinning
from leafgrad.utils.data.collate import default_collate, default_convert, pinned
from leafgrad.utils.data.dataset import Dataset, IterableDataset
from leafgrad.utils.data.fetch import Exhausted, fetcher
from leafgrad.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed, positive
from leafgrad.utils.data.workers import WorkersIterator

__all__ = ["DataLoader"]

T = TypeVar("T", covariant=True)


@runtime_checkable
class Indexed(Protocol[T]):
    """What gives samples by index, such as a Dataset or a list."""

    def __getitem__(self, index: Any, /) -> T:
        """One sample."""


FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class Endless(Sampler[None]):
    """None for ever: a stream has no indices, only batches of a size."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T]):
    """Batches of a dataset: ``for batch in loader`` is one epoch.

    With the same generator state an epoch gives the same batches in the same order, however many workers there are.

    Args:
        dataset: a Dataset, anything else with ``__getitem__`` and ``__len__``, or an IterableDataset.
        batch_size: samples of a batch. None gives single samples, through ``default_convert``.
        shuffle: a new random order in each epoch.
        sampler: the order of indices, instead of ``shuffle``.
        batch_sampler: lists of indices, instead of ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers: how many processes make batches; 0 makes them in this one.
        collate_fn: a list of samples -> a batch; ``default_collate`` if not given.
        pin_memory: copy the tensors of batches into page-locked memory, and call ``pin_memory()`` of what else has one:
            ``batch.to("cuda", non_blocking=True)`` does not wait then. A warning where there is no such device.
        drop_last: leave out the last batch of an epoch if it is not full.
        timeout: seconds to wait for a worker; 0 for ever.
        worker_init_fn: called in each worker with its number, after its random generators were seeded.
        multiprocessing_context: "fork", "spawn", "forkserver" or a context; by default that of ``multiprocessing``,
            which is "forkserver" on Linux from Python 3.14 on: what workers are given is pickled then, and a script
            needs ``if __name__ == "__main__":``.
        generator: where the seeds of orders and workers are drawn from; by default the default generator.
        prefetch_factor: batches that each worker makes ahead, 2 if not given.
        persistent_workers: keep the processes, and their copies of the dataset, from epoch to epoch.
        pin_memory_device: the type of device that copies from there; "cuda" if not given.
        in_order: False takes a batch as soon as any worker has one.

    Raises:
        ValueError, TypeError: options that are out of range or exclude one another. While iterating, whatever the
        dataset raises, with the traceback from the worker; RuntimeError if a worker dies or takes too long.
    """

    dataset: Dataset[T]
    batch_size: int | None
    num_workers: int
    drop_last: bool
    collate_fn: Callable[[Any], Any]
    prefetch_factor: int | None
    sampler: Any
    batch_sampler: Any
    _iterator: WorkersIterator | None = None
    _ready = False  # from then on FIXED attributes cannot be set

    def __init__(
        self,
        dataset: Indexed[T],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_kinds(dataset, sampler, batch_sampler, collate_fn, worker_init_fn, generator)
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = cast(Dataset[T], dataset)
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout, self.worker_init_fn, self.generator = timeout, worker_init_fn, generator
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers, self.in_order = persistent_workers, in_order
        self._choose_samplers(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.collate_fn = collate_fn or (default_convert if self.batch_sampler is None else default_collate)
        self._ready = True
        _check_worker_count(num_workers)

    def _choose_samplers(self, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: Any) -> None:
        if isinstance(self.dataset, IterableDataset):
            given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
            for name, value in given.items():
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}; "
                        "the dataset itself decides about its order"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = self._default_sampler(shuffle)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, positive(batch_size, "batch_size"), drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler

    def _default_sampler(self, shuffle: Any) -> Sampler[Any]:
        data: Any = self.dataset
        if isinstance(data, IterableDataset):
            return Endless()
        return RandomSampler(data, generator=self.generator) if shuffle else SequentialSampler(data)

    @property
    def index_sampler(self) -> Any:
        """What says which samples to fetch next: ``batch_sampler``, or without batches ``sampler``."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    @property
    def multiprocessing_context(self) -> BaseContext | None:
        """How worker processes are started; None for the default way."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        methods = multiprocessing.get_all_start_methods()
        if context is not None and not self.num_workers:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                f"num_workers={self.num_workers}"
            )
        if isinstance(context, str):
            if context not in methods:
                raise ValueError(
                    f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                    f"multiprocessing_context={context!r}"
                )
            context = multiprocessing.get_context(context)
        elif context is not None and not isinstance(context, BaseContext):
            raise TypeError(
                "multiprocessing_context option should be a valid context object or a string specifying the start "
                f"method, but got multiprocessing_context={context!r}"
            )
        self._context = context

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    # ---- batches ----------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        device = self.pin_memory_device or "cuda"
        if not self.pin_memory:
            return self._unpinned()
        if pinning(device) is None:
            warn(
                f"'pin_memory' argument is set as true but there is no device of type {device!r}, then device pinned "
                "memory won't be used."
            )
            return self._unpinned()
        return map(partial(pinned, device=device), self._unpinned())

    def _unpinned(self) -> Iterator[Any]:
        seed = draw_seed(self.generator)  # with and without workers, so that what is drawn later is the same
        if not self.num_workers:
            return self._batches(iter(self.index_sampler))
        if not self.persistent_workers:
            return WorkersIterator(self, seed)
        if self._iterator is not None and self._iterator.running:
            self._iterator.restart(self)
        else:
            if self._iterator is not None:
                self._iterator.stop()
            self._iterator = WorkersIterator(self, seed)
        return self._iterator

    def _batches(self, order: Iterator[Any]) -> Iterator[Any]:
        fetch = fetcher(self.dataset, self.batch_sampler is not None, self.collate_fn, self.drop_last)
        for indices in order:
            try:
                batch = fetch(indices)
            except Exhausted:
                return
            yield batch

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self.index_sampler)
        stream: Any = self.dataset
        if self.batch_size is None:
            return len(stream)
        full, rest = divmod(len(stream), self.batch_size)
        return full + (rest > 0 and not self.drop_last)


def _check_kinds(
    dataset: Any, sampler: Any, batch_sampler: Any, collate_fn: Any, worker_init_fn: Any, generator: Any
) -> None:
    if not isinstance(dataset, IterableDataset) and not hasattr(dataset, "__getitem__"):
        raise TypeError(
            "DataLoader: dataset: expected a Dataset, or something else with __getitem__ and __len__, got "
            f"{type(dataset).__name__}; make an iterator an IterableDataset"
        )
    for name, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None and not hasattr(value, "__iter__"):
            raise TypeError(f"DataLoader: {name}: expected a Sampler or another iterable, got {type(value).__name__}")
    for name, value in (("collate_fn", collate_fn), ("worker_init_fn", worker_init_fn)):
        if value is not None and not callable(value):
            raise TypeError(f"DataLoader: {name}: expected a function, got {type(value).__name__}")
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError(f"DataLoader: generator: expected a Generator, got {type(generator).__name__}")


def _check_workers(num_workers: Any, timeout: Any, prefetch_factor: Any, persistent_workers: Any) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing: let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor <= 0:
        raise ValueError(f"prefetch_factor option should be positive, but got prefetch_factor={prefetch_factor}")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_worker_count(num_workers: int) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if cores and num_workers > cores:
        warn(
            f"This DataLoader will create {num_workers} worker processes in total. Our suggested max number of worker "
            f"in current system is {cores}; more of them run slower, and take memory."
        )
