"""What makes and converts arrays in the Python array API standard."""

from __future__ import annotations

from typing import Any

from leafgrad import dtypes
from leafgrad.tensor import creation, data, joining, rearranging
from leafgrad.tensor.tensor import Tensor


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The numbers from ``start``, or 0, to before ``stop``; none if ``step`` leads away from it."""
    first, last = (0, start) if stop is None else (start, stop)
    if step and (last - first) / step < 0:
        last = first
    return creation.arange(first, last, step, dtype=dtype, device=device)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """``obj`` as a tensor; shares memory with arrays and tensors if it may."""
    if copy is False and not hasattr(obj, "__array__"):
        raise ValueError(f"asarray: copy=False, but a {type(obj).__name__} can become a tensor only in a copy")
    out = data.as_tensor(obj, dtype=dtype, device=device)
    return out.clone() if copy else out


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """``x`` in another dtype; a copy even of the same unless ``copy=False``."""
    return x.to(x.device if device is None else device, dtype, copy=copy)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on diagonal ``k``, zeros elsewhere."""
    rows, columns = arange(n_rows, device=device), arange(n_rows if n_cols is None else n_cols, device=device)
    return (columns - rows.unsqueeze(1) == k).to(dtypes.get_default_dtype() if dtype is None else dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """``fill_value`` everywhere."""
    return creation.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """With zeros above diagonal ``k``."""
    return rearranging.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """With zeros below diagonal ``k``."""
    return rearranging.triu(x, k)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """``num`` numbers from ``start`` to ``stop``, or to the one before it."""
    if endpoint:
        return creation.linspace(start, stop, num, dtype=dtype, device=device)
    return creation.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid."""
    return list(joining.meshgrid(*arrays, indexing=indexing))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Arbitrary numbers."""
    return creation.empty(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones."""
    return creation.ones(shape, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros."""
    return creation.zeros(shape, dtype=dtype, device=device)
