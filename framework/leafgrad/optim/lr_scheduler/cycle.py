"""The one-cycle schedule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from leafgrad.optim.lr_scheduler.formula import LRScheduler, checked, per_group
from leafgrad.optim.optimizer import Optimizer

__all__ = ["OneCycleLR"]


class OneCycleLR(LRScheduler):
    """Up to ``max_lr`` and down to almost nothing, once; the momentum (or first beta) goes the other way.

    Source: Smith and Topin (2018), "Super-Convergence", https://arxiv.org/abs/1708.07120. Step it after each batch.

    Args:
        max_lr: the highest learning rate, or one for each group.
        total_steps: length of the cycle; by default ``epochs * steps_per_epoch``.
        pct_start: share of the cycle that rises, in [0, 1].
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: whether momentum goes from ``max_momentum`` to ``base_momentum`` and back.
        div_factor: the cycle starts at ``max_lr / div_factor``.
        final_div_factor: it ends at the start's rate divided by this.
        three_phase: fall back to the start's rate first, as fast as it rose, then to the end.

    Raises:
        ValueError: no length, ``pct_start`` or ``anneal_strategy`` out of range, an optimizer without momentum, or
            more steps than ``total_steps``.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        checked(optimizer)
        self.total_steps = length(total_steps, epochs, steps_per_epoch)
        if not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if div_factor == 0 or final_div_factor == 0:
            raise ValueError(f"div_factor, final_div_factor: expected nonzero, got {div_factor}, {final_div_factor}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        up, end = float(pct_start * self.total_steps) - 1, self.total_steps - 1
        # Each phase: its last step, and the names of rate and momentum at its end.
        self.phases: list[tuple[float, str, str]] = [(up, "max_lr", "base_momentum"), (end, "min_lr", "max_momentum")]
        if three_phase:
            down = float(2 * pct_start * self.total_steps) - 2
            self.phases.insert(1, (down, "initial_lr", "max_momentum"))
        rates = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            if not {"momentum", "betas"} & optimizer.defaults.keys():
                raise ValueError(
                    "optimizer must support momentum or beta1 with `cycle_momentum` option enabled; pass "
                    "cycle_momentum=False"
                )
            highest = per_group("max_momentum", optimizer, max_momentum)
            lowest = per_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                for group, high, low in zip(optimizer.param_groups, highest, lowest, strict=True):
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}"
            )
        start, rate, momentum = 0.0, "initial_lr", "max_momentum"
        for phase in self.phases[:-1]:
            if self.last_epoch <= phase[0]:
                break
            start, rate, momentum = phase
        else:
            phase = self.phases[-1]
        end, next_rate, next_momentum = phase
        share = (self.last_epoch - start) / (end - start) if end > start else 1.0
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[rate], group[next_rate], share))
            if self.cycle_momentum:
                value = self._between(group[momentum], group[next_momentum], share)
                if "betas" in group:
                    group["betas"] = (value, *group["betas"][1:])
                else:
                    group["momentum"] = value
        return rates

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "cos":
            return end + (start - end) / 2 * (1 + math.cos(math.pi * share))
        return start + (end - start) * share


def length(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    """The number of steps of a cycle."""
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    given: tuple[tuple[str, int | None], ...] = (("total_steps", total_steps),)
    if total_steps is None:
        given = (("epochs", epochs), ("steps_per_epoch", steps_per_epoch))
    steps = 1
    for name, value in given:
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        steps *= value
    return steps
