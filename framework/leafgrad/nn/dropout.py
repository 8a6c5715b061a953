"""Dropout layers. In evaluation mode they do nothing."""

from __future__ import annotations

from leafgrad.nn import functional as F
from leafgrad.nn.module import Module
from leafgrad.tensor.tensor import Tensor

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class Dropping(Module):
    """Base of dropout layers.

    Raises:
        ValueError: ``p`` is not in [0, 1].
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(Dropping):
    """In training mode, zeroes each element with probability ``p`` and scales the others by 1 / (1 - p).

    Srivastava et al. (2014).
    """

    def forward(self, input: Tensor) -> Tensor:
        """(...) -> (...)"""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(Dropping):
    """Dropout of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) or (C, L) -> the same"""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(Dropping):
    """Dropout of whole channels. Tompson et al. (2015)."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) -> the same"""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(Dropping):
    """Dropout of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, D, H, W) or (C, D, H, W) -> the same"""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(Dropping):
    """Dropout that keeps mean 0 and variance 1, for networks of SELU. Klambauer et al. (2017)."""

    def forward(self, input: Tensor) -> Tensor:
        """(...) -> (...)"""
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(Dropping):
    """``AlphaDropout`` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, ...) -> the same"""
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
