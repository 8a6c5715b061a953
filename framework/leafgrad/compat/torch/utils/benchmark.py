"""``torch.utils.benchmark``: how long Python statements take."""

from __future__ import annotations

import statistics
import timeit as _timeit
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

__all__ = ["Measurement", "Timer"]

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


@dataclass
class Measurement:
    """What a Timer measured. Times are in seconds.

    Attributes:
        number_per_run: how often the statement ran for each of ``raw_times``.
        raw_times: of the runs.
        label, sub_label, description: of the Timer.
    """

    number_per_run: int
    raw_times: list[float]
    stmt: str
    setup: str
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None

    @property
    def times(self) -> list[float]:
        """Of one execution, for each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """Of ``times``."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """Of ``times``."""
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """The distance of the quartiles of ``times``."""
        if len(self.raw_times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def title(self) -> str:
        """The labels, or the statement."""
        return f"{self.label or self.stmt}" + (f": {self.sub_label}" if self.sub_label else "")

    def __repr__(self) -> str:
        scale, unit = next((u for u in UNITS if self.median >= u[0]), UNITS[-1])
        many = len(self.raw_times) > 1
        lines = [
            f"<torch.utils.benchmark.utils.common.Measurement object at {hex(id(self))}>",
            self.title,
            *([self.description] if self.description else []),
            *([f"setup: {self.setup}"] if self.setup != "pass" else []),
            f"  Median: {self.median / scale:.2f} {unit}" if many else f"  {self.median / scale:.2f} {unit}",
            *([f"  IQR:    {self.iqr / scale:.2f} {unit}"] if many else []),
            f"  {len(self.raw_times)} measurements, {self.number_per_run} runs per measurement, 1 thread"
            if many
            else f"  1 measurement, {self.number_per_run} runs , 1 thread",
        ]
        return "\n".join(lines)


@dataclass
class Timer:
    """Times a Python statement.

    Args:
        stmt: it. setup: a statement before it. globals: names that both know.
        label, sub_label, description: what the measurement is called.
        num_threads: 1; others are refused, use ``torch.set_num_threads``.

    Raises:
        NotImplementedError: more threads, or another language than Python.
    """

    stmt: str = "pass"
    setup: str = "pass"
    global_setup: str = ""
    timer: Any = perf_counter
    globals: dict[str, Any] | None = None
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1
    language: Any = "python"
    _timer: _timeit.Timer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.global_setup or str(self.language).lower() not in ("python", "language.python"):
            raise NotImplementedError("Timer: language: expected Python")
        if self.num_threads != 1:
            raise NotImplementedError(
                f"Timer: num_threads: expected 1, got {self.num_threads}; call torch.set_num_threads before"
            )
        self._timer = _timeit.Timer(self.stmt, self.setup, self.timer, self.globals)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self.stmt, self.setup, self.label, self.sub_label, self.description)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One run of ``number`` executions, after a hundredth as many to warm up."""
        self._timer.timeit(max(number // 100, 2))
        return self._measured(number, [self._timer.timeit(number)])

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Runs of so many executions that a run is much longer than reading the clock, for ``min_run_time`` seconds."""
        number = 1
        while min(self._timer.repeat(3, number)) < min(0.001, min_run_time / 20):  # of three: one may be interrupted
            number *= 10
        times: list[float] = []
        while not times or sum(times) < min_run_time:
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)
