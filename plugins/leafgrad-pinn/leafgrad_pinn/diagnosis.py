"""What a trained system says about itself: its residuals, beside their terms."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.answers import outside
from leafgrad_pinn.conditions import Interior
from leafgrad_pinn.determinacy import spoken_of
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.integrals import Integral
from leafgrad_pinn.observations import Data
from leafgrad_pinn.planner import spelled_out
from leafgrad_pinn.quadrature import interval
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.scales import norm
from leafgrad_pinn.system import Tensors, on_device
from leafgrad_pinn.taylor import Taylor, Unfit, slopes
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.values import Path, Request
from leafgrad_pinn.waves import wave

BETWEEN = 4  # times its points: new ones at which an equation is looked at, which a network may satisfy at those alone
LEAST = 1e-2  # of its size in the problem's units: what an equation's terms count at least, where all of them are small
SHOWN = 4000  # points of a condition whose residuals are kept
LINES, WITHIN = 16, 5  # along which fields are looked at between a rule's points, and points between each two of these
CHANCE = 3  # standard deviations by which the squares of noise, and its neighbours' products, may be off
FEWEST = 16  # measured values of which some may look like noise
FLAT = 1e-3  # of a field's size: what it varies by at least, for a constant has errors, too


class Level(NamedTuple):
    """The mean of a field, and the root mean square of what it is beside that."""

    mean: float
    spread: float

    @property
    def varies(self) -> float:
        """The part of its size that is no constant."""
        size = math.hypot(self.mean, self.spread)
        return self.spread / size if size else 1.0


def residuals(trainees: Sequence[Trainee]) -> dict[str, dict[str, Array]]:
    """For each condition ``points`` (m, d) and ``sizes`` (m,) of its residual there: SHOWN points a window at most."""
    found: dict[str, list[tuple[Array, Array]]] = {}
    for trainee in trainees:
        for index, name in enumerate(trainee.problem.names):
            batch = trainee.batches[index]
            every = math.ceil(len(batch["points"]) / SHOWN)
            few = {key: t[::every] for key, t in batch.items()}
            if trainee.problem.conditions[index].minimised:  # what is least is no residual
                continue
            sizes = trainee.residuals(index, few).detach().square().sum(1).sqrt()
            found.setdefault(name, []).append((few["points"].detach().cpu().numpy(), sizes.cpu().numpy()))
    return {
        name: {"points": np.concatenate([p for p, _ in parts]), "sizes": np.concatenate([s for _, s in parts])}
        for name, parts in found.items()
    }


def relative(trainees: Sequence[Trainee]) -> dict[str, float]:
    """For each condition the norm of its residuals over that of its terms: the largest of its equations and windows.

    Of measured values it is what is beyond the noise that they are given with.

    A term's size is what the residual is of no field at all, as a source or given values; what the solution's means add
    to it, or waves over the domain about these that are as large as it varies; or what each derivative of the solution
    itself adds, as in thin layers: whichever is largest. The norm is the dual one of the equation's energy, so that of
    m derivatives the root mean square over wave numbers to the power of m // 2: what oscillates changes a solution the
    less, the higher the order is. Of a family, all this is at functions that were not trained.
    """
    found: dict[str, float] = {}
    for trainee in trainees:
        levels = levels_of(trainee)
        for index, name in enumerate(trainee.problem.names):
            condition = trainee.problem.conditions[index]
            if isinstance(condition, Integral):
                for words, share in (("by a finer rule", by_a_finer_rule), ("between its points", between_its_points)):
                    key = f"{name} {words}"
                    found[key] = larger(found.get(key, 0.0), share(trainee, index, condition))
            if condition.minimised:
                continue
            found[name] = larger(found.get(name, 0.0), left_over(trainee, index, levels))
    return found


def larger(*numbers: float) -> float:
    """The largest; nan if one is."""
    return float(np.max(numbers))


def undefined(trainees: Sequence[Trainee]) -> dict[str, str]:
    """At how many points a condition's residuals are no numbers, in words, by name: at its own, or between them."""
    found: dict[str, str] = {}
    for trainee in trainees:
        for index, name in enumerate(trainee.problem.names):
            some = [host(trainee.residuals(index, batch)) for batch in looked_at(trainee, index, SHOWN // 4)]
            wrong = ~np.isfinite(np.concatenate(some)).all(1)
            if wrong.any():
                found[name] = f"{wrong.sum()} of {len(wrong)} points"
    return found


def by_a_finer_rule(trainee: Trainee, index: int, condition: Integral) -> float:
    """How much an integral's residuals change with twice as many points: a network may fit itself to a rule."""
    finer, found = copy.copy(condition), []
    finer.order = 2 * condition.order + 1
    for each in (condition, finer):
        rng = np.random.default_rng(0)
        batch = trainee.problem.domain.given(each.draw(trainee.problem.domain, rng), np.random.default_rng(1))
        (tensors,) = on_device([batch], trainee.dtype, trainee.device)
        found.append(host(trainee.residuals(index, tensors)))
    size = norm(found[1]) if condition.minimised else max(1.0, norm(found[1]))
    return norm(found[1] - found[0]) / size if size else 0.0


def between_its_points(trainee: Trainee, index: int, condition: Integral) -> float:
    """How far fields change between an integral's points otherwise than their derivatives say: 1 for jumps alone.

    A network may jump there so steeply that no rule has a point in it; an energy is then less than that of any field.
    """
    problem, plan = trainee.problem, trainee.problem.plans[index]
    over = condition.over if condition.on is None else []
    asked = spelled_out(plan.asked, problem.domain.space)
    asked += [(f.name, (c,)) for f in problem.fields for c in f.domain.names if plan.beyond]  # of expressions of fields
    steps = {(name, field, path[:k]) for field, path in asked for k, name in enumerate(path)}
    found = [lost(trainee, index, condition, *step) for step in sorted(steps) if step[0] in over]
    return max(found, default=0.0)


def lost(trainee: Trainee, index: int, condition: Integral, along: str, field: str, path: Path) -> float:
    """What integrals of the next derivative along a coordinate lack of the changes of one of a field, relatively."""
    domain, plan = trainee.problem.domain, trainee.problem.plans[index]
    low, high = domain.bounds[domain.names.index(along)]
    cuts = low + (high - low) * np.concatenate([[0], interval(condition.order, condition.pieces)[0], [1]])
    (x, weights), lengths = interval(WITHIN), np.diff(cuts)
    batch = on_lines(trainee, along, np.concatenate([cuts, (cuts[:-1, None] + lengths[:, None] * x).ravel()]))
    with leafgrad.enable_grad():
        points = trainee.system.points(batch)
        value = trainee.system.values(points, plan)[field].along(path)
        values, rates = (host(t).reshape(LINES, -1) for t in (value, value.along([along])))
        points.forget()
    inside = domain.inside(host(batch["points"])).reshape(LINES, -1)
    cells, ends = inside[:, 1 : len(cuts)] & inside[:, : len(cuts) - 1], values[:, : len(cuts)]
    change = (np.diff(ends) / lengths**0.5)[cells]
    known = (rates[:, len(cuts) :].reshape(LINES, -1, WITHIN) @ weights * lengths**0.5)[cells]
    size = LEAST * norm((ends[:, 1:] * lengths**0.5)[cells]) / (high - low)
    return float(norm(change - known) / max(norm(change), size, 1e-300))


def on_lines(trainee: Trainee, along: str, places: Array) -> Tensors:
    """Points at these places of a coordinate on LINES lines, one line after the other, each of one input function."""
    domain, rng = trainee.problem.domain, np.random.default_rng(0)
    batch = domain.given({"points": domain.interior(LINES, "sobol", rng)}, rng)
    rows = np.repeat(batch["points"], len(places), 0)
    rows[:, domain.names.index(along)] = np.tile(places, LINES)
    return on_device([batch | {"points": rows}], trainee.dtype, trainee.device)[0]


def left_over(trainee: Trainee, index: int, levels: Mapping[str, Level]) -> float:
    """The share for a condition, of fields of these levels: the larger of its points' and of new ones' between them."""
    n = min(BETWEEN * len(trainee.batches[index]["points"]), SHOWN // 4)
    return larger(*[share_at(trainee, index, levels, batch) for batch in looked_at(trainee, index, n)])


def looked_at(trainee: Trainee, index: int, n: int) -> list[Tensors]:
    """Some of a condition's points, and n new ones between them if it is an equation inside."""
    given, condition = unseen(trainee)[index], copy.copy(trainee.problem.conditions[index])
    few, domain = {key: t[: SHOWN // 4] for key, t in given.items()}, trainee.problem.domain
    condition.n, condition.sampler = n, "sobol"
    between = isinstance(condition, Interior) and not domain.functions
    fresh = [condition.draw(domain, np.random.default_rng(3))] if between else []
    return [few, *on_device(fresh, trainee.dtype, trainee.device)]


@np.errstate(all="ignore")  # residuals of no field may be infinite
def share_at(trainee: Trainee, index: int, levels: Mapping[str, Level], batch: Tensors) -> float:
    """The share for a condition at a batch of points: that of the equation of which most is left."""

    def of(mean: float, spread: float) -> Array:
        some = {name: Level(mean * level.mean, spread * level.spread) for name, level in levels.items()}
        return host(trainee.system.residuals(index, batch, partial(waves, trainee.problem.domain, some))[0])

    left = host(trainee.residuals(index, batch))
    if not np.isfinite(left).all():
        return math.nan
    source, flat, own = of(0, 0), of(1, 0), added(trainee, index, batch)
    order = max((len(path) for (_, (_, path)), term in own.items() if term.any()), default=0)
    points, bounds = host(batch["points"]), trainee.problem.domain.bounds
    about = spoken_of(trainee.problem, trainee.problem.conditions[index])
    smooth = order // 2 if isinstance(trainee.problem.conditions[index], Interior) and len(bounds) <= 3 else 0
    every = np.stack([left, source, flat - source, of(1, 1) - flat, left - source, *own.values()], 1)
    every[:, ~np.isfinite(every).all(0)] = 0.0  # what is infinite is no term
    norms = dual(every.reshape(len(left), -1), points, bounds, smooth).reshape(every.shape[1:])
    noise = noise_of(trainee, index, left, points)
    norms[0] = np.sqrt(np.maximum(0.0, norms[0] ** 2 - noise**2))
    least = LEAST * max([level.varies for name, level in levels.items() if name in about], default=1.0)
    return float((norms[0] / np.maximum(norms[1:].max(0), least)).max())


def noise_of(trainee: Trainee, index: int, left: Array, points: Array) -> Array:
    """For each residual of a condition what its root mean square may be for measured values are noisy: 0 for nothing.

    That is what `Data` says, if these residuals (n, k) at points (n, d) look like noise.
    """
    condition = trainee.problem.conditions[index]
    if not isinstance(condition, Data) or not condition.noise:
        return np.zeros(left.shape[1])
    given = np.array([condition.noise.get(field, 0.0) for field in condition.measured]) / trainee.problem.sizes[index]
    usual = 1 + CHANCE * math.sqrt(2 / len(left))
    return given * usual**0.5 * (agreement(left, points, trainee.problem.domain.bounds) < likely(len(left)))


def agreement(left: Array, points: Array, bounds: Array) -> Array:
    """How far residuals (n, k) are those of the nearest points: 0 or so for noise, 1 for smooth ones. (k,)"""
    places = points / np.ptp(bounds, axis=1)
    own, next_ = KDTree(places).query(places, 2)[1].T % len(left)
    nearest = np.where(own == np.arange(len(left)), next_, own)  # of several values at one place the order is any
    return np.asarray((left * left[nearest]).sum(0) / np.maximum(np.square(left).sum(0), 1e-300))


def likely(n: int) -> float:
    """How much n residuals of noise may agree with their neighbours."""
    return CHANCE / n**0.5


def scattered(trainees: Sequence[Trainee]) -> dict[str, str]:
    """How far measured values are from their fields, as `Data` takes it, by condition, where that looks like noise."""
    squares: dict[str, list[Array]] = {}
    measured: dict[str, list[str]] = {}
    for trainee in trainees:
        for index, (name, condition) in enumerate(zip(trainee.problem.names, trainee.problem.conditions, strict=True)):
            if isinstance(condition, Data):
                few = {key: t[:SHOWN] for key, t in trainee.batches[index].items()}
                left, points = host(trainee.residuals(index, few)) * trainee.problem.sizes[index], host(few["points"])
                agreed = agreement(left, points, trainee.problem.domain.bounds)
                own, n = np.square(left).sum(0), np.full(left.shape[1], len(left))
                squares.setdefault(name, []).append(np.stack([own, own * agreed, n]))
                measured[name] = condition.measured
    found = {}
    for name, parts in squares.items():
        own, both, n = np.sum(parts, 0)
        if n[0] >= FEWEST and (both < likely(n[0]) * own).all():
            sizes: dict[str, float] = {}
            for field, size in zip(measured[name], np.sqrt(own / n), strict=True):  # complex ones have two parts
                sizes[field] = max(sizes.get(field, 0.0), float(f"{size:.2g}"))
            found[name] = f"noise={sizes if len(sizes) > 1 else next(iter(sizes.values()))}"
    return found


def unseen(trainee: Trainee) -> list[Tensors]:
    """For each condition of a family points with functions of which none was trained; else the training's points.

    A network fits itself to some functions long before it fits all.
    """
    if not trainee.problem.domain.functions:
        return trainee.batches
    return on_device(trainee.problem.draw(np.random.default_rng([trainee.seed, 4])), trainee.dtype, trainee.device)


def added(trainee: Trainee, index: int, batch: Tensors) -> dict[tuple[int, Request], Array]:
    """What each derivative of the fields adds to a condition's residuals, by place: (n, k) each.

    That is to first order, or what they are less without it if that is smaller, as in functions that are bounded.
    Nothing where a condition depends on more than fields at its points, and those of a rule.
    """
    taylor = Taylor(trainee)
    try:
        residuals, places = taylor.expanded(index, batch)
    except Unfit:
        return {}
    found: dict[tuple[int, Request], list[Array]] = {}
    for rates in slopes(residuals, places):
        for k, (place, rate) in enumerate(zip(places, rates, strict=True)):
            for request, leaf in place.leaves.items():
                each = host(rate[request] * leaf).reshape(len(residuals), -1).sum(1)
                found.setdefault((k, request), []).append(each)
    leaves = [place.leaves for place in places]
    for (k, request), columns in found.items():
        if not np.any(columns):
            continue
        without = [*leaves[:k], leaves[k] | {request: leafgrad.zeros_like(leaves[k][request])}, *leaves[k + 1 :]]
        less = host(residuals - taylor.at(index, batch, without))
        found[k, request] = [change if norm(change) < norm(rate) else rate
                             for rate, change in zip(columns, less.T, strict=True)]  # fmt: skip
    return {request: np.stack(columns, 1) for request, columns in found.items()}


def dual(values: Array, points: Array, bounds: Array, smooth: int) -> Array:
    """The norm of each column of values (n, k) at points (n, d), each wave over the bounds divided by its number to a
    power: (k,)

    What is too fast for so many points counts as the fastest wave that is not.
    """
    count = max(1, int(len(points) ** (1 / len(bounds)) / 2)) if smooth else 1
    basis, numbers = np.ones((len(points), 1)), np.zeros(1)
    k = np.arange(count)
    for column, (low, high) in zip(points.T, bounds, strict=True) if smooth else ():
        each = np.cos(np.pi * (column[:, None] - low) / (high - low) * k) * np.where(k, 2**0.5, 1)
        basis = (basis[:, :, None] * each[:, None, :]).reshape(len(points), -1)
        numbers = (numbers[:, None] + k**2).reshape(-1)
    found = np.square(basis.T @ values / len(points))
    weights = (1 + numbers) ** -float(smooth)
    fast = np.maximum(0.0, np.square(values).sum(0) / len(points) - found.sum(0))
    return np.sqrt(weights @ found + weights.min() * fast)


def levels_of(trainee: Trainee) -> dict[str, Level]:
    """The mean of each field, and how far it is from that, at all points of the training."""
    values: dict[str, list[Array]] = {}
    for batch in trainee.batches:
        columns, rows = trainee.system.points(batch).columns, host(batch["points"])
        for surrogate in trainee.system.surrogates:
            for name, t in surrogate(columns).items():
                inside = ~outside(surrogate, name, trainee.problem.domain, rows)
                values.setdefault(name, []).append(host(t)[inside])
    found = {}
    for name, parts in values.items():
        every = np.concatenate(parts)
        found[name] = Level(float(every.mean()), max(float(every.std()), FLAT * norm(every)))
    return found


def waves(domain: Domain, levels: Mapping[str, Level], columns: Mapping[str, Tensor]) -> Tensors:
    """Fields of these levels."""
    found = [columns[name] for name in domain.names if name in columns]
    bounds = np.array([domain.bounds[domain.names.index(name)] for name in domain.names if name in columns])
    return {name: level.mean + level.spread * wave(found, bounds, k) for k, (name, level) in enumerate(levels.items())}


def host(t: Tensor) -> Array:
    found: Array = t.detach().cpu().numpy().astype(np.float64)
    return found
