"""Schedules that are a formula of the epoch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from leafgrad.optim.lr_scheduler.scheduler import LRScheduler, cos
from leafgrad.optim.optimizer import Optimizer

__all__ = ["ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LinearLR", "MultiStepLR", "PolynomialLR", "StepLR"]


class StepLR(LRScheduler):
    """Times ``gamma`` every ``step_size`` epochs.

    Args:
        step_size: the number of epochs.
        gamma: the factor.
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [lr * self.gamma if due else lr for lr in self._now()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times ``gamma`` at each of the epochs ``milestones``.

    Args:
        milestones: numbers of epochs.
        gamma: the factor.
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        times = sum(count for epoch, count in self.milestones.items() if epoch == self.last_epoch)
        return [lr * self.gamma**times for lr in self._now()]

    def _get_closed_form_lr(self) -> list[Any]:
        passed = sum(count for epoch, count in self.milestones.items() if epoch <= self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times ``gamma`` at every epoch.

    Args:
        gamma: the factor.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        return self._now() if self._starting else [lr * self.gamma for lr in self._now()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The learning rate times ``factor`` until ``total_iters`` epochs are over.

    Args:
        factor: from 0 to 1.
        total_iters: the number of epochs.

    Raises:
        ValueError: ``factor`` outside [0, 1].
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"Constant multiplicative factor expected to be between 0 and 1, got {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._now()]
        if self.last_epoch != self.total_iters:
            return self._now()
        return [lr * (1.0 / self.factor) for lr in self._now()]

    def _get_closed_form_lr(self) -> list[Any]:
        factor = 1.0 if self.last_epoch >= self.total_iters else self.factor
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """From ``start_factor`` to ``end_factor`` times the learning rate, in ``total_iters`` equal steps.

    Args:
        start_factor: above 0, up to 1.
        end_factor: from 0 to 1.
        total_iters: the number of epochs.

    Raises:
        ValueError: ``start_factor`` outside (0, 1], ``end_factor`` outside [0, 1].
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to 1, got "
                f"{start_factor}"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(f"Ending multiplicative factor expected to be between 0 and 1, got {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        t, n, rise = self.last_epoch, self.total_iters, self.end_factor - self.start_factor
        if t == 0:
            return [lr * self.start_factor for lr in self._now()]
        if self._starting or t > n:
            return self._now()
        return [lr * (1 + rise / (n * self.start_factor + (t - 1) * rise)) for lr in self._now()]

    def _get_closed_form_lr(self) -> list[Any]:
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * share) for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The learning rate times ``(1 - epoch / total_iters) ** power``, down to zero.

    Args:
        total_iters: the number of epochs.
        power: of the polynomial.
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        t, n = self.last_epoch, self.total_iters
        if self._starting or t > n:
            return self._now()
        return [lr * ((1.0 - t / n) / (1.0 - (t - 1) / n)) ** self.power for lr in self._now()]

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """From the initial learning rate to ``eta_min`` in ``T_max`` epochs, along half a cosine, and back again.

    Source: Loshchilov and Hutter (2017), "SGDR: Stochastic Gradient Descent with Warm Restarts", without the
    restarts, https://arxiv.org/abs/1608.03983.

    Args:
        T_max: the number of epochs of half a wave.
        eta_min: the lowest learning rate.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        t, n, low = self.last_epoch, self.T_max, self.eta_min
        if self._starting:
            return self._now()
        if (t - 1 - n) % (2 * n) == 0:  # from the bottom, where there is nothing to multiply
            rise = (1 - cos(math.pi / n)) / 2
            return [lr + (base - low) * rise for lr, base in zip(self._now(), self.base_lrs, strict=True)]
        ratio = (1 + cos(math.pi * t / n)) / (1 + cos(math.pi * (t - 1) / n))
        return [ratio * (lr - low) + low for lr in self._now()]

    def _get_closed_form_lr(self) -> list[Any]:
        share = (1 + cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]
