"""The stand-in device as a backend, and as a plugin."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np

from leafgrad import plugins
from leafgrad.backends import Backend, Generator, by_device_type
from leafgrad.backends.communicator import HostCommunicator
from leafgrad.backends.numpy import NumpyGenerator, host_array
from leafgrad.ops.op import Op
from leafgrad.plugins import BackendSpec, hookimpl
from leafgrad.testing.fake.array import DEVICES, SYNCS, FakeArray, device_scope, new_array, reveal, run_hidden, waited
from leafgrad.testing.fake.namespace import Namespace

_PLUGIN_NAME: Final = "fake-device"


class FakeGenerator(Generator):
    """NumPy's generator, with its numbers brought to the stand-in device."""

    stream = NumpyGenerator.stream

    def __init__(self, index: int) -> None:
        self._index = index
        self._host = NumpyGenerator()

    def manual_seed(self, seed: int) -> None:
        self._host.manual_seed(seed)

    def seed(self) -> int:
        return self._host.seed()

    def initial_seed(self) -> int:
        return self._host.initial_seed()

    def get_state(self) -> Any:
        return self._host.get_state()

    def set_state(self, state: Any) -> None:
        self._host.set_state(state)

    def normal(self, shape: Sequence[int], dtype: str) -> Any:
        return self._bring(self._host.normal(shape, dtype))

    def uniform(self, shape: Sequence[int], dtype: str) -> Any:
        return self._bring(self._host.uniform(shape, dtype))

    def integers(self, low: int, high: int, shape: Sequence[int], dtype: str) -> Any:
        return self._bring(self._host.integers(low, high, shape, dtype))

    def permutation(self, n: int) -> Any:
        return self._bring(self._host.permutation(n))

    def bernoulli(self, p: Any, shape: Sequence[int], dtype: str) -> Any:
        return self._bring(self._host.bernoulli(reveal(p, []), shape, dtype))

    def words(self, count: int) -> tuple[int, int]:
        return self._host.words(count)

    def _bring(self, hidden: Any) -> FakeArray:
        return new_array(hidden, index=self._index)


class FakeCommunicator(HostCommunicator):
    """MPI's collectives on what the stand-in's arrays hide, as NCCL's are on what a GPU has."""

    def all_reduce(self, array: FakeArray, how: str) -> FakeArray:
        return self._bring(array, super().all_reduce(array._hidden, how))

    def broadcast(self, array: FakeArray, src: int) -> FakeArray:
        return self._bring(array, super().broadcast(array._hidden, src))

    def all_gather(self, array: FakeArray) -> FakeArray:
        return self._bring(array, super().all_gather(array._hidden))

    @staticmethod
    def _bring(array: FakeArray, hidden: Any) -> FakeArray:
        return new_array(hidden, index=array._index)


class FakeBackend(Backend):
    """The stand-in device's arrays."""

    name = "fake"
    device_type = "fake"
    xp = Namespace(np)
    array_type = FakeArray
    deferred = True

    def device_count(self) -> int:
        return DEVICES

    def device_index(self, array: FakeArray) -> int:
        return array._index

    def from_host(self, array: Any, index: int = 0) -> FakeArray:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"expected a NumPy array, got {type(array).__name__}")
        if array.dtype.name == "bfloat16":
            raise self.without_bfloat16("from_host")
        with device_scope(index):
            return new_array(np.array(array))

    def page_locked(self, shape: Sequence[int], dtype: Any) -> Any:
        return np.empty(tuple(shape), dtype)

    def to_host(self, array: FakeArray) -> Any:
        self.settle(array._index)
        return waited(array, "to_host").copy()

    def asarray(self, value: Any, dtype: str | None = None, index: int = 0) -> FakeArray:
        with device_scope(index):
            if not isinstance(value, FakeArray):
                return new_array(np.array(host_array(reveal(value, []), dtype)))
            if value._index == index and dtype in (None, value.dtype.name):
                return value
            return new_array(np.array(value._hidden, dtype))

    def strided(self, array: FakeArray, shape: Sequence[int], strides: Sequence[int]) -> FakeArray:
        hidden = by_device_type("cpu").strided(array._hidden, shape, strides)
        return new_array(hidden, root=array, index=array._index)

    def address(self, array: FakeArray) -> int:
        return by_device_type("cpu").address(array._hidden)

    def wrap(self, value: Any) -> FakeArray:
        if not isinstance(value, FakeArray):
            raise TypeError(f"expected a device array, got a host value, {type(value).__name__}")
        return value

    def generator(self, index: int = 0) -> FakeGenerator:
        with device_scope(index):
            return FakeGenerator(index)

    def synchronize(self, index: int = 0) -> None:
        SYNCS.append(f"synchronize(fake:{index})")
        self.settle(index)

    def item(self, array: FakeArray) -> bool | int | float | complex:
        self.settle(array._index)
        scalar: bool | int | float | complex = array.item()
        return scalar

    def communicator(self, peers: Any, index: int = 0) -> FakeCommunicator:
        return FakeCommunicator(peers)

    def device_scope(self, index: int = 0) -> AbstractContextManager[Any]:
        return device_scope(index)


class _Plugin:
    """The stand-in device as a plugin."""

    @staticmethod
    @hookimpl
    def leafgrad_backends() -> list[BackendSpec]:
        return [BackendSpec("fake", "fake", "leafgrad.testing.fake:FakeBackend")]


def on_host(*ops: Op) -> None:
    """Let ops that compute by a library of the host, such as SciPy, run on the stand-in, where their rules are tested.

    May be called again.
    """
    for op in ops:
        if "fake" not in op.kernels:
            op.kernel("fake")(_uncovered(op.forward))


def _uncovered(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A forward on what arrays of the stand-in hide."""

    @functools.wraps(forward)
    def kernel(xp: Any, *args: Any, **params: Any) -> Any:
        return run_hidden(lambda *hidden: forward(np, *hidden, **params), args)

    return kernel


def register() -> None:
    """Make the devices "fake:0" and "fake:1" known to leafgrad. May be called again."""
    if all(plugin.name != _PLUGIN_NAME for plugin in plugins.status()):
        plugins.register(_Plugin(), _PLUGIN_NAME)
