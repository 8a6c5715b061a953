"""Where kernels run: a GPU by CuPy, or the processor."""

from __future__ import annotations

from importlib import metadata
from typing import Any, Protocol

import numpy as np

from leafgrad.errors import CompileError
from leafgrad_cuda.emulation import SHARED, Emulation
from leafgrad_cuda.launches import Launch
from leafgrad_cuda.plan import Plan


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

    def begin(self, arena: Any) -> None:
        """A call begins: what the memory between launches holds is nobody's."""

    def table(self, arrays: list[Any]) -> Any:
        """The addresses of arrays, where kernels read them; 0 for None."""

    def numbers(self, words: list[int]) -> Any:
        """Numbers of 64 bits, where kernels read them."""

    def launch(self, launch: Launch, addresses: Any, arena: Any, arrays: list[Any]) -> None:
        """Start one kernel. ``arrays`` are those of the table."""

    def raised(self, flag: Any) -> bool:
        """Whether a kernel set the flag, which is cleared. Waits for the device."""


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

    def load(self, plan: Plan) -> None:
        """Compile by NVRTC; CuPy keeps the result by text, options and architecture."""
        self.kernels = {}
        if not plan.launches:
            return
        with self.cupy.cuda.Device(self.index):
            module = self.cupy.RawModule(code=plan.code(), backend="nvrtc", options=("-std=c++17",))
            try:
                module.compile()
            except Exception as error:
                raise CompileError(
                    f"executor 'cuda': NVRTC did not compile the kernels: {type(error).__name__}: {str(error)[:2000]}. "
                    "Where it is missing, pip install 'cupy-cuda12x[ctk]', or 'cupy-cuda13x[ctk]' for CUDA 13"
                ) from error
            for launch in plan.launches:
                kernel = self.kernels[launch.name] = module.get_function(launch.name)
                if launch.shared > 48 << 10:
                    kernel.max_dynamic_shared_size_bytes = launch.shared

    def zeros(self, backend: Any, size: int) -> Any:
        return backend.xp.zeros(size, "uint8")

    def table(self, arrays: list[Any]) -> Any:
        return self.numbers([0 if a is None else a.data.ptr for a in arrays])

    def numbers(self, words: list[int]) -> Any:
        return self.cupy.asarray(np.array(words, "uint64"))

    def launch(self, launch: Launch, addresses: Any, arena: Any, arrays: list[Any]) -> None:
        kernel = self.kernels[launch.name]
        kernel((launch.blocks,), (launch.threads,), (addresses, arena), shared_mem=launch.shared)

    def begin(self, arena: Any) -> None:
        pass

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

    def begin(self, arena: Any) -> None:
        """It is nan."""
        revealed(arena).fill(0xFF)

    def table(self, arrays: list[Any]) -> Any:
        return self.numbers([0 if a is None else revealed(a).ctypes.data for a in arrays])

    def numbers(self, words: list[int]) -> Any:
        return np.array(words, "uint64")

    def launch(self, launch: Launch, addresses: Any, arena: Any, arrays: list[Any]) -> None:
        assert self.emulation is not None
        host = revealed(arena)
        written = [revealed(arrays[0])]
        spared = np.ones(host.shape, bool)
        for root in launch.touched(reads=False):
            slot = self.plan.slots.get(root)
            if slot is not None:
                written.append(revealed(arrays[slot + 1]))
                continue
            at = self.plan.offsets[root]
            spared[at : at + self.plan.size(root)] = False
            if root is not launch.spill:
                written.append(host[at : at + self.plan.size(root)])
        self.emulation.run(launch, addresses, host, written, spared)

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
