"""Cosine annealing that starts again and again."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.optim.lr_scheduler.scheduler import LRScheduler, cos
from leafgrad.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingWarmRestarts"]


class CosineAnnealingWarmRestarts(LRScheduler):
    """From the initial learning rate to ``eta_min`` along half a cosine, then from the start again.

    Source: Loshchilov and Hutter (2017), "SGDR: Stochastic Gradient Descent with Warm Restarts",
    https://arxiv.org/abs/1608.03983. It may be stepped within an epoch: ``step(epoch + batch / batches)``.

    Args:
        T_0: epochs until the first restart.
        T_mult: each run is this many times longer than the one before.
        eta_min: the lowest learning rate.

    Attributes:
        T_cur: epochs since the last restart.
        T_i: epochs of the current run.

    Raises:
        ValueError: ``T_0`` or ``T_mult`` that is no positive integer, an ``eta_min`` that is no number; at a step, a
            negative ``epoch``.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        share = (1 + cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to ``epoch``, which may be a fraction."""
        if epoch is not None and epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        self._step_count += 1
        self._go(epoch)

    def _go(self, epoch: float | None = None) -> None:
        if epoch is None and self.last_epoch < 0:
            epoch = 0  # the first epoch comes again after SequentialLR took it back
        if epoch is None:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
            self.last_epoch += 1
        else:
            runs = self._runs(epoch)
            self.T_i = self.T_0 * self.T_mult**runs
            self.T_cur = epoch - self.T_0 * (runs if self.T_mult == 1 else (self.T_mult**runs - 1) / (self.T_mult - 1))
            self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())

    def _runs(self, epoch: float) -> int:
        """How many runs are over at ``epoch``."""
        if self.T_mult == 1:
            return int(epoch // self.T_0)
        return int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
