"""Tensors from outside, and what stands for them in a trace, so that no other thread sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leafgrad.compile.ir import memory
from leafgrad.compile.ir.graph import Value
from leafgrad.compile.ir.sources import Source
from leafgrad.ops import dispatch
from leafgrad.ops.node import Version
from leafgrad.tensor import view
from leafgrad.tensor.tensor import Tensor


@dataclass(slots=True, eq=False)
class Outside:
    """A tensor from outside.

    Attributes:
        tensor: itself. Only the end of a part changes it.
        inner: what stands for it: the same shape, dtype, leaf and history, with a Symbol as its data.
        source: how programs find it.
        node: the node that it had.
        base: the value of what is in its memory; None until something computes with it.
        before: what has the memory that it had, since the call has given it another; None if not.
        snapshot: a copy of the array that the program reads, where others may write the memory meanwhile.
    """

    tensor: Tensor
    inner: Tensor
    source: Source
    node: Any
    base: Value | None = None
    snapshot: Any = None
    before: Tensor | None = None

    @property
    def written(self) -> bool:
        """Whether the memory of the tensor is to be overwritten."""
        return self.base is not None and self.inner._data.value is not self.base

    def overlaps(self, other: Outside) -> bool:
        """Whether another one is no view, and stands for memory that overlaps."""
        mine, its = self.tensor._data, other.tensor._data
        return other is not self and other.inner._view is None and memory.overlap(its, mine)

    def changed(self) -> bool:
        """Whether others have written the memory since it was copied."""
        return self.snapshot is not None and bool(self.snapshot.tobytes() != self.tensor._data.tobytes())

    def count(self) -> None:
        """Let the version of the tensor know what was written."""
        ours, theirs = self.inner._writes, self.tensor._writes
        if ours is theirs or ours.count == ours.counted:
            return
        if theirs is None:
            theirs = self.tensor._writes = Version()
        theirs.count += ours.count - ours.counted
        theirs.seq = max(theirs.seq, ours.seq)
        ours.counted = ours.count


def stand_in(tensor: Tensor, versions: dict[Version, Version]) -> Tensor:
    """What stands for a tensor that is no view; ``versions`` of the trace stand for those of tensors."""
    inner: Tensor = dispatch.alias(tensor._data, tensor._history)
    inner._leaf, inner._epoch = tensor._leaf, tensor._epoch
    inner._writes = version_of(tensor, versions)
    return inner


def view_in(tensor: Tensor, base: Tensor, versions: dict[Version, Version]) -> Tensor:
    """What stands for a view, whose base ``base`` stands for; made anew at a look where the trace has written."""
    inner: Tensor = view.stand_in(dispatch.alias(tensor._data), tensor, base)
    inner._leaf = tensor._leaf
    inner._history = tensor._history
    if tensor._writes.apart:
        inner._writes = version_of(tensor, versions)
    inner._view.seen = tensor._view.seen if tensor._view.detached or not base._writes.count else -1
    return inner


def version_of(tensor: Tensor, versions: dict[Version, Version]) -> Version:
    """The version of what stands for a tensor: for the trace alone, and one for all that have one outside."""
    theirs: Version | None = tensor._writes
    if theirs is dispatch.INFERENCE_VERSION:
        return theirs
    ours = Version() if theirs is None else versions.setdefault(theirs, Version())
    if theirs is not None and theirs.apart:
        ours.apart = True
    if theirs is not None and not ours.count:
        ours.seq = theirs.seq  # which views compare with what they have seen
    return ours
