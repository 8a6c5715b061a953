"""Shared libraries of generated C: compiled once on a machine, then found in the cache.

An entry is three files of one name: the library, its C for those who want to read it, and ``.json`` with the sums of
both, which is written last, when the library has been loaded. What does not agree with its sums is compiled anew, and
is never loaded. A fourth, ``.passed``, says that what the library computes was compared with NumPy.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from leafgrad.lowering.folder import Folder, RefusedFolder, folders, trim
from leafgrad_native.compiler import SUFFIX, CompilationFailed, Compiler, compiler, limit, processor, tail, unloaded
from leafgrad_native.loading import check, loads_elsewhere, unload

FORMAT = 2  # raise it when what an entry is changes


class Library(ctypes.CDLL):
    """The loaded library of an entry that is whole, with the sum of its bytes.

    It is unloaded when nothing refers to it or a function of it any more, unless it is to `stay`.
    """

    def __init__(self, folder: Folder, entry: str, total: str) -> None:
        super().__init__(str(folder.path / (entry + SUFFIX)))
        self.folder = folder
        self.entry = entry
        self.total = total
        self.unloading = weakref.finalize(self, unload, self._handle)
        self.unloading.atexit = False  # a thread may be running it

    def stay(self) -> None:
        """Keep it loaded until the process ends: something else runs in it."""
        self.unloading.detach()

    @property
    def passed(self) -> bool:
        """Whether its results were compared with NumPy's and agreed, in this process or an earlier one."""
        with suppress(OSError):
            return self.folder.read(f"{self.entry}.passed") == self.total.encode()
        return False

    def note_passed(self) -> None:
        """Remember that they agreed, if the folder can be written to."""
        with suppress(RefusedFolder):
            self.folder.write(f"{self.entry}.passed", self.total.encode())


def library(source: str, name: str, symbols: Sequence[str] = (), sides: int = 1) -> Library:
    """The shared library of a text of C, compiled unless it is in the cache.

    Args:
        source: a text in parts (``parts.py``) can be compiled by several processes at once, ``sides``.
        name: begins its file names.
        symbols: the functions that it must have.

    Raises:
        NoCompiler: nothing can compile. CompilationFailed: this text does not compile.
    """
    chosen = compiler()
    entry = f"{name}-{key(source, chosen)}"
    for folder in folders("native"):
        try:
            return _find(folder, entry) or _make(folder, entry, source, symbols, chosen, sides)
        except RefusedFolder:
            continue
    raise CompilationFailed("no folder can hold compiled code")


def key(source: str, chosen: Compiler) -> str:
    """Changes with all that the library depends on."""
    facts = [FORMAT, source, chosen.identity, chosen.flags, processor()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _find(folder: Folder, entry: str) -> Library | None:
    """The library of an entry that is whole."""
    try:
        sums = json.loads(folder.read(f"{entry}.json"))
        if any(digest(folder.read(entry + suffix)) != sums[suffix] for suffix in (SUFFIX, ".c")):
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    with suppress(OSError):  # when it was last used, unless the folder is read-only
        os.utime(folder.path / f"{entry}.json")
    try:
        return Library(folder, entry, sums[SUFFIX])
    except OSError as error:  # code may not be run from there
        raise RefusedFolder(str(error)) from error


def _make(folder: Folder, entry: str, source: str, symbols: Sequence[str], chosen: Compiler, sides: int) -> Library:
    """Compile, unless another process does it now, and then wait for that; without its lock go on alone."""
    with folder.locked(f"lock-{entry[-2:]}", limit() + 5):
        found = _find(folder, entry)
        if found is None:
            _compile(folder, entry, source, symbols, chosen, sides)
            found = _find(folder, entry)
            trim(folder)
    if found is None:
        raise RefusedFolder(f"{folder.path} does not keep what is written")
    return found


def _compile(folder: Folder, entry: str, source: str, symbols: Sequence[str], chosen: Compiler, sides: int) -> None:
    text = source.encode()
    folder.write(f"{entry}.c", text)
    made = folder.path / f"temp-{entry}-{os.getpid()}-{time.monotonic_ns()}{SUFFIX}"
    try:
        chosen.compile(folder.path / f"{entry}.c", made, sides)
        data = made.read_bytes()
        _check(made, symbols, chosen)
    except CompilationFailed as error:
        folder.write(f"probe-{entry}", bytes(1 << 16))  # or is the disk full?
        raise CompilationFailed(f"{error} (the source is {folder.path / entry}.c)") from None
    except OSError as error:
        raise RefusedFolder(str(error)) from error
    finally:
        for path in (made, folder.path / f"probe-{entry}"):
            with suppress(OSError):
                path.unlink()
    folder.write(entry + SUFFIX, data)
    folder.write(f"{entry}.json", json.dumps({SUFFIX: digest(data), ".c": digest(text)}).encode())


def _check(made: Path, symbols: Sequence[str], chosen: Compiler) -> None:
    """Load a new library. CompilationFailed: it does not load, or lacks a function; OSError: not from this folder."""
    try:
        check(made, symbols)
    except OSError as error:
        if loads_elsewhere(made, symbols):
            raise
        raise CompilationFailed(f"{chosen} {unloaded(error)}") from None
    except AttributeError as error:
        raise CompilationFailed(f"{chosen} wrote a library that is not whole: {tail(str(error))}") from None


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
