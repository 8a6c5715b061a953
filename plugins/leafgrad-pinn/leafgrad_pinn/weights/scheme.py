"""What schemes of weights have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from leafgrad import Tensor
from leafgrad_pinn.trainee import Trainee


class Scheme(ABC):
    """A rule for the weights of points. Several in a tuple multiply.

    What a scheme keeps lies in the trainee: numbers in ``notes``, numbers for each point in ``multipliers``.
    """

    timed = False  # whether the domain must have time

    def check(self, trainee: Trainee) -> None:
        """ValueError if the rule does not fit the problem."""
        if self.timed and trainee.problem.domain.time is None:
            raise ValueError(f"{self.name}: the domain has no time")

    @abstractmethod
    def factors(self, trainee: Trainee, squares: Sequence[Tensor]) -> list[Any]:
        """For each condition a factor of its points' weights, (n,) or a number, from their squared residuals (n,)."""

    @property
    def name(self) -> str:
        """Under which the trainee keeps what the scheme wants to know again."""
        return type(self).__name__


def schemes(weights: Scheme | Sequence[Scheme] | None, what: str) -> tuple[Scheme, ...]:
    """One, several or no schemes as a tuple; TypeError for something else, ValueError for two of a kind."""
    found = () if weights is None else (weights,) if isinstance(weights, Scheme) else weights
    if not isinstance(found, (tuple, list)) or not all(isinstance(scheme, Scheme) for scheme in found):
        raise TypeError(f"{what}: weights: expected a scheme such as Causal(), or several in a tuple, got {weights!r}")
    if len({scheme.name for scheme in found}) < len(found):
        raise ValueError(f"{what}: weights: expected each scheme once, got {', '.join(s.name for s in found)}")
    return tuple(found)


def reweigh(found: Sequence[Scheme], trainee: Trainee, squares: Sequence[Tensor]) -> None:
    """Set the trainee's weights to the product of all schemes' factors."""
    weights = trainee.ones()
    for scheme in found:
        weights = [weight * factor for weight, factor in zip(weights, scheme.factors(trainee, squares), strict=True)]
    trainee.weights = weights
