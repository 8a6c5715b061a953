"""The bases of pooling."""

from __future__ import annotations

from leafgrad.nn.pooling import (
    AdaptiveAvgPool as _AdaptiveAvgPoolNd,
    AdaptiveMaxPool as _AdaptiveMaxPoolNd,
    MaxPool as _MaxPoolNd,
)

__all__ = ["_AdaptiveAvgPoolNd", "_AdaptiveMaxPoolNd", "_MaxPoolNd"]
