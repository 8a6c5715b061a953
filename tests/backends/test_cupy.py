"""The CuPy backend without a GPU: what it says of CuPy, drivers, devices and host values, and its generator."""

import contextlib
import ctypes
import sys
import types
import weakref

import numpy as np
import pytest

from leafgrad import plugins
from leafgrad.backends import backend_of, by_device_type, contract


def host(array):
    return backend_of(array).to_host(array)


def load_cupy(monkeypatch, cupy):
    """Import the CuPy backend afresh with `cupy` in the place of the package, and make it."""
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.delitem(sys.modules, "leafgrad.backends.cupy", raising=False)
    try:
        return contract.load(plugins.backend("cupy"))
    finally:
        sys.modules.pop("leafgrad.backends.cupy", None)


class CUDARuntimeError(RuntimeError):
    """Stands for CuPy's error."""


def stub(count):
    """As much of the cupy package as it takes to ask for devices."""

    def get_device_count():
        if isinstance(count, str):
            raise CUDARuntimeError(count)
        return count

    cupy = types.ModuleType("cupy")
    cupy.ndarray = type("ndarray", (), {})
    runtime = types.SimpleNamespace(getDeviceCount=get_device_count, CUDARuntimeError=CUDARuntimeError)
    cupy.cuda = types.SimpleNamespace(runtime=runtime, Device=lambda index: index)
    return cupy


def test_cupy_missing(monkeypatch):
    with pytest.raises(ImportError, match=r'"cuda" needs CuPy.*pip install "leafgrad\[cuda12\]"'):
        load_cupy(monkeypatch, None)


def test_no_driver(monkeypatch):
    error = "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"
    with pytest.raises(RuntimeError, match=r"no NVIDIA driver that serves this CuPy \(cudaErrorInsufficientDriver"):
        load_cupy(monkeypatch, stub(error))


@pytest.mark.parametrize("count", [0, "cudaErrorNoDevice: no CUDA-capable device is detected"])
def test_no_gpu(monkeypatch, count):
    with pytest.raises(RuntimeError, match="the NVIDIA driver finds no GPU"):
        load_cupy(monkeypatch, stub(count))


@pytest.mark.parametrize("index", [-1, 2])
def test_cuda_index_out_of_range(monkeypatch, index):
    backend = load_cupy(monkeypatch, stub(2))
    assert backend.device_count() == 2
    for use in (backend.device_scope, backend.generator, backend.synchronize):
        with pytest.raises(RuntimeError, match=f"expected a CUDA device from cuda:0 to cuda:1, got cuda:{index}"):
            use(index)


def test_cupy_refuses_host_values(monkeypatch):
    backend = load_cupy(monkeypatch, stub(1))
    for value in (1.0, np.float32(1), np.ones(2)):
        with pytest.raises(TypeError, match="expected an array of CuPy's, got a host value"):
            backend.wrap(value)


class Copies:
    """Copies that the host has asked for: CuPy does them later."""

    def __init__(self, cupy, monkeypatch):
        self.waiting, self.calls = [], []
        outer = self

        class Device(contextlib.nullcontext):
            id = 0

        class Array(cupy.ndarray):
            device = Device

            def __init__(self, shape, dtype):
                self.host = np.full(shape, 7, dtype)
                self.data = types.SimpleNamespace(copy_from_host_async=self.copy)

            def copy(self, address, size):
                outer.calls.append("copy")
                outer.waiting.append(lambda: ctypes.memmove(self.host.ctypes.data, address, size))

        class Event:
            def __init__(self, block, disable_timing):
                self.done = False

            def record(self):
                outer.calls.append("event")
                outer.waiting.append(lambda: setattr(self, "done", True))

            def synchronize(self):
                raise AssertionError("the host waits")

        cupy.empty, cupy.array, cupy.cuda.Event, cupy.cuda.Device = Array, self.array, Event, Device
        pinned = types.SimpleNamespace(empty_pinned=lambda shape, dtype: np.empty(shape, dtype))
        monkeypatch.setitem(sys.modules, "cupyx", pinned)

    def array(self, array):
        self.calls.append("copy of a copy")

    def happen(self):
        while self.waiting:
            self.waiting.pop(0)()


def test_copies_of_pinned_memory_are_not_waited_for(monkeypatch):
    cupy = stub(1)
    copies = Copies(cupy, monkeypatch)
    backend = load_cupy(monkeypatch, cupy)
    source = np.arange(6.0).reshape(2, 3)
    pinned = backend.pin(source)
    assert backend.is_pinned(pinned)
    assert backend.is_pinned(pinned[1:])
    assert not backend.is_pinned(source)
    made, kept = backend.from_pinned(pinned), weakref.ref(pinned)
    del pinned
    assert copies.calls == ["copy", "event"]
    assert (made.host == 7).all()  # nothing has happened yet, and nobody asked for it
    assert kept() is not None  # a copy is still to be made of this memory
    copies.happen()
    assert (made.host == source).all()
    second = backend.pin(source + 1)
    backend.from_pinned(second)
    assert kept() is None
    for other in (source, second.T, second[:0]):  # memory that anybody may write, that has gaps, or has nothing
        copies.calls.clear()
        backend.from_pinned(other)
        assert copies.calls == ["copy of a copy"]


def philox(seed, at):
    """Philox4x32-10 in Python: four words from counter and key, as the kernel computes them."""
    counter = [at % 2**32, at >> 32, 0, 0]
    key = [seed % 2**32, seed >> 32]
    for _ in range(10):
        low, high = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [high >> 32 ^ counter[1] ^ key[0], high % 2**32, low >> 32 ^ counter[3] ^ key[1], low % 2**32]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return counter


def test_philox_known_answer():
    """The first vector of kat_vectors in Random123."""
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.gpu
@pytest.mark.parametrize(("seed", "at"), [(0, 0), (2**64 - 1, 2**40 + 3), (123456789, 7)])
def test_the_kernel_is_philox(seed, at):
    generator = by_device_type("cuda").generator()
    generator.set_state(np.array([seed, at], "<u8").view(np.uint8))
    bits = host(generator._draw("bits", (3,), "uint64")).tolist()
    assert bits == [philox(seed, at + i)[0] << 32 | philox(seed, at + i)[1] for i in range(3)]
