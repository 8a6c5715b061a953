"""Kernels on the processor: the same text as C, with blocks and threads in several orders.

All orders must give the same bits: if not, threads of a phase, or blocks, depend on each other, a race on a GPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from leafgrad.errors import CompileError
from leafgrad.lowering.folder import folders, trim
from leafgrad_cuda.launches import Launch

ORDERS: Final = 3  # of threads in neighbouring phases
ZONE: Final = 64  # bytes behind shared memory that must stay
UNTOUCHED: Final = 0xA5
SHARED: Final = 99 << 10  # bytes of a block: what most GPUs of today have
FLAGS: Final = "-std=gnu11 -O1 -ffp-contract=off -fno-strict-aliasing -fwrapv -shared -fPIC -w".split()


class Order(ctypes.Structure):
    """``lg_launch`` of runtime/kernels.cuh."""

    _fields_ = [
        ("blocks", ctypes.c_void_p),
        ("threads", ctypes.c_void_p),
        ("count", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("orders", ctypes.c_int32),
        ("bytes", ctypes.c_int32),
        ("memory", ctypes.c_void_p),
    ]


class Race(AssertionError):
    """Threads or blocks of a kernel depend on their order."""


class Stray(AssertionError):
    """A kernel writes beside its arrays."""


@cache
def compiler() -> str:
    """The C compiler of this machine."""
    wanted = os.environ.get("CC")
    for name in [wanted] if wanted else ["cc", "gcc", "clang"]:
        if name and (found := shutil.which(name)):
            return found
    raise CompileError(
        "executor 'cuda-emulated': expected a C compiler on PATH, cc, gcc or clang, found none; install one, or name "
        "it in the environment variable CC"
    )


@cache
def library(code: str) -> ctypes.CDLL:
    """The kernels of a text as a library, which is compiled once and then found in the cache."""
    facts = json.dumps([code, FLAGS, compiler(), os.stat(compiler()).st_mtime_ns])
    name = f"emulated-{hashlib.sha256(facts.encode()).hexdigest()[:32]}.so"
    for folder in folders("cuda"):
        path = folder.path / name
        with suppress(OSError):
            if not path.exists():
                with folder.temporary() as beside:
                    os.replace(compiled(code, beside), path)
                trim(folder)
            os.utime(path)  # when it was last used
            return ctypes.CDLL(str(path))
    raise CompileError("executor 'cuda-emulated': there is no folder for compiled kernels; LEAFGRAD_CACHE may name one")


def compiled(code: str, folder: Path) -> Path:
    """A text as a library in a folder."""
    source, target = folder / "kernels.c", folder / "kernels.so"
    source.write_text(code, encoding="utf-8")
    command = [compiler(), *FLAGS, "-o", str(target), str(source), "-lm"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise CompileError(f"the emulated kernels do not compile: {made.stderr[:2000]}")
    return target


class Emulation:
    """Runs the kernels of a program on arrays of the host.

    Attributes:
        orders: names of the orders in which each launch runs; all must give the same bits.
    """

    def __init__(self, code: str, orders: tuple[str, ...] = ("forward", "backward", "shuffled")) -> None:
        self.library = library(code)
        self.orders = orders
        self.random = np.random.default_rng(0)

    def run(self, launch: Launch, addresses: Any, arena: Any, written: list[Any], spared: Any = None) -> None:
        """One launch.

        Args:
            launch: of which kernel.
            addresses: of the arrays that it knows by number.
            arena: the memory between launches.
            written: the arrays, and parts of the arena, that it may write and others read.
            spared: of each byte of the arena, whether it may not write there.
        """
        kept = arena.copy() if spared is not None else arena
        before = [w.copy() for w in written] if len(self.orders) > 1 else []
        first: list[bytes] = []
        for order in self.orders:
            for w, b in zip(written if first else (), before, strict=False):
                w[...] = b  # a kernel may add to what one before it made
            self.once(launch, order, addresses, arena)
            if len(self.orders) > 1:
                now = [w.tobytes() for w in written]
                if first and now != first:
                    lines = ", ".join(dict.fromkeys(f"{e.name} from {e.line}" for e in launch.equations[:4]))
                    raise Race(f"kernel {launch.name}: other bits with threads and blocks {order}: {lines}")
                first = now
        if spared is not None and (kept != arena)[spared].any():
            raise Stray(f"kernel {launch.name} writes where others' arrays lie")

    def once(self, launch: Launch, order: str, addresses: Any, arena: Any) -> None:
        blocks = self.ordered(order, launch.blocks)
        threads = np.concatenate([self.ordered(order, launch.threads) for _ in range(ORDERS)])
        memory = np.full(launch.shared + 2 * ZONE, UNTOUCHED, np.uint8)
        skipped = -memory.ctypes.data % ZONE
        start = memory.ctypes.data + skipped
        given = Order(
            blocks.ctypes.data, threads.ctypes.data, launch.blocks, launch.threads, ORDERS, launch.shared, start
        )
        kernel = self.library[launch.name]
        kernel(ctypes.byref(given), ctypes.c_void_p(addresses.ctypes.data), ctypes.c_void_p(arena.ctypes.data))
        if (memory[skipped + launch.shared :] != UNTOUCHED).any():
            raise Stray(f"kernel {launch.name} writes behind its {launch.shared} bytes of shared memory")

    def ordered(self, order: str, count: int) -> Any:
        numbers = np.arange(count, dtype=np.int32)
        if order == "forward":
            return numbers
        return numbers[::-1].copy() if order == "backward" else self.random.permutation(numbers)
