"""What runs in a worker process of a DataLoader.

Three threads: one takes tasks out of their pipe, so that the main process never waits to send one; one works; one
puts batches into their pipe, so that the next batch is made while the main process is busy with an earlier one.
"""

from __future__ import annotations

import enum
import pickle
import queue
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any
from weakref import WeakSet

from leafgrad.tensor.random import manual_seed
from leafgrad.utils.data import transport
from leafgrad.utils.data.fetch import Collate, Exhausted, Fetch, fetcher


class Sign(enum.Enum):
    """What goes through the pipes apart from tasks and batches, equal to none of them.

    Attributes:
        RESTART: sent to a worker: a new epoch begins.
        LEAVE: what a worker finds when the main process has closed its pipe, or is gone.
        ENDED: sent by a worker: its copy of a stream has no more samples.
    """

    RESTART = enum.auto()
    LEAVE = enum.auto()
    ENDED = enum.auto()


MAIN_ENDS: WeakSet[Connection] = WeakSet()
"""The main process's ends of all pipes. A forked worker closes its copies, or nobody would see them close."""


@dataclass(frozen=True)
class WorkerInfo:
    """Where code of a dataset runs.

    Attributes:
        id: the number of the worker, from 0.
        num_workers: how many there are.
        seed: what the random generators of this worker, ``random``'s and leafgrad's, started from.
        dataset: this process's copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any = field(repr=False)


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process of a DataLoader, which worker it is; None in the main process."""
    return _info


@dataclass(frozen=True)
class Job:
    """What a worker is told when it starts."""

    info: WorkerInfo
    batched: bool
    collate: Collate
    drop_last: bool
    init: Callable[[int], None] | None

    def begin(self) -> None:
        """Make this process the worker."""
        global _info
        _info = self.info
        random.seed(self.info.seed)
        manual_seed(self.info.seed)
        if numpy := sys.modules.get("numpy"):  # datasets draw from its global generator too
            numpy.random.set_bit_generator(
                numpy.random.MT19937(self.info.seed)
            )  # the old one's lock may be held for ever
        if self.init is not None:
            self.init(self.info.id)

    def fetcher(self) -> Fetch:
        """How to make the batches of an epoch."""
        return fetcher(self.info.dataset, self.batched, self.collate, self.drop_last)


@dataclass(frozen=True)
class Failure:
    """An exception in a worker, in a form that crosses to the main process."""

    kind: type[BaseException]
    text: str

    @classmethod
    def of(cls, error: BaseException, worker: int) -> Failure:
        """The failure that an exception is."""
        kind = type(error)
        text = f"Caught {kind.__name__} in DataLoader worker process {worker}.\nOriginal {traceback.format_exc()}"
        try:
            pickle.dumps(kind)
        except Exception:  # a class defined inside a function exists in this process only
            kind = RuntimeError
        if issubclass(kind, StopIteration):  # raised there it would only end the loop
            kind = RuntimeError
        return cls(kind, text)

    def error(self) -> BaseException:
        """The exception to raise: of the original class, with the original traceback as its message."""
        try:
            return KeyError(Lines(self.text)) if self.kind is KeyError else self.kind(self.text)
        except Exception:  # it takes other arguments than a message
            return RuntimeError(self.text)


class Lines(str):
    """A str whose repr, which is what a KeyError shows, keeps the lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def work(job: Job, tasks: Connection, results: Connection) -> None:
    """Answer each task, the indices of a batch, with the batch, until the main process goes away."""
    for end in list(MAIN_ENDS):
        end.close()
    todo: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_take, args=(tasks, todo), daemon=True).start()
    threading.Thread(target=_put, args=(results, done), daemon=True).start()
    try:
        _serve(job, todo, done)
    except KeyboardInterrupt:  # end as one who was interrupted, without words: after Ctrl-C the main process has them
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)


def _take(tasks: Connection, todo: queue.SimpleQueue[Any]) -> None:
    task: Any = ...
    while task is not Sign.LEAVE:
        try:
            task = tasks.recv()
        except (EOFError, OSError):
            task = Sign.LEAVE
        todo.put(task)


def _put(results: Connection, done: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            transport.send(results, done.get())
    except OSError:
        return  # likewise


def _serve(job: Job, todo: queue.SimpleQueue[Any], done: queue.SimpleQueue[Any]) -> None:
    fetch: Fetch | None = None
    begun = False
    while (task := todo.get()) is not Sign.LEAVE:
        if task is Sign.RESTART:
            fetch = None
            continue
        try:
            if not begun:
                job.begin()
                begun = True
            fetch = fetch or job.fetcher()
            answer = transport.pack(fetch(task))
        except Exhausted:
            answer = transport.pack(Sign.ENDED)
        except Exception as error:
            answer = transport.pack(Failure.of(error, job.info.id))
        done.put(answer)
