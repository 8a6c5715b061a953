"""Where energies are least: their first two variations about what was found, in polynomials, under other conditions.

To second order an energy is E + g c + c H c / 2 for u + sum of c_k phi_k. A quotient N / D is least where N - q D is, q
its value, which has the same gradient there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import linalg

from leafgrad import Tensor
from leafgrad.autograd import grad
from leafgrad_pinn.field import columns_of
from leafgrad_pinn.integrals import Energy
from leafgrad_pinn.linearised import NODES, Linearised, Rows, like, numbers
from leafgrad_pinn.planner import plan as cheapest
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.scales import norm
from leafgrad_pinn.system import on_device
from leafgrad_pinn.taylor import Contradiction, Leaves, Place, Unfit

HELD, ROUNDING = 1e-9, 1e-11  # of the largest singular value: what conditions hold; of the largest column: none
APART = 1e-10  # of its square, what others must leave of a column
FLAT = 1e-4  # of the energy's terms: what bends it by less, as large as the fields, does not bend it
DOWN = 1e-2  # of the same, below zero: it falls
BEYOND = 0.2  # of a change, what of the fields may be no polynomial


class Expansion(NamedTuple):
    """An energy as a function of its fields' derivatives at the points of a rule.

    Attributes:
        place: these.
        density: what it sums up, of other derivatives there: (m,).
    """

    place: Place
    density: Callable[[Leaves], Tensor]

    @property
    def size(self) -> float:
        """That of its terms."""
        return float(self.density(self.place.leaves).detach().abs().sum())

    def value(self, problem: Linearised, c: Array) -> float:
        """The energy with c added to the fields."""
        moved = {
            (name, path): leaf.detach() + like(leaf, problem.basis(name, numbers(self.place.points), path) @ c)
            for (name, path), leaf in self.place.leaves.items()
        }
        return float(self.density(moved).sum())

    def variations(self, problem: Linearised) -> tuple[Array, Array]:
        """How it changes with each coefficient, (k,), and its second derivatives, (k, k)."""
        leaves = list(self.place.leaves.values())
        basis = [problem.basis(name, numbers(self.place.points), path) for name, path in self.place.leaves]
        slopes = grad(self.density(self.place.leaves).sum(), leaves, create_graph=True, materialize_grads=True)
        first, second = np.zeros(problem.size), np.zeros((problem.size, problem.size))
        for one, slope in zip(basis, slopes, strict=True):
            first += one.T @ numbers(slope)
            if not slope.requires_grad:
                continue
            bends = grad(slope.sum(), leaves, retain_graph=True, materialize_grads=True)
            for other, bend in zip(basis, map(numbers, bends), strict=True):
                if bend.any():
                    second += one.T @ (bend[:, None] * other)
        return first, second


def expanded(problem: Linearised, index: int) -> Expansion:
    """A condition's energy by a rule that is exact for squares of the polynomials."""
    condition, domain = copy.copy(problem.trainee.problem.conditions[index]), problem.domain
    if not isinstance(condition, Energy):
        raise Unfit(f"{problem.trainee.problem.names[index]}, which is least and no energy")
    if problem.trainee.problem.plans[index].away:
        raise Unfit(f"{problem.trainee.problem.names[index]}, which depends on fields at other places, too")
    most = NODES ** (1 / len(condition.over)) / condition.pieces
    degree = max(max(basis.degrees) for _, basis in problem.bases.values())
    condition.order = max(condition.order, min(int(most), max(2 * condition.order + 1, 1 + degree // condition.pieces)))
    condition.n = 1 if domain.functions else condition.n
    (tensors,) = on_device(
        [problem.drawn(condition, condition.n, np.random.default_rng(0))], problem.trainee.dtype, problem.trainee.device
    )
    _, places = problem.taylor.expanded(index, tensors)
    rule, own = problem.system.taken_at(tensors).values()
    shares, reverse_passes = tensors["shares"], cheapest((), domain.space)

    def sums(leaves: Leaves) -> list[Tensor]:
        parts = ((rule, leaves), (own, places[1].leaves))
        inner, outer = (
            problem.system.values(problem.system.points(batch), reverse_passes, partial(problem.taylor.near, each))
            for batch, each in parts
        )
        extra = {"inner": inner, "shares": shares}
        return [
            shares * condition.density(f, outer, extra) for f in (condition.inner, condition.below) if f is not None
        ]

    found = [part.detach().sum(1, keepdim=True) for part in sums(places[0].leaves)]

    def density(leaves: Leaves) -> Tensor:
        above, *below = sums(leaves)
        energy = (above - found[0] / found[1] * below[0]) / found[1] if below else above
        return (condition.weight / len(shares) * energy).reshape(-1)

    return Expansion(places[0], density)


def least(problem: Linearised, rows: Rows) -> tuple[Array, float]:
    """The coefficients (k,) at which all energies together are least while rows a c + r are zero.

    And how far the energies change otherwise than by their variations, relatively.

    Raises:
        Unfit: the energies are flat.
        Contradiction: they are not least anywhere near, for they bend down.
    """
    energies = [expanded(problem, index) for index in problem.energies]
    each = [energy.variations(problem) for energy in energies]
    slope, curve = sum(g for g, _ in each), sum(h for _, h in each)
    if not (np.isfinite(slope).all() and np.isfinite(curve).all()):
        raise Unfit("an energy that is not finite")
    terms = sum(energy.size for energy in energies)
    scale = np.sqrt(np.abs(np.diag(curve)) / (terms or 1.0) + np.square(rows[0]).sum(0))
    scale[scale <= ROUNDING * scale.max()] = 1
    slope, curve, held = slope / scale, curve / np.outer(scale, scale), rows[0] / scale
    left, found, right = np.linalg.svd(held)
    rank = np.count_nonzero(found > HELD * found[0]) if found.size else 0
    c = -right[:rank].T @ ((left.T @ rows[1])[:rank] / found[:rank])
    free = right[rank:].T
    points = problem.domain.interior(4 * problem.size, "sobol", np.random.default_rng(0))
    fields = at(problem, points)
    size = (
        np.concatenate([problem.basis(n, rows) / norm(values) for n, (rows, values) in fields.items()]) / scale @ free
    )
    squares = size.T @ size / len(points)
    kept = apart(squares)
    free, squares = free[:, kept], squares[np.ix_(kept, kept)]
    bends, turned = linalg.eigh(free.T @ curve @ free, squares)
    if bends.size and bends[0] < -DOWN * terms:
        raise Contradiction(
            "the energy is not least about it: some change of the fields lowers it, and its opposite, too"
        )
    if bends.size and bends[0] < FLAT * terms:
        raise Unfit("an energy that changes of its fields leave as it is")
    c = c - free @ (turned @ (turned.T @ (free.T @ (slope + curve @ c)) / bends))
    promised = abs(slope @ c) + abs(c @ curve @ c) / 2
    change = sum(energy.value(problem, c / scale) - energy.value(problem, 0 * c) for energy in energies)
    if beyond(problem, c / scale, fields) > BEYOND:
        raise Unfit("fields that polynomials do not follow")
    return c / scale, abs(change - slope @ c - c @ curve @ c / 2) / max(promised, 1e-300)


def apart(squares: Array) -> Array:
    """Which columns of these inner products (k, k) are no sums of others, as polynomials of a box are in a disk."""
    sizes = np.sqrt(squares.diagonal())
    sizes[sizes == 0] = 1
    _, order, rank, _ = linalg.lapack.dpstrf(squares / np.outer(sizes, sizes), tol=APART)
    return np.sort(order[:rank]) - 1


def at(problem: Linearised, points: Array) -> dict[str, Rows]:
    """For each field that has a network those of the points (n, d) where it is, and its values there (n,)."""
    columns = columns_of(problem.domain, points, problem.trainee.dtype, problem.trainee.device) | problem.inputs
    fields = {name: (problem.within(name, points), numbers(t)) for name, t in problem.system.fields(columns).items()}
    return {name: (points[inside], t[inside]) for name, (inside, t) in fields.items() if name in problem.bases}


def beyond(problem: Linearised, c: Array, fields: dict[str, Rows]) -> float:
    """How much of the fields is no polynomial, beside a change c of them: it is left as it is, right or wrong."""
    rest = [problem.fit(name, points, values)[1] * norm(values) for name, (points, values) in fields.items()]
    change = [norm(problem.basis(name, points) @ c) for name, (points, _) in fields.items()]
    return max(rest) / max(*change, 1e-300)
