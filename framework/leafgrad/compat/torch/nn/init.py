"""The older names of initializations, without the underscore, and what layers of scripts reset themselves with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad.nn import init
from leafgrad.ops.messages import warn
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "_calculate_correct_fan", "_calculate_fan_in_and_fan_out", "_no_grad_normal_", "_no_grad_trunc_normal_",
    "_no_grad_uniform_", "constant", "dirac", "eye",
    "kaiming_normal", "kaiming_uniform", "normal", "orthogonal", "sparse", "uniform", "xavier_normal", "xavier_uniform",
]  # fmt: skip


def older(name: str) -> Callable[..., Any]:
    """The function of this name, which warns and does what its successor does."""

    def function(*args: Any, **kwargs: Any) -> Any:
        warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning)
        return getattr(init, f"{name}_")(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Older name of ``{name}_``."
    return function


constant, dirac, eye, normal = older("constant"), older("dirac"), older("eye"), older("normal")
orthogonal, sparse, uniform = older("orthogonal"), older("sparse"), older("uniform")
kaiming_normal, kaiming_uniform = older("kaiming_normal"), older("kaiming_uniform")
xavier_normal, xavier_uniform = older("xavier_normal"), older("xavier_uniform")

_calculate_fan_in_and_fan_out = init.fans
_no_grad_normal_, _no_grad_trunc_normal_, _no_grad_uniform_ = init.normal_, init.trunc_normal_, init.uniform_


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """The number that "fan_in" or "fan_out" names."""
    return init.fan(tensor, mode)
