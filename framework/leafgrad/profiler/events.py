"""What a profile has recorded: events, their averages by name, tables and traces of them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar


class DeviceType(Enum):
    """Where something ran."""

    CPU, CUDA = range(2)


class TimeRange(NamedTuple):
    """From when to when, in microseconds since the profiler was imported."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """How long that is, in microseconds."""
        return self.end - self.start


@dataclass(eq=False)
class FunctionEvent:
    """Something that ran.

    Attributes:
        name: of the op, node, function or part. kind: which of these it is.
        begin: in seconds since the profiler was imported. seconds: how long it took.
        inside: how many of these seconds belong to events within it.
        bytes: memory of what was made while it ran, without views; 0 unless ``profile_memory``.
        bytes_inside: how many of these bytes events within it have made.
        shapes: of the tensors that it was given, if ``record_shapes``. line: of source, if ``with_stack``.
        thread: the number of its thread. id: its own number.
        cpu_parent, cpu_children: what it ran in, and what ran in it.
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
    id: int = 0
    cpu_parent: FunctionEvent | None = field(default=None, repr=False)
    cpu_children: list[FunctionEvent] = field(default_factory=list, repr=False)

    count = 1
    device_type = DeviceType.CPU
    is_async = False

    @property
    def key(self) -> str:
        """The name; that of any step of a schedule is the same."""
        return "ProfilerStep*" if self.name.startswith("ProfilerStep#") else self.name

    @property
    def time_range(self) -> TimeRange:
        """When it ran."""
        return TimeRange(self.begin * 1e6, (self.begin + self.seconds) * 1e6)

    @property
    def cpu_time_total(self) -> float:
        """How long it took, in microseconds."""
        return self.seconds * 1e6

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """How long it took without what ran inside, in microseconds."""
        return (self.seconds - self.inside) * 1e6

    @property
    def cpu_memory_usage(self) -> int:
        """The bytes of what was made while it ran."""
        return self.bytes

    @property
    def self_cpu_memory_usage(self) -> int:
        """Those without what was made inside."""
        return self.bytes - self.bytes_inside

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the tensors that it was given."""
        return self.shapes

    @property
    def stack(self) -> list[str]:
        """The line of source."""
        return [self.line] if self.line else []


@dataclass
class FunctionEventAvg:
    """All that has one name: how often it ran, and for how long altogether, in microseconds."""

    key: str = "Total"
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    input_shapes: tuple[tuple[int, ...], ...] = ()
    stack: list[str] = field(default_factory=list)

    @property
    def cpu_time(self) -> float:
        """The mean, in microseconds."""
        return self.cpu_time_total / self.count

    def add(self, event: FunctionEvent | FunctionEventAvg) -> None:
        """Count one more."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(event, name))


E = TypeVar("E", bound=FunctionEvent | FunctionEventAvg)
SUMS = ("count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage")
SORTED_BY = (*SUMS[1:3], "cpu_time", *SUMS[:1], *SUMS[3:])


class EventList(list[E]):
    """Events, or their averages."""

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0
    ) -> EventList[FunctionEventAvg]:
        """The averages of events by name, and by shapes and lines of source if asked for.

        Args:
            group_by_input_shapes: whether calls with other shapes are other rows.
            group_by_stack_n: whether calls at other lines are, if more than 0.
        """
        found: dict[Any, FunctionEventAvg] = {}
        for e in self:
            shapes, stack = e.input_shapes * bool(group_by_input_shapes), e.stack * bool(group_by_stack_n)
            row = FunctionEventAvg(e.key, input_shapes=shapes, stack=stack)
            found.setdefault((e.key, shapes, *stack), row).add(e)
        return EventList(found.values())

    def total_average(self) -> FunctionEventAvg:
        """All of them as one row."""
        total = FunctionEventAvg()
        for e in self:
            total.add(e)
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """How long they took together, in microseconds."""
        return sum(e.self_cpu_time_total for e in self)

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:  # fmt: skip
        """As text, the largest first. What is "self" is without what ran inside.

        Args:
            sort_by: an attribute of the rows: "cpu_time_total", which is the default, "self_cpu_time_total",
                "cpu_time", "count", "cpu_memory_usage" or "self_cpu_memory_usage".
            row_limit: so many rows; -1 for all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: longer lines of source, names and
                shapes end in "...".
            header: a line above it.
            top_level_events_only: leave out events that ran in others.

        Raises:
            ValueError: rows have no such attribute.
        """
        name = sort_by or "cpu_time_total"
        if name not in SORTED_BY:
            raise ValueError(f"table: sort_by: expected one of {', '.join(SORTED_BY)}, got {sort_by!r}")
        rows = [e for e in self if not (top_level_events_only and getattr(e, "cpu_parent", None))]
        rows = sorted(rows, key=lambda e: -getattr(e, name))[: None if row_limit < 0 else row_limit]
        total = self.self_cpu_time_total
        columns: dict[str, Callable[[Any], str]] = {
            "Name": lambda e: shortened(e.key, max_name_column_width),
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
            columns["Input Shapes"] = lambda e: shortened(" ".join(map(str, e.input_shapes)), max_shapes_column_width)
        if any(e.stack for e in self):
            columns["Source Location"] = lambda e: shortened(" ".join(e.stack), max_src_column_width)
        cells = [list(columns), *([cell(e) for cell in columns.values()] for e in rows)]
        wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, wide, strict=True)) for row in cells]
        rule = "-" * len(lines[0])
        above = [] if header is None else [header]
        end = [rule, f"Self CPU time total: {in_seconds(total)}"]
        return "\n".join([*above, lines[0], rule, *lines[1:], *end]) + "\n"

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write events as JSON that chrome://tracing and ui.perfetto.dev show along a line of time.

        Args:
            path: the file.
        """
        rows = [
            {
                "name": e.name,
                "cat": e.kind,
                "ph": "X",
                "ts": e.begin * 1e6,
                "dur": e.seconds * 1e6,
                "pid": os.getpid(),
                "tid": e.thread,
                "args": {
                    key: value for key, value in (("shapes", e.shapes), ("bytes", e.bytes), ("line", e.line)) if value
                },
            }
            for e in sorted((e for e in self if isinstance(e, FunctionEvent)), key=lambda e: e.begin)
        ]
        text = json.dumps({"traceEvents": rows, "displayTimeUnit": "ms"})
        Path(path).write_text(text, encoding="utf-8")


def shortened(text: str, width: int) -> str:
    """A text of at most so many letters."""
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


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
