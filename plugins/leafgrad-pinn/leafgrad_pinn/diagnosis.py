"""What a trained system says about itself: its residuals, beside their terms."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from leafgrad import Tensor
from leafgrad_pinn.answers import outside
from leafgrad_pinn.conditions import Interior
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.integrals import Integral
from leafgrad_pinn.problem import Tensors, on_device
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.scales import norm, wave
from leafgrad_pinn.taylor import Taylor, Unfit, slopes
from leafgrad_pinn.trainee import Trainee
from leafgrad_pinn.values import Request

BETWEEN = 4  # times its points: new ones at which an equation is looked at, which a network may satisfy at those alone
LEAST = 1e-2  # of its size in the problem's units: what an equation's terms count at least, where all of them are small
SHOWN = 4000  # points of a condition whose residuals are kept


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

    A term's size is what the residual is of no field at all, as a source or given values; what fields as large as the
    solution add to it which are waves over the domain; or what each derivative of the solution itself adds, as in thin
    layers: whichever is largest. The norm is the dual one of the equation's energy, so that of m derivatives the root
    mean square over wave numbers to the power of m // 2: what oscillates changes a solution the less, the higher the
    order is. Of a family, all this is at functions that were not trained.
    """
    found: dict[str, float] = {}
    for trainee in trainees:
        sizes = amplitudes(trainee)
        for index, name in enumerate(trainee.problem.names):
            condition = trainee.problem.conditions[index]
            if isinstance(condition, Integral):
                found[f"{name} by a finer rule"] = by_a_finer_rule(trainee, index, condition)
            if condition.minimised:
                continue
            found[name] = max(found.get(name, 0.0), left_over(trainee, index, sizes))
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


def left_over(trainee: Trainee, index: int, sizes: Mapping[str, float]) -> float:
    """The share for a condition, of fields of these sizes: the larger of its points' and of new ones' between them."""
    given, domain = unseen(trainee)[index], trainee.problem.domain
    few, n = {key: t[: SHOWN // 4] for key, t in given.items()}, min(BETWEEN * len(given["points"]), SHOWN // 4)
    condition = copy.copy(trainee.problem.conditions[index])
    condition.n, condition.sampler = n, "sobol"
    between = isinstance(condition, Interior) and not domain.functions
    fresh = [condition.draw(domain, np.random.default_rng(3))] if between else []
    batches = [few, *on_device(fresh, trainee.dtype, trainee.device)]
    return max(share_at(trainee, index, sizes, batch) for batch in batches)


def share_at(trainee: Trainee, index: int, sizes: Mapping[str, float], batch: Tensors) -> float:
    """The share for a condition at a batch of points: that of the equation of which most is left."""

    def of(factor: float) -> Array:
        given = partial(waves, trainee.problem.domain, {name: factor * size for name, size in sizes.items()})
        return host(trainee.system.residuals(index, batch, given)[0])

    left, source, own = host(trainee.residuals(index, batch)), of(0.0), added(trainee, index, batch)
    order = max((len(path) for (_, path), term in own.items() if term.any()), default=0)
    points, bounds = host(batch["points"]), trainee.problem.domain.bounds
    smooth = order // 2 if isinstance(trainee.problem.conditions[index], Interior) and len(bounds) <= 3 else 0
    terms = [source, of(1.0) - source, left - source, *own.values()]

    def norms(values: Array) -> Array:
        return np.array([dual(column[:, None], points, bounds, smooth) for column in values.T])

    return float((norms(left) / np.maximum(np.max([norms(term) for term in terms], 0), LEAST)).max())


def unseen(trainee: Trainee) -> list[Tensors]:
    """For each condition of a family points with functions of which none was trained; else the training's points.

    A network fits itself to some functions long before it fits all.
    """
    if not trainee.problem.domain.functions:
        return trainee.batches
    return on_device(trainee.problem.draw(np.random.default_rng([trainee.seed, 4])), trainee.dtype, trainee.device)


def added(trainee: Trainee, index: int, batch: Tensors) -> dict[Request, Array]:
    """What each derivative of the fields adds to a condition's residuals, to first order: (n, k) each.

    Nothing where a condition depends on more than fields at its points.
    """
    try:
        residuals, leaves = Taylor(trainee).expanded(index, batch)
    except Unfit:
        return {}
    rates = list(slopes(residuals, leaves))
    return {request: np.stack([host(rate[request] * leaf) for rate in rates], 1) for request, leaf in leaves.items()}


def dual(values: Array, points: Array, bounds: Array, smooth: int) -> float:
    """The norm of values (n, k) at points (n, d), each wave over the bounds divided by its number to a power.

    What is too fast for so many points counts as the fastest wave that is not.
    """
    count = max(1, int(len(points) ** (1 / len(bounds)) / 2)) if smooth else 1
    basis, numbers = np.ones((len(points), 1)), np.zeros(1)
    k = np.arange(count)
    for column, (low, high) in zip(points.T, bounds, strict=True) if smooth else ():
        each = np.cos(np.pi * (column[:, None] - low) / (high - low) * k) * np.where(k, 2**0.5, 1)
        basis = (basis[:, :, None] * each[:, None, :]).reshape(len(points), -1)
        numbers = (numbers[:, None] + k**2).reshape(-1)
    found = np.square(basis.T @ values / len(points)).sum(1)
    weights = (1 + numbers) ** -float(smooth)
    fast = max(0.0, float(np.square(values).sum() / len(points) - found.sum()))
    return float(np.sqrt(weights @ found + weights.min() * fast))


def amplitudes(trainee: Trainee) -> dict[str, float]:
    """The root mean square of each field, at all points of the training."""
    values: dict[str, list[Array]] = {}
    for batch in trainee.batches:
        columns, rows = trainee.system.points(batch).columns, host(batch["points"])
        for surrogate in trainee.system.surrogates:
            for name, t in surrogate(columns).items():
                inside = ~outside(surrogate, name, trainee.problem.domain, rows)
                values.setdefault(name, []).append(host(t)[inside])
    return {name: norm(np.concatenate(parts)) for name, parts in values.items()}


def waves(domain: Domain, sizes: Mapping[str, float], columns: Mapping[str, Tensor]) -> Tensors:
    """Fields of these root mean squares."""
    found = [columns[name] for name in domain.names if name in columns]
    bounds = np.array([domain.bounds[domain.names.index(name)] for name in domain.names if name in columns])
    return {name: size * wave(found, bounds, k) for k, (name, size) in enumerate(sizes.items())}


def host(t: Tensor) -> Array:
    found: Array = t.detach().cpu().numpy().astype(np.float64)
    return found
