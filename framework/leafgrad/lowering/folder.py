"""Folders of this user's own for compiled code, in which files are whole or not there at all."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

if sys.platform != "win32":
    import fcntl


MEGABYTES = 256.0  # that a cache may take up
STALE = 3600.0  # seconds after which a file that nobody finished is removed


class RefusedFolder(OSError):
    """A folder that is not this user's, or cannot be written to."""


class Folder:
    """A folder that only this user may read, write, or put another one in the place of.

    Raises:
        RefusedFolder: it belongs to somebody else, it or one around it may be replaced by somebody else, or it cannot
            be made.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path = path = path.resolve()
            status = path.lstat()
            if not own(status):
                raise RefusedFolder(f"{path} belongs to another user")
            for around in path.parents if sys.platform != "win32" else ():
                refuse_open(around)
            if sys.platform != "win32" and stat.S_IMODE(status.st_mode) & 0o077:
                path.chmod(0o700)
        except RefusedFolder:
            raise
        except OSError as error:
            raise RefusedFolder(f"{path}: {error.strerror}") from error

    def read(self, name: str) -> bytes:
        """The bytes of a file of this user's.

        Raises:
            OSError: it is not there, no plain file, or somebody else's.
        """
        path = self.path / name
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or not own(status):
            raise PermissionError(f"{path} is no plain file of this user's")
        return path.read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Put the bytes there at once: others see the old file or the new one.

        Raises:
            RefusedFolder: there is no room, or no right.
        """
        try:
            handle, temporary = tempfile.mkstemp(prefix="temp-", dir=self.path)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.replace(temporary, self.path / name)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise RefusedFolder(f"{self.path}: {error.strerror}") from error

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """A folder in it for as long as this lasts.

        Raises:
            RefusedFolder: there is no room, or no right.
        """
        try:
            name = tempfile.mkdtemp(prefix="temp-", dir=self.path)
        except OSError as error:
            raise RefusedFolder(f"{self.path}: {error.strerror}") from error
        try:
            yield Path(name)
        except OSError as error:
            raise error if isinstance(error, RefusedFolder) else RefusedFolder(str(error)) from error
        finally:
            shutil.rmtree(name, ignore_errors=True)

    @contextmanager
    def locked(self, name: str, seconds: float) -> Iterator[bool]:
        """Hold a lock that other processes and threads wait for; False if it did not come free in time.

        The system takes it back from a process that dies.
        """
        try:
            file = os.open(self.path / name, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            yield False
            return
        try:
            end = time.monotonic() + seconds
            while not (held := acquire(file)) and time.monotonic() < end:
                time.sleep(0.02)
            try:
                yield held
            finally:
                if held:
                    release(file)
        finally:
            os.close(file)


def remove(path: Path) -> None:
    """Remove a file, or a folder with what is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def refuse_open(folder: Path) -> None:
    """A RefusedFolder if others than this user and root may replace what is in a folder."""
    status = folder.lstat()
    if status.st_uid and not own(status):
        raise RefusedFolder(f"{folder}, around it, belongs to another user")
    mode = stat.S_IMODE(status.st_mode)
    shared = stat.S_IWOTH | (0 if private(status) else stat.S_IWGRP)
    if mode & shared and not mode & stat.S_ISVTX:
        raise RefusedFolder(f"{folder}, around it, may be written by others (chmod go-w mends that)")


def private(status: os.stat_result) -> bool:
    """Whether the group of a file is root's, or, as many systems set up users, a group of this user's alone."""
    import grp
    import pwd

    try:
        return not status.st_gid or grp.getgrgid(status.st_gid).gr_name == pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False


def own(status: os.stat_result) -> bool:
    return sys.platform == "win32" or status.st_uid == os.geteuid()


if sys.platform == "win32":
    import msvcrt

    def acquire(file: int) -> bool:
        with suppress(OSError):
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            return True
        return False

    def release(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:

    def acquire(file: int) -> bool:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def release(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


def preferred(kind: str) -> Path:
    """The cache for code of a kind: in ``LEAFGRAD_CACHE``, else in leafgrad where this system keeps a user's caches.

    Raises:
        RefusedFolder: ``XDG_CACHE_HOME`` is relative, which its specification does not allow. RuntimeError: no home.
    """
    if chosen := os.environ.get("LEAFGRAD_CACHE"):
        return Path(chosen) / kind
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        if not os.path.isabs(base):
            raise RefusedFolder(f"XDG_CACHE_HOME: expected an absolute path, got {base!r}")
    return Path(base) / "leafgrad" / kind


def folders(kind: str) -> Iterator[Folder]:
    """The cache for code of a kind; and for whom it is not enough, a folder that lasts as long as the process."""
    try:
        path = preferred(kind)
        yield Folder(path)
    except (RefusedFolder, RuntimeError) as error:  # no home
        reason = str(error)
    else:
        reason = f"{path} is full, read-only or not executable"
    with suppress(OSError):
        yield temporary(reason)


@cache
def of_process() -> Folder:
    """A folder that lasts as long as the process."""
    path = tempfile.mkdtemp(prefix="leafgrad-")
    atexit.register(_remove, path, os.getpid())
    return Folder(Path(path))


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a child that was forked
        shutil.rmtree(path, ignore_errors=True)


def temporary(reason: str) -> Folder:
    """Says why, once."""
    if not of_process.cache_info().currsize:
        warnings.warn(
            f"compiled code is not kept for later processes: {reason}; LEAFGRAD_CACHE may name a folder for it",
            RuntimeWarning,
            stacklevel=2,
        )
    return of_process()


def trim(folder: Folder) -> None:
    """Remove the entries that were not used for longest, until the others fit; and what was never finished."""
    groups: dict[str, list[tuple[Path, os.stat_result]]] = {}
    for path in folder.path.iterdir():
        with suppress(OSError):
            status = path.stat()
            if path.name.startswith("temp-"):
                if time.time() - status.st_mtime > STALE:
                    remove(path)
            elif not path.name.startswith(("lock-", "compiler-")):
                groups.setdefault(path.stem, []).append((path, status))
    size = sum(status.st_size for files in groups.values() for _, status in files)
    most = megabytes() * 2**20
    for files in sorted(groups.values(), key=lambda files: max(status.st_mtime for _, status in files)):
        if size <= most:
            break
        size -= sum(status.st_size for _, status in files)
        for path, _ in files:
            with suppress(OSError):
                path.unlink()


def megabytes() -> float:
    """Megabytes that the cache may take up: ``LEAFGRAD_CACHE_LIMIT``, else 256."""
    try:
        return max(0.0, float(os.environ.get("LEAFGRAD_CACHE_LIMIT") or MEGABYTES))
    except ValueError:
        return MEGABYTES
