"""Worker processes, as the main process sees them: an iterator that hands out tasks and collects batches.

Each worker has two pipes of its own, one for tasks and one for batches, and answers its tasks in order. Nothing is
shared between workers: one that is killed harms no other, and the end of its pipe tells at once that it is gone.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from pickle import PicklingError
from typing import Any

from leafgrad.utils.data import transport
from leafgrad.utils.data.worker import MAIN_ENDS, Failure, Job, Sign, WorkerInfo, work

PATIENCE = 5.0  # seconds that workers get to end by themselves


class Worker:
    """One process and its pipes."""

    def __init__(self, job: Job, context: Any) -> None:
        their_tasks, self.tasks = context.Pipe(duplex=False)
        self.results, their_results = context.Pipe(duplex=False)
        MAIN_ENDS.update((self.tasks, self.results))
        self.process = context.Process(target=work, args=(job, their_tasks, their_results), daemon=True)
        try:
            self.process.start()
        except (PicklingError, AttributeError, TypeError) as error:
            self.close_pipes()
            raise PicklingError(
                f"DataLoader: workers are started by {context.get_start_method()!r}, for which the dataset, collate_fn "
                f"and worker_init_fn are pickled, but {error}. Define functions and classes at the top of a module, or "
                'pass multiprocessing_context="fork", which Linux had by default before Python 3.14'
            ) from error
        except BaseException:
            self.close_pipes()
            raise
        finally:
            their_tasks.close()
            their_results.close()
        self.active = True  # its copy of a stream has not ended
        self.unanswered = 0

    def close_pipes(self) -> None:
        """Which tells the process to end."""
        self.tasks.close()
        self.results.close()

    def ask(self, indices: Any) -> None:
        """Give it a task."""
        self._send(indices)
        self.unanswered += 1

    def restart(self) -> None:
        """Drop what it still works on, and begin a new epoch."""
        while self.unanswered:
            self.answer()
        self._send(Sign.RESTART)
        self.active = True

    def _send(self, message: Any) -> None:
        try:
            self.tasks.send(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self._gone() from None

    def answer(self) -> Any:
        """The batch, Failure or Sign.ENDED that its oldest task led to."""
        if not self.results.poll():
            wait([self.results, self.process.sentinel])
        try:
            if not self.results.poll():
                raise EOFError
            answer = transport.receive(self.results)
        except (EOFError, OSError):
            raise self._gone() from None
        self.unanswered -= 1
        return answer

    def _gone(self) -> RuntimeError:
        self.process.join(PATIENCE)
        code = self.process.exitcode
        how = f"killed by {signal.Signals(-code).name}" if code and code < 0 else f"exit code {code}"
        return RuntimeError(f"DataLoader worker (pid(s) {self.process.pid}) exited unexpectedly: {how}")


class WorkersIterator:
    """One pass over a DataLoader with workers; with ``persistent_workers`` one after the other."""

    def __init__(self, loader: Any, base_seed: int) -> None:
        self._workers: list[Worker] = []
        self._asked: deque[Worker] = deque()  # who has the tasks without a batch yet, in their order
        self._owner = os.getpid()
        self._stop = weakref.finalize(self, stop, self._workers, self._owner)
        context = loader.multiprocessing_context or multiprocessing.get_context()
        with self._or_stop():
            for i in range(loader.num_workers):
                info = WorkerInfo(i, loader.num_workers, base_seed + i, loader.dataset)
                batched = loader.batch_sampler is not None
                job = Job(info, batched, loader.collate_fn, loader.drop_last, loader.worker_init_fn)
                self._workers.append(Worker(job, context))
            self._begin(loader)

    @property
    def running(self) -> bool:
        """Whether all processes are there, and this one's."""
        return (
            self._stop.alive
            and os.getpid() == self._owner
            and all(worker.process.is_alive() for worker in self._workers)
        )

    def restart(self, loader: Any) -> None:
        """Begin a new pass with the same processes."""
        with self._or_stop():
            for worker in self._workers:
                worker.restart()
            self._begin(loader)

    def stop(self) -> None:
        """End the processes, if they have not ended yet."""
        self._asked.clear()
        self._stop()

    @contextmanager
    def _or_stop(self) -> Iterator[None]:
        """After a dead worker, a timeout or Ctrl-C there is no way on: no process stays, nor any pipe."""
        try:
            yield
        except BaseException:
            self.stop()
            raise

    def _begin(self, loader: Any) -> None:
        # The loader itself, which may keep this iterator, is not kept: both end as soon as nobody needs them.
        self._timeout, self._in_order, self._persistent = loader.timeout, loader.in_order, loader.persistent_workers
        self._indices = iter(loader.index_sampler)
        self._turn = 0
        self._asked.clear()
        for _ in range(loader.prefetch_factor * len(self._workers)):
            self._ask()

    def _ask(self) -> None:
        """Hand out one more task, to the next worker whose stream goes on."""
        for _ in self._workers:
            worker = self._workers[self._turn % len(self._workers)]
            self._turn += 1
            if worker.active:
                try:
                    worker.ask(next(self._indices))
                except StopIteration:
                    return
                self._asked.append(worker)
                return

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while self._asked:
            with self._or_stop():
                worker = self._next_worker()
                answer = worker.answer()
                worker.active = answer is not Sign.ENDED
                self._ask()
            if not worker.active:
                continue
            if isinstance(answer, Failure):
                raise answer.error()
            return answer
        if not self._persistent:
            self._stop()
        raise StopIteration

    def _next_worker(self) -> Worker:
        """Whose batch comes next: that of the oldest task or, without ``in_order``, the first that is ready."""
        first, timeout = self._asked[0], self._timeout or None
        waiting = [first] if self._in_order else list(dict.fromkeys(self._asked))
        signals = {end: worker for worker in waiting for end in (worker.results, worker.process.sentinel)}
        ready = wait(list(signals), timeout)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        worker = signals[ready[0]]
        self._asked.remove(worker)
        return worker


def stop(workers: list[Worker], owner: int) -> None:
    """End the processes, by force those that do not end by themselves."""
    if os.getpid() != owner:  # a worker's copy of the iterator
        return
    for worker in workers:  # closed pipes tell the worker
        worker.close_pipes()
    deadline = time.monotonic() + PATIENCE
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        if worker.process.is_alive():
            worker.process.terminate()
            worker.process.join(1.0)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.process.close()
