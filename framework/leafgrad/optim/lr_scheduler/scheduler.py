"""What all schedules share: the epoch, the rates they start from, and when they may be stepped."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import modes
from leafgrad.ops.messages import warn
from leafgrad.optim.optimizer import Optimizer
from leafgrad.tensor.tensor import Tensor

__all__ = ["LRScheduler"]

Rate = float | Tensor

ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the opposite order: as it is, the "
    "first value of the learning rate schedule is skipped. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
EPOCH = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler."
)


class LRScheduler:
    """Base of schedules. A subclass defines ``get_lr``.

    Args:
        optimizer: its groups' ``"lr"`` is changed; what it is now is remembered as ``"initial_lr"``. A rate that is a
            tensor is written in place.
        last_epoch: the epoch to go on from; -1 starts.

    Attributes:
        last_epoch: how many times ``step`` was called since the start.
        base_lrs: the initial learning rate of each group.

    Raises:
        TypeError: ``optimizer`` is none. KeyError: going on, but a group has no ``"initial_lr"``.
    """

    optimizer: Optimizer
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", own_rate(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0; load the optimizer's state_dict first"
                )
        self.base_lrs: list[Any] = [own_rate(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._optimizer_steps = optimizer._steps
        self._start()

    def get_lr(self) -> list[Any]:
        """The learning rate of each group at ``last_epoch``, from the one at the epoch before."""
        raise NotImplementedError(f"{type(self).__name__}: define get_lr()")

    def get_last_lr(self) -> list[Any]:
        """The learning rate of each group as it was set last."""
        return list(self._last_lr)

    def _now(self) -> list[Any]:
        return [own_rate(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """All that it knows but the optimizer."""
        kept = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_optimizer_steps")}
        return kept | {"_last_lr": self.get_last_lr()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave. The learning rate itself is in the optimizer's."""
        self.__dict__.update(state_dict)
        self._last_lr = self.get_last_lr()  # which is written in place, and the caller's stays as it is

    def _get_closed_form_lr(self) -> list[Any]:
        """The learning rate of each group at ``last_epoch``, whatever it was before."""
        return self.get_lr()

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch (or to ``epoch``, deprecated). Warns if the optimizer has not stepped yet."""
        if self._step_count == 1 and self.optimizer._steps == self._optimizer_steps:
            warn(ORDER)
        if epoch is not None:
            warn(EPOCH)
        self._step_count += 1
        self._go(epoch)

    def _start(self) -> None:
        """Set the first rates."""
        self._step_count = 0
        self._go()
        self._step_count = 1

    def _restart(self) -> None:
        """Go back to epoch 0, from the initial rates."""
        self._go(0)

    def _go(self, epoch: int | None = None) -> None:
        """To the next epoch, or to ``epoch``."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr() if epoch is None else self._get_closed_form_lr())

    def _set(self, rates: list[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            put(group, "lr", rate)
        self._note()

    def _note(self) -> None:
        """Keep the rates as they are now; in one list, which a compiled step finds again."""
        vars(self).setdefault("_last_lr", [])[:] = self._now()

    @property
    def _starting(self) -> bool:
        """Whether this is the first update, at creation."""
        return self._step_count == 0


def checked(optimizer: Any) -> Optimizer:
    """``optimizer`` if it is one."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer; pass the optimizer that was made")
    return optimizer


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group, from one for all or a list."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [own_rate(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(f"Expected {count} {name}, but got {len(value)}; give one for each param group")
    return list(map(own_rate, value))


def own_rate(value: Any) -> Any:
    """A rate of its own: a number, or a copy of a tensor."""
    return value.detach().clone() if isinstance(value, Tensor) else value


def cos(angle: Any) -> Any:
    """The cosine of a number."""
    return angle.cos() if hasattr(angle, "cos") else math.cos(angle)


def put(group: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a group; a tensor there is written in place."""
    if isinstance(group[name], Tensor):
        with modes.no_grad():
            group[name].fill_(value.reshape(()) if isinstance(value, Tensor) else value)
    else:
        group[name] = value
