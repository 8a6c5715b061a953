"""Machine code of kernels: compiled once for an architecture, then found in the cache.

An entry is two files of one name: the code, and ``.json`` with its sum and the architecture, which is written last.
What does not agree with them is compiled anew, and is never loaded; so is code of another architecture, whatever its
name says.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable
from contextlib import suppress

from leafgrad.errors import CompileError
from leafgrad.lowering.folder import Folder, RefusedFolder, folders, trim

FORMAT = 1  # raise it when what an entry is changes
CUDA = 190  # the machine of an ELF file of NVIDIA's
REGISTERS = 0x2F  # the attribute of how many registers a function takes

Compiler = Callable[[str, int], bytes]


def cubin(code: str, architecture: int, compiler: Compiler, identity: str) -> bytes:
    """The machine code of kernels.

    Args:
        code: their text.
        architecture: of the GPU that will run it, as 90.
        compiler: what makes it, from text and architecture.
        identity: of the compiler.

    Raises:
        CompileError: what it makes is not for this architecture; and whatever ``compiler`` raises.
    """
    facts = json.dumps([FORMAT, code, architecture, identity])
    entry = f"step-{hashlib.sha256(facts.encode()).hexdigest()[:32]}"
    made: bytes | None = None
    for folder in folders("cuda"):
        found = find(folder, entry, architecture)
        if found is not None:
            return found
        made = made or compiled(code, architecture, compiler)
        try:
            folder.write(f"{entry}.cubin", made)
            folder.write(f"{entry}.json", json.dumps({"sum": digest(made), "architecture": architecture}).encode())
            trim(folder)
            break
        except RefusedFolder:
            continue
    return made or compiled(code, architecture, compiler)


def compiled(code: str, architecture: int, compiler: Compiler) -> bytes:
    made = compiler(code, architecture)
    check(made, architecture)
    return made


def find(folder: Folder, entry: str, architecture: int) -> bytes | None:
    """The code of an entry that is whole, and for this architecture."""
    try:
        facts = json.loads(folder.read(f"{entry}.json"))
        code = folder.read(f"{entry}.cubin")
        if facts != {"sum": digest(code), "architecture": architecture}:
            return None
        check(code, architecture)
    except (OSError, ValueError, TypeError, CompileError):
        return None
    with suppress(OSError):  # when it was last used, unless the folder is read-only
        os.utime(folder.path / f"{entry}.json")
    return code


def check(code: bytes, architecture: int) -> None:
    """Raises CompileError unless this is machine code for GPUs of an architecture, as its header says."""
    found = architecture_of(code)
    if found != architecture:
        what = "no machine code of NVIDIA's" if found is None else f"machine code for sm_{found}"
        raise CompileError(f"executor 'cuda': expected machine code for sm_{architecture}, got {what}")


def architecture_of(code: bytes) -> int | None:
    """The architecture that an ELF file of kernels is for; None if it is no such file."""
    if len(code) < 64 or not code.startswith(b"\x7fELF\x02\x01"):
        return None
    (machine,) = struct.unpack_from("<H", code, 18)
    (flags,) = struct.unpack_from("<I", code, 48)
    if machine != CUDA:
        return None
    # byte 8 of the header is the version of the ABI: from 8 on the architecture stands in the second byte of the flags
    return flags >> 8 & 0xFF if code[8] >= 8 else flags & 0xFF


def registers(code: bytes) -> dict[str, int]:
    """How many registers a thread of each kernel takes, as machine code says in its section ``.nv.info``."""
    start, size, count, names = struct.unpack_from("<Q10xHHH", code, 40)
    rows = [struct.unpack_from("<IIQQQQIIQQ", code, start + k * size) for k in range(count)]
    sections = {word(code, rows[names][4] + row[0]): row for row in rows}
    info, symbols, strings = (sections.get(name) for name in (".nv.info", ".symtab", ".strtab"))
    found: dict[str, int] = {}
    if info is None or symbols is None or strings is None:
        return found
    at, end = info[4], info[4] + info[5]
    while at + 4 <= end:
        form, attribute, value = struct.unpack_from("<BBH", code, at)
        at += 4
        if form != 4:  # the value itself; else so many bytes follow
            continue
        if attribute == REGISTERS:
            symbol, number = struct.unpack_from("<II", code, at)
            (name,) = struct.unpack_from("<I", code, symbols[4] + symbol * symbols[9])
            found[word(code, strings[4] + name)] = number
        at += value
    return found


def word(code: bytes, at: int) -> str:
    """A string of an ELF file."""
    return code[at : code.index(b"\0", at)].decode()


def digest(code: bytes) -> str:
    return hashlib.sha256(code).hexdigest()
