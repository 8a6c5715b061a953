"""Dropout, of elements and of whole channels."""

from __future__ import annotations

import math

from leafgrad.ops import messages
from leafgrad.ops.elementwise import mul
from leafgrad.ops.random import bernoulli_full
from leafgrad.tensor.arguments import expect_real, expect_tensor
from leafgrad.tensor.creation import zeros_like
from leafgrad.tensor.formats import keeps_channels_last
from leafgrad.tensor.inplace import update
from leafgrad.tensor.random import draw
from leafgrad.tensor.tensor import Tensor

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

SATURATION = -1.7580993408473766  # what SELU tends to at minus infinity


def _kept(input: Tensor, p: float, dims: int) -> Tensor:
    """1 with probability 1 - p and 0 otherwise, drawn for each index of the first ``dims`` dimensions."""
    if input.ndim < 2 and dims == 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*input.shape[:dims], *(1 for _ in input.shape[dims:]))
    return draw(bernoulli_full, "dropout", None, input.device, input.dtype, shape=shape, p=1 - p)


def _dropout(input: Tensor, p: float, training: bool, inplace: bool, dims: int) -> Tensor:
    if not training or not p:
        return input
    noise = _kept(input if p == 1 else expect_real(input, "dropout"), p, dims) * (1 / (1 - p) if p < 1 else 0.0)
    return update(input, mul, noise) if inplace else input * noise


def _probability(input: Tensor, p: float, function: str) -> float:
    """p; an error if it is not in [0, 1], or ``input`` is no tensor."""
    expect_tensor(input, "input", function)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


@keeps_channels_last
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability ``p`` and scale the others by 1 / (1 - p); the mean stays. (...) -> (...)

    Srivastava et al. (2014). Does nothing unless ``training``.

    Raises:
        ValueError: ``p`` is not in [0, 1].
    """
    _probability(input, p, "dropout")
    return _dropout(input, p, training, inplace, len(input._data.shape))


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels. (N, C, L) or (C, L) -> the same

    Raises:
        ValueError: ``p`` is not in [0, 1]. RuntimeError: not 2 or 3 dimensions.
    """
    _probability(input, p, "dropout1d")
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return _dropout(input, p, training, inplace, input.ndim - 1)


def _warn_of_dimensions(input: Tensor, spatial: int) -> None:
    name = f"dropout{spatial}d"
    messages.warn(
        f"{name}: Received a {input.ndim}-D input to {name}, which is deprecated and will result in an error in a "
        "future release. To retain the behavior and silence this warning, please use dropout instead. Note that "
        f"{name} exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel "
        f"dimension, and an optional batch dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs)."
    )


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels. (N, C, H, W) -> the same. Tompson et al. (2015)

    Other numbers of dimensions are taken as (N, C, ...), with a warning.

    Raises:
        ValueError: ``p`` is not in [0, 1].
    """
    _probability(input, p, "dropout2d")
    if input.ndim == 3:
        messages.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    elif input.ndim != 4:
        _warn_of_dimensions(input, 2)
    return _dropout(input, p, training, inplace, 2)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels. (N, C, D, H, W) or (C, D, H, W) -> the same

    Other numbers of dimensions are taken as (N, C, ...), with a warning.

    Raises:
        ValueError: ``p`` is not in [0, 1].
    """
    _probability(input, p, "dropout3d")
    if input.ndim not in (4, 5):
        _warn_of_dimensions(input, 3)
    return _dropout(input, p, training, inplace, 2 if input.ndim == 5 else 1)


# ---- for SELU -------------------------------------------------------------------------------------------------------


def _alpha_dropout(input: Tensor, p: float, training: bool, inplace: bool, dims: int) -> Tensor:
    if not training or not p:
        return input
    if p == 1:
        return update(input, zeros_like) if inplace else input * zeros_like(input)
    kept = _kept(expect_real(input, "alpha_dropout"), p, dims)
    scale = 1 / math.sqrt((SATURATION**2 * p + 1) * (1 - p))
    shift = (1 - kept) * (SATURATION * scale) - SATURATION * scale * p

    def dropped(x: Tensor) -> Tensor:
        return x * (kept * scale) + shift

    return update(input, dropped) if inplace else dropped(input)


@keeps_channels_last
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1, as SELU does: Klambauer et al. (2017). (...) -> (...)

    Raises:
        ValueError: ``p`` is not in [0, 1].
    """
    p = _probability(input, p, "alpha_dropout")
    return _alpha_dropout(input, p, training, inplace, input.ndim)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """``alpha_dropout`` of whole channels. (N, C, ...) -> the same

    Raises:
        ValueError: ``p`` is not in [0, 1]. RuntimeError: fewer than 2 dimensions.
    """
    p = _probability(input, p, "feature_alpha_dropout")
    return _alpha_dropout(input, p, training, inplace, 2)
