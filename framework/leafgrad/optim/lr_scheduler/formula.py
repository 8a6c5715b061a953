"""Schedules that are a formula of the epoch."""

from __future__ import annotations

import math
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from leafgrad.optim.optimizer import Optimizer
from leafgrad.tensor.arguments import number

__all__ = ["CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "StepLR"]

ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the opposite order: as it is, the "
    "first value of the learning rate schedule is skipped."
)


class LRScheduler:
    """Base of schedules. A subclass defines ``get_lr``.

    Args:
        optimizer: its groups' ``"lr"`` is changed; what it is now is remembered as ``"initial_lr"``.
        last_epoch: the epoch to go on from; -1 starts.

    Attributes:
        last_epoch: how many times ``step`` was called since the start.
        base_lrs: the initial learning rate of each group.

    Raises:
        TypeError: ``optimizer`` is none. KeyError: going on, but a group has no ``"initial_lr"``.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0; load the optimizer's state_dict first"
                )
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._optimizer_steps = optimizer._steps
        self._update()

    def get_lr(self) -> list[float]:
        """The learning rate of each group at ``last_epoch``, from the one at the epoch before."""
        raise NotImplementedError(f"{type(self).__name__}: define get_lr()")

    def get_last_lr(self) -> list[float]:
        """The learning rate of each group as it was set last."""
        return self._last_lr

    def step(self) -> None:
        """Go to the next epoch. Warns (UserWarning) if the optimizer has not stepped yet."""
        if self._step_count == 1 and self.optimizer._steps == self._optimizer_steps:
            warnings.warn(ORDER, UserWarning, stacklevel=2)
        self._update()

    def _update(self) -> None:
        self.last_epoch += 1
        rates = self.get_lr()
        self._step_count += 1
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = lr
        self._last_lr = rates

    @property
    def _starting(self) -> bool:
        """Whether this is the first update, at creation."""
        return self._step_count == 0

    def _now(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """All that it knows but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_optimizer_steps")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave. The learning rate itself is in the optimizer's."""
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The initial learning rate times a function of the epoch.

    Args:
        lr_lambda: a function of the epoch, or one for each group. In ``state_dict`` only callable objects are kept.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = per_group("lr_lambdas", checked(optimizer), lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        factors = [number(factor(self.last_epoch), "lr_lambda", "LambdaLR") for factor in self.lr_lambdas]
        return [base * factor for base, factor in zip(self.base_lrs, factors, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """All that it knows but the optimizer and functions; callable objects give their attributes."""
        kept = [None if isinstance(f, types.FunctionType) else dict(vars(f)) for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave; functions stay as they are."""
        if "lr_lambdas" not in state_dict:
            raise KeyError(f"state_dict: expected the key 'lr_lambdas', got {sorted(state_dict)}")
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for f, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                vars(f).update(attributes)


class StepLR(LRScheduler):
    """Times ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [lr * self.gamma if due else lr for lr in self._now()]


class MultiStepLR(LRScheduler):
    """Times ``gamma`` at each of the epochs ``milestones``."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [lr * self.gamma ** self.milestones[self.last_epoch] for lr in self._now()]


class ExponentialLR(LRScheduler):
    """Times ``gamma`` at every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._now() if self._starting else [lr * self.gamma for lr in self._now()]


class LinearLR(LRScheduler):
    """From ``start_factor`` to ``end_factor`` times the learning rate, in ``total_iters`` equal steps.

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

    def get_lr(self) -> list[float]:
        t, n, rise = self.last_epoch, self.total_iters, self.end_factor - self.start_factor
        if t == 0:
            return [lr * self.start_factor for lr in self._now()]
        if self._starting or t > n:
            return self._now()
        return [lr * (1 + rise / (n * self.start_factor + (t - 1) * rise)) for lr in self._now()]


class CosineAnnealingLR(LRScheduler):
    """From the initial learning rate to ``eta_min`` in ``T_max`` epochs, along half a cosine, and back again.

    Source: Loshchilov and Hutter (2017), "SGDR: Stochastic Gradient Descent with Warm Restarts", without the
    restarts, https://arxiv.org/abs/1608.03983.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        t, n, low = self.last_epoch, self.T_max, self.eta_min
        if self._starting:
            return self._now()
        if (t - 1 - n) % (2 * n) == 0:  # from the bottom, where there is nothing to multiply
            rise = (1 - math.cos(math.pi / n)) / 2
            return [lr + (base - low) * rise for lr, base in zip(self._now(), self.base_lrs, strict=True)]
        ratio = (1 + math.cos(math.pi * t / n)) / (1 + math.cos(math.pi * (t - 1) / n))
        return [ratio * (lr - low) + low for lr in self._now()]


def checked(optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group, from one for all or a list."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"Expected {count} {name}, one for each param group, but got {len(value)}")
    return list(value)
