"""Waves in place of a problem's networks, and what its conditions say of them: in several sizes and forms at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.conditions import Interior
from leafgrad_pinn.sampling import Array

if TYPE_CHECKING:
    from leafgrad_pinn.field import Field
    from leafgrad_pinn.system import System, Tensors

SHORT = 1 / math.pi  # half waves whose derivatives by coordinates from 0 to 1 are about 1, which size fields
STRAIGHT, SKEW = (1.0,), (1.35, 0.65, 0.9)  # of the waves along each coordinate
NUMBERS = 2**14  # of points that are looked at at once


class Look(NamedTuple):
    """What stands in place of the networks.

    Attributes:
        sizes: of the wave of each field, by name.
        turns: how many half waves they are.
        crossed: whether they are crossed.
        means: what they are about, by name; 0 for others.
    """

    sizes: Mapping[str, float]
    turns: float = SHORT
    crossed: bool = False
    means: Mapping[str, float] = {}


class Waves(nn.Module):
    """In place of a network: `wave` of a number for each output, or `crossed` ones, in several sizes at once.

    Args:
        bounds: of the coordinates.
        scales: what each output is multiplied by, by field.
        first: the number of the first output among those of all networks.

    Attributes:
        looks: what they are: of as many equal parts of the points, one after the other, each in turn.
    """

    def __init__(self, bounds: Array, scales: Mapping[str, float], first: int) -> None:
        super().__init__()
        self.bounds, self.scales, self.first = bounds, scales, first
        self.looks: Sequence[Look] = ()

    def forward(self, columns: Sequence[Tensor], *functions: Tensor) -> Tensor:
        def spread(numbers: Iterable[float]) -> Tensor:
            return leafgrad.tensor(np.repeat(list(numbers), len(columns[0]) // len(self.looks)))

        turns, found = spread(look.turns for look in self.looks), []
        oblique = spread(look.crossed for look in self.looks)
        for number, (name, scale) in enumerate(self.scales.items(), self.first):
            form = wave(columns, self.bounds, number, turns)
            if any(look.crossed for look in self.looks):
                form = leafgrad.where(oblique, crossed(columns, self.bounds, number, turns), form)
            waves = spread(look.sizes[name] / scale for look in self.looks) * form
            means = [look.means.get(name, 0.0) / scale for look in self.looks]
            found.append(waves + spread(means) if any(means) else waves)
        return leafgrad.stack(found, 1)


def wave(
    columns: Sequence[Tensor], bounds: Array, number: int, turns: Tensor | float = 1.0, skew: Sequence[float] = STRAIGHT
) -> Tensor:
    """A plane wave of mean square 1 at points (n,) of each coordinate; by number another.

    Along each coordinate it is so many half waves, times the numbers of ``skew`` in turn.
    """
    phase: Any = 0.7 + number
    for k, (column, (low, high)) in enumerate(zip(columns, bounds, strict=True)):
        phase = phase + (column - low) * (turns * skew[k % len(skew)] * math.pi / (high - low))
    return math.sqrt(2) * leafgrad.cos(phase)


def waves_of(fields: Sequence[Field], size: float, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A whole wave in place of each field, so many times as large as the field, at points by coordinate."""
    found = {}
    for k, field in enumerate(fields):
        own = [columns[name] for name in field.domain.names]
        found[field.name] = size * (field.scale or 1.0) * wave(own, field.domain.bounds, k, 2.0)
    return found


def crossed(columns: Sequence[Tensor], bounds: Array, number: int, turns: Tensor | float = 1.0) -> Tensor:
    """Oblique waves in as many directions as there are coordinates, three at most, of mean square 1 together.

    A single one has no determinant of second derivatives, and may be the very wave that an equation describes.
    """
    skews = [SKEW[k:] + SKEW[:k] for k in range(min(len(columns), len(SKEW)))]
    waves = [wave(columns, bounds, number, turns, skew) for skew in skews]
    return leafgrad.stack(waves).sum(0) / math.sqrt(len(waves))


def waved(system: System) -> None:
    """Put waves in place of its networks, of each field another."""
    first = 0
    for surrogate in system.surrogates:
        scales = dict(zip(surrogate.ansatz, surrogate.scales, strict=True))
        surrogate.net = Waves(surrogate.bounds, scales, first)
        first += len(scales)


def residuals(system: System, index: int, batch: Tensors, looks: Sequence[Look]) -> list[Array]:
    """The residuals of a condition (n, k) for each look."""
    return at_once(system, batch, looks, lambda every: system.residuals(index, every)[0])


def at_once(
    system: System, batch: Tensors, looks: Sequence[Any], residuals: Callable[[Tensors], Tensor]
) -> list[Array]:
    """Residuals (n, k) of a batch for each of several looks at what stands in place of the networks.

    Each point counts alone, so that a run of few operations tells of all.
    """
    found: list[Array] = []
    most = max(1, NUMBERS // max(values.numel() for values in batch.values()))
    for begin in range(0, len(looks), most):
        some = looks[begin : begin + most]
        for surrogate in system.surrogates:
            surrogate.net.looks = some
        with np.errstate(all="ignore"):
            every = residuals({key: leafgrad.cat([values] * len(some)) for key, values in batch.items()})
        found += np.split(every.detach().numpy(), len(some))
    return found


class Everything(NamedTuple):
    """The residuals of all equations (n,), which of these hold inside, and the sum of all energies."""

    equations: list[Array]
    inside: list[bool]
    energy: float

    @property
    def every(self) -> list[Array]:
        """The residuals, and at last the energy."""
        return [*self.equations, np.array(self.energy)]


def everything(system: System, batches: Sequence[Tensors], looks: Sequence[Look]) -> list[Everything]:
    """All that conditions say of waves, for each look."""
    equations: list[list[Array]] = [[] for _ in looks]
    energies, inside = [0.0] * len(looks), []
    for index, (condition, batch) in enumerate(zip(system.conditions, batches, strict=True)):
        found = residuals(system, index, batch, looks)
        if condition.minimised:  # a quotient of no field is none
            energies = [
                energy + float(np.nan_to_num(values).mean()) for energy, values in zip(energies, found, strict=True)
            ]
            continue
        inside += [isinstance(condition, Interior)] * found[0].shape[1]
        equations = [[*rows, *values.T] for rows, values in zip(equations, found, strict=True)]
    return [Everything(rows, inside, energy) for rows, energy in zip(equations, energies, strict=True)]
