"""Activations. All are elementwise, (...) -> (...), except softmax and its like, and glu."""

from __future__ import annotations

from typing import Any

from leafgrad.ops import activation as ops
from leafgrad.ops.select import where
from leafgrad.tensor import arguments, pointwise, reductions
from leafgrad.tensor.inplace import update
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]


def _run(op: Any, input: Tensor, inplace: bool, **params: Any) -> Any:
    """``op`` of a floating tensor, into its memory if ``inplace``."""
    arguments.expect_floating(input, op.name)
    return update(input, op, **params) if inplace else op(input, **params)


# ---- piecewise linear ---------------------------------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    result: Tensor = update(input, ops.relu) if inplace else ops.relu(input)
    return result


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x cut off at 0 and 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where it is positive, else ``negative_slope`` x."""
    result: Tensor = _run(ops.leaky_relu, input, inplace, negative_slope=negative_slope)
    return result


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where it is positive, else ``weight`` x; weight has one element, or one per channel (dimension 1)."""
    if weight.numel() != 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.ndim != 1 or weight.numel() != channels:
            raise RuntimeError(
                f"prelu: weight: expected 1 element or {channels}, one per channel, got size {list(weight.shape)}"
            )
        weight = weight.reshape((-1,) + (1,) * (input.ndim - 2))
    result: Tensor = where(input > 0, input, input * weight)
    return result


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x cut off at ``min_val`` and ``max_val``.

    Raises:
        ValueError: ``min_val`` is greater than ``max_val``.
    """
    if min_val > max_val:
        raise ValueError(f"hardtanh: expected min_val <= max_val, got {min_val} and {max_val}")
    result: Tensor = _run(ops.hardtanh, input, inplace, min_val=min_val, max_val=max_val)
    return result


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """x / 6 + 1/2, cut off at 0 and 1."""
    result: Tensor = _run(ops.hardsigmoid, input, inplace)
    return result


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x hardsigmoid(x). Howard et al. (2019)."""
    result: Tensor = _run(ops.hardswish, input, inplace)
    return result


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is above ``threshold``, else ``value``."""

    def cut(x: Tensor) -> Any:
        return where(x > threshold, x, value)

    result: Tensor = update(input, cut) if inplace else cut(input)
    return result


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x where |x| is above ``lambd``, else 0."""
    result: Tensor = where((input > lambd) | (input < -lambd), input, 0)
    return result


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by ``lambd``, which is not negative, and 0 where |x| is at most that."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    result: Tensor = where(input > lambd, input - lambd, where(input < -lambd, input + lambd, input * 0))
    return result


# ---- smooth, or smooth in parts -----------------------------------------------------------------------------------


sigmoid, tanh = pointwise.sigmoid, pointwise.tanh


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow."""
    result: Tensor = _run(ops.logsigmoid, input, False)
    return result


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, else ``alpha`` (exp(x) - 1). Clevert et al. (2016)."""
    result: Tensor = _run(ops.elu, input, inplace, alpha=alpha)
    return result


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu scaled so that layers keep mean 0 and variance 1. Klambauer et al. (2017)."""
    result: Tensor = update(input, pointwise.selu) if inplace else pointwise.selu(input)
    return result


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, else ``alpha`` (exp(x / alpha) - 1). Barron (2017)."""
    result: Tensor = update(input, pointwise.celu, alpha=alpha) if inplace else pointwise.celu(input, alpha)
    return result


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the standard normal distribution function of x. Hendrycks and Gimpel (2016).

    Args:
        approximate: ``"tanh"`` computes it with tanh in place of erf.

    Raises:
        RuntimeError: ``approximate`` is neither "none" nor "tanh".
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, got {approximate!r}")
    result: Tensor = _run(ops.gelu if approximate == "none" else ops.gelu_tanh, input, False)
    return result


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x sigmoid(x), also called swish."""
    result: Tensor = _run(ops.silu, input, inplace)
    return result


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(softplus(x)). Misra (2019)."""
    result: Tensor = _run(ops.mish, input, inplace)
    return result


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta; x where beta x is above ``threshold``."""
    result: Tensor = _run(ops.softplus, input, False, beta=beta, threshold=threshold)
    return result


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


# ---- along a dimension --------------------------------------------------------------------------------------------


def _dim(dim: int | None, function: str) -> int:
    if dim is None:
        raise TypeError(f"{function}: expected dim, the dimension along which the results sum to 1, got None")
    return dim


def softmax(input: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """exp(x) divided by its sum along ``dim``, which has to be given. ``dtype`` converts ``input`` first."""
    return reductions.softmax(input, _dim(dim, "softmax"), dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along ``dim``, without overflow. ``dtype`` converts ``input`` first."""
    return reductions.log_softmax(input, _dim(dim, "log_softmax"), dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """softmax(-x) along ``dim``. ``dtype`` converts ``input`` first."""
    return reductions.softmax(-input, _dim(dim, "softmin"), dtype=dtype)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of ``input`` along ``dim`` times the sigmoid of the second. Dauphin et al. (2017).

    Raises:
        RuntimeError: the size along ``dim`` is odd.
    """
    size = input.shape[arguments.one_dim(input, dim, "glu")] if input.ndim else 1
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    first, second = input.chunk(2, dim)
    return first * second.sigmoid()
