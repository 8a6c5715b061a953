"""In what units a problem is solved: a size for each field, and for each condition the size of its terms.

A network's output and a residual should both be about 1, whatever units lengths and fields are in: a step that sees the
square of 1e-6 beside that of 1 sees only the second. Sizes are those of waves over the domain in place of the networks,
or, where time is cut into windows, over the window.
Source of the idea: Wang, Sankaran, Wang and Perdikaris (2023), arXiv 2308.08468.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.conditions import Interior
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.values import LAP

if TYPE_CHECKING:
    from leafgrad_pinn.problem import System, Tensors

SHORT = 1 / math.pi  # half waves whose derivatives by coordinates from 0 to 1 are about 1, which size fields
TERMS = 0.5, 0.65  # those that size terms; several, for an equation may be satisfied by one wave
LONG = 1.0, 0.5
STRAIGHT, SKEW = (1.0,), (1.35, 0.65, 0.9)  # of the waves along each coordinate
OBLIQUE = 0.3  # of the terms of oblique waves, what terms are at least: straight ones may satisfy an equation
FAR = 1e3  # how much larger one condition's terms may be than another's before it is told
PART = 0.1  # of the largest response of a condition: a field with less is not its own
ROUNDING = 1e-10  # of the least term: below, all terms cancel
BEYOND = 3  # derivatives of expressions
ROUNDS = 3  # in which the sizes of fields follow from each other


class Waves(nn.Module):
    """In place of a network: `wave` of a number for each output.

    Attributes:
        sizes: of each output.
        turns, skew: how many half waves they are.
    """

    def __init__(self, bounds: Array, count: int) -> None:
        super().__init__()
        self.bounds, self.sizes = bounds, [1.0] * count
        self.turns, self.skew = 1.0, STRAIGHT

    def forward(self, columns: Sequence[Tensor], *functions: Tensor) -> Tensor:
        return leafgrad.stack(
            [size * wave(columns, self.bounds, k, self.turns, self.skew) for k, size in enumerate(self.sizes)], 1
        )


def wave(
    columns: Sequence[Tensor], bounds: Array, number: int, turns: float = 1.0, skew: Sequence[float] = (1.0,)
) -> Tensor:
    """A plane wave of mean square 1 at points (n,) of each coordinate; by number another.

    Along each coordinate it is so many half waves, times the numbers of ``skew`` in turn.
    """
    phase: Any = 0.7 + number
    for k, (column, (low, high)) in enumerate(zip(columns, bounds, strict=True)):
        phase = phase + (column - low) * (turns * skew[k % len(skew)] * math.pi / (high - low))
    return math.sqrt(2) * leafgrad.cos(phase)


def scales_of(system: System, batches: Sequence[Tensors], declared: Mapping[str, float]) -> dict[str, float]:
    """The size of each field: that at which its terms are as large as the sources and values that are given.

    Args:
        system: of networks that are not needed any more.
        batches: for each condition some points.
        declared: sizes that are known.
    """
    waved(system)
    names = [name for surrogate in system.surrogates for name in surrogate.ansatz]
    sizes = dict.fromkeys(names, 1.0) | dict(declared)
    given = everything(system, batches, dict.fromkeys(names, 0.0))
    inside = equations_inside(system, batches, sizes)
    known = set(declared)
    for _ in range(ROUNDS + len(names) if known or any(map(norm, given)) else 0):
        before = set(known)  # what is added is that of their sizes
        added = {}
        for name in names:
            alone = everything(system, batches, dict.fromkeys(names, 0.0) | {name: sizes[name]})
            added[name] = [norm(terms - source) for terms, source in zip(alone, given, strict=True)]
        most = [max(each) for each in zip(*added.values(), strict=True)]
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
        found = {name: beside(name, added, before, inside) for name in lacking} if before else {}
        for name, share in found.items():
            if share > 0:
                sizes[name] *= share
                known.add(name)
    return {name: size if math.isfinite(size) and size > 0 else 1.0 for name, size in sizes.items()}


def waved(system: System) -> None:
    """Put waves in place of its networks."""
    for surrogate in system.surrogates:
        surrogate.net = Waves(surrogate.bounds, len(surrogate.ansatz))


def beside(name: str, added: Mapping[str, Sequence[float]], known: set[str], inside: Sequence[bool]) -> float:
    """The factor at which a field that nothing is given of is as large as known ones beside it; 0 if it is nowhere.

    In no equation inside it is larger, or, if it is in none of these, in no other: a small term beside it on an edge,
    as friction at an outlet beside a pressure, says little of it.
    """
    others = [max(column) for column in zip(*(added[other] for other in sorted(known)), strict=True)]
    found: dict[bool, list[float]] = {True: [], False: []}
    for other, size, within in zip(others, added[name], inside, strict=True):
        if min(other, size) > 0 and other / size < math.inf:
            found[within].append(other / size)
    return min(found[True] or found[False], default=0.0)


def equations_inside(system: System, batches: Sequence[Tensors], sizes: Mapping[str, float]) -> list[bool]:
    """For each equation of `everything` whether it holds inside."""
    found = []
    for index, batch in enumerate(batches):
        if not system.conditions[index].minimised:
            few = {key: t[:1] for key, t in batch.items()}
            found += [isinstance(system.conditions[index], Interior)] * residuals(system, index, few, sizes).shape[1]
    return found


def sizes_of(system: System, batches: Sequence[Tensors], scales: Mapping[str, float]) -> list[list[float]]:
    """For each equation of each condition the size of its terms, of fields of these sizes.

    The fields are waves whose derivatives are all of about one size where the domain is: a size is that of the largest
    coefficient in such units, and equations of high order keep there what weight they have. It is a continuous function
    of all units, so that problems in metres and in millimetres take the same steps. The system's networks are not
    needed any more.
    """
    waved(system)
    found = []
    for index, batch in enumerate(batches):
        source = residuals(system, index, batch, dict.fromkeys(scales, 0.0))
        long, short = (terms_of(system, index, batch, scales, several) for several in (LONG, TERMS))
        limit = ROUNDING * least(system, index, scales)
        sizes = [max(norm(source[:, k]), long[k]) for k in range(source.shape[1])]
        found.append([
            1.0 if system.conditions[index].minimised or not (math.isfinite(size) and size > limit)
            else term if term > ROUNDING * size else size
            for term, size in zip(short, sizes, strict=True)
        ])  # fmt: skip
    return found


def terms_of(
    system: System, index: int, batch: Tensors, scales: Mapping[str, float], several: Sequence[float]
) -> list[float]:
    """For each equation of a condition what fields of these sizes add to it, as waves of several lengths."""
    source, found = residuals(system, index, batch, dict.fromkeys(scales, 0.0)), []
    for skew in (STRAIGHT, SKEW):
        moved = [residuals(system, index, batch, scales, turns, skew) - source for turns in several]
        found.append([norm(column) for column in np.concatenate(moved).T])
    return [max(straight, OBLIQUE * oblique) for straight, oblique in zip(*found, strict=True)]


def apart(names: Sequence[str], sizes: Sequence[Sequence[float]]) -> str:
    """That the terms of some condition are far larger than those of another, in words; "" if none are."""
    sized = {name: max(each) for name, each in zip(names, sizes, strict=True)}
    small, large = min(sized, key=sized.__getitem__), max(sized, key=sized.__getitem__)
    if sized[large] <= FAR * sized[small]:
        return ""
    return (
        f"scales differ: the terms of {large} are about {sized[large]:.0e}, those of {small} {sized[small]:.0e}; "
        "each residual counts beside its own terms"
    )


def least(system: System, index: int, scales: Mapping[str, float]) -> float:
    """The smallest derivative of waves that a condition asks for: what is left of terms that cancel is less.

    Where expressions are differentiated, it is not known how often: at most ``BEYOND`` times.
    """
    lengths = {c: float(high - low) for c, (low, high) in zip(system.domain.names, system.domain.bounds, strict=True)}
    found = [
        scales[field] * math.prod(math.pi / lengths[c] for c in path if c in lengths)
        for field, asked in system.plans[index].asked
        for path in ([(c, c) for c in system.domain.space] if asked == LAP else [asked])
        if field in scales
    ]
    more = (
        min([1.0, *(math.pi / length for length in lengths.values())]) ** BEYOND if system.plans[index].beyond else 1.0
    )
    return more * min([*found, *scales.values()])


def residuals(
    system: System,
    index: int,
    batch: Tensors,
    sizes: Mapping[str, float],
    turns: float = SHORT,
    skew: Sequence[float] = STRAIGHT,
) -> Array:
    """The residuals of a condition (n, k), of waves of these sizes and so many half waves."""
    for surrogate in system.surrogates:
        surrogate.net.turns, surrogate.net.skew = turns, skew
        surrogate.net.sizes = [sizes[n] / scale for n, scale in zip(surrogate.ansatz, surrogate.scales, strict=True)]
    with np.errstate(all="ignore"):
        return system.residuals(index, batch)[0].detach().numpy()


def everything(system: System, batches: Sequence[Tensors], sizes: Mapping[str, float]) -> list[Array]:
    """The residuals of all equations, one after the other (n,); what is to be least is none."""
    wanted = [(k, batch) for k, batch in enumerate(batches) if not system.conditions[k].minimised]
    return [column for index, batch in wanted for column in residuals(system, index, batch, sizes).T]


def norm(values: Array) -> float:
    """The root of the mean square."""
    return float(np.sqrt(np.square(values).mean()))
