"""What an array library must bring to serve as a backend, and the tables by which dispatch finds it.

A backend is listed by a `BackendSpec`, which imports nothing, and loaded when a device of its type is first
asked for. Dispatch then goes by the class of the array alone: `BACKENDS[type(array)]`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from weakref import WeakValueDictionary

from leafgrad import plugins
from leafgrad.backends.communicator import Communicator

if TYPE_CHECKING:
    from leafgrad.plugins import BackendSpec


class GeneratorClass(NamedTuple):
    """A class of generators that Python code draws single numbers from.

    Attributes:
        names: the methods that draw one.
        get_state, set_state: functions of a generator, and of a generator and a state.
    """

    names: frozenset[str]
    get_state: Callable[[Any], Any]
    set_state: Callable[[Any, Any], Any]


class Generator(ABC):
    """A stream of random numbers on one device.

    Shapes are tuples of ints, dtypes are names ("float32"); results are arrays of the backend. Floating-point
    numbers are drawn in the precision asked for; for bfloat16 they are float32, which the op rounds. A new
    generator starts from `DEFAULT_SEED`.
    """

    DEFAULT_SEED: ClassVar[int] = 67280421310721  # PyTorch's
    stream: ClassVar[str] = ""
    """How code that draws `bernoulli` by itself does so: ``"philox4x64"``, ``"philox4x32"``, or "" if it cannot."""

    @abstractmethod
    def manual_seed(self, seed: int) -> None:
        """Restart the stream from `seed`, any integer in [-2**63, 2**64)."""

    @abstractmethod
    def seed(self) -> int:
        """Restart the stream from entropy of the operating system; return the seed taken, in [0, 2**64)."""

    @abstractmethod
    def initial_seed(self) -> int:
        """The seed that the stream was last restarted from, in [0, 2**64)."""

    @abstractmethod
    def get_state(self) -> Any:
        """The whole state as a new one-dimensional uint8 NumPy array on the host."""

    @abstractmethod
    def set_state(self, state: Any) -> None:
        """Take over a state from `get_state`; RuntimeError if it is not one of this kind of generator."""

    @abstractmethod
    def normal(self, shape: Sequence[int], dtype: str) -> Any:
        """Standard normal numbers."""

    @abstractmethod
    def uniform(self, shape: Sequence[int], dtype: str) -> Any:
        """Numbers uniform in [0, 1)."""

    @abstractmethod
    def integers(self, low: int, high: int, shape: Sequence[int], dtype: str) -> Any:
        """Integers uniform in [low, high), of any `dtype`. RuntimeError unless low < high."""

    @abstractmethod
    def permutation(self, n: int) -> Any:
        """0, ..., n - 1 in random order: (n,), int64."""

    @abstractmethod
    def bernoulli(self, p: Any, shape: Sequence[int], dtype: str) -> Any:
        """Ones with probability `p` (a float, or an array that broadcasts to `shape`), zeros otherwise.

        `p` counts to 24 bits.
        """

    def words(self, count: int) -> tuple[int, int]:
        """Two words of 64 bits from which the next ``count`` elements of `bernoulli` follow; these count as drawn.

        Of ``"philox4x64"`` they are the key and 0, of ``"philox4x32"`` the key and the first counter. An element is 1
        where the upper 24 bits of its number, over 2**24, are less than p. The first has eight numbers for a counter,
        the lower half of a word first, and starts from 1; the second has one, its first word.
        """
        raise NotImplementedError(f"{type(self).__name__} has no stream that others can draw from")


class DeviceMemory(NamedTuple):
    """Bytes of a device's memory.

    Attributes:
        used: in arrays.
        held: with those kept for arrays to come.
        most: the most in arrays, since somebody asked first or let it be forgotten.
    """

    used: int
    held: int
    most: int


class Backend(ABC):
    """An array library bound to a device type, whose arrays can be written: one of immutable arrays is none.

    In-place operations, gradients that are added up and optimizers write into arrays through views. `index` is always
    the number of a device of the type.
    """

    name: ClassVar[str]
    device_type: ClassVar[str]
    xp: Any
    """The namespace of NumPy-like functions that op forwards receive."""
    array_type: type
    """The class of the backend's arrays."""
    scalars: ClassVar[tuple[type, ...]] = ()
    """Classes of scalar objects of the library of which ``xp.asarray`` makes arrays as `wrap` does."""
    one_device: ClassVar[bool] = False
    """Whether there is but one device, so that none has to be made the current one."""
    has_bfloat16: ClassVar[bool] = False
    """Whether there are arrays of bfloat16."""
    deferred: ClassVar[bool] = False
    """Whether values are read by `item`, `to_host` and `synchronize` alone, which call `settle` first."""

    def expect(self, check: Callable[[], None], index: int = 0) -> None:
        """Call ``check`` when the next value of device ``index`` is read: it raises what went wrong meanwhile."""
        waiting = vars(self).setdefault("expected", {}).setdefault(index, [])
        if check not in waiting:
            waiting.append(check)

    def settle(self, index: int) -> None:
        """Make the checks that are due before a value of device ``index`` is read."""
        waiting = vars(self).get("expected", {}).get(index)
        while waiting:
            waiting.pop(0)()

    def without_bfloat16(self, what: str) -> TypeError:
        """The error of one who wants bfloat16 where there is none."""
        return TypeError(
            f"{what}: bfloat16 is there on the CPU only, not on {self.device_type!r}; convert with .float() or .half()"
        )

    @abstractmethod
    def device_count(self) -> int:
        """How many devices of this type there are."""

    @abstractmethod
    def device_index(self, array: Any) -> int:
        """The device that holds `array`."""

    @abstractmethod
    def from_host(self, array: Any, index: int = 0) -> Any:
        """A copy of a NumPy array on device `index`. The array may be written as soon as this returns."""

    def from_pinned(self, array: Any, index: int = 0) -> Any:
        """The same of an array that is `pinned`, which may be written only after the copy, for which nobody waits."""
        return self.from_host(array, index)

    def page_locked(self, shape: Sequence[int], dtype: Any) -> Any:
        """A new NumPy array in memory of the host from which devices copy by themselves; RuntimeError without it."""
        raise RuntimeError(f"device type {self.device_type!r} copies from no page-locked memory")

    def pin(self, array: Any) -> Any:
        """A copy of a NumPy array in such memory."""
        made = self.page_locked(array.shape, array.dtype)
        made[...] = array
        vars(self).setdefault("pinned", WeakValueDictionary())[id(made)] = made
        return made

    def is_pinned(self, array: Any) -> bool:
        """Whether a NumPy array lies in memory that `pin` gave."""
        pinned = vars(self).get("pinned", {})
        while array is not None and pinned.get(id(array)) is not array:
            array = getattr(array, "base", None)
        return array is not None

    @abstractmethod
    def to_host(self, array: Any) -> Any:
        """`array` as a NumPy array: a copy from a device, the array itself where it is one."""

    @abstractmethod
    def asarray(self, value: Any, dtype: str | None = None, index: int = 0) -> Any:
        """An array of a scalar, nested sequence or array of this backend.

        An array is copied only if its dtype or device differs.

        dtype: a name, or None for the type that the array library infers (float64 for Python floats).
        Raises ValueError for a ragged sequence, TypeError for what is not numbers, RuntimeError for overflow.
        """

    def hollow(self, shape: Sequence[int], dtype: str) -> Any:
        """An array in C order with any elements; where memory does not suffice, one of which only views can be made."""
        return self.xp.empty(tuple(shape), dtype=dtype)

    def check_index(self, index: Any, size: int, dim: int) -> None:
        """An IndexError unless all integers of the array ``index`` are in [-size, size), for dimension ``dim``.

        For array libraries whose indexing counts around what is out of range, as CuPy's does: one reduction, for which
        the host waits. A backend whose library raises an IndexError by itself overrides this to do nothing.
        """
        wrong = (index < -size) | (index >= size)
        if index.size and self.item(wrong.any()):
            first = self.item(index[wrong][:1])
            raise IndexError(f"index {first} is out of bounds for dimension {dim} with size {size}")

    def linalg_errors(self) -> AbstractContextManager[Any]:
        """Within it the array library's linear algebra raises its LinAlgError, for libraries that do so when asked."""
        return nullcontext()

    @abstractmethod
    def strided(self, array: Any, shape: Sequence[int], strides: Sequence[int]) -> Any:
        """The memory of `array` from its first element on, as an array of `shape`: a view, whatever the strides.

        strides: bytes from one element to the next along each dimension; that they stay in memory is not checked.
        """

    @abstractmethod
    def address(self, array: Any) -> int:
        """Where the first element of `array` lies, in bytes."""

    @abstractmethod
    def wrap(self, value: Any) -> Any:
        """`value`, a scalar object of the array library (np.float32) or an array, as an array."""

    @abstractmethod
    def generator(self, index: int = 0) -> Generator:
        """A new random generator on device `index`."""

    def arithmetic_raises(self) -> bool:
        """Whether the library raises errors now where numbers overflow, or are divided by zero, say."""
        return False

    def drawing(self) -> dict[type, GeneratorClass]:
        """The library's own classes of generators."""
        return {}

    @abstractmethod
    def synchronize(self, index: int = 0) -> None:
        """Wait until device `index` has finished what was asked of it."""

    @abstractmethod
    def item(self, array: Any) -> bool | int | float | complex:
        """The Python scalar of an array of one element. Synchronises the device."""

    def stream(self, index: int = 0, priority: int = 0) -> Any:
        """A new queue of work for device ``index``; within it as a context, work goes there.

        It has ``ptr``, ``done``, ``synchronize()``, ``record(event)`` and ``wait_event(event)``. RuntimeError if the
        backend has none.
        """
        raise RuntimeError(f"device type {self.device_type!r} has no streams: its work is done when it is asked for")

    def current_stream(self, index: int = 0) -> Any:
        """The queue that work for device ``index`` goes to."""
        return self.stream(index)

    def default_stream(self, index: int = 0) -> Any:
        """The queue that work goes to outside of all contexts."""
        return self.stream(index)

    def event(self, timing: bool = False, blocking: bool = False) -> Any:
        """A mark in a queue: ``record(stream)``, ``done``, ``synchronize()``."""
        raise RuntimeError(f"device type {self.device_type!r} has no events: its work is done when it is asked for")

    def elapsed(self, start: Any, end: Any) -> float:
        """Milliseconds from one mark to another."""
        raise RuntimeError(f"device type {self.device_type!r} has no events: its work is done when it is asked for")

    def memory(self, index: int = 0) -> DeviceMemory:
        """What arrays of this process take of device ``index``; RuntimeError if the library does not know."""
        raise RuntimeError(f"device type {self.device_type!r}: {self.name} does not count the memory of arrays")

    def forget_peak(self, index: int = 0) -> None:
        """Count the most memory from now on."""
        self.memory(index)

    def free_cache(self) -> None:
        """Give memory back that no array takes, if the library keeps any."""
        return

    def communicator(self, peers: Any, index: int = 0) -> Communicator:
        """How processes combine arrays of device `index`. `peers`: an ``mpi4py.MPI.Comm``.

        Raises RuntimeError if the backend has no way that keeps the arrays on their devices.
        """
        raise RuntimeError(f"device type {self.device_type!r}: backend {self.name!r} has no collectives; use the CPU")

    @abstractmethod
    def device_scope(self, index: int = 0) -> AbstractContextManager[Any]:
        """Within this context, new arrays of `xp` are made on device `index`."""


BACKENDS: dict[type, Backend] = {}
"""Loaded backends by class of array; `backend_of_type` adds the subclasses that it meets."""

_BY_DEVICE_TYPE: dict[str, Backend] = {}


def register(backend: Backend) -> Backend:
    """Enter a loaded backend in the tables."""
    BACKENDS[backend.array_type] = backend
    _BY_DEVICE_TYPE[backend.device_type] = backend
    return backend


def backend_of(array: Any) -> Backend:
    """The backend of an array, or of a scalar object of an array library (np.float32).

    Raises TypeError for anything else: Python numbers belong to no backend.
    """
    return BACKENDS.get(type(array)) or backend_of_type(type(array))


def backend_of_type(kind: type) -> Backend:
    """The backend of arrays of a class; see `backend_of`."""
    found = BACKENDS.get(kind)
    if found is not None:
        return found
    for base in kind.__mro__:
        if base in BACKENDS:
            BACKENDS[kind] = BACKENDS[base]
            return BACKENDS[kind]
    known = ", ".join(sorted({f"{backend.name} ({backend.device_type})" for backend in BACKENDS.values()}))
    raise TypeError(f"expected an array of a loaded backend, {known}; got {kind.__module__}.{kind.__qualname__}")


def by_device_type(device_type: str) -> Backend:
    """The backend that serves a device type ("cpu", "cuda"), imported now if this is its first use.

    Raises RuntimeError if no plugin lists the device type, or if the machine lacks what the backend needs.
    """
    backend = _BY_DEVICE_TYPE.get(device_type)
    return backend if backend is not None else register(load(plugins.backend_for(device_type)))


def several_devices() -> bool:
    """Whether there may be arrays on several devices of one type, of which one is the current one."""
    if len(_BY_DEVICE_TYPE) == 1:  # as mostly
        return False
    return any(not backend.one_device and backend.device_count() > 1 for backend in _BY_DEVICE_TYPE.values())


def load(spec: BackendSpec) -> Backend:
    """Import and make the backend that `spec` names."""
    found = plugins.resolve(spec.target)
    if not isinstance(found, type) or not issubclass(found, Backend):
        raise TypeError(f"backend {spec.name!r}: expected {spec.target} to be a subclass of Backend, got {found!r}")
    backend = found()
    if (backend.name, backend.device_type) != (spec.name, spec.device_type):
        raise RuntimeError(
            f"backend {spec.name!r}: expected name and device type {spec.name!r}, {spec.device_type!r}, "
            f"as listed, got {backend.name!r}, {backend.device_type!r} from {spec.target}"
        )
    return backend
