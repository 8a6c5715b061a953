"""What the kernels of a program are given at a call: where arrays lie, and words of random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leafgrad.lowering.forms import Root
from leafgrad.ops.dispatch import EXPOSED
from leafgrad_cuda.device import Device


class Arguments:
    """A table on the device, copied there when something in it is not what it was at the call before.

    Args:
        device: where the kernels run.
        memory: of the table, on the device.
        flag: the array that is its first entry.
        count: how many slots for arrays follow.
        words: how many words of random numbers follow these.

    Attributes:
        arrays: the flag, and then what is in the slots.
        new: whether the table on the device is another one.
    """

    def __init__(self, device: Device, memory: Any, flag: Any, count: int, words: int) -> None:
        self.device, self.memory, self.count = device, memory, count
        self.arrays: list[Any] = [flag, *[None] * count]
        self.numbers = [device.address(flag), *[0] * (count + words)]
        self.new = True

    def put(self, slot: int, array: Any) -> None:
        """An array that kernels read or write."""
        self.arrays[slot] = array
        self.number(slot, self.device.address(array))

    def put_all(self, slots: Sequence[int], arrays: Sequence[Any]) -> None:
        """Arrays, of which most may be there already."""
        held = self.arrays
        for slot, array in zip(slots, arrays, strict=True):
            if held[slot] is not array:
                self.put(slot, array)

    def draw(self, k: int, words: tuple[int, int]) -> None:
        """The words of the draw with number ``k``."""
        for at, word in enumerate(words, 1 + self.count + 2 * k):
            self.number(at, word)

    def number(self, at: int, number: int) -> None:
        if self.numbers[at] != number:
            self.numbers[at] = number
            self.new = True

    def forget(self, slots: Sequence[int]) -> None:
        """The arrays in these are held no longer."""
        for slot in slots:
            self.arrays[slot] = None

    def start(self, graph: Any) -> None:
        """Start a captured graph."""
        if self.new:
            self.device.write(self.memory, self.numbers)
            self.new = False
        self.device.start(graph, self.arrays)


class Arrays:
    """Arrays that a program makes, whose memory it uses again as soon as nobody else has any of them."""

    def __init__(self, roots: Sequence[Root], slots: dict[Root, int]) -> None:
        self.slots = [slots[r] for r in roots]
        self.kinds = [(r.shape, r.dtype) for r in roots]
        self.arrays: list[Any] = []
        self.holders: list[int] = []

    def free(self, device: Device) -> bool:
        """Whether they are there, and nobody has them."""
        if not self.arrays or self.holders != device.holders(self.arrays):
            return False
        return not EXPOSED or EXPOSED.keys().isdisjoint(map(id, self.arrays))


class Results(list[Any]):
    """The arrays that a call returned."""

    __slots__ = ("__weakref__",)


@dataclass(eq=False)
class Side:
    """What one of two calls in a row uses: what the other made is mostly in use until this one is done.

    Attributes:
        arguments: of its kernels.
        course: graphs and ops, in order.
        delivery: the graph that writes results into tensors.
        made: arrays for results.
    """

    arguments: Arguments
    course: list[Any]
    delivery: Any
    made: list[Arrays]
