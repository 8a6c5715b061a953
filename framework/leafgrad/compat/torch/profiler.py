"""``torch.profiler``: wall times of the parts that ``record_function`` names; operations are not recorded one by one.

``python -m cProfile`` shows every function, leafgrad's too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import Any

from leafgrad.compat.absent import refused, refused_class

emit_nvtx = refused_class("torch.autograd.profiler.emit_nvtx", "use torch.profiler.profile")

__all__ = [
    "EventList",
    "ProfilerAction",
    "ProfilerActivity",
    "emit_nvtx",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

_running: list[profile] = []

tensorboard_trace_handler = refused("torch.profiler.tensorboard_trace_handler", "print key_averages().table()")


class ProfilerActivity(Enum):
    """What could be recorded."""

    CPU, CUDA, XPU = range(3)


class ProfilerAction(Enum):
    """What a schedule says of a step."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities() -> set[ProfilerActivity]:
    """The CPU."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Which steps to record: after ``skip_first``, cycles of ``wait`` and ``warmup`` unrecorded and ``active`` recorded
    ones, ``repeat`` times, or without end if that is 0.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        cycle = wait + warmup + active
        if step < 0 or (repeat and step // cycle >= repeat):
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == cycle - 1 else ProfilerAction.RECORD

    return action


@dataclass
class FunctionEventAvg:
    """A named part: how often it ran, and for how long altogether, in microseconds."""

    key: str
    count: int = 0
    cpu_time_total: float = 0.0

    @property
    def cpu_time(self) -> float:
        """The mean, in microseconds."""
        return self.cpu_time_total / self.count


class EventList(list[FunctionEventAvg]):
    """The parts that were recorded."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **_: Any) -> str:
        """As text, the longest first; ``sort_by`` may be "count"."""
        order = (lambda e: -e.count) if sort_by == "count" else (lambda e: -e.cpu_time_total)
        rows = [f"{'Name':>30}  {'CPU total':>14}  {'CPU time avg':>14}  {'# of Calls':>10}"]
        rows += [
            f"{e.key:>30}  {e.cpu_time_total:>12.1f}us  {e.cpu_time:>12.1f}us  {e.count:>10}"
            for e in sorted(self, key=order)[:row_limit]
        ]
        return "\n".join(rows) + "\n"


class profile:
    """Measures the ``record_function`` parts of a ``with`` block.

    Args:
        activities, record_shapes, profile_memory, with_stack, with_flops, with_modules: accepted; there is nothing more
            to record.
        schedule: which steps are recorded; by default all.
        on_trace_ready: called with the profile whenever a cycle of the schedule ends, or at the end.
    """

    def __init__(
        self,
        *,
        activities: Any = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        **_: Any,
    ) -> None:
        self.step_num = 0
        self._schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self._on_trace_ready = on_trace_ready
        self._parts: dict[str, FunctionEventAvg] = {}

    def start(self) -> None:
        """Begin."""
        _running.append(self)

    def stop(self) -> None:
        """End."""
        _running.remove(self)
        if self._on_trace_ready is not None and self._schedule(self.step_num) is ProfilerAction.RECORD:
            self._on_trace_ready(self)

    def step(self) -> None:
        """The next step of a schedule begins."""
        ended = self._schedule(self.step_num)
        self.step_num += 1
        if ended is ProfilerAction.RECORD_AND_SAVE and self._on_trace_ready is not None:
            self._on_trace_ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def took(self, name: str, seconds: float) -> None:
        """Count one run of a part, if this step is recorded."""
        if self._schedule(self.step_num) in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            part = self._parts.setdefault(name, FunctionEventAvg(name))
            part.count += 1
            part.cpu_time_total += seconds * 1e6

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """The parts, by name."""
        return EventList(self._parts.values())

    def export_chrome_trace(self, path: str) -> None:
        """There is no trace of single operations.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("profile.export_chrome_trace: leafgrad records no single operations; use cProfile")


class record_function:
    """Names a part of a program: a context manager, or a decorator."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._begun: list[float] = []

    def __enter__(self) -> record_function:
        self._begun.append(perf_counter())
        return self

    def __exit__(self, *_: Any) -> None:
        seconds = perf_counter() - self._begun.pop()
        for each in _running:
            each.took(self.name, seconds)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapped


def kineto_available() -> bool:
    """False."""
    return False
