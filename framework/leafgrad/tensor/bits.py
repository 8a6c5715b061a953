"""Bytes of one dtype read as another."""

from __future__ import annotations

from leafgrad import dtypes
from leafgrad.ops.strided import reinterpret
from leafgrad.tensor.tensor import Tensor


def as_dtype(x: Tensor, dtype: dtypes.dtype) -> Tensor:
    """The memory of ``x`` as elements of ``dtype``, a view: the last dimension grows or shrinks with their size.

    Raises:
        RuntimeError: the elements do not fit: no dimension, gaps, a size, an offset or a stride that does not divide.
    """
    old, new = x.dtype.itemsize, dtype.itemsize
    pair = f"to view {x.dtype} as {dtype} (different element sizes)"
    if old != new:
        if not x.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 {pair}")
        if x.stride(-1) != 1 and x.shape[-1] > 1:
            raise RuntimeError(f"self.stride(-1) must be 1 {pair}, but got {x.stride(-1)}")
    if new > old:
        offset, ratio = x.storage_offset(), new // old
        if x.shape[-1] % ratio:
            raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {pair}, but got {x.shape[-1]}")
        if offset % ratio:
            raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} {pair}, but got {offset}")
        for d, step in enumerate(x.stride()[:-1]):
            if step % ratio:
                raise RuntimeError(f"self.stride({d}) must be divisible by {ratio} {pair}, but got {step}")
    return reinterpret(x, dtype=dtype.name)
