"""Where kernels run: a GPU by CuPy, or the processor."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from leafgrad.errors import CompileError
from leafgrad_cuda.emulation import SHARED, Emulation
from leafgrad_cuda.plan import Launch, Plan


class Device(Protocol):
    """What programs ask of where they run.

    Attributes:
        shared: bytes of shared memory that a block may have.
    """

    shared: int

    def load(self, plan: Plan) -> None:
        """Compile the kernels of a plan."""

    def zeros(self, backend: Any, size: int) -> Any:
        """So many bytes on the current device."""

    def table(self, arrays: list[Any]) -> Any:
        """The addresses of arrays, where kernels read them; 0 for None."""

    def launch(self, launch: Launch, addresses: Any, arena: Any, arrays: list[Any]) -> None:
        """Start one kernel. ``arrays`` are those of the table."""

    def raised(self, flag: Any) -> bool:
        """Whether a kernel set the flag, which is cleared. Waits for the device."""


class Gpu:
    """A GPU. No test can run this without one."""

    def __init__(self, index: int) -> None:
        try:
            import cupy
        except ImportError as error:
            raise CompileError(
                "executor 'cuda': expected CuPy, which starts kernels, found none that can be imported "
                f"({error}); pip install 'leafgrad-cuda[cuda12]', or [cuda13] for CUDA 13, and never both"
            ) from error
        self.cupy = cupy
        self.index = index
        attributes = cupy.cuda.Device(index).attributes
        self.shared = int(attributes["MaxSharedMemoryPerBlockOptin"])

    def load(self, plan: Plan) -> None:
        """Compile by NVRTC; CuPy keeps the result by text, options and architecture."""
        self.kernels = {}
        if not plan.launches:
            return
        with self.cupy.cuda.Device(self.index):
            module = self.cupy.RawModule(code=plan.code(), backend="nvrtc", options=("-std=c++17",))
            for launch in plan.launches:
                kernel = self.kernels[launch.name] = module.get_function(launch.name)
                if launch.shared > 48 << 10:
                    kernel.max_dynamic_shared_size_bytes = launch.shared

    def zeros(self, backend: Any, size: int) -> Any:
        return backend.xp.zeros(size, "uint8")

    def table(self, arrays: list[Any]) -> Any:
        return self.cupy.asarray(np.array([0 if a is None else a.data.ptr for a in arrays], "uint64"))

    def launch(self, launch: Launch, addresses: Any, arena: Any, arrays: list[Any]) -> None:
        kernel = self.kernels[launch.name]
        kernel((launch.blocks,), (launch.threads,), (addresses, arena), shared_mem=launch.shared)

    def raised(self, flag: Any) -> bool:
        found = bool(flag.any())
        if found:
            flag.fill(0)
        return found


class Emulated:
    """The processor, with arrays of the host or of the stand-in device of tests."""

    shared = SHARED

    def __init__(self, orders: tuple[str, ...] = ("forward", "backward", "shuffled")) -> None:
        self.orders = orders

    def load(self, plan: Plan) -> None:
        self.plan = plan
        self.emulation = Emulation(plan.code(), self.orders) if plan.launches else None

    def zeros(self, backend: Any, size: int) -> Any:
        return backend.xp.zeros(size, "uint8")

    def table(self, arrays: list[Any]) -> Any:
        return np.array([0 if a is None else revealed(a).ctypes.data for a in arrays], "uint64")

    def launch(self, launch: Launch, addresses: Any, arena: Any, arrays: list[Any]) -> None:
        assert self.emulation is not None
        host = revealed(arena)
        written = [revealed(arrays[0])]
        for root in launch.touched(reads=False):
            slot = self.plan.slots.get(root)
            if slot is not None:
                written.append(revealed(arrays[slot + 1]))
            elif root is not launch.spill:
                at = self.plan.offsets[root]
                written.append(host[at : at + self.plan.size(root)])
        self.emulation.run(launch, addresses, host, written)

    def raised(self, flag: Any) -> bool:
        found = bool(revealed(flag).any())
        revealed(flag)[...] = 0
        return found


def revealed(array: Any) -> Any:
    """The NumPy array of an array of the host, or of what the stand-in device hides."""
    if isinstance(array, np.ndarray):
        return array
    from leafgrad.testing.fake.array import reveal

    return reveal(array, [])
