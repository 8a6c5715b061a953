"""Named tensors and a few strings as the bytes of a safetensors file, and back. Nothing in it can be executed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, BinaryIO

from leafgrad import dtypes
from leafgrad.ops import messages
from leafgrad.tensor.creation import empty
from leafgrad.tensor.interop import frombuffer
from leafgrad.tensor.tensor import Tensor

try:
    from safetensors import SafetensorError, deserialize
    from safetensors.numpy import save
except ImportError as error:
    raise ImportError(
        f"leafgrad.save and leafgrad.load need safetensors, which cannot be imported ({error}): "
        'pip install "leafgrad[io]"'
    ) from error

DTYPES = {
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


def encode(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """The file with these tensors, in C order, and strings."""
    arrays = {name: t.detach().cpu().contiguous().numpy() for name, t in tensors.items()}
    return save(arrays, dict(metadata))


def decode(file: BinaryIO) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors on the CPU, and the strings. The file is left where they end. bfloat16 becomes float32, exactly.

    Raises:
        ValueError: these are not the bytes of such a file. TypeError: a tensor of a dtype that leafgrad does not have.
    """
    raw, metadata = _first(file)
    try:
        found = sorted(deserialize(raw), key=itemgetter(0))  # their order depends on the package's version
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    converted = [name for name, entry in found if entry["dtype"] == "BF16"]
    if converted:
        messages.warn(
            f"load: {len(converted)} of {len(found)} tensors are bfloat16 and were converted to float32, exactly: "
            f"{', '.join(converted[:3])}{', …' if len(converted) > 3 else ''}. leafgrad has no bfloat16"
        )
    return {name: _tensor(name, **entry) for name, entry in found}, metadata


def _first(file: BinaryIO) -> tuple[bytes, dict[str, str]]:
    """The bytes up to where, by its header, the file ends that begins here; and the strings in the header."""
    start = file.tell()
    raw = file.read()
    data = 8 + int.from_bytes(raw[:8], "little")
    try:
        header = json.loads(raw[8:data])
        metadata = header.pop("__metadata__", None) or {}
        end = data + max([entry["data_offsets"][1] for entry in header.values()], default=0)
        first = raw[:end]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return raw, {}  # deserialize says what is wrong
    file.seek(start + len(first))
    return first, metadata


def _tensor(name: str, dtype: str, shape: list[int], data: Any) -> Tensor:
    if dtype != "BF16" and dtype not in DTYPES:
        raise TypeError(
            f"load: tensor {name!r}: leafgrad has no dtype for {dtype!r}; convert it to one of {', '.join(DTYPES)} "
            "with the program that wrote it"
        )
    if not data:
        return empty(shape, dtype=DTYPES.get(dtype, dtypes.float32))
    if dtype == "BF16":  # the upper half of float32
        data, dtype = (frombuffer(data, dtype=dtypes.int16).to(dtypes.int32) * 2**16).numpy(), "F32"
    return frombuffer(data, dtype=DTYPES[dtype]).reshape(shape)
