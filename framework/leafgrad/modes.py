"""What the dispatch must know about the moment: gradients on or off, tracing, anomaly detection, inference, batches.

One integer in one ContextVar, so that each thread and each asyncio task has its own, and so that the
fast path of an op reads it once. Every new thread starts with gradients on and nothing else.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Protocol, Self

GRAD: Final = 1
TRACE: Final = 2
ANOMALY: Final = 4
INFERENCE: Final = 8
BATCH: Final = 16

FLAGS: Final[ContextVar[int]] = ContextVar("leafgrad_mode", default=GRAD)
get: Final = FLAGS.get


class _Mode:
    """Turns bits of the mode on and off; a context manager and a decorator. Re-entrant."""

    on = 0
    off = 0

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if function is None else super().__new__(cls)._decorate(function)

    def __init__(self, function: None = None) -> None:
        self._before: list[int] = []

    def __enter__(self) -> Self:
        before = get()
        self._before.append(before)
        FLAGS.set(before & ~self.off | self.on)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        FLAGS.set(self._before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self._decorate(function)

    def _decorate(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise TypeError(f"{type(self).__name__}: expected a function to decorate, got {function!r}")
        on, off = self.on, self.off

        def within(step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            before = get()
            FLAGS.set(before & ~off | on)
            try:
                return step(*args, **kwargs)
            finally:
                FLAGS.set(before)

        if not inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                return within(function, *args, **kwargs)

            return wrapped

        @functools.wraps(function)
        def resumed(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            """The generator, in the mode whenever it runs; its caller has its own mode while it is suspended."""
            generator = function(*args, **kwargs)
            step, given = generator.send, None
            while True:
                try:
                    made = within(step, given)
                except StopIteration as end:
                    return end.value
                try:
                    step, given = generator.send, (yield made)
                except GeneratorExit:
                    within(generator.close)
                    raise
                except BaseException as error:
                    step, given = generator.throw, error

        return resumed


class no_grad(_Mode):
    """Within it no op is recorded: results do not require grad. ``with no_grad():`` or ``@no_grad()``."""

    off = GRAD


class enable_grad(_Mode):
    """Within it ops are recorded again, e.g. inside ``no_grad``. A context manager and a decorator."""

    on = GRAD


class set_grad_enabled(_Mode):
    """Turns recording on or off at once; as a context manager it restores the former mode at the end.

    Args:
        mode: True records, False does not.
    """

    def __new__(cls, mode: bool) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: mode: expected True or False, got {mode!r}")
        super().__init__()
        self.on, self.off = (GRAD, 0) if mode else (0, GRAD)
        self._at_creation = get()
        FLAGS.set(self._at_creation & ~self.off | self.on)

    def __enter__(self) -> Self:
        self._before.append(self._at_creation)
        FLAGS.set(get() & ~self.off | self.on)
        return self

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        FLAGS.set(self._at_creation)
        return self._decorate(function)


class inference_mode(_Mode):
    """Like ``no_grad``, and tensors made within it can never take part in a recorded computation.

    Args:
        mode: False makes it do nothing, so that it can be switched by a flag.
    """

    def __new__(cls, mode: Any = True) -> Any:
        return object.__new__(cls) if isinstance(mode, bool) else cls(True)._decorate(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.on, self.off = (INFERENCE, GRAD) if mode else (0, 0)


def is_grad_enabled() -> bool:
    """Whether ops on tensors that require grad are recorded now, in this thread."""
    return bool(get() & GRAD)


def is_inference_mode_enabled() -> bool:
    """Whether ``inference_mode`` is on now, in this thread."""
    return bool(get() & INFERENCE)


class Tracer(Protocol):
    """What the dispatch asks of whoever records a program. ``compile`` provides it."""

    def lift(self, tensor: Any) -> Any:
        """The Symbol that stands for ``tensor``'s data."""

    def bind(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Record ``op(*args, **params)`` and return its Symbol, or a tuple of them."""

    def create(self, op: Any, place: tuple[str, int], params: dict[str, Any]) -> Any:
        """Record an op that takes no arrays, on a device, and return its Symbol."""

    def touch(self, leaf: Any) -> None:
        """``leaf.grad`` is about to be read or written."""

    def live(self, read: Callable[[], float]) -> Any:
        """A Symbol for a Python number that ``read()`` gives anew each time the program runs."""


TRACER: Final[ContextVar[Tracer]] = ContextVar("leafgrad_tracer")

# The batches of the vmaps that run now, outermost first; under BATCH there is one.
BATCHES: Final[ContextVar[tuple[Any, ...]]] = ContextVar("leafgrad_batches", default=())
