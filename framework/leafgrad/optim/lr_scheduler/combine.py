"""Schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from leafgrad.optim.lr_scheduler.plateau import ReduceLROnPlateau
from leafgrad.optim.lr_scheduler.scheduler import LRScheduler, put
from leafgrad.optim.optimizer import Optimizer

__all__ = ["ChainedScheduler", "SequentialLR"]


class Combined(LRScheduler):
    """Several schedules of one optimizer."""

    def __init__(self, optimizer: Any, schedulers: Any) -> None:
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute, got {scheduler!r}")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {i} in the given schedulers sequence; step "
                    "it by itself"
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i}, which belongs to another"
                )
        self._schedulers = schedulers
        self.optimizer = optimizer

    def state_dict(self) -> dict[str, Any]:
        """All that it knows but the optimizer, with the states of its schedules."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(Combined):
    """One schedule after the other; each starts from the initial learning rate at its milestone.

    Args:
        schedulers: all of one optimizer; the first one is active until the first milestone, and so on.
        milestones: the epochs at which the next one takes over, one fewer than there are schedules.

    Raises:
        ValueError: no schedules, another number of milestones, a ``ReduceLROnPlateau``, or several optimizers.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        super().__init__(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            put(group, "lr", group["initial_lr"])
        rewind(self)
        schedulers[bisect_right(milestones, 0)]._start()  # whatever last_epoch, as in PyTorch
        self._note()

    def _active(self) -> LRScheduler:
        return self._schedulers[bisect_right(self._milestones, self.last_epoch)]

    def _start(self) -> None:
        self._step_count = 0
        self.step()

    def _restart(self) -> None:
        self.last_epoch = 0
        self._active()._restart()
        self._note()

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch."""
        if epoch is not None:
            raise TypeError(f"SequentialLR.step() goes to the next epoch only, got epoch {epoch}")
        self.last_epoch += 1
        active = self._active()
        if self.last_epoch in self._milestones:
            active._restart()
        else:
            active.step()
        self._note()


class ChainedScheduler(Combined):
    """Schedules that are stepped together; each multiplies what the ones before it have left.

    Args:
        schedulers: all of one optimizer.
        optimizer: that of the schedules, by default.

    Raises:
        ValueError: no schedules, a ``ReduceLROnPlateau``, or several optimizers.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        super().__init__(optimizer or schedulers[0].optimizer, schedulers)
        self._note()

    def _start(self) -> None:
        for scheduler in self._schedulers:
            scheduler._start()
        self._note()

    def _restart(self) -> None:
        for group in self.optimizer.param_groups:
            put(group, "lr", group["initial_lr"])
        for scheduler in self._schedulers:
            if isinstance(scheduler, Combined):
                scheduler._restart()
            else:
                scheduler.last_epoch = -1
                scheduler._start()
        self._note()

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch."""
        if epoch is not None:
            raise TypeError(f"ChainedScheduler.step() goes to the next epoch only, got epoch {epoch}")
        for scheduler in self._schedulers:
            scheduler.step()
        self._note()


def rewind(scheduler: LRScheduler) -> None:
    """Take back the step that schedules take at their creation."""
    if isinstance(scheduler, Combined):
        for part in scheduler._schedulers:
            rewind(part)
    else:
        scheduler.last_epoch -= 1
