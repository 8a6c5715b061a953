"""``make_tensor``: random tensors for tests."""

from __future__ import annotations

from typing import Any

from leafgrad import dtypes
from leafgrad.tensor.complex_numbers import complex
from leafgrad.tensor.creation import empty
from leafgrad.tensor.random import rand, randint
from leafgrad.tensor.tensor import Tensor


def make_tensor(
    *shape: Any,
    dtype: dtypes.dtype,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
) -> Tensor:
    """Numbers drawn uniformly from [low, high), in a tensor of ``shape``.

    Args:
        low, high: by default -9 and 9 for floats and both parts of complex numbers, -9 and 10 for signed integers, 0
            and 10 for uint8, 0 and 2 for bool.
        noncontiguous: leave gaps between the elements in memory.
        exclude_zero: put 1, or for floats the smallest normal number, where 0 is drawn.

    Raises:
        ValueError: ``low`` is not below ``high``, or ``requires_grad`` for integers or bool.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if requires_grad and not dtype.is_differentiable:
        raise ValueError(f"make_tensor: requires_grad: expected a floating or complex dtype, got {dtype}")
    usual = (-9, 9) if dtype.is_differentiable else (0, 2) if dtype.category == 0 else (-9, 10)
    usual = (0, 10) if dtype is dtypes.uint8 else usual
    first, end = usual[0] if low is None else low, usual[1] if high is None else high
    if not first < end:
        raise ValueError(f"make_tensor: expected low < high, got {first} and {end}")
    if dtype.is_differentiable:
        parts = [
            rand(sizes, dtype=dtypes.float64, device=device) * (end - first) + first
            for _ in range(1 + dtype.is_complex)
        ]
        made = (complex(*parts) if dtype.is_complex else parts[0]).to(dtype)
    else:
        made = randint(int(first), int(end), sizes, dtype=dtypes.int64, device=device).to(dtype)
    if exclude_zero:
        made = made.masked_fill(made == 0, dtypes.finfo(dtype).tiny if dtype.is_differentiable else 1)
    if noncontiguous and made.numel() > 1:
        spread = empty(*made.shape[:-1], 2 * made.shape[-1], dtype=dtype, device=device)
        spread[..., ::2] = made
        made = spread[..., ::2]
    return made.requires_grad_() if requires_grad else made
