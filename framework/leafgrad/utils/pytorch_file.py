"""Files of ``torch.save``: a zip archive with a pickle and the bytes of each storage.

Before PyTorch 1.6 it was several pickles, and the bytes of all storages after them. Format: torch/serialization.py.
"""

from __future__ import annotations

import io
import sys
import zipfile
from typing import Any, BinaryIO

from leafgrad.utils.bounds import Bounds
from leafgrad.utils.pickles import REMEDY, Machine

LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the number with which files before PyTorch 1.6 begin
VERSION = 1001  # of their format


def read(data: bytes) -> Any:
    """What ``torch.save`` wrote, with tensors on the CPU; those that share memory there share it here.

    Raises:
        ValueError: it is no such file, has something else in it, or would take too long; the message names it.
    """
    try:
        if data.startswith(LEGACY):
            return _legacy(io.BytesIO(data), Bounds(len(data)))
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _object(archive, Bounds(len(data)))
    except (zipfile.BadZipFile, LookupError, TypeError, AttributeError, OverflowError, EOFError, RuntimeError) as error:
        raise ValueError(f"it is damaged: {error}") from error


def _object(archive: zipfile.ZipFile, bounds: Bounds) -> Any:
    entries = {info.filename: info for info in archive.infolist()}
    found = [name for name in entries if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(found) != 1:
        raise ValueError("it is a zip archive, but not of torch.save: it has no data.pkl")
    folder = found[0].removesuffix("data.pkl")

    def stored(name: str) -> bytes:
        entry = entries[folder + name]
        if entry.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"it is a zip archive, but not of torch.save: its {name} is compressed")
        bounds.spend(entry.file_size)  # entries may lie upon one another
        return archive.read(entry)

    order = stored("byteorder").decode() if folder + "byteorder" in entries else "little"
    if order != sys.byteorder:
        raise ValueError(f"its numbers are {order}-endian, and this machine is {sys.byteorder}-endian")
    return Machine(lambda key, _: stored(f"data/{key}"), bounds).run(stored("data.pkl"))


def _legacy(file: BinaryIO, bounds: Bounds) -> Any:
    """A file before PyTorch 1.6: a number, a version, the system, the object, the storages' keys, and their bytes."""
    none = Machine(lambda key, size: bytes(0), bounds)
    _, version, system, start = none.run(file), none.run(file), none.run(file), file.tell()
    if version != VERSION or not isinstance(system, dict) or system.get("little_endian") is not True:
        raise ValueError(f"it is of version {version!r:.40} or of a machine that is not little-endian; {REMEDY}")
    sizes: dict[str, int] = {}

    def noted(key: str, size: int) -> bytes:
        bounds.spend(size)
        sizes[key] = size
        return bytes(size)

    Machine(noted, bounds).run(file)
    keys = none.run(file)
    found = {}
    for key in keys if isinstance(keys, list) else ():
        file.read(8)  # how many elements there are
        found[key] = file.read(sizes.get(key, 0))
    file.seek(start)
    return Machine(lambda key, _: found[key], bounds).run(file)
