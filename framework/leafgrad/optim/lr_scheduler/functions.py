"""Schedules whose factors are functions of the epoch."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from leafgrad.optim.lr_scheduler.scheduler import LRScheduler, checked, per_group
from leafgrad.optim.optimizer import Optimizer
from leafgrad.tensor.arguments import number

__all__ = ["LambdaLR", "MultiplicativeLR"]


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

    def get_lr(self) -> list[Any]:
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


class MultiplicativeLR(LambdaLR):
    """The learning rate times a function of the epoch, at every epoch.

    Args:
        lr_lambda: a function of the epoch, or one for each group. In ``state_dict`` only callable objects are kept.

    Raises:
        TypeError: it is no function.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        for f in per_group("lr_lambdas", checked(optimizer), lr_lambda):
            if not callable(f):
                raise TypeError(f"lr_lambda should be a function, but got {type(f).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[Any]:
        if self._starting:
            return self._now()
        factors = [number(factor(self.last_epoch), "lr_lambda", "MultiplicativeLR") for factor in self.lr_lambdas]
        return [lr * factor for lr, factor in zip(self._now(), factors, strict=True)]
