"""Arrays of the stand-in device, and the count of synchronisations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, Final, Self

import numpy as np

from leafgrad.testing.fake import surface

DEVICES: Final = 2

_CURRENT: ContextVar[int] = ContextVar("leafgrad_fake_device", default=0)
SYNCS: list[str] = []


def sync_count() -> int:
    """How often the host has waited for the device so far."""
    return len(SYNCS)


@contextmanager
def no_sync() -> Iterator[None]:
    """Within this context nothing may synchronise; AssertionError at its end names what did."""
    before = len(SYNCS)
    yield
    if len(SYNCS) > before:
        raise AssertionError(f"expected no synchronisation with the device, got {', '.join(SYNCS[before:])}")


@contextmanager
def device_scope(index: int) -> Iterator[None]:
    """Within this context, new arrays are made on device `index`, and all arrays used must be there."""
    if not 0 <= index < DEVICES:
        raise RuntimeError(f"expected a device index from 0 to {DEVICES - 1}, got fake:{index}")
    token = _CURRENT.set(index)
    try:
        yield
    finally:
        _CURRENT.reset(token)


class FakeArray:
    """An array on a stand-in device, with the attributes, methods and operators that CuPy's have."""

    __slots__ = ("__weakref__", "_hidden", "_index", "_root")

    _hidden: Any
    _index: int
    _root: FakeArray | None

    __array_ufunc__ = None  # ndarray * FakeArray comes to FakeArray.__rmul__, which refuses

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        raise TypeError("a FakeArray is made by its namespace or its backend, e.g. backend.from_host(array, index)")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("implicit conversion of a device array to a NumPy array; use backend.to_host")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise TypeError(f"numpy.{func.__name__} was called on a device array; use the backend's xp.{func.__name__}")

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'FakeArray'")

    def __getattr__(self, name: str) -> Any:
        if name not in surface.METHODS:
            raise AttributeError(f"arrays of CuPy have no attribute {name!r}")
        return FakeFunction(getattr(np.ndarray, name), name, self)

    def __getitem__(self, key: Any) -> Any:
        _note_mask("FakeArray.__getitem__", key)
        parts = wrapped(self, key)
        if not any(part is Ellipsis for part in parts):
            parts = (*parts, Ellipsis)  # a view of no axes where NumPy alone gives a scalar
        return run_hidden(np.ndarray.__getitem__, (self, parts))

    def __setitem__(self, key: Any, value: Any) -> None:
        _note_mask("FakeArray.__setitem__", key)
        run_hidden(np.ndarray.__setitem__, (self, wrapped(self, key), value))

    def __len__(self) -> int:
        return len(self._hidden)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(waited(self, "__bool__"))

    def __int__(self) -> int:
        return int(waited(self, "__int__"))

    def __float__(self) -> float:
        return float(waited(self, "__float__"))

    def __complex__(self) -> complex:
        return complex(waited(self, "__complex__"))

    def __repr__(self) -> str:
        values = np.array2string(waited(self, "__repr__"), separator=", ", prefix="FakeArray(")
        return f"FakeArray({values}, device='fake:{self._index}')"

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def item(self, *args: int) -> Any:
        """One element as a Python scalar. Synchronises."""
        return waited(self, "item").item(*args)

    def tolist(self) -> Any:
        """Nested lists of Python scalars. Synchronises."""
        return waited(self, "tolist").tolist()

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(self._hidden.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self._hidden.size)

    @property
    def dtype(self) -> Any:
        """Element type, a numpy.dtype as in CuPy."""
        return self._hidden.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(self._hidden.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(self._hidden.nbytes)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return tuple(self._hidden.strides)

    @property
    def flags(self) -> Any:
        """c_contiguous, f_contiguous and owndata; CuPy has no others."""
        flags = self._hidden.flags
        return SimpleNamespace(
            c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous, owndata=self._root is None
        )

    @property
    def base(self) -> FakeArray | None:
        """The array that owns the memory, if this is a view."""
        return self._root

    @property
    def device(self) -> Any:
        """`device.id` is the index of the device."""
        return SimpleNamespace(id=self._index)

    @property
    def T(self) -> Any:
        """View with the axes reversed."""
        return self.transpose()

    @property
    def real(self) -> Any:
        """View of the real part."""
        return run_hidden(np.real, (self,))

    @property
    def imag(self) -> Any:
        """View of the imaginary part."""
        return run_hidden(np.imag, (self,))


def _define_operators() -> None:
    """Operators compute as NumPy's do, on FakeArrays and Python numbers alone."""

    def define(name: str) -> None:
        ufunc = getattr(np.ndarray, name)

        def operator(self: Any, *others: Any) -> Any:
            for other in others:
                if not isinstance(other, FakeArray) and getattr(other, "__array_ufunc__", self) is None:
                    return NotImplemented  # Tensor and Symbol have an operator of their own
            return run_hidden(ufunc, (self, *others))

        operator.__name__ = name
        setattr(FakeArray, name, operator)

    for name in surface.OPERATORS:
        define(name)


class FakeFunction:
    """A function of NumPy that takes and gives FakeArrays, with the keywords that CuPy's has."""

    def __init__(self, function: Any, name: str, *bound: Any) -> None:
        self._function = function
        self._bound = bound
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__
        lacking = surface.LACKING_KEYWORDS | surface.LACKING_KEYWORDS_OF.get(name, frozenset())
        refuse_keywords(name, lacking.intersection(kwargs))
        if name in surface.SYNCHRONISING or (name == "where" and len(args) == 1):
            SYNCS.append(f"xp.{name}")
        if name in surface.WRAPS:
            kwargs = {"mode": "wrap", **kwargs}  # as CuPy's do, without a word
        if name == "repeat" and any(isinstance(arg, FakeArray) for arg in args[1:]):
            SYNCS.append("xp.repeat with an array of repeats")
        result = run_hidden(self._function, (*self._bound, *args), kwargs)
        return new_array(np.asarray(result)) if name in surface.GIVES_0D else result


def wrapped(array: FakeArray, key: Any) -> tuple[Any, ...]:
    """A key whose arrays of indices count around, as CuPy's do, where NumPy has an IndexError."""
    parts = key if isinstance(key, tuple) else (key,)
    taken = [0 if part is None or part is Ellipsis else _axes(part) for part in parts]
    axis, found = 0, []
    for part, axes in zip(parts, taken, strict=True):
        if part is Ellipsis:
            axis += array.ndim - sum(taken)
        if isinstance(part, list):
            part = new_array(np.asarray(part, None if part else "int64"), index=array._index)
        if isinstance(part, FakeArray) and part.dtype != bool and axis < array.ndim and array.shape[axis]:
            part = new_array(part._hidden % array.shape[axis], index=part._index)
        found.append(part)
        axis += axes
    return tuple(found)


def _axes(part: Any) -> int:
    """How many axes an entry of a key chooses from."""
    return part.ndim if isinstance(part, FakeArray) and part.dtype == bool else 1


def run_hidden(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Call a NumPy function on the hidden arrays and hide its results."""
    seen: list[FakeArray] = []
    hidden = [reveal(arg, seen) for arg in args]
    named = {name: reveal(arg, seen) for name, arg in (kwargs or {}).items()}
    current = _CURRENT.get()
    for array in seen:
        if array._index != current:
            raise RuntimeError(
                f"expected arrays on the current device, fake:{current}, got one on fake:{array._index}; "
                "move it, or work within device_scope"
            )
    result = function(*hidden, **named)
    if result is NotImplemented:
        raise TypeError(f"{function.__name__}: unsupported operand, {[type(arg).__name__ for arg in args[1:]]}")
    return _hide(result, seen)


def reveal(value: Any, seen: list[FakeArray]) -> Any:
    """`value` with hidden arrays in place of FakeArrays, which are noted in `seen`."""
    if isinstance(value, FakeArray):
        seen.append(value)
        return value._hidden
    if isinstance(value, np.ndarray | np.generic):
        raise TypeError(f"expected device arrays or Python numbers, got a host value, {type(value).__name__}")
    if isinstance(value, tuple | list):
        return type(value)(reveal(part, seen) for part in value)
    if isinstance(value, slice):
        return slice(*(reveal(part, seen) for part in (value.start, value.stop, value.step)))
    known = bool | int | float | complex | str | range | type | np.dtype | None
    if isinstance(value, known) or value is Ellipsis:
        return value
    raise TypeError(f"expected device arrays or Python numbers, got {type(value).__name__}")


def _hide(result: Any, seen: Sequence[FakeArray] = ()) -> Any:
    """`result` with FakeArrays in place of NumPy's; an input that comes back stays itself."""
    if isinstance(result, np.ndarray):
        for array in seen:
            if result is array._hidden:
                return array
        owners = (array for array in seen if _is_view(result, array._hidden))
        return new_array(result, root=next(owners, None))
    if isinstance(result, np.generic):
        return new_array(np.asarray(result))
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(_hide(part, seen) for part in result))
    if isinstance(result, tuple | list):
        return type(result)(_hide(part, seen) for part in result)
    return result


def _is_view(result: Any, source: Any) -> bool:
    return result.base is not None and (result.base is source or result.base is source.base)


def new_array(hidden: Any, root: FakeArray | None = None, index: int | None = None) -> FakeArray:
    if hidden.dtype.name not in surface.DTYPES:
        raise TypeError(f"CuPy has no arrays of {hidden.dtype}")
    array = object.__new__(FakeArray)
    array._hidden = hidden
    array._index = _CURRENT.get() if index is None else index
    array._root = root if root is None or root._root is None else root._root
    return array


def refuse_keywords(name: str, lacking: Any) -> None:
    if lacking:
        raise TypeError(f"xp.{name}: CuPy's has no argument {sorted(lacking)[0]!r}")


def waited(array: FakeArray, what: str) -> Any:
    SYNCS.append(f"FakeArray.{what}")
    return array._hidden


def _note_mask(what: str, key: Any) -> None:
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, FakeArray) and part.dtype == bool:
            SYNCS.append(f"{what} with a mask")


_define_operators()
