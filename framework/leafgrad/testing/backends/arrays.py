"""What arrays of a backend must have: attributes, operators, views, and the way from and to the host."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from leafgrad.ops import dispatch
from leafgrad.testing.backends.expect import equal, expect, raises

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
METHODS = (
    "all any argmax argmin astype copy cumprod cumsum diagonal fill max mean min prod ravel reshape squeeze std sum "
    "swapaxes take transpose var"
).split()
GRID = np.arange(6.0).reshape(2, 3)


def identity(backend: Any) -> None:
    """Names, the class of arrays, and at least one device."""
    for name in ("name", "device_type"):
        value = getattr(backend, name)
        expect(isinstance(value, str) and value.isidentifier(), f"backend.{name}", "an identifier", value)
    expect(isinstance(backend.array_type, type), "backend.array_type", "a class", backend.array_type)
    expect(backend.device_count() >= 1, "backend.device_count()", "at least 1", backend.device_count())


def host(backend: Any) -> None:
    """``from_host`` copies to a device, ``to_host`` gives a NumPy array with the same elements."""
    for dtype in DTYPES:
        source = (GRID % 2).astype(dtype)
        array = backend.from_host(source)
        want = source.copy()
        source[...] = 1
        equal(backend, f"from_host of {dtype}, then changed", array, want)
        back = backend.to_host(array)
        expect(type(back) is np.ndarray, "to_host", "a numpy.ndarray", type(back))
    for index in range(backend.device_count()):
        where = backend.device_index(backend.from_host(GRID, index))
        expect(where == index, f"device_index(from_host(array, {index}))", index, where)
    for empty in (np.zeros((0, 2)), np.asarray(1.5), GRID.T, GRID[:, ::2]):
        equal(backend, f"from_host of shape {empty.shape}", backend.from_host(empty), empty)


def asarray(backend: Any) -> None:
    """``asarray`` takes numbers, nested sequences and its own arrays, and refuses the rest by the right error."""
    for value, dtype in ((3, None), (2.5, None), (True, None), ([[1, 2], [3, 4]], "int32"), ([], "float32")):
        equal(backend, f"asarray({value!r}, {dtype!r})", backend.asarray(value, dtype), np.asarray(value, dtype))
    array = backend.asarray([1.0, 2.0], "float32")
    expect(backend.asarray(array) is array, "asarray(array)", "the array itself", "another")
    equal(backend, "asarray(array, 'float64')", backend.asarray(array, "float64"), np.asarray([1.0, 2.0]))
    raises("asarray of a ragged list", ValueError, lambda: backend.asarray([[1, 2], [3]]))
    raises("asarray of a string", TypeError, lambda: backend.asarray("abc"))
    raises("asarray of None in a list", TypeError, lambda: backend.asarray([1, None]))
    raises("asarray(300, 'uint8')", RuntimeError, lambda: backend.asarray(300, "uint8"))


def wrap(backend: Any) -> None:
    """``wrap`` gives arrays and makes 0-d arrays of the library's scalars; ``item`` gives Python numbers."""
    array = backend.from_host(GRID.astype("float32"))
    expect(backend.wrap(array) is array, "wrap(array)", "the array itself", "another")
    equal(backend, "wrap(array.sum())", backend.wrap(array.sum()), np.asarray(15, "float32"))
    equal(backend, "wrap(array[0, 1])", backend.wrap(array[0, 1]), np.asarray(1, "float32"))
    for value in (1.0, [1.0], (array,), None):
        raises(f"wrap({type(value).__name__})", TypeError, partial(backend.wrap, value))
    for value in (True, 3, 2.5):
        got = backend.item(backend.asarray([value]))
        expect(type(got) is type(value) and got == value, f"item of {value!r}", repr(value), got)


def attributes(backend: Any) -> None:
    """Arrays have NumPy's attributes and methods, as far as leafgrad reads them."""
    array, like = backend.from_host(GRID.astype("float32")), GRID.astype("float32")
    for name in ("shape", "ndim", "size", "itemsize", "nbytes"):
        got = getattr(array, name)
        expect(got == getattr(like, name), f"array.{name}", getattr(like, name), got)
    expect(type(array.shape) is tuple, "array.shape", "a tuple", type(array.shape))
    expect(isinstance(array.dtype, np.dtype), "array.dtype", "a numpy.dtype", array.dtype)
    expect(bool(array.flags.c_contiguous), "array.flags.c_contiguous", True, False)
    expect(not array.T.flags.c_contiguous, "array.T.flags.c_contiguous", False, True)
    for name in ("strides", "base", "T", *METHODS):
        expect(hasattr(array, name), f"array.{name}", "to be there", None)
    equal(backend, "array.T", array.T, like.T)
    equal(backend, "array.astype('int64')", array.astype("int64"), like.astype("int64"))
    equal(backend, "array.sum(axis=(0, 1), keepdims=True)", array.sum(axis=(0, 1), keepdims=True), [[np.float32(15)]])
    equal(backend, "array.take(indices, axis=1)", array.take(backend.asarray([2, 0]), axis=1), like[:, [2, 0]])


def operators(backend: Any) -> None:
    """Operators compute as NumPy's, with arrays and Python numbers, and keep the precision."""
    x, y = GRID.astype("float32") + 1, GRID[::-1].astype("float32") + 2
    a, b = backend.from_host(x), backend.from_host(y)
    for name in "add sub mul truediv floordiv mod pow lt le gt ge eq ne".split():
        apply = getattr(operator, name)
        equal(backend, f"array {name} array", apply(a, b), apply(x, y))
        equal(backend, f"array {name} 2.0", apply(a, 2.0), apply(x, 2.0))
        equal(backend, f"2.0 {name} array", apply(2.0, a), apply(2.0, x))
    equal(backend, "array @ array", a @ b.T, x @ y.T)
    equal(backend, "-array", -a, -x)
    equal(backend, "~mask & mask | mask", (~(a > 2) & (b > 2)) | (a > 5), (~(x > 2) & (y > 2)) | (x > 5))


def views(backend: Any) -> None:
    """Basic indices, ``reshape`` and ``transpose`` share memory, and ``base`` leads to the array that owns it."""
    for what, take in {
        "array[0]": lambda a: a[0], "array[:, 1:]": lambda a: a[:, 1:], "array[..., None]": lambda a: a[..., None],
        "array.T": lambda a: a.T, "array.transpose(1, 0)": lambda a: a.transpose(1, 0),
        "array.reshape(3, 2)": lambda a: a.reshape(3, 2), "array[1:].T[0]": lambda a: a[1:].T[0],
        "array[0, 1, ...]": lambda a: a[0, 1, ...],
    }.items():  # fmt: skip
        source = GRID.copy()
        array = backend.from_host(source)
        part = take(array)
        owner = dispatch.memory_of(part)
        expect(owner is dispatch.memory_of(array), f"{what}: base", "the array that owns the memory", owner)
        part[...] = 7.0
        take(source)[...] = 7.0
        equal(backend, f"the array after {what} = 7", array, source)
    array = backend.from_host(GRID)
    expect(array.base is None, "base of an array from the host", None, array.base)
    copy = array.copy()
    copy[...] = 0.0
    equal(backend, "an array after its copy was written", array, GRID)


def writing(backend: Any) -> None:
    """In-place operators and indexed writing change the array itself."""
    source = GRID.copy()
    array = same = backend.from_host(source)
    for name in "iadd isub imul itruediv ipow".split():
        array, source = getattr(operator, name)(array, 2.0), getattr(operator, name)(source, 2.0)
    expect(array is same, "array after in-place operators", "the same array", "another")
    equal(backend, "array after in-place operators", array, source)
    at = backend.asarray([1, 0])
    array[at, 0] = backend.asarray([5.0, 6.0])
    source[[1, 0], 0] = [5.0, 6.0]
    array[array > 10] = 0.0
    source[source > 10] = 0.0
    equal(backend, "array after indexed writing", array, source)
    array.fill(3.0)
    equal(backend, "array.fill(3)", array, np.full((2, 3), 3.0))


def indices(backend: Any) -> None:
    """Arrays of integers pick elements, from the end where negative; what is out of range is an IndexError."""
    array, at = backend.from_host(GRID), backend.asarray([2, -1, 0])
    equal(backend, "array[:, indices]", array[:, at], GRID[:, [2, -1, 0]])
    backend.check_index(at, 3, 1)
    for wrong in (3, -4):
        bad = backend.asarray([0, wrong])

        def use(bad: Any = bad) -> None:
            backend.check_index(bad, 3, 1)
            _ = array[:, bad]

        raises(f"check_index with {wrong} of 3, then array[:, indices]", IndexError, use)
