"""The schedule that waits for a plateau."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, SupportsFloat

from leafgrad.ops.messages import warn
from leafgrad.optim.lr_scheduler.scheduler import EPOCH, LRScheduler, checked, per_group, put
from leafgrad.optim.optimizer import Optimizer

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` when a metric has not become better for more than ``patience`` epochs.

    Args:
        optimizer: its groups' ``"lr"`` is changed.
        mode: ``"min"`` if smaller is better, or ``"max"``.
        factor: what the learning rate is multiplied by, below 1.
        patience: epochs without improvement that are tolerated.
        threshold: how much better counts.
        threshold_mode: ``"rel"``, relative to the best, or ``"abs"``.
        cooldown: epochs after a change in which nothing is counted.
        min_lr: the lowest learning rate, or one for each group.
        eps: changes smaller than this are not made.

    Raises:
        ValueError: ``factor`` not below 1, or an unknown mode.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, got {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown! Expected 'min' or 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown! Expected 'rel' or 'abs'")
        self.optimizer = checked(optimizer)
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.min_lrs = per_group("min_lrs", optimizer, min_lr)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr  # for groups added later
        self.eps = eps
        self.last_epoch = 0
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0
        self._note()

    def observe(self, metrics: SupportsFloat, epoch: int | None = None) -> None:
        """Tell it the metric of an epoch (``epoch`` is deprecated), a number or a tensor of one element."""
        if epoch is not None:
            warn(EPOCH)
        try:
            current = float(metrics)
        except TypeError:
            raise TypeError(f"step(): metrics: expected one number, got {type(metrics).__name__}") from None
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._note()

    step: Any = observe  # unlike that of other schedules it is told something
    observe.__qualname__ = "ReduceLROnPlateau.step"  # as errors call it

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) > len(self.min_lrs) and self.default_min_lr is not None:
            self.min_lrs = per_group("min_lrs", self.optimizer, self.default_min_lr)
        if len(groups) != len(self.min_lrs):
            raise RuntimeError(
                f"expected {len(self.min_lrs)} param groups, as when ReduceLROnPlateau was made, got {len(groups)}; "
                "extend its min_lrs"
            )
        for group, low in zip(groups, self.min_lrs, strict=True):
            lr = max(float(group["lr"]) * self.factor, low)
            if float(group["lr"]) - lr > self.eps:
                put(group, "lr", lr)

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs are not counted now."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether ``a`` is better than ``best`` by more than the threshold."""
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            return sign * a > sign * best * (1 + sign * self.threshold)
        return sign * a > sign * best + self.threshold
