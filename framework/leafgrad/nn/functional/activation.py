"""Activations. All are elementwise, (...) -> (...), except softmax and its like, and glu."""

from __future__ import annotations

from typing import Any

from leafgrad.dtypes import float16, of
from leafgrad.ops import activation as ops, messages
from leafgrad.ops.half import LARGEST
from leafgrad.ops.marks import mark, shown_as
from leafgrad.ops.op import Op
from leafgrad.ops.select import where
from leafgrad.tensor import arguments, pointwise, reductions
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.creation import empty_like, zeros_like
from leafgrad.tensor.inplace import update
from leafgrad.tensor.random import rand_like
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.writes import value_for

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
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
    "threshold_",
]


def _run(op: Op, input: Tensor, inplace: bool, **params: Any) -> Tensor:
    """``op`` of a floating tensor, or a complex one if it takes them, into its memory if ``inplace``."""
    kind = of(input._data) if isinstance(input, Tensor) else None
    if kind is None or not kind.is_differentiable:
        arguments.expect_differentiable(input, op.name)
    function = _in_float32(op) if kind is float16 else op.function
    return update(input, function, **params) if inplace else function(input, **params)


def _in_float32(op: Op) -> Any:
    """``op`` of float16: its parameters are no float16, and the result is rounded once."""

    def function(x: Tensor, **params: Any) -> Tensor:
        return mark(op(x.float(), **params).half(), op.label, x)

    function.__name__ = op.name
    return function


# ---- piecewise linear ---------------------------------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return update(input, ops.relu) if inplace else ops.relu.function(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x cut off at 0 and 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where it is positive, else ``negative_slope`` x."""
    return _run(ops.leaky_relu, input, inplace, negative_slope=negative_slope)


def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """x where it is positive, else a slope times x: drawn from [lower, upper) for each element in training.

    Outside training the slope is the mean of both. Xu et al. (2015).

    Raises:
        RuntimeError: ``lower`` is greater than ``upper``.
    """
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound, got lower={lower} and upper={upper}"
        )
    arguments.expect_floating(input, "rrelu")
    slope = rand_like(input.detach()) * (upper - lower) + lower if training else (lower + upper) / 2

    def cut(x: Tensor) -> Any:
        return where(x > 0, x, x * slope)

    result: Tensor = update(input, cut) if inplace else cut(input)
    return result


@autocast("lower")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where it is positive, else ``weight`` x; weight has one element, or one per channel (dimension 1)."""
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        raise RuntimeError(
            f"prelu: weight: expected 1 element or {channels}, one per channel, in 1 dimension, got size "
            f"{list(weight.shape)}"
        )
    weight = weight.reshape((-1,) + (1,) * (input.ndim - 2) if input.ndim else ())
    return ops.prelu_kernel.function(input, weight)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x cut off at ``min_val`` and ``max_val``; for integers these lose their decimals.

    Raises:
        ValueError: ``min_val`` is greater than ``max_val``.
    """
    if min_val > max_val:
        raise ValueError(f"hardtanh: expected min_val <= max_val, got {min_val} and {max_val}")
    whole = arguments.expect_tensor(input, "input", "hardtanh").dtype.category == 1
    if whole or max(-min_val, max_val) > LARGEST:
        min_val, max_val = (
            value_for(input, v, f"hardtanh: {n}") for n, v in (("min_val", min_val), ("max_val", max_val))
        )
    if whole:
        cut = input.clamp(min_val, max_val)
        return input.copy_(cut) if inplace else cut
    return _run(ops.hardtanh, input, inplace, min_val=min_val, max_val=max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """x / 6 + 1/2, cut off at 0 and 1."""
    return _run(ops.hardsigmoid, input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x hardsigmoid(x). Howard et al. (2019)."""
    return _run(ops.hardswish, input, inplace)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``value`` where x is at most ``threshold``, else x."""
    return _cut(input, threshold, value, inplace)


def _cut(input: Tensor, low: float, value: float, inplace: bool) -> Tensor:
    def cut(x: Tensor) -> Any:
        return where(x <= low, value if x.dtype.is_floating_point else int(value), x)

    result: Tensor = update(input, cut) if inplace else cut(input)
    return result


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x where |x| is above ``lambd``, else 0."""
    return where((input >= -lambd) & (input <= lambd), 0, input)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by ``lambd``, which is not negative, and 0 where |x| is at most that."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return input - input.clamp(-lambd, lambd)


# ---- smooth, or smooth in parts -----------------------------------------------------------------------------------


sigmoid, tanh = pointwise.sigmoid, pointwise.tanh


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow."""
    return _run(ops.logsigmoid, input, False)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, else ``alpha`` (exp(x) - 1). Clevert et al. (2016)."""
    return _run(ops.elu, input, inplace, alpha=alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu scaled so that layers keep mean 0 and variance 1. Klambauer et al. (2017)."""
    return update(input, pointwise.selu) if inplace else pointwise.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, else ``alpha`` (exp(x / alpha) - 1). Barron (2017)."""
    return update(input, pointwise.celu, alpha=alpha) if inplace else pointwise.celu(input, alpha)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the standard normal distribution function of x. Hendrycks and Gimpel (2016).

    Args:
        approximate: ``"tanh"`` computes it with tanh in place of erf.

    Raises:
        RuntimeError: ``approximate`` is neither "none" nor "tanh".
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, got {approximate!r}")
    return _run(ops.gelu if approximate == "none" else ops.gelu_tanh, input, False)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x sigmoid(x), also called swish."""
    return _run(ops.silu, input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(softplus(x)). Misra (2019)."""
    return _run(ops.mish, input, inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta; x where beta x is above ``threshold``."""
    return _run(ops.softplus, input, False, beta=beta, threshold=threshold)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


# ---- along a dimension --------------------------------------------------------------------------------------------


def _dim(input: Tensor, dim: int | None, function: str) -> int:
    """``dim``; if none is given, that of the classes in data of old, with a warning."""
    if dim is not None:
        return dim
    messages.warn(
        f"Implicit dimension choice for {function} has been deprecated. Change the call to include dim=X as an "
        "argument."
    )
    return 0 if arguments.expect_tensor(input, "input", function).ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """exp(x) over its sum along ``dim``. ``dtype`` converts ``input`` first."""
    return reductions.softmax(input, _dim(input, dim, "softmax"), dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along ``dim``, without overflow. ``dtype`` converts ``input`` first."""
    return reductions.log_softmax(input, _dim(input, dim, "log_softmax"), dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """softmax(-x) along ``dim``. ``dtype`` converts ``input`` first."""
    return reductions.softmax(-input, _dim(input, dim, "softmin"), dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A random choice along ``dim`` with the odds exp(logits), softened: Jang et al. (2017), Maddison et al. (2017).

    Args:
        tau: the temperature; near 0 the result is nearly one-hot.
        hard: give the one-hot choice itself, with the gradient of the softened one.
        eps: has no effect.
    """
    arguments.expect_floating(logits, "gumbel_softmax")
    if eps != 1e-10:
        messages.warn("`eps` parameter is deprecated and has no effect.")
    noise = -empty_like(logits.detach()).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    choice = soft.detach().argmax(dim, keepdim=True)
    return zeros_like(soft.detach()).scatter(dim, choice, 1.0) - soft.detach() + soft


@shown_as("GluBackward0")
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of ``input`` along ``dim`` times the sigmoid of the second. Dauphin et al. (2017).

    Raises:
        RuntimeError: the size along ``dim`` is odd.
    """
    arguments.expect_real(input, "glu")
    size = input.shape[arguments.one_dim(input, dim, "glu")] if input.ndim else 1
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    first, second = input.chunk(2, dim)
    return first * second.sigmoid()


# ---- in place -------------------------------------------------------------------------------------------------------


def relu_(input: Tensor) -> Tensor:
    """``relu``, in place."""
    return relu(input, True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """``leaky_relu``, in place."""
    return leaky_relu(input, negative_slope, True)


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """``rrelu``, in place."""
    return rrelu(input, lower, upper, training, True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """``hardtanh``, in place."""
    return hardtanh(input, min_val, max_val, True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """``threshold``, in place."""
    return _cut(input, threshold, value, True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """``elu``, in place."""
    return elu(input, alpha, True)


def selu_(input: Tensor) -> Tensor:
    """``selu``, in place."""
    return selu(input, True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """``celu``, in place."""
    return celu(input, alpha, True)
