"""As much of CuPy as leafgrad_cuda.gpu uses, on the processor: kernels are emulated, and its rules of streams are kept.

What is called is written down. Calls that CUDA refuses while a stream is captured raise.
"""

from __future__ import annotations

import struct
import sys
from types import SimpleNamespace

import numpy as np

from leafgrad_cuda.emulation import Emulation


class Pointer:
    def __init__(self, host, cuda):
        self.host, self.cuda = host, cuda

    @property
    def ptr(self):
        return self.host.ctypes.data

    def copy_from_host_async(self, mem, size, stream=None):
        source = next(p for p in self.cuda.pinned if p.ctypes.data == mem)
        assert source.nbytes == size == self.host.nbytes
        assert not self.cuda.capturing
        self.cuda.calls.append("copy")
        self.host[...] = source.view("u1")


class Array:
    """Memory of the device."""

    def __init__(self, host, cuda):
        self.host, self.cuda = host, cuda
        self.data = Pointer(host, cuda)

    def get(self):
        assert not self.cuda.capturing, "a read value while a stream is captured"
        self.cuda.calls.append("sync")
        return self.host.copy()

    def fill(self, value):
        self.host.fill(value)


class Stream:
    count = 0

    def __init__(self, null=False, non_blocking=False, ptds=False):
        Stream.count += 1
        self.ptr = Stream.count

    def __enter__(self):
        self.before, self.cuda.current = self.cuda.current, self
        return self

    def __exit__(self, *_):
        self.cuda.current = self.before

    def record(self, event=None):
        self.cuda.calls.append(f"record {self.ptr}")
        return SimpleNamespace(stream=self)

    def wait_event(self, event):
        self.cuda.calls.append(f"{self.ptr} waits for {event.stream.ptr}")

    def begin_capture(self, mode=None):
        if self.cuda.broken:
            raise RuntimeError("cudaErrorStreamCaptureUnsupported")
        self.cuda.capturing, self.cuda.captured = True, []

    def end_capture(self):
        if not self.cuda.capturing:
            raise RuntimeError("cudaErrorIllegalState")
        self.cuda.capturing = False
        return Graph(self.cuda, self.cuda.captured)


class Graph:
    def __init__(self, cuda, kernels):
        self.cuda, self.kernels = cuda, kernels

    def launch(self, stream=None):
        self.cuda.calls.append(f"graph of {len(self.kernels)}")
        for run in self.kernels:
            run()


class Event:
    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.recorded = False

    def record(self, stream=None):
        self.recorded = True

    def synchronize(self):
        """Nothing is ever under way."""


class Compiler:
    """NVRTC, whose machine code is a header and the text of the kernels."""

    class NVRTCError(RuntimeError):
        pass

    def __init__(self, cuda):
        self.cuda, self.architecture = cuda, None

    def getVersion(self):
        return 12, 9

    def createProgram(self, code, name, headers, names):
        return [code]

    def compileProgram(self, program, options):
        self.cuda.calls.append("compile")
        architecture = next(int(o.rpartition("_")[2]) for o in options if "architecture" in o)
        self.architecture = architecture if self.architecture is None else self.architecture
        if "KERNEL(" not in program[0]:
            raise self.NVRTCError("compilation")

    def getCUBIN(self, program):
        header = bytearray(64)
        header[:6], header[8] = b"\x7fELF\x02\x01", 8
        header[18:20], header[48:52] = struct.pack("<H", 190), struct.pack("<I", self.architecture << 8)
        return bytes(header) + program[0].encode()

    def getProgramLog(self, program):
        return f"leafgrad.cu(1): error: {program[0][:20]}"

    def destroyProgram(self, program): ...


class Module:
    def __init__(self, cuda):
        self.cuda = cuda

    def load(self, code):
        self.emulation = Emulation(code[64:].decode(), ("forward",))

    def get_function(self, name):
        return Kernel(self, name)


class Kernel:
    def __init__(self, module, name):
        self.module, self.name, self.most = module, name, 48 << 10

    @property
    def ptr(self):
        return self

    def __call__(self, grid, block, args, *, shared_mem=0):
        assert shared_mem <= self.most, "more shared memory than was asked for"
        table, arena = args
        launch = SimpleNamespace(name=self.name, blocks=grid[0], threads=block[0], shared=shared_mem, equations=[])

        def run():
            self.module.emulation.once(launch, "shuffled", table.host, arena.host)

        cuda = self.module.cuda
        if cuda.capturing:
            assert cuda.current.ptr != cuda.null.ptr, "the default stream cannot be captured"
            cuda.captured.append(run)
        else:
            cuda.calls.append("kernel")
            run()


def allow(kernel, attribute, size):
    """More shared memory for a kernel."""
    assert attribute == 8
    kernel.most = size


class Cuda:
    """One GPU, and what was asked of it."""

    def __init__(self, limit=99 << 10):
        self.calls, self.pinned, self.captured = [], [], []
        self.capturing = self.broken = False
        self.streams = type("Stream", (Stream,), {"cuda": self})
        self.compiler = Compiler(self)
        self.compute_capability = "90"
        self.null = self.current = self.streams()
        self.attributes = {"MaxSharedMemoryPerBlockOptin": limit, "MultiProcessorCount": 6}

    def cupy(self):
        class Device:
            attributes = self.attributes
            compute_capability = property(lambda _: self.compute_capability)

            def __init__(self, index):
                assert index == 0

            def __enter__(self): ...
            def __exit__(self, *_): ...

        runtime = SimpleNamespace(getDeviceCount=lambda: 1)
        driver = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8, funcSetAttribute=allow)
        return SimpleNamespace(
            cuda=SimpleNamespace(
                Device=Device,
                Stream=self.streams,
                Event=Event,
                runtime=runtime,
                driver=driver,
                nvrtc=self.compiler,
                function=SimpleNamespace(Module=lambda: Module(self)),
                get_current_stream=lambda: self.current,
            )
        )

    def empty_pinned(self, count, dtype):
        self.pinned.append(np.empty(count, dtype))
        return self.pinned[-1]

    def install(self, monkeypatch):
        """In the place of CuPy, which is not there."""
        monkeypatch.setitem(sys.modules, "cupy", self.cupy())
        monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(empty_pinned=self.empty_pinned))
        return self
