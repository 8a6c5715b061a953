"""Seeds at once, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from threadpoolctl import threadpool_limits
from tqdm import tqdm

import leafgrad
from leafgrad.utils import Interrupts

LOOK = 0.2  # seconds between two looks at whether a signal came

Work = Callable[[int, int], Any]  # what to do for a seed, at a place among those that run at once


def at_once(seeds: Sequence[int], device: Any) -> int:
    """How many seeds train at once: one for each thread that leafgrad may use, where processes can be forked for them.

    They are on Linux, for a training on the processor: what holds a GPU cannot be forked.
    """
    alone = sys.platform != "linux" or multiprocessing.current_process().daemon
    return 1 if alone or leafgrad.device(device).type != "cpu" else min(len(seeds), leafgrad.get_num_threads())


class Child:
    """A process that works for a seed, and sends what comes of it.

    Args:
        work, seed, place: what to do.
        threads: that it may use.
        life: both ends of a pipe; the second one is the parent's.
    """

    def __init__(self, work: Work, seed: int, place: int, threads: int, life: tuple[Connection, Connection]) -> None:
        self.seed, self.place = seed, place
        context = multiprocessing.get_context("fork")
        self.answer, answers = context.Pipe(duplex=False)
        self.process = context.Process(target=serve, args=(work, seed, place, threads, life, answers), daemon=True)
        with warnings.catch_warnings():  # Python 3.12 warns of threads; BLAS and executors start theirs anew
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        answers.close()

    def result(self) -> Any:
        """What it sends; raises what ended it."""
        try:
            found = self.answer.recv()
        except EOFError:
            self.process.join()
            code = self.process.exitcode or 0
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
            raise RuntimeError(f"seed {self.seed}: its process {self.process.pid} {how}") from None
        self.process.join()
        if isinstance(found, BaseException):
            raise found
        return found

    def stop(self) -> None:
        """Ask it to end at its next safe point."""
        if self.process.is_alive():
            self.process.terminate()


def each(work: Work, seeds: Sequence[int], count: int, keep: bool = False) -> list[Any]:
    """What ``work(seed, place)`` gives for each seed, ``count`` at once. It crosses to this process by pickle.

    Args:
        keep: after Ctrl-C or SIGTERM return what those give that have begun.

    Raises:
        Whatever ends a seed; SystemExit after Ctrl-C or SIGTERM. The other seeds stop at their next safe point before.
    """
    threads = max(1, leafgrad.get_num_threads() // count)
    waiting, running, found = list(seeds), list[Child](), dict[int, Any]()
    life = multiprocessing.Pipe(duplex=False)
    asked = False
    with Interrupts() as interrupts, life[0], life[1]:
        try:
            while running or (waiting and not interrupts.received):
                while waiting and len(running) < count and not interrupts.received:
                    place = min(set(range(count)) - {child.place for child in running})
                    running.append(Child(work, waiting.pop(0), place, threads, life))
                ready = wait([child.answer for child in running], LOOK)
                for child in [child for child in running if child.answer in ready]:
                    found[child.seed] = child.result()
                    running.remove(child)
                if interrupts.received and not keep:
                    raise SystemExit(128 + interrupts.received)
                if interrupts.received and not asked:
                    asked = True
                    for child in running:
                        child.stop()
        finally:
            for child in running:
                child.stop()
            for child in running:
                child.process.join()
    return [found[seed] for seed in seeds if seed in found]


def serve(
    work: Work, seed: int, place: int, threads: int, life: tuple[Connection, Connection], answers: Connection
) -> None:
    """In a child: work, and send the result or the error."""
    life[1].close()
    threading.Thread(target=follow, args=(life[0],), daemon=True).start()
    tqdm.set_lock(threading.RLock())  # the common one would stay taken if another child were killed
    leafgrad.set_num_threads(threads)
    answer: Any
    try:
        with threadpool_limits(threads):
            answer = work(seed, place)
    except (Exception, SystemExit) as error:
        answer = carried(error, seed)
    answers.send(answer)


def follow(life: Connection) -> None:
    """End with the parent, however that ends."""
    try:
        life.recv()
    except EOFError:
        os._exit(1)


def carried(error: BaseException, seed: int) -> BaseException:
    """An error as another process can raise it, with the traceback as a note."""
    if isinstance(error, SystemExit):
        return SystemExit(error.code)
    try:
        error.add_note(f"In its process: {traceback.format_exc()}")
        copy: BaseException = pickle.loads(pickle.dumps(error))
    except Exception:  # of a class that only this process has, or with other arguments than a message
        copy = RuntimeError(f"seed {seed}: {traceback.format_exc()}")
    return copy
