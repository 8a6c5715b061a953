"""``torch.cuda.Stream`` and ``Event``: queues of work for a device, and marks in them."""

from __future__ import annotations

from typing import Any, Self

from leafgrad import backends, devices


def _resolved(device: Any) -> tuple[backends.Backend, int]:
    kind, index = devices.device("cuda" if device is None else device).resolve()
    return backends.by_device_type(kind), index


class Stream:
    """A queue of work for a device. What is asked for within ``torch.cuda.stream(queue)`` goes there.

    Args:
        device: whose; by default "cuda".
        priority: lower ones go first.

    Raises:
        RuntimeError: there is no such device.
    """

    def __init__(self, device: Any = None, priority: int = 0, *, raw: Any = None) -> None:
        self._backend, index = _resolved(device)
        self.device = devices.device(f"{self._backend.device_type}:{index}")
        self.priority = priority
        self._raw = self._backend.stream(index, priority) if raw is None else raw

    @property
    def cuda_stream(self) -> int:
        """The driver's handle."""
        return int(self._raw.ptr)

    def query(self) -> bool:
        """Whether all that was asked for is done."""
        return bool(self._raw.done)

    def synchronize(self) -> None:
        """Wait until it is."""
        self._raw.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """Mark where the queue ends now."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let what is asked for from now on begin after the mark; the host does not wait."""
        if event._raw is not None:  # one that was not recorded marks nothing
            self._raw.wait_event(event._raw)

    def wait_stream(self, stream: Stream) -> None:
        """Let what is asked for from now on begin after all that another queue has now."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.cuda_stream) == (other.device, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.device, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A mark in a queue of work.

    Args:
        enable_timing: whether `elapsed_time` may be asked.
        blocking: whether `synchronize` lets the processor sleep.
        interprocess: for other processes, which leafgrad does not have.

    Raises:
        NotImplementedError: ``interprocess``.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("Event: interprocess: expected False, got True: events are of one process")
        self.enable_timing, self.blocking = enable_timing, blocking
        self._raw: Any = None
        self._backend: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Mark where a queue ends now; by default the current one."""
        stream = current_stream() if stream is None else stream
        self._backend = stream._backend
        self._raw = self._raw or self._backend.event(self.enable_timing, self.blocking)
        self._raw.record(stream._raw)

    def wait(self, stream: Stream | None = None) -> None:
        """Let what is asked of a queue from now on begin after the mark."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether all before the mark is done."""
        return self._raw is None or bool(self._raw.done)

    def synchronize(self) -> None:
        """Wait until it is."""
        if self._raw is not None:
            self._raw.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another.

        Raises:
            ValueError: they do not take times, or one was not recorded.
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._raw is None or end_event._raw is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        found: float = self._backend.elapsed(self._raw, end_event._raw)
        return found


class StreamContext:
    """Within it work goes to a queue; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> Self:
        if self.stream is not None:
            self.stream._raw.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.stream is not None:
            self.stream._raw.__exit__(*error)


def stream(stream: Stream | None) -> StreamContext:
    """The context within which work goes to a queue."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The queue that work for a device goes to."""
    backend, index = _resolved(device)
    return Stream(device, raw=backend.current_stream(index))


def default_stream(device: Any = None) -> Stream:
    """The queue that work for a device goes to outside of all contexts."""
    backend, index = _resolved(device)
    return Stream(device, raw=backend.default_stream(index))


def set_stream(stream: Stream) -> None:
    """Let work go to a queue from now on."""
    stream._raw.use()
