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
from multiprocessing.connection import wait
from typing import Any

from leafgrad.utils.data import transport
from leafgrad.utils.data.worker import ENDED, MAIN_ENDS, RESTART, Failure, Job, WorkerInfo, work

PATIENCE = 5.0  # seconds that workers get to end by themselves


class Worker:
    """One process and its pipes."""

    def __init__(self, job: Job, context: Any) -> None:
        their_tasks, self.tasks = context.Pipe(duplex=False)
        self.results, their_results = context.Pipe(duplex=False)
        MAIN_ENDS.update((self.tasks, self.results))
        self.process = context.Process(target=work, args=(job, their_tasks, their_results), daemon=True)
        self.process.start()
        their_tasks.close()
        their_results.close()
        self.active = True  # its copy of a stream has not ended
        self.unanswered = 0

    def ask(self, indices: Any) -> None:
        """Give it a task."""
        self._send(indices)
        self.unanswered += 1

    def restart(self) -> None:
        """Drop what it still works on, and begin a new epoch."""
        while self.unanswered:
            self.answer()
        self._send(RESTART)
        self.active = True

    def _send(self, message: Any) -> None:
        try:
            self.tasks.send(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self._gone() from None

    def answer(self) -> Any:
        """The batch, Failure or ENDED that its oldest task led to."""
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
        self._loader = loader
        self._workers: list[Worker] = []
        self._stop = weakref.finalize(self, stop, self._workers, os.getpid())
        context = loader.multiprocessing_context or multiprocessing.get_context()
        for i in range(loader.num_workers):
            info = WorkerInfo(i, loader.num_workers, base_seed + i, loader.dataset)
            batched = loader.batch_sampler is not None
            job = Job(info, batched, loader.collate_fn, loader.drop_last, loader.worker_init_fn)
            self._workers.append(Worker(job, context))
        self._begin()

    @property
    def stopped(self) -> bool:
        """Whether the processes have ended."""
        return not self._stop.alive

    def restart(self) -> None:
        """Begin a new pass with the same processes."""
        for worker in self._workers:
            worker.restart()
        self._begin()

    def _begin(self) -> None:
        self._indices = iter(self._loader.index_sampler)
        self._turn = 0
        self._asked: deque[Worker] = deque()  # who has the tasks without a batch yet, in their order
        for _ in range(self._loader.prefetch_factor * len(self._workers)):
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
            try:
                worker = self._next_worker()
                answer = worker.answer()
            except BaseException:  # a dead worker, a timeout, Ctrl-C: there is no way on from here
                self._asked.clear()
                self._stop()
                raise
            if isinstance(answer, str) and answer == ENDED:
                worker.active = False
                self._ask()
                continue
            self._ask()
            if isinstance(answer, Failure):
                raise answer.error()
            return answer
        if not self._loader.persistent_workers:
            self._stop()
        raise StopIteration

    def _next_worker(self) -> Worker:
        """Whose batch comes next: that of the oldest task or, without ``in_order``, the first that is ready."""
        first, timeout = self._asked[0], self._loader.timeout or None
        waiting = [first] if self._loader.in_order else list(dict.fromkeys(self._asked))
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
        worker.tasks.close()
        worker.results.close()
    deadline = time.monotonic() + PATIENCE
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        if worker.process.is_alive():
            worker.process.terminate()
            worker.process.join(1.0)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
