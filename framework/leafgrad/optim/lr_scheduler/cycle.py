"""Schedules that go up and down: one cycle, or many."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Sequence
from typing import Any, Literal

from leafgrad.optim.lr_scheduler.scheduler import LRScheduler, checked, cos, per_group, put
from leafgrad.optim.optimizer import Optimizer

__all__ = ["CyclicLR", "OneCycleLR"]


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
            needs_momentum(optimizer)
            highest = per_group("max_momentum", optimizer, max_momentum)
            lowest = per_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                for group, high, low in zip(optimizer.param_groups, highest, lowest, strict=True):
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
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
                put_momentum(group, value)
        return rates

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "cos":
            return end + (start - end) / 2 * (1 + cos(math.pi * share))
        return start + (end - start) * share


class CyclicLR(LRScheduler):
    """Up from ``base_lr`` to ``max_lr`` and down again, over and over; the momentum (or first beta) the other way.

    Source: Smith (2017), "Cyclical Learning Rates for Training Neural Networks", https://arxiv.org/abs/1506.01186.
    Step it after each batch.

    Args:
        base_lr, max_lr: the lowest and the highest learning rate, or one for each group.
        step_size_up, step_size_down: how many steps it rises, and falls (by default as many).
        mode: ``"triangular"``, ``"triangular2"`` (each cycle half as high) or ``"exp_range"`` (height times
            ``gamma ** step``).
        gamma: for ``"exp_range"``.
        scale_fn: the height as a function of the cycle or the step, instead of ``mode``. In ``state_dict`` only
            callable objects are kept.
        scale_mode: what ``scale_fn`` is a function of: ``"cycle"``, counted from 1, or ``"iterations"``.
        cycle_momentum: whether momentum goes from ``max_momentum`` to ``base_momentum`` and back.

    Raises:
        ValueError: an unknown ``mode`` without ``scale_fn``, or an optimizer without momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        base_lrs = per_group("base_lr", checked(optimizer), base_lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"mode is invalid and scale_fn is None: got mode {mode!r}")
        if step_size_up < 1:
            raise ValueError(f"step_size_up: expected at least 1, got {step_size_up}")
        self.total_size = float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_ratio = step_size_up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            needs_momentum(optimizer)
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for i, group in enumerate(optimizer.param_groups):
                put(group, "lr", base_lrs[i])
                if cycle_momentum:
                    group["max_momentum"], group["base_momentum"] = self.max_momentums[i], self.base_momentums[i]
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height of the cycle, or at the step, ``x``."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(math.floor(x) if self.scale_mode == "cycle" else x)
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1)}.get(self.mode, self.gamma**x)

    def get_lr(self) -> list[Any]:
        cycle = 1 + self.last_epoch // self.total_size
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if not isinstance(scale, (int, float)):
            raise TypeError(f"scale_fn: expected a function that returns a number, got {type(scale).__name__}")
        share *= scale
        if self.cycle_momentum:
            momentums = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, momentums, strict=True):
                put_momentum(group, high - (high - low) * share)
        return [low + (high - low) * share for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """All that it knows but the optimizer and functions; a callable object gives its attributes."""
        f = self._scale_fn_custom
        kept = None if f is None or isinstance(f, types.FunctionType) else dict(vars(f))
        return {**super().state_dict(), "_scale_fn_custom": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave; a function stays as it is."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            vars(self._scale_fn_custom).update(state_dict["_scale_fn_custom"])


def needs_momentum(optimizer: Optimizer) -> None:
    """A ValueError if there is no momentum to cycle."""
    if not {"momentum", "betas"} & optimizer.defaults.keys():
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled; pass cycle_momentum=False"
        )


def put_momentum(group: dict[str, Any], value: float) -> None:
    """Set the momentum of a group, or its first beta."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


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
