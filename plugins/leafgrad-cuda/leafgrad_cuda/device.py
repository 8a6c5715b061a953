"""Where kernels run: what programs ask of it, and the processor."""

from __future__ import annotations

from functools import partial
from sys import getrefcount
from typing import Any, NamedTuple, Protocol

import numpy as np

from leafgrad.errors import CompileError
from leafgrad_cuda import nvrtc
from leafgrad_cuda.cubins import cubin, registers
from leafgrad_cuda.emulation import SHARED, Emulation
from leafgrad_cuda.launches import Capture, Launch
from leafgrad_cuda.plan import CudaPlan

PAPER = 90  # the architecture for which registers are told without a GPU


class Device(Protocol):
    """What programs ask of where they run.

    Attributes:
        shared: bytes of shared memory that a block may have.
        processors: how many blocks run at the same time at least.
    """

    shared: int
    processors: int

    def load(self, plan: CudaPlan) -> None:
        """Compile the kernels of a plan."""

    def zeros(self, backend: Any, size: int) -> Any:
        """So many bytes on the current device."""

    def empty(self, backend: Any, kinds: list[tuple[tuple[int, ...], str]], made: list[Any]) -> None:
        """Appends arrays of these shapes and dtypes, of which each is nobody's view, on the current device."""

    def holders(self, arrays: list[Any]) -> list[int]:
        """How often something refers to each of arrays that `empty` made together, and to their memory."""

    def address(self, array: Any) -> int:
        """Where kernels find an array."""

    def write(self, table: Any, numbers: list[int]) -> None:
        """Numbers of 64 bits into ``table``, in one copy that nobody waits for."""

    def capture(self, capture: Capture, table: Any, arena: Any) -> Any:
        """Launches as a CUDA graph: they will always read the same table, and use the same arena."""

    def start(self, graph: Any, arrays: list[Any]) -> None:
        """Start such a graph. ``arrays`` are those whose addresses are in the table."""

    def begin(self, arena: Any) -> None:
        """A call begins: what the memory between launches holds is nobody's."""

    def raised(self, flag: Any) -> int:
        """What kernels told the flag, 0 for nothing; it is cleared. Waits for the device."""

    def registers(self, plan: CudaPlan) -> dict[str, int]:
        """How many registers a thread of each kernel takes, as far as that is known."""

    def times(self, plan: CudaPlan) -> dict[str, float]:
        """Seconds that each kernel takes, measured; of what is emulated, nothing."""


class Captured(NamedTuple):
    """What a CUDA graph keeps: which kernels, and what they are given."""

    launches: list[Launch]
    table: Any
    arena: Any


class Emulated:
    """The processor, with arrays of the host or of the stand-in device of tests."""

    shared = SHARED
    processors = 6

    def __init__(self, orders: tuple[str, ...] = ("forward", "backward", "shuffled")) -> None:
        self.orders = orders

    def load(self, plan: CudaPlan) -> None:
        self.plan = plan
        self.emulation = Emulation(plan.code(), self.orders) if plan.kernels else None

    def zeros(self, backend: Any, size: int) -> Any:
        return backend.xp.zeros(size, "uint8")

    def empty(self, backend: Any, kinds: list[tuple[tuple[int, ...], str]], made: list[Any]) -> None:
        for shape, dtype in kinds:
            made.append(backend.wrap(backend.xp.empty(shape, dtype)))

    def holders(self, arrays: list[Any]) -> list[int]:
        return [*map(getrefcount, arrays), *(getrefcount(revealed(a)) for a in arrays)]

    def begin(self, arena: Any) -> None:
        """It is nan."""
        revealed(arena).fill(0xFF)

    def address(self, array: Any) -> int:
        return int(revealed(array).ctypes.data)

    def write(self, table: Any, numbers: list[int]) -> None:
        revealed(table).view("uint64")[...] = numbers

    def capture(self, capture: Capture, table: Any, arena: Any) -> Captured:
        return Captured(capture.launches, revealed(table), revealed(arena))

    def start(self, graph: Captured, arrays: list[Any]) -> None:
        for launch in graph.launches:
            self.launch(launch, graph.table, graph.arena, arrays)

    def launch(self, launch: Launch, table: Any, host: Any, arrays: list[Any]) -> None:
        assert self.emulation is not None
        written = [revealed(arrays[0])]
        spared = np.ones(host.shape, bool)
        for root in launch.touched(reads=False):
            slot = self.plan.slots.get(root)
            if slot is not None:
                written.append(revealed(arrays[slot]))
                continue
            at = self.plan.offsets[root]
            spared[at : at + self.plan.size(root)] = False
            if root is not launch.spill:
                written.append(host[at : at + self.plan.size(root)])
        self.emulation.run(launch, table, host, written, spared)

    def registers(self, plan: CudaPlan) -> dict[str, int]:
        """Those on sm_90, where NVRTC is installed."""
        try:
            nvrtc.library()
        except CompileError:
            return {}
        code = cubin(plan.code(), PAPER, partial(nvrtc.compiled, cubin=True), nvrtc.version())
        return registers(code)

    def times(self, plan: CudaPlan) -> dict[str, float]:
        return {}

    def raised(self, flag: Any) -> int:
        found = int(revealed(flag).view("uint64")[0])
        revealed(flag)[...] = 0
        return found


def revealed(array: Any) -> Any:
    """The NumPy array of an array of the host, or of what the stand-in device hides."""
    if isinstance(array, np.ndarray):
        return array
    from leafgrad.testing.fake.array import reveal

    return reveal(array, [])
