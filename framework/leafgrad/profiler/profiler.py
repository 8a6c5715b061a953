"""Where the time goes: operations, nodes of backward passes, compiled calls and named parts, by time and memory.

    with profile(profile_memory=True) as prof:
        step(x, y)
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    prof.export_chrome_trace("trace.json")                     # for chrome://tracing or ui.perfetto.dev

Times are wall times of this thread. A compiled call is one row: what it runs is not Python any more, and
``leafgrad.utils.graph`` and ``explain()`` of the function show it. ``python -m cProfile`` shows Python's own functions.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from pathlib import Path
from time import perf_counter
from typing import Any

from leafgrad import modes
from leafgrad.ops import messages
from leafgrad.ops.node import GraphNode, SymbolBase, TensorBase
from leafgrad.ops.op import Op
from leafgrad.profiler.events import DeviceType, EventList, FunctionEvent, FunctionEventAvg

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

_running: list[profile] = []
_IDS = itertools.count()
_START = perf_counter()


class ProfilerActivity(Enum):
    """What could be recorded."""

    CPU, CUDA, XPU = range(3)


class ProfilerAction(Enum):
    """What a schedule says of a step."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """The CPU."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """False: that is PyTorch's own recorder."""
    return False


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Which steps to record: cycles of unrecorded and recorded ones. For ``profile``.

    Args:
        wait, warmup: so many steps of a cycle are not recorded.
        active: so many after them are.
        repeat: the number of cycles; 0 for no end.
        skip_first: so many steps come before the first cycle.

    Raises:
        AssertionError: a number is negative, or ``active`` is 0.
    """
    numbers = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first}
    for name, number in numbers.items():
        if number < (least := int(name == "active")):
            raise AssertionError(
                f"Invalid profiler schedule arguments: {name}: expected at least {least}, got {number}"
            )

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


class profile:
    """Measures what happens in a ``with`` block, or between ``start()`` and ``stop()``, in this thread.

    Args:
        activities, with_flops, with_modules: accepted; there is nothing more to record.
        schedule: which steps are recorded; by default all. Each cycle begins with nothing, and its steps are rows.
        on_trace_ready: called with the profile whenever a cycle of the schedule ends, and at the end.
        record_shapes: note the shapes of the tensors that operations were given.
        profile_memory: note the bytes of what operations make.
        with_stack: note the line of source of each operation.
    """

    def __init__(
        self,
        *,
        activities: Any = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        **_: Any,
    ) -> None:
        self.step_num = 0
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self._schedule = schedule
        self._step: FunctionEvent | None = None
        self._on_trace_ready = on_trace_ready
        self._events: list[FunctionEvent] = []
        self._open: dict[int, list[FunctionEvent]] = {}  # by thread, those that have not ended
        self._watching = modes.watching(self._watch)

    @property
    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self._schedule is None else self._schedule(self.step_num)

    def start(self) -> None:
        """Begin."""
        _running.append(self)
        self._watching = modes.watching(self._watch)
        self._watching.__enter__()
        self._begin_step()

    def stop(self) -> None:
        """End."""
        self._watching.__exit__()
        _running.remove(self)
        self._end_step()
        if self._action in RECORDING and self._on_trace_ready is not None:
            self._on_trace_ready(self)

    def step(self) -> None:
        """The next step of a schedule begins."""
        ended = self._action
        self._end_step()
        self.step_num += 1
        if ended is ProfilerAction.RECORD_AND_SAVE and self._on_trace_ready is not None:
            self._on_trace_ready(self)
        if ended is not ProfilerAction.RECORD and self._action in RECORDING:
            self._events = []  # of the cycle before
        self._begin_step()

    def _begin_step(self) -> None:
        if self._schedule is not None:
            self._step = self.begin(f"ProfilerStep#{self.step_num}", "part")

    def _end_step(self) -> None:
        if self._step is not None:
            self.end(self._step)
        self._step = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    # ---- recording ----------------------------------------------------------------------------------------------

    def _watch(self, what: Any, args: Sequence[Any], run: Callable[[], Any]) -> Any:
        """Run an op, a node of a backward pass or a compiled function, and note how long it took."""
        event = self.begin(*name_and_kind(what))
        if event is None:
            return run()
        if self.record_shapes:
            event.shapes = tuple([tuple(a._data.shape) for a in args if isinstance(a, TensorBase)])
        if self.with_stack:
            event.line = messages.user_line()
        result = None
        try:
            result = run()
        finally:
            self.end(event, memory_of(result) if self.profile_memory else 0)
        return result

    def begin(self, name: str, kind: str) -> FunctionEvent | None:
        """Something begins; None if this step is not recorded."""
        if self._action not in RECORDING:
            return None
        event = FunctionEvent(name, kind, perf_counter() - _START, id=next(_IDS))
        stack = self._open.setdefault(event.thread, [])
        if stack:
            event.cpu_parent = stack[-1]
            stack[-1].cpu_children.append(event)
        stack.append(event)
        return event

    def end(self, event: FunctionEvent, made: int = 0) -> None:
        """It has ended, and has made something of so many bytes, which something within it may have made."""
        event.bytes = max(made, event.bytes_inside)
        event.seconds = perf_counter() - _START - event.begin
        stack = self._open[event.thread]
        while stack.pop() is not event:  # what an exception left open
            pass
        if stack:
            stack[-1].inside += event.seconds
            stack[-1].bytes_inside += event.bytes
        self._events.append(event)

    # ---- results ------------------------------------------------------------------------------------------------

    def events(self) -> EventList[FunctionEvent]:
        """All that was recorded, in the order in which it ended."""
        return EventList(self._events)

    function_events = property(events)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList[FunctionEventAvg]:
        """What was recorded, by name, and by shapes and lines of source if asked for.

        Args:
            group_by_input_shape: whether calls with other shapes are other rows; needs ``record_shapes``.
            group_by_stack_n: whether calls at other lines are, if more than 0; needs ``with_stack``.
        """
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """All of it as one row."""
        return self.events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """How long all of it took, in microseconds."""
        return self.events().self_cpu_time_total

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The events as text, as ``EventList.table``."""
        return self.events().table(sort_by, row_limit, **options)

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write the events as JSON that chrome://tracing and ui.perfetto.dev show along a line of time."""
        self.events().export_chrome_trace(path)


def name_and_kind(what: Any) -> tuple[str, str]:
    """The name of what runs, and its kind."""
    if isinstance(what, Op):
        return what.name, "op"
    if isinstance(what, GraphNode):
        return what.name(), "backward"
    name = str(getattr(what, "__qualname__", type(what).__name__))
    return (f"compiled {name}", "compiled") if hasattr(what, "executor") else (name, "op")


def memory_of(result: Any) -> int:
    """The bytes of the arrays that an operation made, without those that are views."""
    if isinstance(result, (tuple, list)):
        return sum(map(memory_of, result))
    data = result._data if isinstance(result, TensorBase) else result
    if isinstance(data, (SymbolBase, GraphNode)) or getattr(data, "base", None) is not None:
        return 0
    return int(getattr(data, "nbytes", 0))


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """For ``on_trace_ready``: writes a Chrome trace into a folder, under a name of its own.

    Args:
        dir_name: the folder.
        worker_name: what the file's name begins with; by default that of the machine, and the number of the process.
        use_gzip: False: traces are plain JSON.
    """
    if use_gzip:
        raise NotImplementedError("tensorboard_trace_handler: use_gzip: traces are written as plain JSON; leave it out")

    def write(prof: profile) -> None:
        Path(dir_name).mkdir(parents=True, exist_ok=True)
        name = worker_name or f"{os.uname().nodename if hasattr(os, 'uname') else 'host'}_{os.getpid()}"
        prof.export_chrome_trace(Path(dir_name) / f"{name}.{time.time_ns()}.pt.trace.json")

    return write


class record_function:
    """Names a part of a program: a context manager, or a decorator.

    Args:
        name: of the part.
        args: accepted, and not used.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._begun: list[Iterable[tuple[profile, FunctionEvent | None]]] = []

    def __enter__(self) -> record_function:
        self._begun.append([(each, each.begin(self.name, "part")) for each in _running])
        return self

    def __exit__(self, *_: Any) -> None:
        for each, event in self._begun.pop():
            if event is not None:
                each.end(event)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapped
