"""In what units a problem is solved: a size for each field, and for each condition the size of its terms.

A network's output and a residual should both be about 1, whatever units lengths and fields are in: a step that sees the
square of 1e-6 beside that of 1 sees only the second. Sizes are those of waves over the domain in place of the networks,
or, where time is cut into windows, over the window.
Source of the idea: Wang, Sankaran, Wang and Perdikaris (2023), arXiv 2308.08468.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from leafgrad_pinn.sampling import Array
from leafgrad_pinn.starts import means_of
from leafgrad_pinn.values import LAP
from leafgrad_pinn.waves import Everything, Look, everything, residuals, waved

if TYPE_CHECKING:
    from leafgrad_pinn.system import System, Tensors

TERMS = 0.5, 0.65  # those that size terms; several, for an equation may be satisfied by one wave
LONG = 1.0, 0.5
WAVES = (False, 1.0), (True, 0.3)  # whether crossed, and what their terms count: a single wave may satisfy an equation
SMALLER = 0.1, 1e-2, 1e-3, 1e-4  # of fields' sizes: waves where an equation has no numbers for those of full size
MILD = 0.1  # by how much terms of these change at most
FAR = 1e3  # how much larger one condition's terms may be than another's before it is told
PART = 0.1  # of the largest response of a condition: a field with less is not its own
ROUNDING = 1e-10  # of the least term: a source below is none
NOISE = 1e-13  # of exact values: a size below is that of their rounding
BEYOND = 3  # derivatives of expressions
ROUNDS = 12  # in which the sizes of fields follow from each other
SETTLED = 1e-9  # a change of sizes below which there is no other round
STEP = 1.01  # a change of a size by which it is seen how terms grow with it
GROWS = 1e-3, 0.5  # by how much terms then change: by less near a function's bounds, by more where that is like noise
DOUBLED = 1.25  # times as large at least they are for a field of twice the size that a search begins with
INDEPENDENT = 1e-4  # of the largest singular value: what slopes of terms tell of sizes
BEGIN = 1e30, 1e25, 1e20, 1e15, 1e10, 1e5, 1.0, 0.1, 1e-2, 1e-5, 1e-10, 1e-15  # sizes to begin with


@np.errstate(all="ignore")  # equations may have no numbers for some waves
def scales_of(system: System, batches: Sequence[Tensors], declared: Mapping[str, float]) -> dict[str, float]:
    """The size of each field: that at which its terms are as large as the sources and values that are given.

    Args:
        system: of networks that are not needed any more.
        batches: for each condition some points.
        declared: sizes that are known.
    """
    waved(system)
    names = [name for surrogate in system.surrogates for name in surrogate.ansatz]
    sizes, known = dict.fromkeys(names, 1.0) | dict(declared), dict.fromkeys(declared, 0)
    free = sorted(set(names) - set(declared))
    if not free:
        return sizes
    sizes |= beginnings(system, batches, names, free)
    exact = exact_values(system, batches)
    held = {name: variation(values) for name, values in exact.items() if values.any()}
    for turn in range(1, ROUNDS + len(names)):
        added, inside = terms_alone(system, batches, sizes)
        most = [max(term.size for term in terms) for terms in zip(*added.values(), strict=True)]
        factors = dict.fromkeys(free, 0.0)
        for name in free:
            own = [term for term, large in zip(added[name], most, strict=True) if term.size > PART * large]
            factors[name] = max((term.factor(term.given) for term in own), default=0.0)
            if 0 < sizes[name] * factors[name] <= NOISE * norm(exact[name]):
                factors[name] = 0.0
                known.pop(name, None)
        for name in free:
            before = [other for other, since in known.items() if since < known.get(name, turn)]
            if not factors[name] and before:
                factors[name] = beside(added[name], [added[other] for other in before], inside)
        found = {name: factor for name, factor in factors.items() if factor > 0}
        sizes |= {name: sizes[name] * factor for name, factor in found.items()}
        if all(name in known and abs(factor - 1) < SETTLED for name, factor in found.items()):
            found = {name: size for name, size in held.items() if name not in known}
            if not found:
                break
            sizes |= found
            free = [name for name in free if name not in found]
        known = dict.fromkeys(found, turn) | known
    sized = held | {name: sizes[name] for name in known if 0 < sizes[name] < math.inf}
    rest = [name for name in names if name not in sized]
    return dict.fromkeys(names, 1.0) | sized | (together(system, batches, sized, rest) if rest else {})


def exact_values(system: System, batches: Sequence[Tensors]) -> dict[str, Array]:
    """What each field is without its network, at the points of all conditions: values of ``Hard(...)``, or zero."""
    found: dict[str, Array] = {}
    for surrogate in system.surrogates:
        surrogate.net.looks = [Look(dict.fromkeys(surrogate.ansatz, 0.0))]
        each = [surrogate.values(system.points(batch).columns) for batch in batches]
        for name in surrogate.ansatz:
            values = np.concatenate([fields[name].detach().numpy() for fields in each])
            found[name] = np.where(np.isfinite(values), values, 0.0)
    return found


def variation(values: Array) -> float:
    """How far they are from their mean; of a constant, its size."""
    found = float(np.std(values))
    return found if found > ROUNDING * norm(values) else norm(values)


def together(
    system: System, batches: Sequence[Tensors], sized: Mapping[str, float], names: Sequence[str]
) -> dict[str, float]:
    """Sizes of fields that nothing sizes one by one, as factors of a product: those at which each equation balances.

    Terms are powers of sizes, so that these follow from linear equations of their logarithms.
    """

    def balances(*logs: Array) -> list[Array]:
        found = terms_beside(system, batches, sized, names, np.exp(logs))
        return [np.concatenate([np.zeros(0), *map(balance, terms)]) for terms in found]

    first = largest(balances(*[np.full(len(names), math.log(size)) for size in BEGIN]))
    logs = np.full(len(names), math.log(first))
    slopes = np.zeros((0, len(names)))
    for _ in range(ROUNDS):
        here, *there = balances(logs, *(logs + math.log(STEP) * np.eye(len(names))))
        slopes = np.stack([balanced - here for balanced in there], 1) / math.log(STEP)
        seen = np.isfinite(here) & np.isfinite(slopes).all(1)
        slopes = slopes[seen]
        change = -np.linalg.lstsq(slopes, here[seen], rcond=INDEPENDENT)[0]
        logs = logs + change
        if np.abs(change).max() < SETTLED:
            break
    logs = np.linalg.lstsq(slopes, slopes @ logs, rcond=INDEPENDENT)[0]  # what nothing says is 1
    return dict(zip(names, np.exp(logs).tolist(), strict=True))


def largest(terms: Sequence[Any]) -> float:
    """At which size to begin, by the terms at each: where no source drowns a field, and its highest power counts.

    Of several at which as many terms are seen that is the largest.
    """
    seen = [np.count_nonzero(np.isfinite(found) & (np.array(found) != 0)) for found in terms]
    return BEGIN[seen.index(max(seen))] if any(seen) else 1.0


def beginnings(
    system: System, batches: Sequence[Tensors], names: Sequence[str], free: Sequence[str]
) -> dict[str, float]:
    """The sizes with which these fields begin, by what each adds alone where some of that grows with it."""
    nothing, found = dict.fromkeys(names, 0.0), {}
    some = [Look(nothing | {name: factor * size}) for name in free for size in BEGIN for factor in (1, STEP, 2, -1)]
    given, *alone = everything(system, batches, [Look(nothing), *some])
    rest = iter(alone)
    for name in free:
        terms = []
        for one, *more, less in zip(*[islice(rest, 4 * len(BEGIN))] * 4, strict=True):
            rows = zip(given.every, one.every, *(look.every for look in more), strict=True)
            added = [[look - source for look in looks] for source, *looks in rows]
            grows = any(size_of(here, there) and norm(twice) > DOUBLED * norm(here) for here, there, twice in added)
            terms.append([*(norm(here) * grows for here, *_ in added[:-1]), odd_part(one, less) * grows])
        found[name] = largest(terms)
    return found


def terms_beside(
    system: System, batches: Sequence[Tensors], sized: Mapping[str, float], names: Sequence[str], sizes: Array
) -> Array:
    """For each equation what is there of sized fields and sources, what others add to it, what each of these adds
    alone, and what several of them add together: sizes (k, names) -> (k, equations, 3 + names)"""
    nothing, count = {**sized, **dict.fromkeys(names, 0.0)}, 1 + len(names)
    several = [dict(zip(names, row, strict=True)) for row in sizes.tolist()]
    some = [part for row in several for part in (row, *({name: size} for name, size in row.items()))]
    looks = [
        Look(nothing | {name: factor * size for name, size in part.items()}, crossed=crosses)
        for crosses, _ in WAVES
        for factor, parts in ((0, [{}]), (1, some), (STEP, some))
        for part in parts
    ]
    rest, found = iter(everything(system, batches, looks)), []
    for _, share in WAVES:
        rows = []
        for source, *each in zip(*[look.equations for look in islice(rest, 1 + 2 * len(some))], strict=True):
            steps = [added(source, each[begin : begin + count]) for begin in range(0, len(each), count)]
            pairs = zip(steps[: len(several)], steps[len(several) :], strict=True)
            rows.append([[norm(source), *(share * grown(source, here, there))] for here, there in pairs])
        found.append(rows)
    return np.reshape(found, (len(WAVES), -1, len(sizes), 2 + count)).max(0).swapaxes(0, 1)


def grown(source: Array, here: Sequence[Array], there: Sequence[Array]) -> Array:
    """The sizes of terms, beside those of fields STEP times as large; 0 for what is rounding of the source, or, in the
    last one, of the others."""
    limits = [norm(source)] * (len(here) - 1) + [max(norm(source), *map(norm, here))]
    sizes = np.array([size_of(*parts) for parts in zip(here, there, strict=True)])
    return sizes * (sizes > ROUNDING * np.array(limits))


def added(source: Array, each: Sequence[Array]) -> list[Array]:
    """What several fields add to an equation, what each of these adds alone, and what they add beyond that."""
    parts = [one - source for one in each]
    return [*parts, parts[0] - sum(parts[1:])]


def balance(terms: Array) -> Array:
    """Logarithms that are zero where an equation's terms are of one size, nan for those that it does not have."""
    with np.errstate(all="ignore"):
        logs = np.log(np.where(terms > 0, terms, np.nan))
    source, whole, *parts = logs
    if terms[0] > 0:
        return np.array([whole - source, *[math.nan for _ in parts]])
    first = next((part for part in parts if np.isfinite(part)), math.nan)
    return np.array([math.nan, *[part - first for part in parts]])


@dataclass(frozen=True)
class Term:
    """What a field adds to an equation, beside what is given there.

    Attributes:
        size: of what it adds.
        power: of the field's size that this grows with, 1 in linear equations.
        given: what is there without any field.
    """

    size: float
    power: float
    given: float

    def factor(self, other: float) -> float:
        """That of the field's size at which it adds something else; 0 if there is none."""
        ratio = other / self.size if self.size > 0 else 0.0
        return ratio ** (1 / self.power) if 0 < ratio < math.inf and self.power > 0 else 0.0


def terms_alone(
    system: System, batches: Sequence[Tensors], sizes: Mapping[str, float]
) -> tuple[dict[str, list[Term]], list[bool]]:
    """What each field of its size adds to each equation where all others are zero, and to the energy; and which of
    these hold inside.

    An energy is least where what is even in a field is as large as what is odd.
    """
    nothing, found = dict.fromkeys(sizes, 0.0), {}
    some = [
        Look(nothing | {name: factor * size}, crossed=crosses)
        for name, size in sizes.items()
        for crosses, _ in WAVES
        for factor in (1, STEP, -1)
    ]
    given, *alone = everything(system, batches, [Look(nothing), *some])
    rest = iter(alone)
    for name in sizes:
        each = []
        for _, share in WAVES:
            one, more, less = islice(rest, 3)
            rows = zip(given.equations, one.equations, more.equations, strict=True)
            terms = [
                Term(
                    share * size_of(here - source, there - source),
                    power_of(here - source, there - source),
                    norm(source),
                )
                for source, here, there in rows
            ]
            odd = odd_part(one, less)
            even, larger = np.array([[one.energy - odd], [more.energy - STEP * odd]]) - given.energy
            each.append([*terms, Term(share * norm(even), power_of(even, larger) - 1, abs(odd))])
        found[name] = [max(terms, key=lambda term: term.size) for terms in zip(*each, strict=True)]
    return found, [*given.inside, True]


def size_of(here: Array, there: Array, most: float = GROWS[1]) -> float:
    """That of terms, beside those of fields STEP times as large: what does not grow with fields is left by rounding."""
    found, change = norm(here), norm(there - here)
    return found if GROWS[0] * found < change < most * found else 0.0


def odd_part(one: Everything, less: Everything) -> float:
    """What of an energy changes its sign with a field; 0 for what is rounding of the rest."""
    found = (one.energy - less.energy) / 2
    return found if abs(found) > ROUNDING * max(abs(one.energy), abs(less.energy)) else 0.0


def power_of(here: Array, there: Array) -> float:
    """The power of a field's size that terms grow with, of these and of those for a field STEP times as large."""
    ratio = norm(there) / norm(here) if here.any() else 0.0
    return math.log(ratio) / math.log(STEP) if 0 < ratio < math.inf else 0.0


def beside(own: Sequence[Term], known: Sequence[Sequence[Term]], inside: Sequence[bool]) -> float:
    """The factor at which a field that nothing is given of is as large as known ones beside it; 0 if it is nowhere.

    In no equation inside it is larger, or, if it is in none of these, in no other: a small term beside it on an edge,
    as friction at an outlet beside a pressure, says little of it.
    """
    others = [max(term.size for term in terms) for terms in zip(*known, strict=True)]
    found: dict[bool, list[float]] = {True: [], False: []}
    for other, term, within in zip(others, own, inside, strict=True):
        if factor := term.factor(other):
            found[within].append(factor)
    return min(found[True] or found[False], default=0.0)


@np.errstate(all="ignore")
def sizes_of(system: System, batches: Sequence[Tensors], scales: Mapping[str, float]) -> list[list[float]]:
    """For each equation of each condition the size of its terms, of fields of these sizes.

    The fields are waves whose derivatives are all of about one size where the domain is: a size is that of the largest
    coefficient in such units, and equations of high order keep there what weight they have. It is a continuous function
    of all units, so that problems in metres and in millimetres take the same steps. The system's networks are not
    needed any more.
    """
    means = means_of(system, batches)
    waved(system)
    found = []
    for index, batch in enumerate(batches):
        source, (long, short) = measured(system, index, batch, scales, means)
        limit = ROUNDING * least(system, index, scales)
        given = [size if size > limit else 0.0 for size in map(norm, source.T)]
        found.append([
            1.0 if not 0 < max(size, large) < math.inf
            else term if term > ROUNDING * max(size, large)
            else size or (large if large > limit else 1.0)  # rounding is no term
            for term, large, size in zip(short, long, given, strict=True)
        ])  # fmt: skip
    energies = [k for k, condition in enumerate(system.conditions) if condition.minimised]
    root = max((size for k in energies for size in found[k]), default=1.0) ** 0.5  # of a loss that is their sum
    return [[root] * len(sizes) if k in energies else sizes for k, sizes in enumerate(found)]


def measured(
    system: System, index: int, batch: Tensors, scales: Mapping[str, float], means: Mapping[str, float]
) -> tuple[Array, list[list[float]]]:
    """What `terms_of` gives, of smaller waves about the means for equations that have no numbers for those of fields of
    these sizes, as exp(T - 300), or of negative ones, as log(p)."""
    source, terms = terms_of(system, index, batch, scales)
    for part in SMALLER:
        if all(terms[0]) or system.conditions[index].minimised:
            break
        less = {name: part * scale for name, scale in scales.items()}
        there, others = terms_of(system, index, batch, less, means, MILD)
        source = np.where(
            [not term and other > 0 for term, other in zip(terms[0], others[0], strict=True)], there, source
        )
        terms = [[a or b for a, b in zip(*each, strict=True)] for each in zip(terms, others, strict=True)]
    return source, terms


def terms_of(
    system: System,
    index: int,
    batch: Tensors,
    scales: Mapping[str, float],
    means: Mapping[str, float] = {},
    most: float = GROWS[1],
) -> tuple[Array, list[list[float]]]:
    """The residuals of a condition without any field (n, k), for a quotient of energies 0, and for each of its
    equations what fields of these sizes add to it, as LONG waves and as those that size TERMS; 0 for what cannot be
    measured. With ``means`` that is what waves about these add to them."""
    larger, known = {name: STEP * scale for name, scale in scales.items()}, system.conditions[index].minimised
    several = [(turns, crosses) for turns in (LONG, TERMS) for crosses, _ in WAVES]
    some = [Look(sizes, turn, crosses, means)
            for turns, crosses in several for sizes in (scales, larger) for turn in turns]  # fmt: skip
    source, *waves = residuals(system, index, batch, [Look(dict.fromkeys(scales, 0.0), means=means), *some])
    source = np.nan_to_num(source) if known else source
    rest, found = iter(waves), []
    for turns in (LONG, TERMS):
        each = []
        for _, share in WAVES:
            here, there = (np.concatenate([values - source for values in islice(rest, len(turns))]) for _ in range(2))
            # a quotient of energies is the same for fields of any size
            each.append(
                [share * (norm(a) if known else size_of(a, b, most)) for a, b in zip(here.T, there.T, strict=True)]
            )
        found.append([max(terms) for terms in zip(*each, strict=True)])
    return source, found


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


def norm(values: Array) -> float:
    """The root of the mean square, also of numbers whose squares are none."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = float(np.sqrt(np.square(values).mean()))
        if found == math.inf and (largest := float(np.abs(values).max())) < math.inf:
            return largest * float(np.sqrt(np.square(values / largest).mean()))
    return found
