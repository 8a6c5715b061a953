"""The threads that compiled phases run on: one pool for the process, in C."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from leafgrad_native.cache import library

Task = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)


@cache
def _run() -> Any:
    text = Path(__file__).with_name("runtime").joinpath("pool.c").read_text(encoding="utf-8")
    found = library(text, "pool", ["lg_run"])
    found.stay()  # its threads sleep there
    function = found.lg_run
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    return function


def address() -> int:
    """Of ``int lg_run(void (*task)(void *context, int part), void *context, int parts, int threads)``, for C.

    Raises:
        NoCompiler, CompilationFailed: from `leafgrad_native.compiler`.
    """
    return ctypes.cast(_run(), ctypes.c_void_p).value or 0


def run(task: Any, context: int | None, parts: int, threads: int) -> int:
    """Call ``task(context, part)``, a C function or its address, for each part on so many threads: how many took part.

    A part belongs to a thread by its number alone. While the pool is busy, the caller does all parts by itself.
    """
    number: int = _run()(ctypes.cast(task, ctypes.c_void_p), context, parts, threads)
    return number
