"""What the dispatch must know about the moment: gradients on or off, tracing, anomaly detection, batches and the like;
and the table of all other settings that code of this package reads.

One integer in one ContextVar, so that each thread and each asyncio task has its own, and so that the
fast path of an op reads it once. Every new thread starts with gradients on and nothing else.
"""

from __future__ import annotations

import functools
import inspect
from _thread import _local as local  # importing threading takes longer
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar, cast

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

GRAD: Final = 1
TRACE: Final = 2
ANOMALY: Final = 4
INFERENCE: Final = 8
BATCH: Final = 16
PACK: Final = 32
TO_BFLOAT16: Final = 64
TO_FLOAT16: Final = 128
WATCH: Final = 256
TO_FLOAT16_ELSEWHERE: Final = 512
AUTOCAST: Final = TO_BFLOAT16 | TO_FLOAT16 | TO_FLOAT16_ELSEWHERE

FLAGS: Final[ContextVar[int]] = ContextVar("leafgrad_mode", default=GRAD)
get: Final = FLAGS.get


class Checkpoint:
    """The last checkpoint of a training in this process that was saved or loaded.

    Attributes:
        number: how many there were.
    """

    number = 0


class _Mode:
    """Turns bits of the mode on and off; a context manager and a decorator. Re-entrant."""

    on = 0
    off = 0

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if function is None else super().__new__(cls)._decorate(function)

    def __init__(self, function: Any = None) -> None:
        self._before: list[int] = []

    def __enter__(self) -> Self:
        before = get()
        self._before.append(before)
        FLAGS.set(before & ~self.off | self.on)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before, bits = self._before.pop(), self.on | self.off
        FLAGS.set(get() & ~bits | before & bits)  # others stay as they are: a recording may have ended meanwhile

    def __call__(self, function: F) -> F:
        return self._decorate(function)

    def _decorate(self, function: F) -> F:
        if not callable(function):
            name, got = type(self).__name__, type(function).__name__
            raise TypeError(f"{name}: expected a function to decorate, got {got}; write `with {name}():` above a block")
        on, off = self.on, self.off

        def within(step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            before, bits = get(), on | off
            try:  # a signal may come at any call
                FLAGS.set(before & ~off | on)
                return step(*args, **kwargs)
            finally:
                FLAGS.set(get() & ~bits | before & bits)

        if not inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                return within(function, *args, **kwargs)

            return cast(F, wrapped)

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

        return cast(F, resumed)


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

    def __call__(self, function: F) -> F:
        bits = self.on | self.off
        FLAGS.set(get() & ~bits | self._at_creation & bits)
        return self._decorate(function)


class set_multithreading_enabled(_Mode):
    """Accepted for PyTorch's sake: a backward pass runs in the thread that asked for it, in either case.

    Args:
        mode: accepted, and not used.
    """

    def __new__(cls, mode: bool) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        super().__init__()


class inference_mode(_Mode):
    """Like ``no_grad``, and tensors made within it can never take part in a recorded computation.

    Args:
        mode: False ends it for a while, and records again.
    """

    def __new__(cls, mode: Any = True) -> Any:
        return object.__new__(cls) if isinstance(mode, bool) else cls(True)._decorate(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.on, self.off = (INFERENCE, GRAD) if mode else (GRAD, INFERENCE)


class autocast(_Mode):
    """Within it, products are taken of numbers in 16 bits; see ``ops/promotion.py``.

    Args:
        to: ``TO_BFLOAT16`` or ``TO_FLOAT16``, on the CPU, ``TO_FLOAT16_ELSEWHERE``, or 0 for none.
    """

    off = AUTOCAST

    def __new__(cls, to: int) -> Any:
        return object.__new__(cls)

    def __init__(self, to: int) -> None:
        super().__init__()
        self.on = to


def is_grad_enabled() -> bool:
    """Whether ops on tensors that require grad are recorded now, in this thread."""
    return bool(get() & GRAD)


def is_inference_mode_enabled() -> bool:
    """Whether ``inference_mode`` is on now, in this thread."""
    return bool(get() & INFERENCE)


class Tracer(Protocol):
    """What the dispatch asks of whoever records a program. ``compile`` provides it.

    Attributes:
        born: the number of the first node that is made in the trace; those from outside have smaller ones.
    """

    born: int

    def inside(self, tensor: Any) -> Any:
        """What stands for ``tensor`` in the trace; itself if the trace made it. No other thread sees it."""

    def lift(self, tensor: Any) -> Any:
        """The Symbol that stands for ``tensor``'s data."""

    def made(self, tensor: Any) -> None:
        """``tensor`` was made in the trace."""

    def trace(self, op: Any, args: tuple[Any, ...], params: dict[str, Any], flags: int) -> Any:
        """``op.trace(args, params, flags)``, watched or not."""

    def run(self, function: Any, operands: Sequence[Any], flags: int, act: Callable[[], T]) -> T:
        """``act()``, which calls ``function`` with operands, watched or not."""

    def create(self, op: Any, place: tuple[str, int], params: dict[str, Any]) -> Any:
        """Record an op that takes no arrays, on a device, and return its Symbol."""

    def grad_of(self, leaf: Any) -> Any:
        """The ``.grad`` of a leaf, as the trace has left it."""

    def set_grad(self, leaf: Any, gradient: Any) -> None:
        """Give a leaf a ``.grad``, once the program has run."""

    def written(self, tensor: Any, old: Any) -> None:
        """``tensor``, from inside, was written in place; ``old`` was the Symbol of the memory that it shows."""

    def alone(self, tensor: Any) -> Any:
        """The View that a tensor from outside is, if ``tensor`` stands for it without its base; else None."""

    def join(self, tensor: Any, history: bool) -> None:
        """The memory of ``tensor``, from inside and no view, is about to be written, and gets a ``history`` or not."""

    def shares(self, op: Any, parent: Any, params: dict[str, Any]) -> bool:
        """Whether what a view op makes of ``parent`` is in its memory."""

    def layout(self, tensor: Any) -> Any:
        """A raw array with the strides that a tensor has; its elements mean nothing."""

    def lay_out(self, symbol: Any, order: Sequence[int] | None) -> None:
        """What was just computed has its dimensions in this order in memory; None: in their own."""

    def lay_out_as(self, symbol: Any, operands: Sequence[Any]) -> None:
        """The result of an elementwise op lies in memory as these operands say."""

    def reveal(self, tensor: Any, what: str) -> Any:
        """The array of a tensor, which ``what`` reads."""

    def number_of(self, tensor: Any, what: str) -> Any:
        """What stands for the only element of a tensor until ``what`` needs it; None where it is needed now."""

    def differentiate(
        self, nodes: Sequence[Any], through: Iterable[Any], recorded: bool, act: Callable[[], None]
    ) -> None:
        """``act()``, a backward pass, ``recorded`` itself or not, ``through`` some of these nodes."""

    def import_array(self, what: str) -> None:
        """``what`` makes a tensor of an array that the trace does not know."""

    def set_data(self, tensor: Any, value: Any) -> tuple[Any, Any]:
        """``tensor.data = value``: the tensor to which it is done, and the one whose memory that gets."""

    def reshaped(self, tensor: Any, what: str, change: Callable[[], Any]) -> None:
        """``what`` gives ``tensor``, which is from outside, another shape in place, by ``change()``."""

    def interrupt(self, what: str) -> None:
        """``what`` does something that no program can; all that was recorded must be done before."""

    def changing(self, numbers: dict[str, Any]) -> None:
        """The numbers that a dict holds may be others at the next call, and a program is to read them anew."""

    def unless_run(self, undo: Callable[[], None]) -> None:
        """``undo()`` takes back what the Python does from here on, if the program of it never runs."""


# Under PACK: what changes the values that a new node keeps.
PACKER: Final[ContextVar[Callable[[Any], None]]] = ContextVar("leafgrad_packer")

# Under WATCH: runs what it is given, a call of an op or a compiled function, or the backward pass of one node.
Watcher = Callable[[Any, Sequence[Any], Callable[[], Any]], Any]
WATCHER: Final[ContextVar[Watcher]] = ContextVar("leafgrad_watcher")


def watched(what: Any, args: Sequence[Any], run: Callable[[], Any]) -> Any:
    """``run()`` by the watcher, who is not told of what happens inside."""
    flags = get()
    FLAGS.set(flags & ~WATCH)
    try:
        return WATCHER.get()(what, args, run)
    finally:
        FLAGS.set(flags)


class watching:
    """Within it, ``watcher(what, args, run)`` runs each op on tensors, and those who watched before watch within."""

    def __init__(self, watcher: Watcher) -> None:
        self.outer = outer = WATCHER.get() if get() & WATCH else None
        self.watcher = watcher if outer is None else lambda w, a, run: watcher(w, a, lambda: outer(w, a, run))

    def __enter__(self) -> None:
        FLAGS.set(get() | WATCH)
        WATCHER.set(self.watcher)

    def __exit__(self, *_: object) -> None:  # in another context perhaps, where no token of ours would be known
        if self.outer is None:
            FLAGS.set(get() & ~WATCH)
        else:
            WATCHER.set(self.outer)


class OfThread(local):
    """What a thread has for itself, in whatever contexts it runs.

    Attributes:
        tracer: what records the call that it is in.
    """

    tracer: Tracer | None = None


HERE: Final = OfThread()


def tracer() -> Tracer | None:
    """What records operations now, in this thread, if anything does.

    TRACE alone does not tell: contexts that are copied while a call is recorded keep it, in other threads, and later.
    """
    if not get() & TRACE:
        return None
    if HERE.tracer is None:
        FLAGS.set(get() & ~TRACE)
    return HERE.tracer


@contextmanager
def untraced() -> Iterator[None]:
    """Within it operations are done, not recorded."""
    token = FLAGS.set(get() & ~TRACE)
    try:
        yield
    finally:
        FLAGS.reset(token)


def settle(tensor: Any, what: str) -> None:
    """In a trace: a tensor gets the memory, base and version that it has without one, since ``what`` tells of them."""
    if here := tracer():
        if getattr(tensor._data, "level", 0):
            here.interrupt(what)
        else:
            here.reveal(tensor, what)


# The derivatives that are being taken now, as ``func`` takes them, outermost first.
DERIVATIVES: Final[ContextVar[tuple[Any, ...]]] = ContextVar("leafgrad_derivatives", default=())


def forward_alone() -> bool:
    """Whether derivatives are being taken, and all of them by forward mode."""
    taken = DERIVATIVES.get()
    return bool(taken) and all(d.forward for d in taken)


# The batches of the vmaps that run now, outermost first; under BATCH there is one.
BATCHES: Final[ContextVar[tuple[Any, ...]]] = ContextVar("leafgrad_batches", default=())


@contextmanager
def outside_batches() -> Iterator[None]:
    """Within it ops belong to no batch."""
    token, before = BATCHES.set(()), get()
    FLAGS.set(before & ~BATCH)
    try:
        yield
    finally:
        BATCHES.reset(token)
        FLAGS.set(before)


def refuse_transformed(what: str) -> None:
    """A RuntimeError if the function that calls ``what`` is being transformed."""
    if DERIVATIVES.get() or get() & BATCH:
        raise RuntimeError(
            f"You are attempting to call {what} inside of a function being transformed by a functorch transform "
            "(grad, vjp, jvp, vmap, ...). This is unsupported, since the transform has leaves of its own. Use "
            "leafgrad.func.grad or leafgrad.func.vjp there, or call it outside of functorch transforms"
        )


SETTINGS: Final[dict[str, Callable[[], Any]]] = {}


def setting(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Declare a setting of the process or the thread: the decorated function gives what it is now.

    What can change results and is kept in a variable of a module, in a ContextVar or in a registry is declared by this,
    where it is kept: a compiled program stands for its function only while all settings are as they were.
    """

    def declare(read: Callable[[], Any]) -> Callable[[], Any]:
        SETTINGS[name] = read
        return read

    return declare
