"""Fields of protocol buffers, as bytes."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    """An integer in groups of 7 bits; a negative one as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def float_field(field: int, value: float) -> bytes:
    try:
        return varint(field << 3 | 5) + struct.pack("<f", value)
    except OverflowError:  # beyond float32
        return varint(field << 3 | 5) + struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def bytes_field(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def text_field(field: int, value: str) -> bytes:
    return bytes_field(field, value.encode())
