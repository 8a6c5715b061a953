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
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from time import perf_counter
from typing import Any

from leafgrad import modes
from leafgrad.ops import messages
from leafgrad.ops.node import GraphNode, SymbolBase, TensorBase
from leafgrad.ops.op import Op

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
_START = perf_counter()


class DeviceType(Enum):
    """Where something ran."""

    CPU, CUDA = range(2)


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


@dataclass
class Event:
    """Something that ran.

    Attributes:
        name: of the op, node, function or part. kind: which of these it is.
        begin: in seconds since the profiler was imported. seconds: how long it took.
        inside: how many of these seconds belong to events within it.
        bytes: memory of what was made while it ran, without views; 0 unless ``profile_memory``.
        bytes_inside: how many of these bytes events within it have made.
        shapes: of the tensors that it was given, if ``record_shapes``. line: of source, if ``with_stack``.
        thread: the number of its thread.
    """

    name: str
    kind: str
    begin: float
    seconds: float = 0.0
    inside: float = 0.0
    bytes: int = 0
    bytes_inside: int = 0
    shapes: tuple[tuple[int, ...], ...] = ()
    line: str = ""
    thread: int = field(default_factory=threading.get_ident)


@dataclass
class FunctionEventAvg:
    """All that has one name: how often it ran, and for how long altogether, in microseconds."""

    key: str
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    input_shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def cpu_time(self) -> float:
        """The mean, in microseconds."""
        return self.cpu_time_total / self.count


class EventList(list[FunctionEventAvg]):
    """What was recorded, by name."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **_: Any) -> str:
        """As text, the largest first. What is "self" is without what ran inside.

        Args:
            sort_by: an attribute of the rows: "cpu_time_total", which is the default, "self_cpu_time_total",
                "cpu_time", "count", "cpu_memory_usage" or "self_cpu_memory_usage".
            row_limit: so many rows; -1 for all.

        Raises:
            ValueError: rows have no such attribute.
        """
        name = sort_by or "cpu_time_total"
        if name not in SORTED_BY:
            raise ValueError(f"table: sort_by: expected one of {', '.join(SORTED_BY)}, got {sort_by!r}")
        rows = sorted(self, key=lambda e: -getattr(e, name))[: None if row_limit < 0 else row_limit]
        total = sum(e.self_cpu_time_total for e in self)
        columns: dict[str, Callable[[FunctionEventAvg], str]] = {
            "Name": lambda e: e.key,
            "Self CPU %": lambda e: f"{100 * e.self_cpu_time_total / (total or 1.0):.1f}%",
            "Self CPU": lambda e: in_seconds(e.self_cpu_time_total),
            "CPU total %": lambda e: f"{100 * e.cpu_time_total / (total or 1.0):.1f}%",
            "CPU total": lambda e: in_seconds(e.cpu_time_total),
            "CPU time avg": lambda e: in_seconds(e.cpu_time),
        }
        if any(e.cpu_memory_usage for e in self):
            columns["CPU Mem"] = lambda e: in_bytes(e.cpu_memory_usage)
            columns["Self CPU Mem"] = lambda e: in_bytes(e.self_cpu_memory_usage)
        columns["# of Calls"] = lambda e: str(e.count)
        if any(e.input_shapes for e in self):
            columns["Input Shapes"] = lambda e: " ".join(map(str, e.input_shapes))
        cells = [list(columns), *([cell(e) for cell in columns.values()] for e in rows)]
        wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, wide, strict=True)) for row in cells]
        rule = "-" * len(lines[0])
        return "\n".join([lines[0], rule, *lines[1:], rule, f"Self CPU time total: {in_seconds(total)}"]) + "\n"


SORTED_BY = (
    "cpu_time_total", "self_cpu_time_total", "cpu_time", "count", "cpu_memory_usage", "self_cpu_memory_usage",
)  # fmt: skip


def in_seconds(micro: float) -> str:
    """``1.500ms`` and so on."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if micro >= size:
            return f"{micro / size:.3f}{unit}"
    return f"{micro:.3f}us"


def in_bytes(count: int) -> str:
    """``1.50 KB`` and so on."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


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
        self._step: Event | None = None
        self._on_trace_ready = on_trace_ready
        self._events: list[Event] = []
        self._open: dict[int, list[Event]] = {}  # by thread, those that have not ended
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

    def begin(self, name: str, kind: str) -> Event | None:
        """Something begins; None if this step is not recorded."""
        if self._action not in RECORDING:
            return None
        event = Event(name, kind, perf_counter() - _START)
        self._open.setdefault(event.thread, []).append(event)
        return event

    def end(self, event: Event, made: int = 0) -> None:
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

    def events(self) -> list[Event]:
        """All that was recorded, in the order in which it ended."""
        return list(self._events)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """What was recorded, by name, and by shapes if asked for."""
        found: dict[Any, FunctionEventAvg] = {}
        for e in self._events:
            shapes = e.shapes if group_by_input_shape else ()
            name = "ProfilerStep*" if e.name.startswith("ProfilerStep#") else e.name
            row = found.setdefault((name, shapes), FunctionEventAvg(name, input_shapes=shapes))
            row.count += 1
            row.cpu_time_total += e.seconds * 1e6
            row.self_cpu_time_total += (e.seconds - e.inside) * 1e6
            row.cpu_memory_usage += e.bytes
            row.self_cpu_memory_usage += e.bytes - e.bytes_inside
        return EventList(found.values())

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write the events as JSON that chrome://tracing and ui.perfetto.dev show along a line of time."""
        process = os.getpid()
        rows = [
            {
                "name": e.name,
                "cat": e.kind,
                "ph": "X",
                "ts": e.begin * 1e6,
                "dur": e.seconds * 1e6,
                "pid": process,
                "tid": e.thread,
                "args": {
                    key: value for key, value in (("shapes", e.shapes), ("bytes", e.bytes), ("line", e.line)) if value
                },
            }
            for e in sorted(self._events, key=lambda e: e.begin)
        ]
        text = json.dumps({"traceEvents": rows, "displayTimeUnit": "ms"})
        Path(path).write_text(text, encoding="utf-8")


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
        self._begun: list[Iterable[tuple[profile, Event | None]]] = []

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
