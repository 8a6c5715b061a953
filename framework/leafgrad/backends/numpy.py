"""NumPy on the CPU: the backend that is always there. Its device type is "cpu", with the one index 0."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import WeakSet

import numpy as np

from leafgrad import dtypes, forks
from leafgrad.backends.communicator import HostCommunicator
from leafgrad.backends.contract import BACKENDS, Backend, Generator, GeneratorClass, register
from leafgrad.backends.malloc import keep_freed_memory

OWN = np.ndarray | np.generic
_GENERATORS: WeakSet[NumpyGenerator] = WeakSet()


class NumpyGenerator(Generator):
    """PCG64 (O'Neill 2014), seeded through NumPy's SeedSequence.

    A call of ``bernoulli`` takes 64 bits of it, by ``key``, and makes its numbers of these by a counter
    (`philox_bernoulli`).
    """

    # initial seed (8 bytes), state (16), increment (16), kept 32-bit half: flag (8) and value (8)
    _FIELDS = (8, 16, 16, 8, 8)

    stream = "philox4x64"
    _stream: np.random.Generator

    def __init__(self) -> None:
        self.manual_seed(self.DEFAULT_SEED)
        _GENERATORS.add(self)

    def open_lock(self) -> None:
        """Take the lock from whoever holds it; even the state cannot be read without it (since NumPy 2.5)."""
        lock: Any = self._stream.bit_generator.lock
        lock._at_fork_reinit()

    def manual_seed(self, seed: int) -> None:
        self._seed = checked_seed(seed)
        self._stream = np.random.Generator(np.random.PCG64(self._seed))

    def seed(self) -> int:
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        return self._seed

    def get_state(self) -> Any:
        state: Any = self._stream.bit_generator.state
        core = state["state"]
        values = (self._seed, core["state"], core["inc"], state["has_uint32"], state["uinteger"])
        packed = b"".join(value.to_bytes(size, "little") for value, size in zip(values, self._FIELDS, strict=True))
        return np.frombuffer(packed, np.uint8).copy()

    def set_state(self, state: Any) -> None:
        packed, values = checked_state(state, sum(self._FIELDS)), []
        for size in self._FIELDS:
            values.append(int.from_bytes(packed[:size], "little"))
            packed = packed[size:]
        self._seed, core, increment, has_half, half = values
        self._stream.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": core, "inc": increment},
            "has_uint32": has_half,
            "uinteger": half,
        }

    def normal(self, shape: Sequence[int], dtype: str) -> Any:
        drawn = self._stream.standard_normal(tuple(shape), _drawable(dtype))
        return np.asarray(drawn, dtype if dtype != "bfloat16" else None)

    def uniform(self, shape: Sequence[int], dtype: str) -> Any:
        if dtype == "float16":  # rounding a float32 could give 1.0: draw the 11 bits that float16 holds below 1
            return (self._stream.integers(0, 2**11, tuple(shape)) / np.float64(2**11)).astype(np.float16)
        if dtype == "bfloat16":  # which holds 8 of them
            return (self._stream.integers(0, 2**8, tuple(shape)) / np.float64(2**8)).astype(np.float32)
        return np.asarray(self._stream.random(tuple(shape), _drawable(dtype)))

    def integers(self, low: int, high: int, shape: Sequence[int], dtype: str) -> Any:
        check_range(low, high)
        return np.asarray(self._stream.integers(low, high, tuple(shape), np.int64), dtype)

    def permutation(self, n: int) -> Any:
        return self._stream.permutation(n).astype(np.int64, copy=False)

    def key(self) -> int:
        """The next 64 bits."""
        return int(self._stream.bit_generator.random_raw())

    def words(self, count: int) -> tuple[int, int]:
        return self.key(), 0

    def bernoulli(self, p: Any, shape: Sequence[int], dtype: str) -> Any:
        return philox_bernoulli(self.key(), p, shape, dtype)


def _after_fork() -> None:
    """In a child process: threads that were drawing exist in the parent only, and never unlock what they locked."""
    for generator in list(_GENERATORS):
        generator.open_lock()


if hasattr(os, "register_at_fork"):
    forks.need("numpy.random", "leafgrad.backends.philox")  # what draws import
    forks.need("leafgrad.blas")  # which waits for products
    os.register_at_fork(after_in_child=_after_fork)


def philox_bernoulli(key: int, p: Any, shape: Sequence[int], dtype: str) -> Any:
    """Ones with probability p, zeros otherwise, that depend on ``key`` and their position alone. -> shape

    Element i is 1 where the upper 24 bits of number i of a stream of 32-bit numbers, over 2**24, are less than p. The
    stream is that of Philox 4x64-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3") with the key
    (key, 0) and the counters (1, 0, 0, 0), (2, 0, 0, 0), ...: four words each, the lower half of a word first. So any
    part of it can be computed on its own, as compiled code does.
    """
    from leafgrad.backends.philox import STREAMS  # few draw this way

    return np.asarray(STREAMS.restarted(key).random(tuple(shape), np.float32) < p, dtype)


DISTRIBUTIONS = (
    "random uniform normal standard_normal beta gamma standard_gamma exponential standard_exponential lognormal "
    "laplace logistic gumbel triangular vonmises wald weibull pareto power rayleigh chisquare noncentral_chisquare f "
    "noncentral_f standard_cauchy standard_t binomial negative_binomial poisson geometric hypergeometric logseries zipf"
).split()


def set_bits(generator: np.random.Generator, state: Any) -> None:
    """Give a generator a state."""
    generator.bit_generator.state = state


class NumpyBackend(Backend):
    """NumPy's arrays."""

    name = "numpy"
    device_type = "cpu"
    xp = np
    array_type = np.ndarray
    scalars = np.number, np.bool_
    one_device = True
    has_bfloat16 = True

    def arithmetic_raises(self) -> bool:
        return not {"raise", "call"}.isdisjoint(np.geterr().values())

    def drawing(self) -> dict[type, GeneratorClass]:
        old = np.random.RandomState
        names = frozenset([*DISTRIBUTIONS, "rand", "randn", "randint", "random_sample"])
        return {
            np.random.Generator: GeneratorClass(frozenset(DISTRIBUTIONS), lambda g: g.bit_generator.state, set_bits),
            old: GeneratorClass(names, old.get_state, old.set_state),
        }

    def device_count(self) -> int:
        return 1

    def device_index(self, array: Any) -> int:
        return 0

    def from_host(self, array: Any, index: int = 0) -> Any:
        return NumpyBackend.wrap(self, np.array(array))

    def to_host(self, array: Any) -> Any:
        return NumpyBackend.wrap(self, array)

    def asarray(self, value: Any, dtype: str | None = None, index: int = 0) -> Any:
        return host_array(value, dtype)

    def hollow(self, shape: Sequence[int], dtype: str) -> Any:
        try:
            return NumpyBackend.wrap(self, np.empty(tuple(shape), dtype))
        except MemoryError:  # nor is there any for a copy
            kind = np.dtype(dtype)
            steps = [math.prod(shape[i + 1 :]) * kind.itemsize for i in range(len(shape))]
            return NumpyBackend.wrap(self, np.lib.stride_tricks.as_strided(np.empty((), kind), tuple(shape), steps))

    def strided(self, array: Any, shape: Sequence[int], strides: Sequence[int]) -> Any:
        owner = array  # as_strided of NumPy would put something that is no array between the view and its owner
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        flat = owner.ravel(order="K")
        if flat.base is not owner or not array.size or 0 in shape:
            return NumpyBackend.wrap(self, np.lib.stride_tricks.as_strided(array, tuple(shape), tuple(strides)))
        start = self.address(array) - self.address(flat)
        view: Any = np.ndarray(tuple(shape), array.dtype, flat, start, tuple(strides))
        view.flags.writeable = array.flags.writeable
        return NumpyBackend.wrap(self, view)

    def address(self, array: Any) -> int:
        start: int = array.__array_interface__["data"][0]
        return start

    def check_index(self, index: Any, size: int, dim: int) -> None:
        """Nothing to do: NumPy's indexing raises."""

    def wrap(self, value: Any) -> Any:
        if type(value) is np.ndarray and value.dtype.kind != "V":
            return value
        if not isinstance(value, OWN):
            raise TypeError(f"expected an array or a scalar of NumPy's, got {type(value).__name__}")
        array = np.asarray(unmasked(value))
        return array if array.dtype.kind != "V" else stored(array)

    def generator(self, index: int = 0) -> Generator:
        return NumpyGenerator()

    def synchronize(self, index: int = 0) -> None:
        """Nothing to wait for: NumPy returns when it is done."""

    def item(self, array: Any) -> bool | int | float | complex:
        scalar: bool | int | float | complex = array.item() if array.dtype.kind != "V" else float(array.item())
        return scalar

    def communicator(self, peers: Any, index: int = 0) -> HostCommunicator:
        return HostCommunicator(peers)

    def device_scope(self, index: int = 0) -> AbstractContextManager[Any]:
        return nullcontext()


def unmasked(value: Any) -> Any:
    """``value``; TypeError for an array of numpy.ma with masked elements, behind which some number stands."""
    if isinstance(value, np.ndarray) and np.any(getattr(value, "mask", False)):
        raise TypeError("expected an array without masked elements; put numbers there by array.filled(number)")
    return value


def host_array(value: Any, dtype: str | None) -> Any:
    """A NumPy array of a scalar, nested sequence or array, with errors as `Backend.asarray` promises them."""
    try:
        array = np.asarray(value if type(value) is np.ndarray else unmasked(value), dtype)
    except OverflowError as error:
        raise RuntimeError(f"value cannot be converted to {dtype or 'int64'} without overflow: {error}") from None
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise TypeError(f"expected numbers or nested sequences of numbers: {error}") from None
        raise ValueError("expected nested sequences of equal lengths, got ragged ones; pad or split them") from None
    if array.dtype.kind == "V":
        array = stored(array)
    elif array.dtype.kind not in "biufc":
        raise TypeError(f"expected numbers or nested sequences of numbers, got {_strangest(value)}")
    return array


def stored(array: Any) -> Any:
    """An array of bfloat16, in whatever class, in the one that dispatch knows; TypeError if it is of another dtype."""
    if array.dtype.name != dtypes.bfloat16.name:  # whose first reading makes the class known
        raise TypeError(f"expected numbers or nested sequences of numbers, got an array of {array.dtype}")
    from leafgrad.backends.bfloat16 import adopt

    return adopt(array)


def check_range(low: int, high: int) -> None:
    """RuntimeError unless integers in [low, high) exist and fit int64."""
    if not -(2**63) <= low < high <= 2**63:
        raise RuntimeError(f"expected low < high, both within int64, got low {low} and high {high}")


def checked_seed(seed: int) -> int:
    """`seed` in [0, 2**64), negative ones wrapped as PyTorch wraps them; RuntimeError if out of range."""
    if not -(2**63) <= seed < 2**64:
        raise RuntimeError(f"expected a seed in [-2**63, 2**64), got {seed}")
    return seed % 2**64


def checked_state(state: Any, size: int) -> bytes:
    """The bytes of a generator's state of `size` bytes; RuntimeError if `state` is something else."""
    array = np.asarray(state)
    if array.dtype != np.uint8 or array.shape != (size,):
        raise RuntimeError(
            f"expected a generator state of {size} uint8 values, got shape {array.shape} of {array.dtype}; "
            "a state fits only the kind of device it came from"
        )
    return array.tobytes()


def _drawable(dtype: str) -> Any:
    """The type that NumPy draws for `dtype`: float16 numbers are drawn as float32 and rounded."""
    return np.float64 if dtype == "float64" else np.float32


def _strangest(value: Any) -> str:
    """The name of the first type within nested sequences that is not a number."""
    while isinstance(value, list | tuple) and value:
        value = next((part for part in value if not isinstance(part, bool | int | float | complex)), value[0])
    return type(value).__name__


register(NumpyBackend())
# Reductions give scalar objects, whose classes are entered at once: who looks one up finds it whatever ran before.
NUMBERS = {kind for kind in np.sctypeDict.values() if issubclass(kind, NumpyBackend.scalars)}
BACKENDS.update(dict.fromkeys([np.generic, *NUMBERS], BACKENDS[np.ndarray]))
keep_freed_memory()
