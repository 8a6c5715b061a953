"""CuPy on CUDA devices: the backend of device type "cuda". Imported when the first CUDA device is asked for.

Random numbers come from Philox4x32-10, a function of seed and position alone, as a kernel of our own: cuRAND
cannot be captured into a CUDA graph, and CuPy's generators cannot give away their state.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np

from leafgrad.backends.communicator import Communicator
from leafgrad.backends.contract import Backend, DeviceMemory, Generator
from leafgrad.backends.numpy import check_range, checked_seed, checked_state, host_array

try:
    import cupy
except ImportError as error:
    raise ImportError(
        f'device "cuda" needs CuPy, which cannot be imported ({error}): pip install "leafgrad[cuda12]" for '
        'CUDA 12 drivers, "leafgrad[cuda13]" for CUDA 13; never both'
    ) from error

# Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11, section 3.3.
PHILOX = r"""
__device__ void philox(unsigned long long seed, unsigned long long at, unsigned int out[4]) {
    unsigned int key0 = (unsigned int)seed, key1 = (unsigned int)(seed >> 32);
    unsigned int a = (unsigned int)at, b = (unsigned int)(at >> 32), c = 0u, d = 0u;
    for (int round = 0; round < 10; ++round) {
        unsigned long long p = 0xD2511F53ull * a, q = 0xCD9E8D57ull * c;
        a = (unsigned int)(q >> 32) ^ b ^ key0;
        b = (unsigned int)q;
        c = (unsigned int)(p >> 32) ^ d ^ key1;
        d = (unsigned int)p;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    out[0] = a; out[1] = b; out[2] = c; out[3] = d;
}
"""

# Each body sets y from four random words r. The most that a type can hold below 1: 11, 24 and 53 bits.
BODIES = {
    "uniform_float16": "y = float16((float)(r[0] >> 21) * 4.8828125e-4f);",
    "uniform_float32": "y = (float)(r[0] >> 8) * 5.9604644775390625e-8f;",
    "uniform_float64": "y = (((unsigned long long)r[0] << 21) ^ (r[1] >> 11)) * 1.1102230246251565e-16;",
    # Box and Muller (1958); the radius needs a number in (0, 1]
    "normal_float16": "y = float16(sqrtf(-2.0f * logf(((r[0] >> 8) + 1u) * 5.9604644775390625e-8f))"
    " * cospif((r[1] >> 8) * 1.1920928955078125e-7f));",
    "normal_float32": "y = sqrtf(-2.0f * logf(((r[0] >> 8) + 1u) * 5.9604644775390625e-8f))"
    " * cospif((r[1] >> 8) * 1.1920928955078125e-7f);",
    "normal_float64": "y = sqrt(-2.0 * log(((((unsigned long long)r[0] << 21) ^ (r[1] >> 11)) + 1ull)"
    " * 1.1102230246251565e-16))"
    " * cospi((((unsigned long long)r[2] << 21) ^ (r[3] >> 11)) * 2.220446049250313e-16);",
    "bits_uint64": "y = ((unsigned long long)r[0] << 32) | r[1];",
}


@cache
def kernel(name: str) -> Any:
    """The elementwise kernel of one of `BODIES`: seed and position of the first element in, y out."""
    body = f"unsigned int r[4]; philox(seed, at + i, r); {BODIES[name]}"
    return cupy.ElementwiseKernel(
        "uint64 seed, uint64 at", f"{name.split('_')[1]} y", body, f"leafgrad_{name}", preamble=PHILOX
    )


class CupyGenerator(Generator):
    """Philox4x32-10: the state is the seed and the number of elements drawn so far."""

    stream = "philox4x32"

    def __init__(self, index: int) -> None:
        self._device = cupy.cuda.Device(index)
        self.manual_seed(self.DEFAULT_SEED)

    def manual_seed(self, seed: int) -> None:
        self._seed, self._at = checked_seed(seed), 0

    def seed(self) -> int:
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        return self._seed

    def get_state(self) -> Any:
        return np.array([self._seed, self._at], "<u8").view(np.uint8)

    def set_state(self, state: Any) -> None:
        self._seed, self._at = (int(word) for word in np.frombuffer(checked_state(state, 16), "<u8"))

    def normal(self, shape: Sequence[int], dtype: str) -> Any:
        return self._draw("normal", shape, dtype)

    def uniform(self, shape: Sequence[int], dtype: str) -> Any:
        return self._draw("uniform", shape, dtype)

    def integers(self, low: int, high: int, shape: Sequence[int], dtype: str) -> Any:
        check_range(low, high)
        bits = self._draw("bits", shape, "uint64")
        with self._device:  # the modulus favours small numbers by (high - low) / 2**64 at most
            return ((bits % np.uint64(high - low)).astype(np.int64) + low).astype(dtype)

    def permutation(self, n: int) -> Any:
        bits = self._draw("bits", (n,), "uint64")
        with self._device:
            return cupy.argsort(bits).astype(np.int64, copy=False)

    def bernoulli(self, p: Any, shape: Sequence[int], dtype: str) -> Any:
        drawn = self._draw("uniform", shape, "float32")
        with self._device:
            return (drawn < p).astype(dtype)

    def _draw(self, what: str, shape: Sequence[int], dtype: str) -> Any:
        with self._device:
            array = cupy.empty(tuple(shape), dtype)
            seed, at = self.words(array.size)
            kernel(f"{what}_{dtype}")(np.uint64(seed), np.uint64(at), array)
        return array

    def words(self, count: int) -> tuple[int, int]:
        at = self._at
        self._at = (at + count) % 2**64
        return self._seed, at


class CupyBackend(Backend):
    """CuPy's arrays. Only `from_host`, `from_pinned`, `to_host`, `asarray` and `item` move data to or from the host."""

    name = "cupy"
    device_type = "cuda"
    xp = cupy
    array_type = cupy.ndarray
    deferred = True

    def __init__(self) -> None:
        self._count = _count_devices()
        self._peaks: dict[int, int] = {}  # of memory, by device
        self._leaving: dict[int, tuple[Any, Any]] = {}  # arrays of which copies are under way, and events at their ends

    def device_count(self) -> int:
        return self._count

    def device_index(self, array: Any) -> int:
        index: int = array.device.id
        return index

    def from_host(self, array: Any, index: int = 0) -> Any:
        if array.dtype.name == "bfloat16":
            raise self.without_bfloat16("from_host")
        with self.device_scope(index):
            return cupy.array(array)

    def from_pinned(self, array: Any, index: int = 0) -> Any:
        """In the order of the current stream. The memory is kept until the copy is done."""
        if not (self.is_pinned(array) and array.flags.c_contiguous and array.size):
            return self.from_host(array, index)
        for key, (event, _) in [*self._leaving.items()]:
            if event.done:
                self._leaving.pop(key, None)
        with self.device_scope(index):
            made = cupy.empty(array.shape, array.dtype)
            made.data.copy_from_host_async(array.ctypes.data, array.nbytes)
            event = self.event()
            event.record()
        self._leaving[id(event)] = event, array
        return made

    def page_locked(self, shape: Sequence[int], dtype: Any) -> Any:
        import cupyx

        return cupyx.empty_pinned(tuple(shape), dtype)

    def to_host(self, array: Any) -> Any:
        self.settle(array.device.id)
        return array.get()

    def asarray(self, value: Any, dtype: str | None = None, index: int = 0) -> Any:
        with self.device_scope(index):
            if not isinstance(value, cupy.ndarray):
                return cupy.array(host_array(value, dtype))
            here = value if value.device.id == index else value.copy()  # to the current device
            return here if dtype is None else here.astype(dtype, copy=False)

    def linalg_errors(self) -> AbstractContextManager[Any]:
        """The host waits for each; without it what has no answer is some numbers."""
        import cupyx

        scope: AbstractContextManager[Any] = cupyx.errstate(linalg="raise")
        return scope

    def strided(self, array: Any, shape: Sequence[int], strides: Sequence[int]) -> Any:
        view = array.view()  # as_strided of CuPy would forget whose memory it is
        view._set_shape_and_strides(tuple(shape), tuple(strides), True, True)
        return view

    def address(self, array: Any) -> int:
        start: int = array.data.ptr
        return start

    def wrap(self, value: Any) -> Any:
        if not isinstance(value, cupy.ndarray):
            raise TypeError(f"expected an array of CuPy's, got a host value, {type(value).__name__}")
        return value

    def generator(self, index: int = 0) -> Generator:
        return CupyGenerator(self._checked(index))

    def synchronize(self, index: int = 0) -> None:
        cupy.cuda.Device(self._checked(index)).synchronize()
        self.settle(index)

    def item(self, array: Any) -> bool | int | float | complex:
        self.settle(array.device.id)
        scalar: bool | int | float | complex = array.item()
        return scalar

    def stream(self, index: int = 0, priority: int = 0) -> Any:
        with self.device_scope(index):
            return cupy.cuda.Stream(non_blocking=True, priority=priority)

    def current_stream(self, index: int = 0) -> Any:
        return cupy.cuda.get_current_stream(self._checked(index))

    def default_stream(self, index: int = 0) -> Any:
        return cupy.cuda.Stream.null

    def event(self, timing: bool = False, blocking: bool = False) -> Any:
        return cupy.cuda.Event(block=blocking, disable_timing=not timing)

    def elapsed(self, start: Any, end: Any) -> float:
        return float(cupy.cuda.get_elapsed_time(start, end))

    def memory(self, index: int = 0) -> DeviceMemory:
        with self.device_scope(index):
            pool = cupy.get_default_memory_pool()
            used = int(pool.used_bytes())
            if not self._peaks:  # CuPy counts no peak: from now on each allocation looks
                cupy.cuda.set_allocator(self._allocate)
            self._peaks[index] = max(used, self._peaks.get(index, 0))
            return DeviceMemory(used, int(pool.total_bytes()), self._peaks[index])

    def forget_peak(self, index: int = 0) -> None:
        self._peaks.pop(index, None)
        self.memory(index)

    def free_cache(self) -> None:
        cupy.get_default_memory_pool().free_all_blocks()

    def _allocate(self, size: int) -> Any:
        """Memory of CuPy's pool, whose peak is counted."""
        pool = cupy.get_default_memory_pool()
        found, index = pool.malloc(size), cupy.cuda.runtime.getDevice()
        self._peaks[index] = max(int(pool.used_bytes()), self._peaks.get(index, 0))
        return found

    def communicator(self, peers: Any, index: int = 0) -> Communicator:
        return NcclCommunicator(peers, self._checked(index))

    def device_scope(self, index: int = 0) -> AbstractContextManager[Any]:
        scope: AbstractContextManager[Any] = cupy.cuda.Device(self._checked(index))
        return scope

    def _checked(self, index: int) -> int:
        if not 0 <= index < self._count:
            raise RuntimeError(f"expected a CUDA device from cuda:0 to cuda:{self._count - 1}, got cuda:{index}")
        return index


class NcclCommunicator(Communicator):
    """CuPy's arrays, by NCCL, in the order of the current stream. A GPU serves one process."""

    def __init__(self, peers: Any, index: int) -> None:
        from cupy.cuda import nccl

        super().__init__(peers)
        key = peers.bcast(nccl.get_unique_id() if peers.rank == 0 else None, root=0)
        with cupy.cuda.Device(index):
            self._nccl = nccl.NcclCommunicator(peers.size, key, peers.rank)

    def all_reduce(self, array: Any, how: str) -> Any:
        from cupy.cuda import nccl

        own, found = cupy.ascontiguousarray(array), cupy.empty(array.shape, array.dtype)
        op = {"sum": nccl.NCCL_SUM, "prod": nccl.NCCL_PROD, "min": nccl.NCCL_MIN, "max": nccl.NCCL_MAX}[how]
        self._nccl.allReduce(own.data.ptr, found.data.ptr, own.size, self._type(own), op, self._stream())
        return found

    def broadcast(self, array: Any, src: int) -> Any:
        from cupy.cuda import nccl

        found = cupy.array(array, order="C")
        self._nccl.bcast(found.data.ptr, found.nbytes, nccl.NCCL_UINT8, src, self._stream())
        return found

    def all_gather(self, array: Any) -> Any:
        from cupy.cuda import nccl

        own = cupy.ascontiguousarray(array)
        found = cupy.empty((self.peers.size, *own.shape), own.dtype)
        self._nccl.allGather(own.data.ptr, found.data.ptr, own.nbytes, nccl.NCCL_UINT8, self._stream())
        return found

    @staticmethod
    def _type(array: Any) -> int:
        from cupy.cuda import nccl

        names = {"float16": "FLOAT16", "float32": "FLOAT32", "float64": "FLOAT64", "int8": "INT8", "uint8": "UINT8"}
        names |= {"int32": "INT32", "int64": "INT64", "uint32": "UINT32", "uint64": "UINT64"}
        if array.dtype.name not in names:
            raise RuntimeError(f"expected a dtype that NCCL adds ({', '.join(names)}), got {array.dtype}")
        kind: int = getattr(nccl, f"NCCL_{names[array.dtype.name]}")
        return kind

    @staticmethod
    def _stream() -> int:
        pointer: int = cupy.cuda.get_current_stream().ptr
        return pointer


def _count_devices() -> int:
    """How many CUDA devices there are; RuntimeError if there is no driver or no device."""
    try:
        count: int = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if "NoDevice" in str(error):
            raise RuntimeError('device "cuda": the NVIDIA driver finds no GPU on this machine') from error
        raise RuntimeError(
            f'device "cuda": no NVIDIA driver that serves this CuPy ({error}); install or update the '
            'driver, or use the extra of leafgrad that fits it ("cuda12", "cuda13")'
        ) from error
    if count == 0:
        raise RuntimeError('device "cuda": the NVIDIA driver finds no GPU on this machine')
    return count
