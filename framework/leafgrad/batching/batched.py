"""Values with a batch dimension that the program does not see: what Tensors hold inside vmap.

A Batched is a third kind of value beside arrays and Symbols, and rides inside a Tensor as they do: autograd never
learns of it, and a Batched of Symbols is how vmap is compiled. Ops on it run batching rules (``leafgrad.batching``) on
the array inside, whose first dimension is the batch. Where vmaps are nested, the innermost is outermost here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Final

from leafgrad import devices, modes
from leafgrad.backends.place import place
from leafgrad.batching.call import BatchedCall, run, widened
from leafgrad.ops import dispatch, messages, reduce
from leafgrad.ops.convert import clone
from leafgrad.ops.geometry import moved
from leafgrad.ops.node import SEQ, SymbolBase
from leafgrad.ops.shape import expand, permute
from leafgrad.tensor.operators import SymbolOperators

NUMBERS: Final = itertools.count(1)


class Batch:
    """One run of a vmap.

    Attributes:
        size: how many samples there are.
        randomness: ``"error"``, ``"different"`` or ``"same"``.
        level: larger than that of each earlier run.
        depth: within how many vmaps it runs, itself included.
        seq: what nodes that are recorded within it come after.
    """

    __slots__ = ("depth", "level", "randomness", "seq", "size")

    def __init__(self, size: int, randomness: str) -> None:
        self.size = size
        self.randomness = randomness
        self.level = next(NUMBERS)
        self.depth = len(modes.BATCHES.get()) + 1
        self.seq = next(SEQ)

    def __repr__(self) -> str:
        return f"<batch {self.level} of {self.size}>"


class Batched(SymbolOperators, SymbolBase):
    """An array, Symbol or Batched whose first dimension is the batch; shape and ndim are those of one sample."""

    __slots__ = ("__weakref__", "array", "batch", "level")

    def __init__(self, array: Any, batch: Batch) -> None:
        self.array = array
        self.batch = batch
        self.level = batch.level

    # ---- what one sample is -----------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape[1:])

    @property
    def ndim(self) -> int:
        return len(self.array.shape) - 1

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def itemsize(self) -> int:
        return int(self.array.dtype.itemsize)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(self.array.strides[1:])

    @property
    def place(self) -> tuple[str, int]:
        inner = self.array
        return inner.place if isinstance(inner, SymbolBase) else place(inner)

    @property
    def device(self) -> devices.device:
        return devices.at(*self.place)

    @property
    def base(self) -> Any:
        """The array whose memory this is: views are found by it."""
        owner = self.array.base
        return self.array if owner is None else owner

    # ---- ops --------------------------------------------------------------------------------------------------

    def bind(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        inside = tuple([isinstance(a, Batched) and a.batch is self.batch for a in args])
        arrays = tuple([a.array if i else a for a, i in zip(args, inside, strict=True)])
        call = BatchedCall(op, self.batch.size, arrays, inside, params)
        if op.summing is not None and not separate(self.batch) and (sum := op.summing(call)) is not None:
            return Pending(call, self.batch, *sum)
        try:
            result = run(call)
        except ValueError as error:
            if "raises" in op.traits:  # it says so itself
                raise
            raise messages.failed(op, args, params, error) from error
        if type(result) is tuple:
            return tuple([Batched(r, self.batch) for r in result])
        return Batched(result, self.batch)

    def opened(self) -> tuple[Any, Callable[[Any], Any]]:
        batch, (data, close) = self.batch, dispatch.opened(self.array)
        return data, lambda data: Batched(close(data), batch)

    def of(self, function: Callable[[Any], Any]) -> Any:
        """The batch with what a function makes of all samples."""
        array = function(self.array)
        return self if array is self.array else Batched(array, self.batch)

    def summed(self) -> Any:
        """The sum of the samples, raw."""
        return reduce.sum(self.array, dim=(0,))

    def copy(self) -> Batched:
        return Batched(clone(self.array), self.batch)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, Batched):
            value = value if has(value, self.batch) else for_all_samples(value, self.batch)
            value = widened(value.array, value.ndim, self.ndim)
        self.array[key] = value

    def beside(self, data: Any) -> Any:
        inner = self.array.beside(data) if isinstance(self.array, SymbolBase) else data
        return for_all_samples(inner, self.batch).copy()

    def overwritten(self, data: Any) -> Any:
        for batch in batches_of(self):
            data = data if has(data, batch) else for_all_samples(data, batch)
        return data

    def memory(self) -> Any:
        return self.array.memory() if isinstance(self.array, SymbolBase) else self.array

    def sample(self) -> Any:
        array = dispatch.sample(self.array)
        return None if array is None or not self.batch.size else array[0]

    def check_target(self, data: Any) -> None:
        if not all(has(data, b) for b in batches_of(self)):
            raise RuntimeError(
                "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
                "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
                "`self` not being vmapped over in a vmap. Please try to use out-of-place operators instead of inplace "
                "arithmetic, or make `self` from a vmapped tensor, e.g. by other.new_zeros(...) or zeros_like"
            )

    # ---- what it refuses --------------------------------------------------------------------------------------

    def withheld(self, what: str) -> Exception:
        if what == "nonzero()":
            return RuntimeError(
                "vmap: We do not support batching operators that can output dynamic shape, such as nonzero and "
                "indexing with a boolean mask: samples may differ in how much they choose. Choose with leafgrad.where"
            )
        if what in ("bool()", "use as an index", "float()", "int()"):
            return RuntimeError(
                f"vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow ({what}), "
                f"at {messages.user_line()}. Inside vmap a tensor stands for {self.batch.size} samples, which may "
                "disagree: choose with leafgrad.where, or branch on shapes"
            )
        return RuntimeError(
            f"vmap: It looks like you're calling .{what} on a Tensor, at {messages.user_line()}. We don't support vmap "
            f"over calling .{what} on a Tensor, which stands for {self.batch.size} samples: return the tensor and read "
            "it outside, or compute with the tensor itself"
        )

    def __bool__(self) -> bool:
        raise self.withheld("bool()")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self.withheld("numpy()")

    def __repr__(self) -> str:
        inner = repr(self.array if isinstance(self.array, SymbolBase) else dispatch.alias(self.array))
        inner = inner.replace("\n", "\n    ")
        return f"BatchedTensor(lvl={self.batch.depth}, bdim=0, value=\n    {inner}\n)"


class Pending(Batched):
    """Results that are made when somebody asks for them: mostly only their sum is wanted.

    There are none while the vmap runs, in which arguments may still be written.
    """

    __slots__ = ("call", "shaped", "total")

    def __init__(self, call: BatchedCall, batch: Batch, shape: tuple[int, ...], total: Callable[[], Any]) -> None:
        self.call, self.shaped, self.total = call, shape, total
        self.batch, self.level = batch, batch.level

    def __getattr__(self, name: str) -> Any:
        if name != "array":
            raise AttributeError(name)
        self.array = run(self.call)
        return self.array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shaped

    @property
    def ndim(self) -> int:
        return len(self.shaped)

    @property
    def dtype(self) -> Any:
        return self.call.args[0].dtype

    def summed(self) -> Any:
        return self.total()


ALL: Final = Batch(0, "error")  # stands for every batch


def separate(batch: Batch) -> bool:
    """Whether each sample has a gradient of its own: the vmap is running."""
    running = modes.BATCHES.get()
    return batch in running or ALL in running


def has(data: Any, batch: Batch) -> bool:
    """Whether raw ``data`` has this batch dimension."""
    while isinstance(data, Batched):
        if data.batch is batch:
            return True
        data = data.array
    return False


def batches_of(data: Any) -> list[Batch]:
    """The batch dimensions of raw ``data``."""
    found = []
    while isinstance(data, Batched):
        found.append(data.batch)
        data = data.array
    return found


# ---- in and out, on raw values ------------------------------------------------------------------------------------


def entered(data: Any, batch: Batch, dim: int) -> Any:
    """``data`` with its dimension ``dim`` hidden as the batch."""
    if isinstance(data, Batched) and data.level > batch.level:
        return Batched(entered(data.array, batch, dim + 1), data.batch)
    return Batched(permute(data, dims=moved(len(data.shape), dim, 0)), batch)  # always a view of its own


def left(data: Any, batch: Batch, dim: int) -> Any:
    """``data``, which has the batch, with it as the dimension ``dim``."""
    if data.batch is not batch:
        return Batched(left(data.array, batch, dim + 1), data.batch)
    return data.array if dim == 0 else permute(data.array, dims=moved(len(data.array.shape), 0, dim))


def for_all_samples(data: Any, batch: Batch) -> Any:
    """``data``, which lacks the batch, the same for all samples."""
    if isinstance(data, Batched) and data.level > batch.level:
        return Batched(for_all_samples(data.array, batch), data.batch)
    return Batched(expand(data, shape=(batch.size, *data.shape)), batch)
