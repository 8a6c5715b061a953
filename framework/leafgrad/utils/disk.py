"""Files that appear whole or not at all, and are on the disk when they do."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

LONG = 255 - 18  # bytes of a name to which 18 more cannot be added
CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)  # pipes, devices, folders of some file systems


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of ``path`` at the end, and is deleted if that is not reached.

    The new file has the mode and, where that is allowed, the owner of the old one. Of a symbolic link the target is
    replaced. A pipe, device or other thing that is no regular file is itself opened for writing.

    Raises:
        RuntimeError: there is no such folder. OSError: what the system says.
    """
    try:
        old = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with open(path, "wb") as other, flushed(other):
            yield other
        return
    folder, name = os.path.split(os.path.realpath(path))
    target = os.path.join(folder, name)
    if not os.path.isdir(folder):
        raise RuntimeError(f"save: {path}: Parent directory {folder} does not exist; make it first")
    _clear(folder, name)
    temporary, new = _temporary(folder, name, 0o666 if old is None else stat.S_IMODE(old.st_mode))
    try:
        with new as file:
            if old is not None:
                _resemble(file.fileno(), old)
            with flushed(file):
                yield file
            if sys.platform == "win32":  # nor replaced
                file.close()
            os.replace(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    _sync_folder(folder)


def write(file: Any, data: bytes | memoryview) -> None:
    """All of ``data``, however little of it a raw file takes at once."""
    rest = memoryview(data)
    while len(rest):
        count = file.write(rest)
        if count is None and not isinstance(file, io.RawIOBase):
            return  # many file objects do not say that they took everything
        if not count:
            raise BlockingIOError(errno.EAGAIN, f"save: f: expected a file that takes all bytes, {len(rest)} are left")
        rest = rest[count:]


@contextmanager
def flushed(file: Any) -> Iterator[Any]:
    """A file object; at the end what was written to it is on the disk, if it has anything to do with one."""
    yield file
    if hasattr(file, "flush"):
        file.flush()
    try:
        descriptor = file.fileno()
    except (AttributeError, OSError):
        return
    _sync(descriptor)


def seekable(file: Any) -> bool:
    """Whether one can go back in a file."""
    try:
        return bool(file.seekable())
    except AttributeError:
        return hasattr(file, "seek")


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise


def _sync_folder(folder: str) -> None:
    """Make the names in a folder durable, where folders can be opened."""
    opened: list[int] = []
    try:
        opened.extend(map(os.open, [folder], [os.O_RDONLY]))  # in one call: no interrupt comes before it is kept
        _sync(opened[0])
    except PermissionError:
        return
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _temporary(folder: str, name: str, mode: int) -> tuple[str, BinaryIO]:
    """A new file beside the one to be replaced, and its path. It is locked for as long as it is being written."""
    while True:
        path = os.path.join(folder, f".{_stem(name)}.{os.urandom(8).hex()}")
        raw = io.FileIO(path, "x", opener=partial(os.open, mode=mode))  # an object, which no interrupt leaves open
        with suppress(OSError):  # some network file systems have no locks: there nothing counts as a left-over
            _lock(raw.fileno(), wait=True)
        if os.fstat(raw.fileno()).st_nlink:  # nobody took it for a left-over before it was locked
            return path, io.BufferedWriter(raw)
        raw.close()


def _stem(name: str) -> str:
    """What the new files for this one are called: as it, or by a digest where its name leaves no room for more."""
    encoded = os.fsencode(name)
    return name if len(encoded) <= LONG else hashlib.sha256(encoded).hexdigest()


def _clear(folder: str, name: str) -> None:
    """Delete what processes left behind that were killed while they replaced this file: what none of them locks."""
    left_over = re.compile(rf"\.{re.escape(_stem(name))}\.[0-9a-f]{{16}}")
    with suppress(PermissionError):  # one may write into a folder that one may not read
        for found in filter(left_over.fullmatch, os.listdir(folder)):
            path = os.path.join(folder, found)
            with suppress(OSError), io.FileIO(path) as file:  # locked, or somebody else's
                _lock(file.fileno(), wait=False)
                os.unlink(path)


def _lock(descriptor: int, wait: bool) -> None:
    if sys.platform != "win32":  # where files that are open cannot be deleted anyway
        flock(descriptor, LOCK_EX if wait else LOCK_EX | LOCK_NB)


def _resemble(descriptor: int, old: os.stat_result) -> None:
    if sys.platform != "win32":
        new = os.fstat(descriptor)
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            with suppress(PermissionError):
                os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
