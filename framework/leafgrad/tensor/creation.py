"""Tensors from Python and NumPy data."""

from __future__ import annotations

from typing import Any

from leafgrad import backends, devices, dtypes
from leafgrad.ops import carriers
from leafgrad.tensor.tensor import Tensor

__all__ = ["tensor"]


def tensor(data: Any, *, dtype: dtypes.dtype | None = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of ``data``."""
    kind, index = devices.device(device or "cpu").resolve()
    host = backends.by_device_type("cpu").asarray(data, dtype.name if dtype else None)
    if dtype is None and host.dtype.name == "float64" and not hasattr(data, "dtype"):
        host = host.astype(dtypes.get_default_dtype().name)
    out: Tensor = carriers.alias(backends.by_device_type(kind).from_host(host, index))
    return out.requires_grad_(requires_grad)
