"""Tests of the emulation have twins: the same kernels on a GPU, with ``-m gpu``."""

from __future__ import annotations

from typing import Any

import pytest

from leafgrad_cuda.device import Emulated, revealed
from leafgrad_cuda.gpu import Gpu

TWINS = {"test_cuda_draws", "test_cuda_executor", "test_cuda_programs", "test_cuda_scans", "test_halves",
         "test_layers", "test_mixed_precision", "test_order"}  # fmt: skip


class Hosted(Gpu):
    """A GPU for programs whose arrays are the processor's: they are copied there and back around each graph."""

    def load(self, plan: Any) -> None:
        super().load(plan)
        self.copies: dict[int, tuple[Any, Any, Any]] = {}  # by array, which is held: its bytes, and those on the GPU

    def zeros(self, backend: Any, size: int) -> Any:
        return self.cupy.zeros(size, "uint8")

    def empty(self, backend: Any, kinds: Any, made: list[Any]) -> None:
        made += [backend.wrap(backend.xp.empty(shape, dtype)) for shape, dtype in kinds]

    def address(self, array: Any) -> int:
        if isinstance(array, self.cupy.ndarray):
            return super().address(array)
        if id(array) not in self.copies:
            host = revealed(array).reshape(-1).view("uint8")
            copy = self.cupy.empty(host.size + 64, "uint8")  # what is written behind an array is seen
            self.copies[id(array)] = array, host, copy
        return super().address(self.copies[id(array)][2])

    def start(self, graph: Any, arrays: list[Any]) -> None:
        given = set(map(id, arrays))
        self.copies = {key: held for key, held in self.copies.items() if key in given}
        for _, host, copy in self.copies.values():
            copy.fill(0xA5)
            copy[: host.size].set(host)
        super().start(graph, arrays)
        for _, host, copy in self.copies.values():
            found = copy.get()
            assert (found[host.size :] == 0xA5).all(), "a kernel writes behind an array"
            if (host != found[: host.size]).any():
                host[...] = found[: host.size]


def pytest_generate_tests(metafunc: Any) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in TWINS:
        metafunc.fixturenames.append("kernels_on")
        where = ["processor", pytest.param("gpu", marks=pytest.mark.gpu)]
        metafunc.parametrize("kernels_on", where, indirect=True)


@pytest.fixture
def kernels_on(request: Any, monkeypatch: Any) -> None:
    """The processor, or a GPU: then what is asked of the first is done by the second."""
    if request.param == "processor":
        return
    names = ("load", "zeros", "empty", "address", "write", "capture", "start", "begin", "raised", "registers")
    for name in names:
        monkeypatch.setattr(Emulated, name, lambda self, *given, _name=name: getattr(gpu_of(self), _name)(*given))


def gpu_of(emulated: Any) -> Hosted:
    if not hasattr(emulated, "gpu"):
        emulated.gpu = Hosted(0)
    found: Hosted = emulated.gpu
    return found
