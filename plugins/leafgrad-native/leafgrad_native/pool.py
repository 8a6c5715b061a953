"""The threads that compiled phases run on, one pool for the process, and calls that signals can end; in C."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from leafgrad_native.cache import Library, library

Task = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)
PYTHON = "PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_CheckSignals", "PyList_GetItem"


@cache
def _library() -> Library:
    text = Path(__file__).with_name("runtime").joinpath("pool.c").read_text(encoding="utf-8")
    found = library(text, "pool", ["lg_run", "lg_call", "lg_look", "lg_point", "lg_python"])
    found.stay()  # its threads sleep there
    found.lg_python(*(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p) for name in PYTHON))
    return found


def address(name: str) -> int:
    """Of ``lg_run`` or ``lg_look`` of runtime/pool.c.

    Raises:
        NoCompiler, CompilationFailed: from `leafgrad_native.compiler`.
    """
    return ctypes.cast(_library()[name], ctypes.c_void_p).value or 0


@cache
def _call() -> Any:
    made = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)  # an exception that C leaves is raised
    return made(("lg_call", _library()))


def call(function: int, context: int) -> int:
    """What the C function of this address returns, run without Python's lock.

    Raises:
        BaseException: the handler of a signal raised it, as for Ctrl-C, and the function ended early.
    """
    code: int = _call()(function, context)
    return code


@cache
def _point() -> Any:
    number = ctypes.c_int
    made = ctypes.PYFUNCTYPE(number, ctypes.py_object, ctypes.c_void_p, number, number, ctypes.c_void_p, number, number)
    return made(("lg_point", _library()))


def point(table: Any, arrays: list[Any], first: int, data: int, flags: int) -> int:
    """The number of the first array, from ``first`` on, whose elements do not lie in order, or how many there are.

    The addresses of those before it are written into ``table``. ``data`` and ``flags`` say where in an array object its
    address and its flags are; None is passed over.
    """
    found: int = _point()(arrays, table, first, len(arrays), id(None), data, flags)
    return found


def run(task: Any, context: int | None, parts: int, threads: int) -> int:
    """Call ``task(context, part)``, a C function or its address, for each part: how many shares they were dealt to.

    A part belongs to a share by its number alone. A share is done by a thread of its own, or by the caller where that
    thread has not begun when it could; while the pool is busy, the caller does all parts by itself.
    """
    stopped = ctypes.c_int()
    arguments = ctypes.c_void_p(context), ctypes.c_int(parts), ctypes.c_int(threads), ctypes.byref(stopped)
    number: int = _library().lg_run(ctypes.cast(task, ctypes.c_void_p), *arguments)
    return number
