"""``torch.backends.cuda``: how products are computed there."""

from __future__ import annotations

from types import SimpleNamespace

__all__ = ["is_built", "matmul"]

matmul = SimpleNamespace(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=False, allow_bf16_reduced_precision_reduction=False
)


def is_built() -> bool:
    """False: CUDA is reached through CuPy."""
    return False
