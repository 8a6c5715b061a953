"""The bases of losses."""

from __future__ import annotations

from leafgrad.nn.loss import Loss as _Loss, WeightedLoss as _WeightedLoss

__all__ = ["_Loss", "_WeightedLoss"]
