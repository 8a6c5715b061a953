"""What ``torch`` has and leafgrad has not, or not under the same name.

The modules below this one mirror PyTorch's. They hold what programs commonly call or set and what has an honest
answer here; anything else stays missing.
"""

from __future__ import annotations

from leafgrad.compat.absent import bfloat16, cdouble, cfloat, complex64, complex128, uint16, uint32, uint64
from leafgrad.compat.settings import (
    are_deterministic_algorithms_enabled,
    get_float32_matmul_precision,
    get_num_interop_threads,
    set_default_tensor_type,
    set_float32_matmul_precision,
    set_num_interop_threads,
    use_deterministic_algorithms,
)
from leafgrad.compat.torch.amp import autocast, is_autocast_enabled
from leafgrad.compat.torch.compiler import compile
from leafgrad.compat.torch.version import __version__
from leafgrad.tensor.matrices import trace

__all__ = [
    "__version__",
    "are_deterministic_algorithms_enabled",
    "autocast",
    "bfloat16",
    "cdouble",
    "cfloat",
    "compile",
    "complex64",
    "complex128",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_autocast_enabled",
    "set_default_tensor_type",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "trace",
    "uint16",
    "uint32",
    "uint64",
    "use_deterministic_algorithms",
]
