"""Named tensors and a few strings as the bytes of a safetensors file, and back. Nothing in it can be executed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, BinaryIO, NamedTuple

from safetensors import SafetensorError, deserialize

from leafgrad import dtypes
from leafgrad.tensor.complex_numbers import view_as_complex, view_as_real
from leafgrad.tensor.creation import empty
from leafgrad.tensor.interop import frombuffer
from leafgrad.tensor.tensor import Tensor

DTYPES = {
    "BOOL": dtypes.bool_,
    "U8": dtypes.uint8,
    "I8": dtypes.int8,
    "I16": dtypes.int16,
    "I32": dtypes.int32,
    "I64": dtypes.int64,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "F32": dtypes.float32,
    "F64": dtypes.float64,
}

NAMES = {dtype: name for name, dtype in DTYPES.items()}

LARGEST_HEADER = 100_000_000  # bytes that safetensors reads
PIECE = 2**24  # bytes read at once from a pipe: what a header claims may be more than ever comes

DIGEST = "leafgrad.sha256"  # in the metadata: SHA-256 of the whole file, with UNKNOWN in its place
UNKNOWN = "0" * 64
COMPLEX = "leafgrad.complex"  # in the metadata: the names of tensors that are pairs of real numbers, as a list in JSON


class Encoded(NamedTuple):
    """A file: its length and header, in which the digest is still unknown, and the tensors' own memory."""

    head: bytes
    parts: list[memoryview]

    def digest(self) -> str:
        """The SHA-256 of all bytes, as they are now."""
        return _digest(self.head, *self.parts)

    def sealed(self, digest: str) -> list[bytes | memoryview]:
        """The bytes to write, with the digest in its place."""
        return [_sealed(self.head, UNKNOWN, digest), *self.parts]


def encode(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Encoded:
    """The file with these tensors, in C order, and strings. The same ones give the same bytes.

    Written here, since the package safetensors copies it, and aborts the process where there is no memory for that.

    Raises:
        ValueError: the strings and names are longer than the format allows.
    """
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))  # so that all are aligned
    header: dict[str, Any] = {"__metadata__": {**metadata, DIGEST: UNKNOWN}}
    parts, end = [], 0
    pairs = [name for name, t in ordered if t.dtype.is_complex]
    if pairs:
        header["__metadata__"][COMPLEX] = json.dumps(pairs)
    for name, t in ordered:
        t = view_as_real(t.detach().contiguous()) if t.dtype.is_complex else t
        array = t.detach().cpu().contiguous()._array("save()")  # which nobody else gets
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        parts.append(memoryview(little.reshape(-1).view("uint8")))
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [begin, end]}
    raw = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    if len(raw) > LARGEST_HEADER:
        raise ValueError(
            f"save: obj: expected at most {LARGEST_HEADER} bytes of names, numbers and strings, got {len(raw)}; "
            "make tensors of long lists"
        )
    return Encoded(len(raw).to_bytes(8, "little") + raw, parts)


def decode(file: BinaryIO, sealed_by: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors on the CPU, and the strings. The file is left where they end.

    Args:
        file: need not be seekable.
        sealed_by: the string which comes with a digest: a file has both or neither.

    Raises:
        ValueError: these are not the bytes of such a file, or not those that were written.
        TypeError: a tensor of a dtype that leafgrad does not have. MemoryError: there is none for the file.
    """
    head, size, metadata = _head(file)
    if (sealed_by in metadata) != (DIGEST in metadata):
        raise ValueError(
            f"it has one only of {sealed_by!r} and {DIGEST!r}, which belong together: it was changed, or written "
            "before files had digests (safetensors.numpy.load_file reads its tensors, unchecked)"
        )
    try:
        raw = b"".join([head, *_read(file, size, "the tensors")])
        if DIGEST in metadata:
            unsealed = _sealed(head, metadata[DIGEST], UNKNOWN)
            if _digest(unsealed, memoryview(raw)[len(head) :]) != metadata[DIGEST]:
                raise ValueError("its bytes are not those that were written, by their SHA-256; restore it from a copy")
        found = sorted(deserialize(raw), key=itemgetter(0))  # their order depends on the package's version
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    except MemoryError as error:
        raise MemoryError(f"no memory for the file's {len(head) + size:,} bytes") from error
    tensors = {name: _tensor(name, **entry) for name, entry in found}
    for name in _names_of_pairs(metadata, tensors):
        tensors[name] = view_as_complex(tensors[name])
    return tensors, metadata


def _names_of_pairs(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> list[str]:
    """The tensors that are pairs of real numbers; ValueError if the metadata name others."""
    try:
        names = json.loads(metadata.get(COMPLEX, "[]"))
        good = isinstance(names, list) and len(set(names)) == len(names)
        kinds = dtypes.float32, dtypes.float64
        good = good and all(tensors[n].dtype in kinds and tensors[n].shape[-1:] == (2,) for n in names)
    except (ValueError, TypeError, LookupError, RecursionError):
        good = False
    if not good:
        raise ValueError(f"its metadata {COMPLEX!r} does not name tensors of pairs of real numbers")
    return list(names)


def _sealed(head: bytes, old: str, new: str) -> bytes:
    """The header with another digest."""
    return head.replace(f'"{DIGEST}":"{old}"'.encode(), f'"{DIGEST}":"{new}"'.encode())


def _digest(*parts: bytes | memoryview) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _head(file: BinaryIO) -> tuple[bytes, int, dict[str, str]]:
    """Of the file that begins here: the length and the header, how many bytes tensors have, and the strings."""
    length = b"".join(_read(file, 8, "the length of the header"))
    size = int.from_bytes(length, "little")
    if size > LARGEST_HEADER:
        raise ValueError(
            f"it claims a header of {size} bytes, but no more than {LARGEST_HEADER} are allowed; "
            "leafgrad.load takes files of safetensors and of torch.save, and this may be neither"
        )
    header = b"".join(_read(file, size, "the header"))
    try:
        entries = json.loads(header)
        metadata = entries.pop("__metadata__", None) or {}
        size = max([entry["data_offsets"][1] for entry in entries.values()], default=0)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"its header is no JSON object of tensors: {error!r:.200}") from error
    if type(size) is not int or size < 0 or not isinstance(metadata, dict):
        raise ValueError("its header has no offsets of tensors that are whole numbers, or no metadata of strings")
    return length + header, size, metadata


def _read(file: BinaryIO, size: int, what: str) -> list[bytes]:
    """So many bytes, in the pieces in which they come."""
    left = _left(file)
    if left is not None and size > left:
        raise ValueError(f"it ends too early: {what} would take {size} bytes, of which {left} are there")
    pieces, missing = [], size
    while missing:
        piece = file.read(min(missing, PIECE if left is None else missing))
        if not isinstance(piece, bytes):
            raise TypeError(
                f"load: f: expected a file opened in binary mode, got {type(piece).__name__} from its read()"
            )
        if not piece:
            raise ValueError(f"it ends too early: {what} would take {size} bytes, of which {size - missing} came")
        pieces.append(piece)
        missing -= len(piece)
    return pieces


def _left(file: BinaryIO) -> int | None:
    """How many bytes are left in a file that can be asked."""
    try:
        here = file.tell()
        end = file.seek(0, os.SEEK_END)
        file.seek(here)
    except (AttributeError, OSError):  # a pipe
        return None
    return end - here if isinstance(end, int) else None


def _tensor(name: str, dtype: str, shape: list[int], data: Any) -> Tensor:
    if dtype not in DTYPES:
        raise TypeError(
            f"load: tensor {name!r}: leafgrad has no dtype for {dtype!r}; convert it to one of {', '.join(DTYPES)} "
            "with the program that wrote it"
        )
    try:
        return frombuffer(data, dtype=DTYPES[dtype]).reshape(shape) if data else empty(shape, dtype=DTYPES[dtype])
    except (RuntimeError, ValueError) as error:  # as of more dimensions than arrays have
        raise ValueError(f"tensor {name!r}: {error}") from error
