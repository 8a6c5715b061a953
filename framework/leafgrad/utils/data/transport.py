"""Batches through pipes: what is large in a pickle, the elements of tensors, travels beside it."""

from __future__ import annotations

import pickle
from multiprocessing.connection import Connection
from typing import Any

Packed = tuple[bytes, list[memoryview]]


def pack(value: Any) -> Packed:
    """An object as a pickle and the memory that goes beside it."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return head, [buffer.raw() for buffer in buffers]


def send(connection: Connection, packed: Packed) -> None:
    """Send what ``pack`` made."""
    head, parts = packed
    connection.send((head, [part.nbytes for part in parts]))
    for part in parts:
        connection.send_bytes(part)


def receive(connection: Connection) -> Any:
    """The next object; EOFError or OSError if the other side is gone."""
    head, sizes = connection.recv()
    parts = [bytearray(size) for size in sizes]
    for part in parts:
        connection.recv_bytes_into(part)
    return pickle.loads(head, buffers=parts)
