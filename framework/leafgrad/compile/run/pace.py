"""How an open step goes on: when a call is watched once more, and whether the others run compiled.

What opened a step may be over, so it is looked at again, ever more rarely. Whether it gains by being compiled is told
by its calls, which are timed, compiled and uncompiled in turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from leafgrad.compile.ir.log import log

ATTEMPTS = 3  # calls in a row that could not be closed after which no more are watched
LESSONS = 8  # others from which something is learned
WATCHED = 64  # calls after which one more is; then after four times as many, and so on
ROUNDS = 6  # calls of each kind that are timed
ORDER = (True, False, False, True, False, True, True, False, False, True, True, False)  # is that of no loop's calls
COLD = 2  # compiled ones before them, which may still build programs
AGAIN = 1000  # calls after which both are timed once more; then ten times as many, and so on
OTHER = 4.0  # by what factor calls must take longer or shorter, one after the other, to be timed once more at once

clock = time.perf_counter


def undisturbed(times: list[float]) -> float:
    """What a call takes where no other process takes its time: the lower quartile."""
    return sorted(times)[len(times) // 4]


class Pace:
    """Chooses how the next call of a step runs.

    Attributes:
        opened: whether any call could not be closed, be it the first one.
        failures: how many calls in a row could not be closed.
        lessons: how many of them told what to follow at the next, which do not count as failures.
        compiled: whether the faster way is the compiled one; so it is taken until both were timed.
        seconds: what calls took, compiled and uncompiled, by which that was chosen; None before.
    """

    def __init__(self) -> None:
        self.compiled = True
        self.opened = False
        self.seconds: tuple[float, float] | None = None
        self.interval = AGAIN
        self.failures = self.lessons = 0
        self.rest = self.until_watched = WATCHED
        self.begin()

    def begin(self) -> None:
        """Time both ways."""
        self.timed: tuple[list[float], list[float]] = [], []
        self.left = 0  # calls until both are timed once more; 0 while they are
        self.strange = 0  # calls in a row that took far longer or shorter than when it was chosen

    @property
    def gave_up(self) -> bool:
        """Whether calls are not watched."""
        return self.failures >= ATTEMPTS

    def fail(self, learned: bool) -> None:
        """A call could not be closed, from which was ``learned`` what to follow at the next one."""
        if learned and self.lessons < LESSONS:
            self.lessons += 1
        else:
            self.failures += 1

    def give_up(self) -> None:
        """Watch no more calls."""
        self.failures = ATTEMPTS

    def count(self) -> None:
        """A call begins; now and then one is watched after all."""
        if self.gave_up:
            self.rest -= 1
            if self.rest <= 0:
                self.rest = self.until_watched = 4 * self.until_watched
                self.failures -= 1

    def next(self) -> bool:
        """Whether the next call runs compiled, if it is not watched."""
        if self.left:
            return self.compiled
        compiled, plain = map(len, self.timed)
        return compiled < COLD or ORDER[(compiled + plain - COLD) % len(ORDER)]

    def run(self, compiled: bool, way: Callable[..., Any], args: Any, kwargs: Any, name: str) -> Any:
        """What a call of the function ``name`` returns by one ``way``, compiled or not."""
        start = clock()
        result = way(*args, **kwargs)
        if self.note(compiled, clock() - start):
            log(f"{name}: {self.explain()}")
        return result

    def note(self, compiled: bool, seconds: float) -> bool:
        """A call took so long. Whether that led to a choice."""
        if not self.left:
            timed = self.timed  # calls of other threads may begin anew meanwhile
            if len(timed[not compiled]) < ROUNDS + COLD:  # where one way is always taken, nobody chooses
                timed[not compiled].append(seconds)
            enough = len(timed[1]) >= ROUNDS and len(timed[0]) >= ROUNDS + COLD
            if enough:
                self.choose(undisturbed(timed[0][COLD:]), undisturbed(timed[1]))
            return enough
        self.left -= 1
        usual = seconds if self.seconds is None else self.seconds[not compiled]
        self.strange = 0 if usual / OTHER <= seconds <= usual * OTHER else self.strange + 1
        if not self.left or self.strange > ROUNDS:
            self.begin()
        return False

    def choose(self, compiled: float, plain: float) -> None:
        """Both were timed often enough."""
        self.seconds = compiled, plain
        self.compiled = compiled < plain
        self.left, self.interval = self.interval, 10 * self.interval

    def explain(self) -> str:
        """What was chosen, and why."""
        if self.seconds is None:
            return "timed for a few calls yet, compiled and uncompiled in turn, to take the faster way"
        compiled, plain = (f"{1e6 * s:.0f} us" for s in self.seconds)
        if self.compiled:
            return f"runs compiled: {compiled} a call, {plain} uncompiled"
        return f"runs uncompiled, since that is faster: {plain} a call, {compiled} compiled"
