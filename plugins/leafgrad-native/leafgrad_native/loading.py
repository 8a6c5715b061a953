"""Shared libraries loaded and unloaded."""

from __future__ import annotations

import _ctypes
import ctypes
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path


def unload(handle: int) -> None:
    """Undo one loading of a library. Nothing may run in it."""
    if sys.platform == "win32":
        _ctypes.FreeLibrary(handle)
    else:
        _ctypes.dlclose(handle)


def loads_elsewhere(path: Path, symbols: Sequence[str] = ()) -> bool:
    """Whether a library that does not load does so from another folder: where it lies, no code may be run."""
    try:
        with tempfile.TemporaryDirectory(prefix="leafgrad-", ignore_cleanup_errors=True) as name:
            check(Path(shutil.copy(path, name)), symbols)
    except OSError:
        return False
    return True


def check(path: Path, symbols: Sequence[str]) -> None:
    """Load a library, look up functions, and unload it.

    Raises:
        OSError: it does not load. AttributeError: it lacks one of the functions.
    """
    library = ctypes.CDLL(str(path))
    try:
        for symbol in symbols:
            getattr(library, symbol)
    finally:
        unload(library._handle)
