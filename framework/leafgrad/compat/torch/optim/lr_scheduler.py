"""The older name of the base of schedulers."""

from __future__ import annotations

from leafgrad.optim.lr_scheduler import LRScheduler as _LRScheduler

__all__ = ["_LRScheduler"]
