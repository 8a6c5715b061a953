"""Initial values of parameters, written in place. Every function returns the tensor it was given."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, cast

from leafgrad import modes
from leafgrad.lazy import attach
from leafgrad.ops import messages
from leafgrad.tensor.creation import empty_like, eye as identity
from leafgrad.tensor.decompositions import qr
from leafgrad.tensor.public import publish
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

F = TypeVar("F", bound=Callable[..., Any])

_GAINS = dict.fromkeys(
    ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"), 1.0
) | {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity shrinks the spread of its input, inverted.

    Args:
        nonlinearity: ``"linear"``, ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"leaky_relu"``, ``"selu"``, or the
            name of a convolution.
        param: the negative slope of ``"leaky_relu"``; 0.01 by default.

    Raises:
        ValueError: an unknown nonlinearity, or a slope that is not a number.
    """
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}; expected one of leaky_relu, {', '.join(_GAINS)}")
    if param is None:
        param = 0.01
    if isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + param**2))


SKIPPED: ContextVar[bool] = ContextVar("skipped", default=False)
modes.setting("init.skipped()")(SKIPPED.get)


@contextmanager
def skipped() -> Iterator[None]:
    """Within this context the functions of this module leave tensors as they are: see ``nn.utils.skip_init``."""
    token = SKIPPED.set(True)
    try:
        yield
    finally:
        SKIPPED.reset(token)


def _fills(function: F) -> F:
    """Make of a function one that records nothing, and does nothing where filling is skipped."""

    @functools.wraps(function)
    def filled(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if SKIPPED.get():
            return tensor
        with modes.no_grad():
            result: Tensor = function(tensor, *args, **kwargs)
            return result

    return cast(F, filled)


@_fills
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the uniform distribution over [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@_fills
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the normal distribution."""
    return tensor.normal_(mean, std, generator=generator)


@_fills
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Draw from the normal distribution within [a, b], by drawing again what is rejected.

    Raises:
        ValueError: a is not below b.
    """
    if not std > 0:
        raise ValueError(f"trunc_normal_: std: expected a number greater than 0, got {std}")
    if not a < b:
        raise ValueError(f"trunc_normal_: expected a < b, got a={a}, b={b}")
    low, high = ((edge - mean) / (std * math.sqrt(2)) for edge in (a, b))
    mostly_inside = math.erf(high) - math.erf(low) > 0.6
    peak = min(max(mean, a), b)  # where the density within [a, b] is greatest

    def propose() -> tuple[Tensor, Tensor]:
        if mostly_inside:
            drawn = empty_like(tensor).normal_(mean, std, generator=generator)
            return drawn, (drawn < a) | (drawn > b)
        drawn = empty_like(tensor).uniform_(a, b, generator=generator)
        height = (((peak - mean) ** 2 - (drawn - mean) ** 2) / (2 * std**2)).exp()
        return drawn, empty_like(tensor).uniform_(generator=generator) > height

    drawn, rejected = propose()
    while bool(rejected.any()):
        again, rejected_again = propose()
        drawn = again.where(rejected, drawn)
        rejected = rejected & rejected_again
    return tensor.copy_(drawn)


@_fills
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


@_fills
def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity. (n, m). ValueError: not a matrix."""
    if tensor.ndim != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported, got {tensor.ndim}")
    return tensor.copy_(identity(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@_fills
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make a convolution pass its input channels on, as many as it can. (out, in, ...), 3 to 5 dimensions

    Args:
        groups: of the convolution; each passes its channels on.

    Raises:
        ValueError: another number of dimensions, or ``out`` no multiple of ``groups``.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError(f"Only tensors with 3, 4, or 5 dimensions are supported, got {tensor.ndim}")
    if tensor.shape[0] % groups:
        raise ValueError(f"dim 0 must be divisible by groups, got {tensor.shape[0]} and groups={groups}")
    size = tensor.shape[0] // groups
    center = [n // 2 for n in tensor.shape[2:]]
    tensor.zero_()
    for group in range(groups):
        for channel in range(min(size, tensor.shape[1])):
            tensor[group * size + channel, channel, *center] = 1
    return tensor


@_fills
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal numbers, with the share ``sparsity`` of each column at zero: Martens (2010). (rows, columns)

    Raises:
        ValueError: not a matrix.
    """
    if tensor.ndim != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported, got {tensor.ndim}")
    zeros = math.ceil(sparsity * tensor.shape[0])
    normal_(tensor, 0, std, generator)
    order = empty_like(tensor, dtype=tensor.dtype.to_real()).uniform_(generator=generator).argsort(0)
    return tensor.copy_(tensor.scatter(0, order[:zeros], 0.0))


def fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs each output of a weight sees, and how many outputs each input feeds. (out, in, ...)"""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform over ±gain sqrt(6 / (fan_in + fan_out)): Glorot and Bengio (2010), equation 16."""
    bound = gain * math.sqrt(6.0 / (sum(fans(tensor)) or 1))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with the standard deviation gain sqrt(2 / (fan_in + fan_out)): Glorot and Bengio (2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (sum(fans(tensor)) or 1)), generator)


def _empty(tensor: Tensor) -> bool:
    """Whether there is nothing to draw; warns."""
    if SKIPPED.get():
        return True
    if 0 in tensor.shape:
        messages.warn("Initializing zero-element tensors is a no-op")
        return True
    return False


def fan(tensor: Tensor, mode: str) -> int:
    """The one of ``fans`` that ``mode`` names."""
    known = ("fan_in", "fan_out")
    if mode.lower() not in known:
        raise ValueError(f"Mode {mode} not supported, please use one of {list(known)}")
    return fans(tensor)[known.index(mode.lower())]


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Uniform over ±gain sqrt(3 / fan): He et al. (2015), equation 14.

    Args:
        a: the negative slope of ``"leaky_relu"``.
        mode: ``"fan_in"`` keeps the spread of activations, ``"fan_out"`` that of gradients.
        tensor: what is written.
        nonlinearity: as of ``calculate_gain``.
    """
    if _empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Normal with the standard deviation gain / sqrt(fan): He et al. (2015), equation 14. As ``kaiming_uniform_``.

    Args:
        tensor: what is written.
        a: the slope below 0 of a leaky ReLU.
        mode: "fan_in" or "fan_out".
        nonlinearity: as of ``calculate_gain``.
    """
    if _empty(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity), generator)


@_fills
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A random matrix with orthonormal rows or columns, whichever are fewer: Saxe et al. (2014). (n, ...)

    Raises:
        ValueError: fewer than two dimensions.
    """
    if tensor.ndim < 2:
        raise ValueError(f"Only tensors with 2 or more dimensions are supported, got {tensor.ndim}")
    if tensor.numel() == 0:
        return tensor
    flat = empty_like(tensor).normal_(0, 1, generator=generator).reshape(tensor.shape[0], -1)
    tall = flat.shape[0] >= flat.shape[1]
    q, r = qr(flat if tall else flat.t())
    q = q * r.diagonal().sign()  # without the signs, Q would not be uniformly distributed
    return tensor.copy_((q if tall else q.t()).reshape(tensor.shape) * gain)


# ---- names of old ---------------------------------------------------------------------------------------------------


def _renamed(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    new = function.__name__

    @functools.wraps(function)
    def old(*args: Any, **kwargs: Any) -> Tensor:
        text = f"`nn.init.{new[:-1]}` is now deprecated in favor of `nn.init.{new}`."
        warnings.warn(text, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    return old


_calculate_fan_in_and_fan_out = fans  # known by this name to many scripts
publish(globals(), asking=True)

uniform = _renamed(uniform_)
normal = _renamed(normal_)
constant = _renamed(constant_)
eye = _renamed(eye_)
dirac = _renamed(dirac_)
xavier_uniform = _renamed(xavier_uniform_)
xavier_normal = _renamed(xavier_normal_)
kaiming_uniform = _renamed(kaiming_uniform_)
kaiming_normal = _renamed(kaiming_normal_)
orthogonal = _renamed(orthogonal_)
sparse = _renamed(sparse_)
__all__ += ["constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal", "sparse"]
__all__ += ["uniform", "xavier_normal", "xavier_uniform"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
