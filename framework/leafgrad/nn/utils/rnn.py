"""Sequences of different lengths: padded to one length, or packed without padding.

A packed sequence holds, step by step, the elements of all sequences that are still going on at that step; the
sequences are in order of decreasing length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

from leafgrad import modes
from leafgrad.dtypes import int64
from leafgrad.tensor.arguments import expect_tensor
from leafgrad.tensor.creation import arange
from leafgrad.tensor.data import tensor
from leafgrad.tensor.joining import cat, stack
from leafgrad.tensor.public import publish
from leafgrad.tensor.rearranging import separate
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences without padding, made by ``pack_padded_sequence`` and ``pack_sequence``.

    Attributes:
        data: the elements of all sequences at the first step, then at the second, ... (sum of lengths, ...)
        batch_sizes: how many sequences reach each step. (longest,) int64, on the CPU
        sorted_indices: the order of decreasing length, in terms of the sequences that came in; None if they were in it.
        unsorted_indices: the way back.
    """

    _sizes: tuple[int, ...] | None  # batch_sizes, once they have been read
    _tracer: Any  # the trace that they belong to: in another one they are values, and not known

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        expect_tensor(data, "data", "PackedSequence")
        sizes = expect_tensor(batch_sizes, "batch_sizes", "PackedSequence")
        if sizes.device.type != "cpu":
            raise ValueError(
                f"batch_sizes should always be on CPU. Instances of PackedSequence should be made by functions like "
                f"pack_sequence and pack_padded_sequence; got {sizes.device}"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        made = super().__new__(cls, data, sizes, sorted_indices, unsorted_indices)
        made._sizes = made._tracer = None
        return made

    def _keep(self, sizes: tuple[int, ...] | None, tracer: Any) -> Self:
        self._sizes, self._tracer = sizes, tracer
        return self

    def steps(self) -> tuple[int, ...]:
        """``batch_sizes`` as Python numbers, read once. In a trace they are known of what was packed there."""
        here = modes.tracer()
        if self._sizes is None or (here is not None and here is not self._tracer):
            self._keep(tuple(self.batch_sizes.tolist()), here)
        assert self._sizes is not None
        return self._sizes

    def lengths(self) -> list[int]:
        """The lengths of the sequences, the longest first."""
        sizes = self.steps()
        return [sum(size > n for size in sizes) for n in range(sizes[0])]

    def like(self, data: Tensor) -> PackedSequence:
        """Other elements in the same order."""
        made = PackedSequence(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)
        return made._keep(self._sizes, self._tracer)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The elements on another device or in another dtype, as ``Tensor.to`` takes them; self if nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        where = [None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices)]
        return PackedSequence(data, self.batch_sizes, *where)._keep(self._sizes, self._tracer)

    def cpu(self) -> PackedSequence:
        """The elements on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> PackedSequence:
        """The elements on a CUDA device."""
        return self.to(self.data.cuda(device).device)

    def float(self) -> PackedSequence:
        """The elements as float32."""
        return self.like(self.data.float())

    def double(self) -> PackedSequence:
        """The elements as float64."""
        return self.like(self.data.double())

    def half(self) -> PackedSequence:
        """The elements as float16."""
        return self.like(self.data.half())

    def int(self) -> PackedSequence:
        """The elements as int32."""
        return self.like(self.data.int())

    def long(self) -> PackedSequence:
        """The elements as int64."""
        return self.like(self.data.long())

    @property
    def is_cuda(self) -> bool:
        """Whether the elements are on a CUDA device."""
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Where each of 0, ..., n - 1 stands in ``permutation``, which may be None for no change."""
    return None if permutation is None else permutation.argsort()


# ---- between the two forms ----------------------------------------------------------------------------------------


def padded(data: Tensor, sizes: Sequence[int], padding_value: float = 0.0) -> Tensor:
    """The elements ``data`` of a packed sequence as (longest, batch, ...)."""
    starts = tensor([sum(sizes[:t]) for t in range(len(sizes))], device=data.device)
    sequence = arange(sizes[0], device=data.device)
    there = sequence < tensor(list(sizes), device=data.device).unsqueeze(1)
    rows = (starts.unsqueeze(1) + sequence) * there  # an element that is not there is the first, for now
    return data[rows].masked_fill(~there.reshape(*there.shape, *(1,) * (data.ndim - 1)), padding_value)


def picked(full: Tensor, sizes: Sequence[int]) -> Tensor:
    """What a packed sequence keeps of (steps, batch, ...): at each step the first ``sizes`` of the batch."""
    steps, batch = len(sizes), full.shape[1]
    if all(size == batch for size in sizes):
        return full[:steps].flatten(0, 1)
    rows = [t * batch + n for t, size in enumerate(sizes) for n in range(size)]
    return full.flatten(0, 1)[tensor(rows, device=full.device)]


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Padded sequences, packed. (longest, batch, ...), or (batch, longest, ...) with ``batch_first``

    Args:
        lengths: of each sequence; a list, or a tensor whose values are read.
        enforce_sorted: the sequences must be in order of decreasing length; with False they are put in it.

    Raises:
        RuntimeError: lengths are not positive, not one per sequence, greater than the longest, or not in order.
    """
    expect_tensor(input, "input", "pack_padded_sequence")
    order = None
    sizes = _lengths(lengths)
    if not enforce_sorted:
        by_length = sorted(range(len(sizes)), key=lambda n: -sizes[n])
        order = tensor(by_length, dtype=int64, device=input.device)
        sizes = [sizes[n] for n in by_length]
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    if len(sizes) != input.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={input.shape[1]})"
        )
    if min(sizes, default=1) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if sizes != sorted(sizes, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement."
        )
    if sizes[0] > len(input):
        raise RuntimeError(f"lengths: expected at most {len(input)}, the length of the padded input, got {sizes[0]}")
    steps = tuple(sum(length > t for length in sizes) for t in range(sizes[0]))
    data = separate(picked(input, steps))
    return PackedSequence(data, tensor(list(steps), dtype=int64), order)._keep(steps, modes.tracer())


def _lengths(lengths: Tensor | Sequence[int]) -> list[int]:
    if isinstance(lengths, Tensor) and lengths.ndim != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D int64 tensor, but got {lengths.ndim}D")
    return [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """A packed sequence with padding, and the lengths; the sequences in the order in which they came.

    Args:
        total_length: pad to this length instead of that of the longest sequence.

    Returns:
        (longest, batch, ...), or (batch, longest, ...) with ``batch_first``; and (batch,) int64 on the CPU.

    Raises:
        ValueError: ``total_length`` is less than the longest sequence.
    """
    if not isinstance(sequence, PackedSequence):
        raise TypeError(f"pad_packed_sequence: sequence: expected a PackedSequence, got {type(sequence).__name__}")
    sizes = sequence.steps()
    if total_length is not None and total_length < len(sizes):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {len(sizes)}"
        )
    full = padded(sequence.data, sizes, padding_value)
    if total_length is not None and total_length > len(sizes):
        full = cat([full, full.new_full((total_length - len(sizes), *full.shape[1:]), padding_value)])
    lengths = tensor(sequence.lengths(), dtype=int64)
    full = full.transpose(0, 1) if batch_first else full
    if sequence.unsorted_indices is not None:  # their order comes last: what it gives is contiguous
        full = full.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return full, lengths


# ---- lists of tensors ---------------------------------------------------------------------------------------------


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Tensors (length, ...) of different lengths as one. -> (longest, batch, ...)

    Args:
        batch_first: (batch, longest, ...) instead.
        padding_side: "right" pads after the elements, "left" before them.

    Raises:
        RuntimeError: no sequences, or an unknown ``padding_side``.
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    chosen = list(sequences)
    if not chosen:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(len(expect_tensor(s, f"sequences[{i}]", "pad_sequence")) for i, s in enumerate(chosen))
    full = []
    for s in chosen:
        rest = chosen[0].new_full((longest - len(s), *s.shape[1:]), padding_value)
        full.append(cat([s, rest] if padding_side == "right" else [rest, s]))
    return stack(full, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """Each sequence for itself, (length, ...), of (longest, batch, ...), or (batch, longest, ...).

    Args:
        padded_sequences: the batch.
        lengths: of each sequence.
        batch_first: whether the batch is the first dimension.
    """
    full = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [full[n, :length].clone() for n, length in enumerate(_lengths(lengths))]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Tensors (length, ...) of different lengths, packed; see ``pack_padded_sequence``.

    Args:
        sequences: tensors (length, ...).
        enforce_sorted: whether they come from the longest to the shortest; else they are sorted here.
    """
    return pack_padded_sequence(pad_sequence(sequences), [len(s) for s in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Each sequence for itself, (length, ...), in the order in which they came."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences))


publish(globals())
