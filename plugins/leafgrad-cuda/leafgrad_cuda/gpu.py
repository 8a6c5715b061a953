"""Kernels on a GPU, by CuPy."""

from __future__ import annotations

import math
import warnings
from functools import cache
from importlib import metadata
from sys import getrefcount
from typing import Any

from leafgrad.errors import CompileError
from leafgrad_cuda.cubins import cubin, registers
from leafgrad_cuda.launches import Capture, Launch, memory_size
from leafgrad_cuda.plan import CudaPlan

ALIGNED = 256  # bytes from which arrays begin
REPEATS = 20  # of a kernel that is timed
AHEAD = 16  # calls that the host may be ahead of the GPU before it waits


def found() -> Any:
    """CuPy, with a GPU that it can use.

    Raises:
        CompileError: it says what is missing, and how to get it.
    """
    names = {d.name.lower() for d in metadata.distributions()}
    wheels = sorted(n for n in names if n == "cupy" or n.startswith("cupy-cuda"))
    if len(wheels) > 1:
        raise CompileError(
            f"executor 'cuda': expected one CuPy, got {' and '.join(wheels)}, which overwrite each other's files; "
            f"pip uninstall {' '.join(wheels)}, and then pip install the one of your CUDA"
        )
    try:
        import cupy
    except ImportError as error:
        raise CompileError(
            "executor 'cuda': expected CuPy, which starts kernels, found none that can be imported "
            f"({error}); pip install 'leafgrad-cuda[cuda12]', or [cuda13] for CUDA 13, and never both"
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise CompileError(
            f"executor 'cuda': CuPy finds no driver that it can use ({error}); install NVIDIA's driver, or one that is "
            "new enough for this CuPy; compile(..., executor='cuda-emulated') needs none"
        ) from error
    if not count:
        raise CompileError(
            "executor 'cuda': the driver finds no GPU; see that CUDA_VISIBLE_DEVICES does not hide it; "
            "compile(..., executor='cuda-emulated') needs none"
        )
    return cupy


class Gpu:
    """A GPU. No test can run its kernels without one.

    Raises:
        CompileError: CuPy is not there, or twice, or finds no driver or no GPU.
    """

    def __init__(self, index: int) -> None:
        self.cupy = cupy = found()
        self.index = index
        attributes = cupy.cuda.Device(index).attributes
        self.shared = int(attributes["MaxSharedMemoryPerBlockOptin"])
        self.processors = int(attributes["MultiProcessorCount"])
        self.pinned: list[tuple[Any, Any]] = []  # memory from which copies are under way, and events at their ends
        self.turn = 0
        self.stream: Any = None  # of the last call

    def load(self, plan: CudaPlan) -> None:
        """Machine code by NVRTC, or from the cache."""
        self.kernels: dict[str, Any] = {}
        self.taken: dict[str, int] = {}
        if not plan.kernels:
            return
        cuda = self.cupy.cuda
        with cuda.Device(self.index):
            architecture = int(cuda.Device(self.index).compute_capability)
            try:
                version = ".".join(map(str, cuda.nvrtc.getVersion()))
            except Exception as error:
                raise CompileError(
                    f"executor 'cuda': CuPy finds no NVRTC, which compiles kernels ({type(error).__name__}: {error}); "
                    "pip install 'cupy-cuda12x[ctk]', or 'cupy-cuda13x[ctk]' for CUDA 13"
                ) from error
            code = cubin(plan.code(), architecture, self.compiled, f"NVRTC {version}")
            self.taken = registers(code)
            module = cuda.function.Module()
            module.load(code)
            for launch in plan.kernels:
                kernel = self.kernels[launch.name] = module.get_function(launch.name)
                if launch.shared > 48 << 10:
                    wanted = cuda.driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                    cuda.driver.funcSetAttribute(kernel.ptr, wanted, launch.shared)

    def compiled(self, code: str, architecture: int) -> bytes:
        """Machine code by the NVRTC that CuPy found.

        Raises:
            CompileError: it refuses; the message has its log.
        """
        nvrtc = self.cupy.cuda.nvrtc
        program = nvrtc.createProgram(code, "leafgrad.cu", [], [])
        try:
            nvrtc.compileProgram(program, [f"--gpu-architecture=sm_{architecture}", "-std=c++17", "-w"])
            return bytes(nvrtc.getCUBIN(program))
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program)
            raise CompileError(f"executor 'cuda': NVRTC refuses kernels for sm_{architecture}: {log[:4000]}") from error
        finally:
            nvrtc.destroyProgram(program)

    def zeros(self, backend: Any, size: int) -> Any:
        return backend.xp.zeros(size, "uint8")

    def empty(self, backend: Any, kinds: list[tuple[tuple[int, ...], str]], made: list[Any]) -> None:
        """In one piece of memory, which costs the host a third of so many pieces."""
        cupy = self.cupy
        starts, total = beginnings(tuple(kinds))
        memory = cupy.cuda.alloc(total)
        made += [cupy.ndarray(s, d, memory + at) for (s, d), at in zip(kinds, starts, strict=True)]

    def holders(self, arrays: list[Any]) -> list[int]:
        return [*map(getrefcount, arrays), *(getrefcount(a.data.mem) for a in arrays[:1])]

    def address(self, array: Any) -> int:
        at: int = array.data.ptr
        return at

    def write(self, table: Any, numbers: list[int]) -> None:
        """From pinned memory, a round of pieces of it: a piece is written again when its copy is long done."""
        if not self.pinned:
            import cupyx

            for _ in range(AHEAD):
                event = self.cupy.cuda.Event(disable_timing=True)
                self.pinned.append((cupyx.empty_pinned(len(numbers), "uint64"), event))
        self.turn = (self.turn + 1) % AHEAD
        host, event = self.pinned[self.turn]
        event.synchronize()
        host[:] = numbers
        table.data.copy_from_host_async(host.ctypes.data, host.nbytes)
        event.record()

    def capture(self, capture: Capture, table: Any, arena: Any) -> Any:
        """A CUDA graph; if the driver makes none, the kernels one by one, with a warning."""
        stream = self.cupy.cuda.Stream(non_blocking=True)
        try:
            with stream:
                stream.begin_capture()
                try:
                    Kernels(self.kernels, capture.launches, table, arena).launch()
                finally:
                    graph = stream.end_capture()
        except Exception as error:
            warnings.warn(
                f"executor 'cuda': no CUDA graph could be captured ({type(error).__name__}: {error}); each of its "
                f"{len(capture.launches)} kernels is launched by itself",
                RuntimeWarning,
                stacklevel=2,
            )
            return Kernels(self.kernels, capture.launches, table, arena)
        return graph

    def start(self, graph: Any, arrays: list[Any]) -> None:
        graph.launch()

    def begin(self, arena: Any) -> None:
        """What an earlier call left running on another stream comes first: both use the same memory."""
        stream = self.cupy.cuda.get_current_stream()
        if self.stream is not None and stream.ptr != self.stream.ptr:
            stream.wait_event(self.stream.record())
        self.stream = stream

    def registers(self, plan: CudaPlan) -> dict[str, int]:
        return self.taken

    def times(self, plan: CudaPlan) -> dict[str, float]:
        """Seconds of each kernel, started again and again, with arrays of zeros in the place of those of a call."""
        cupy, found = self.cupy, {}
        with cupy.cuda.Device(self.index):
            arrays = [cupy.zeros(max(8, plan.size(root)), "uint8") for root in plan.slots]
            table = cupy.zeros(1 + len(arrays) + 2 * len(plan.draws), "uint64")
            flag, arena = cupy.zeros(8, "uint8"), cupy.zeros(max(1, plan.arena), "uint8")
            table[: 1 + len(arrays)] = cupy.array([a.data.ptr for a in (flag, *arrays)], "uint64")
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            for launch in plan.kernels:
                again = Kernels(self.kernels, [launch] * REPEATS, table, arena)
                again.launch()
                start.record()
                again.launch()
                end.record()
                end.synchronize()
                found[launch.name] = cupy.cuda.get_elapsed_time(start, end) / 1e3 / REPEATS
        return found

    def raised(self, flag: Any) -> int:
        with self.stream:  # on which the kernels ran
            found = int.from_bytes(flag.get().tobytes(), "little")
            if found:
                flag.fill(0)
        return found


@cache
def beginnings(kinds: tuple[tuple[tuple[int, ...], str], ...]) -> tuple[list[int], int]:
    """Where in one piece of memory arrays lie, and how large it is."""
    starts, total = [], 0
    for shape, dtype in kinds:
        starts.append(total)
        total += -(-math.prod(shape) * memory_size(dtype) // ALIGNED) * ALIGNED
    return starts, total


class Kernels:
    """Launches one by one."""

    def __init__(self, kernels: dict[str, Any], launches: list[Launch], table: Any, arena: Any) -> None:
        self.kernels, self.launches, self.arguments = kernels, launches, (table, arena)

    def launch(self) -> None:
        for one in self.launches:
            self.kernels[one.name]((one.blocks,), (one.threads,), self.arguments, shared_mem=one.shared)
