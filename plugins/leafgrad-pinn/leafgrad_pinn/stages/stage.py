"""Stages of a training: how, and how long. Each is run by a worker, which has the state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from leafgrad import Tensor
from leafgrad_pinn.callables import check_number, scalar
from leafgrad_pinn.points import Redraw
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.weights.scheme import Scheme, reweigh, schemes


@dataclass(frozen=True)
class Stage(ABC):
    """A part of a training.

    Args:
        steps: how many at most.
        weights: a scheme such as ``Causal()``, or several in a tuple, whose factors multiply; None for the weights
            that the stage before has left, which new points end.
        points: ``Fresh(...)``, ``RAD(...)`` or ``R3(...)`` for new points at the start and now and then.

    Attributes:
        gradients: how many of the loss take as long as one step does.
    """

    gradients = 1

    steps: int
    weights: Scheme | Sequence[Scheme] | None = field(default=None, kw_only=True)
    points: Redraw | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        what = type(self).__name__
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise ValueError(f"{what}: steps: expected a whole number, at least 1, got {self.steps!r}")
        schemes(self.weights, what)
        if self.points is not None and not isinstance(self.points, Redraw):
            raise TypeError(f"{what}: points: expected Fresh(), RAD() or R3(), got {self.points!r}")

    def positive(self, *names: str) -> None:
        """TypeError or ValueError unless these are numbers above 0."""
        for name in names:
            value = scalar(getattr(self, name))
            check_number(f"{type(self).__name__}: {name}", value)
            if not value > 0:
                raise ValueError(f"{type(self).__name__}: {name}: expected more than 0, got {value}")

    @abstractmethod
    def start(self, trainee: Trainee, number: int) -> Worker:
        """A worker, for the stage of that number in the training."""


class Worker(ABC):
    """Runs a stage, some steps at a time.

    Attributes:
        done: how many steps are done.
        calls: how often ``advance`` was called.
        look: calls between two checkpoints and looks at the error.
        hold: steps for which weights stay as they are.
        reason: why it stopped, in words; None while it goes on.
        method: what it has chosen, in words, for the log.
    """

    done = 0
    calls = 0
    look = 10
    hold = 1
    reason: str | None = None
    method = ""

    def __init__(self, stage: Stage, trainee: Trainee, number: int) -> None:
        self.trainee, self.number = trainee, number
        self.limit, self.points = stage.steps, stage.points
        self.schemes = schemes(stage.weights, type(stage).__name__)
        self.drawn = self.weighed = -1  # the steps at which points and weights were last renewed
        for scheme in self.schemes:
            scheme.check(trainee)

    @abstractmethod
    def advance(self) -> list[float]:
        """Do some steps; returns the terms of the loss, at the first or after the last of them."""

    def prepare(self) -> bool:
        """New points and weights if it is time, before a step; returns whether there are any."""
        trainee = self.trainee
        first = self.drawn < 0
        draw = self.points is not None and (first or self.done - self.drawn >= self.points.every)
        if draw and self.points is not None:
            self.points.renew(trainee, self.number, self.done)
        if draw or first:
            self.drawn = self.done
        weigh = bool(self.schemes) and (draw or self.weighed < 0)
        if weigh:
            _, squares = trainee.objective.terms(trainee.flat, trainee.batches, trainee.weights)
            reweigh(self.schemes, trainee, squares)
            self.weighed = self.done
        return draw or weigh

    def follow(self, squares: Sequence[Tensor]) -> bool:
        """New weights if it is time, after a step that found these squared residuals; returns whether there are any."""
        if not self.schemes or self.done - self.weighed < self.hold:
            return False
        reweigh(self.schemes, self.trainee, squares)
        self.weighed = self.done
        return True

    def finish(self, what: str = "steps") -> None:
        """Stop if all steps are done."""
        if self.done >= self.limit:
            self.reason = f"all {self.limit} {what} are done"

    def state_dict(self) -> dict[str, Any]:
        """What a worker that goes on from here needs, besides the trainee."""
        return {name: getattr(self, name) for name in ("done", "calls", "reason", "drawn", "weighed")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        for name in ("done", "calls", "reason", "drawn", "weighed"):
            setattr(self, name, state[name])


def numbers(terms: Tensor) -> list[float]:
    """Terms as Python numbers."""
    return [float(term) for term in terms.tolist()]
