"""The safetensors file format: named tensors and a few strings. Nothing in it can be executed.

Eight bytes give the length of a header in JSON; it says each tensor's dtype, shape and place among the bytes that
follow. Source: https://huggingface.co/docs/safetensors, section "Format".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, BinaryIO, Protocol

from leafgrad import dtypes
from leafgrad.ops import messages
from leafgrad.tensor.creation import empty
from leafgrad.tensor.tensor import Tensor

NAMES = {
    "BOOL": dtypes.bool_,
    "U8": dtypes.uint8,
    "I8": dtypes.int8,
    "I16": dtypes.int16,
    "I32": dtypes.int32,
    "I64": dtypes.int64,
    "F16": dtypes.float16,
    "F32": dtypes.float32,
    "F64": dtypes.float64,
}
SPELLED = {d: name for name, d in NAMES.items()}
METADATA = "__metadata__"
LONGEST_HEADER = 100_000_000  # bytes; the format's own limit


class Readable(Protocol):
    """A binary file to read."""

    def read(self, size: int, /) -> bytes: ...

    def readinto(self, buffer: Any, /) -> int: ...


class Damaged(ValueError):
    """The bytes are not a whole safetensors file; the message says where it ends."""


def write(file: BinaryIO, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors, wide dtypes first, so that each lies at a multiple of its element's size."""
    entries: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    end = 0
    for name in names:
        t = tensors[name]
        start, end = end, end + t.numel() * t.dtype.itemsize
        entries[name] = {"dtype": SPELLED[t.dtype], "shape": list(t.shape), "data_offsets": [start, end]}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    file.write(len(header).to_bytes(8, "little"))
    file.write(header)
    for name in names:
        file.write(tensors[name].detach().cpu().contiguous().numpy())


def read(file: Readable) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors on the CPU, and the strings. bfloat16 becomes float32, exactly, with a warning.

    Raises:
        Damaged: these are not the bytes of such a file. TypeError: a tensor of a dtype that leafgrad does not have.
    """
    header = _header(file)
    metadata = header.pop(METADATA, {})
    places = {name: _place(name, entry) for name, entry in header.items()}
    end = 0
    found: dict[str, Tensor] = {}
    for name in sorted(places, key=lambda name: places[name][2]):
        spelled, shape, start, stop = places[name]
        if start != end:
            raise Damaged(f"tensor {name!r} begins at byte {start} of the data, expected {end}")
        found[name], end = _tensor(file, name, spelled, shape), stop
    converted = [name for name, place in places.items() if place[0] == "BF16"]
    if converted:
        messages.warn(
            f"load: {len(converted)} of {len(places)} tensors are bfloat16 and were converted to float32, exactly: "
            f"{', '.join(converted[:3])}{', …' if len(converted) > 3 else ''}. leafgrad has no bfloat16"
        )
    return {name: found[name] for name in places}, metadata


def _header(file: Readable) -> dict[str, Any]:
    prefix = file.read(8)
    size = int.from_bytes(prefix, "little")
    if len(prefix) < 8 or size > LONGEST_HEADER:
        raise Damaged(f"it begins with {prefix!r}, which is no length of a header")
    raw = file.read(size)
    if len(raw) < size:
        raise Damaged(f"it ends after {len(raw)} of the {size} bytes of its header")
    try:
        header = json.loads(raw)
    except ValueError as error:
        raise Damaged(f"its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise Damaged(f"its header is a {type(header).__name__}, expected an object")
    return header


def _place(name: str, entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    """The spelled dtype, the shape, the first byte and that after the last one of a tensor."""
    try:
        spelled, shape, (start, stop) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        sizes = (*shape, start, stop)
        sound = isinstance(spelled, str) and all(type(n) is int and n >= 0 for n in sizes)
    except (KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise Damaged(f"the header says of tensor {name!r}: {entry!r}")
    size = 2 if spelled == "BF16" else NAMES[spelled].itemsize if spelled in NAMES else None
    if size is None:
        raise TypeError(
            f"load: tensor {name!r}: leafgrad has no dtype for {spelled!r}; convert it to one of {', '.join(NAMES)} "
            "with the program that wrote it"
        )
    if stop - start != math.prod(shape) * size:
        raise Damaged(f"tensor {name!r} of {spelled} {list(shape)} has {stop - start} bytes")
    return spelled, shape, start, stop


def _tensor(file: Readable, name: str, spelled: str, shape: tuple[int, ...]) -> Tensor:
    """The next tensor in the file."""
    t = empty(shape, dtype=dtypes.int16 if spelled == "BF16" else NAMES[spelled])
    expected = t.numel() * t.dtype.itemsize
    got = file.readinto(t.numpy()) if expected else 0
    if got != expected:
        raise Damaged(f"it ends after {got} of the {expected} bytes of tensor {name!r}")
    return t if spelled != "BF16" else _single(t)


def _single(bits: Tensor) -> Tensor:
    """float32 from the bits of bfloat16, which are its upper half."""
    wide = bits.to(dtypes.int32) * 2**16
    out = empty(bits.shape, dtype=dtypes.float32)
    if out.numel():
        memoryview(out.numpy()).cast("B")[:] = memoryview(wide.numpy()).cast("B")
    return out
