"""What layers of scripts reset themselves with."""

from __future__ import annotations

from leafgrad.nn import init
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "_calculate_correct_fan", "_calculate_fan_in_and_fan_out", "_no_grad_normal_", "_no_grad_trunc_normal_",
    "_no_grad_uniform_",
]  # fmt: skip


_calculate_fan_in_and_fan_out = init.fans
_no_grad_normal_, _no_grad_trunc_normal_, _no_grad_uniform_ = init.normal_, init.trunc_normal_, init.uniform_


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """The number that "fan_in" or "fan_out" names."""
    return init.fan(tensor, mode)
