"""In what units a problem is solved: a size for each field, and for each condition the size of its terms.

A network's output and a residual should both be about 1, whatever units lengths and fields are in: a step that sees the
square of 1e-6 beside that of 1 sees only the second. Sizes are those of waves over the domain in place of the networks.
Source of the idea: Wang, Sankaran, Wang and Perdikaris (2023), arXiv 2308.08468.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.sampling import Array

if TYPE_CHECKING:
    from leafgrad_pinn.problem import System, Tensors

USUAL = 0.02, 20.0  # fields of such sizes stay in their units
TERMS = 0.1, 1e3  # the same for terms, of which those with derivatives of high order are large
PART = 0.1  # of the largest response of a condition: a field with less is not its own
ROUNDING = 1e-10  # of the least term: below, all terms cancel
ROUNDS = 3  # in which the sizes of fields follow from each other


class Waves(nn.Module):
    """In place of a network: `wave` of a number for each output.

    Attributes:
        sizes: of each output.
        turns: how many half waves they are.
    """

    def __init__(self, bounds: Array, count: int) -> None:
        super().__init__()
        self.bounds, self.sizes, self.turns = bounds, [1.0] * count, 1.0

    def forward(self, columns: Sequence[Tensor]) -> Tensor:
        return leafgrad.stack(
            [size * wave(columns, self.bounds, k, self.turns) for k, size in enumerate(self.sizes)], 1
        )


def wave(columns: Sequence[Tensor], bounds: Array, number: int, turns: float = 1.0) -> Tensor:
    """A plane wave of mean square 1 at points (n,) of each coordinate; by number another.

    Along each coordinate it is so many half waves.
    """
    phase: Any = 0.7 + number
    for column, (low, high) in zip(columns, bounds, strict=True):
        phase = phase + (column - low) * (turns * math.pi / (high - low))
    return math.sqrt(2) * leafgrad.cos(phase)


def scales_of(system: System, batches: Sequence[Tensors], declared: Mapping[str, float]) -> dict[str, float]:
    """The size of each field: that at which its terms are as large as the sources and values that are given.

    Args:
        system: of networks that are not needed any more.
        batches: for each condition some points.
        declared: sizes that are known.
    """
    for surrogate in system.surrogates:
        surrogate.net = Waves(surrogate.bounds, len(surrogate.ansatz))
    names = [name for surrogate in system.surrogates for name in surrogate.ansatz]
    sizes = dict.fromkeys(names, 1.0) | dict(declared)
    given = [residuals(system, index, batch, dict.fromkeys(names, 0.0)) for index, batch in enumerate(batches)]
    known = set(declared)
    for _ in range(ROUNDS + len(names) if known or any(map(norm, given)) else 0):
        before = set(known)  # what is added is that of their sizes
        alone = {name: dict.fromkeys(names, 0.0) | {name: sizes[name]} for name in names}
        added = {
            name: [norm(residuals(system, i, batch, alone[name]) - given[i]) for i, batch in enumerate(batches)]
            for name in names
        }
        most = [max(added[name][i] for name in names) for i in range(len(batches))]
        for name in sorted(set(names) - set(declared)):
            shares = [
                norm(given[i]) / size
                for i, size in enumerate(added[name])
                if math.isfinite(size) and size > PART * most[i]
            ]
            if max(shares, default=0.0) > 0:
                sizes[name] *= max(shares)
                known.add(name)
        lacking = [name for name in names if name not in known]
        found = {name: beside(name, added, before) for name in lacking} if before else {}
        for name, share in found.items():
            if share > 0:
                sizes[name] *= share
                known.add(name)
    return {name: size if name in declared else rounded(size) for name, size in sizes.items()}


def beside(name: str, added: Mapping[str, Sequence[float]], known: set[str]) -> float:
    """The factor at which a field that nothing is given of is as large as known ones beside it; 0 if it is nowhere.

    In no condition it is larger.
    """
    others = [max(column) for column in zip(*(added[other] for other in sorted(known)), strict=True)]
    shares = [other / size for other, size in zip(others, added[name], strict=True) if min(other, size) > 0]
    return min((share for share in shares if 0 < share < math.inf), default=0.0)


def sizes_of(system: System, batches: Sequence[Tensors], scales: Mapping[str, float]) -> list[list[float]]:
    """For each equation of each condition the size of its terms, of fields of these sizes; 1 where all are usual.

    The fields are waves whose derivatives are all about 1 where the domain is: a size is that of the largest
    coefficient in such units, and equations of high order keep there what weight they have. It is a power of ten, so
    that problems in metres and in millimetres take the same steps. Call it after `scales_of`, with the same system.
    """
    usual, found = True, []
    for index, batch in enumerate(batches):
        source = residuals(system, index, batch, dict.fromkeys(scales, 0.0))
        long, short = (
            np.concatenate([residuals(system, index, batch, scales, turns) - source for turns in several])
            for several in ((1.0, 0.5), (1 / math.pi, 1.3 / math.pi))  # several: one wave may solve it
        )
        limit = ROUNDING * least(system, index, scales)
        sizes = [max(norm(source[:, k]), norm(long[:, k])) for k in range(source.shape[1])]
        sure = [math.isfinite(size) and size > limit for size in sizes]
        terms = [norm(column) for column in short.T]
        usual &= all(TERMS[0] <= size <= TERMS[1] for size, known in zip(sizes, sure, strict=True) if known)
        found.append(
            [
                power(term if term > ROUNDING * size else size) if known else 1.0
                for term, size, known in zip(terms, sizes, sure, strict=True)
            ]
        )
    return [[1.0] * len(sizes) for sizes in found] if usual else found


def least(system: System, index: int, scales: Mapping[str, float]) -> float:
    """The smallest derivative of waves that a condition asks for: what is left of terms that cancel is less."""
    lengths = {c: float(high - low) for c, (low, high) in zip(system.domain.names, system.domain.bounds, strict=True)}
    found = [
        scales[field] * math.prod(math.pi / lengths[c] for c in path if c in lengths)
        for field, path in system.plans[index].asked
        if field in scales
    ]
    return min([*found, *scales.values()])


def rounded(size: float) -> float:
    """A power of ten, or 1 for what is usual."""
    if not (math.isfinite(size) and size > 0) or USUAL[0] <= size <= USUAL[1]:
        return 1.0
    return power(size)


def power(size: float) -> float:
    """The nearest power of ten."""
    return float(10.0 ** round(math.log10(size)))


def residuals(system: System, index: int, batch: Tensors, sizes: Mapping[str, float], turns: float = 1.0) -> Array:
    """The residuals of a condition (n, k), of waves of these sizes and so many half waves."""
    for surrogate in system.surrogates:
        surrogate.net.turns, surrogate.net.sizes = turns, [sizes[name] for name in surrogate.ansatz]
    with np.errstate(all="ignore"):
        return system(index, batch).detach().numpy()


def norm(values: Array) -> float:
    """The root of the mean square."""
    return float(np.sqrt(np.square(values).mean()))
