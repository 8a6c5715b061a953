"""Whether values are of each point alone: the same whichever other points, and how many, they are asked with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import leafgrad
from leafgrad import Tensor, nn
from leafgrad_pinn.sampling import Array

Index = Any  # of points (m,), whole numbers
At = Callable[[Index, int], Sequence[Array]]  # values at points by index, which are moved by so many roundings

MORE = 8  # points, besides all that there are
PARTS = 4  # of points, each of which is looked at among others than the other parts
MOVES = 4, 8, 16, 32  # roundings by which points are moved to see how much of a value is rounding
NOISE = 16.0  # times what such moves change: what is still rounding
DIGITS, EPS = 1e-6, 2.0**-52  # of double precision: of a value, what may be rounding, and the least that is
PLACES, RULE = ("points", "nodes", "opposite"), ("nodes", "shares", "sides")  # in batches of conditions
NODES = 16  # of a rule that are looked at


def check_among(what: str, at: At, some: Index, known: Sequence[Array], n: int, digits: float) -> None:
    """ValueError if values at some of n points are others among another number of points, or among others.

    Args:
        what: what was expected, for the error.
        at: gives values.
        some: which points are looked at.
        known: the values there, (m,) each, that were found among all n.
        digits: how much of the largest value may be rounding.
    """
    more = np.full(MORE if len(some) == n else 0, some[0])  # so that their number is another, and their places are
    block, places = np.concatenate([more, some]), np.arange(len(some)) + len(more)
    here = check_alike(what, known, at, block, places, digits)
    check_alone(what, at, block, places, here, digits)


def check_alone(what: str, at: At, block: Index, places: Index, here: Sequence[Array], digits: float) -> None:
    """ValueError if values at places of a block of points, `here` at all of it, are others where other points are.

    A point keeps its place, and its number of others, which are all one point, so that rounding is the same, too.
    """
    order = np.random.default_rng(0).permutation(places)
    for first in range(min(PARTS, len(order)) if len(order) > 1 else 0):
        kept = order[first::PARTS]
        index = np.full(len(block), block[kept[0]])
        index[kept] = block[kept]
        check_alike(what, [part[kept] for part in here], at, index, kept, digits)


def check_alike(what: str, some: Sequence[Array], at: At, index: Index, kept: Index, digits: float) -> list[Array]:
    """Values at points by index; ValueError if those that are kept differ from some that were found before.

    Rounding may differ, too: what is no more than such is seen by moving the points a little.
    """
    found = at(index, 0)
    there = [part[kept] for part in found]
    gaps = [apart(one, other) for one, other in zip(some, there, strict=True)]
    sizes = [float(np.abs(part[np.isfinite(part)]).max(initial=0)) for part in some]
    if all(gap <= digits * size for gap, size in zip(gaps, sizes, strict=True)):
        return list(found)
    again = [apart(one, part[kept]) for one, part in zip(there, at(index, 0), strict=True)]
    noise = np.maximum(rounding(at, index, kept), rounding(at, index[kept], slice(None)))
    for gap, size, least in zip(gaps, sizes, NOISE * noise, strict=True):
        if gap > max(digits * size, least) or any(again):
            raise ValueError(
                f"{what} at each point alone, got one whose value at a point depends on the others, or on how many "
                f"these are, as with u.mean() or len(u): by {gap:.2g}"
            )
    return list(found)


def rounding(at: At, index: Index, kept: Index) -> Array:
    """How far values at points by index, those that are kept, change if all points move a little: (k,)"""
    here = at(index, 0)
    moved = [[apart(one[kept], other[kept]) for one, other in zip(here, at(index, moves), strict=True)]
             for moves in MOVES]  # fmt: skip
    return np.max(moved, 0)


def apart(some: Array, others: Array) -> float:
    """The largest difference; infinity if one is no number, and the other is."""
    alike = (some == others) | (np.isnan(some) & np.isnan(others))
    with np.errstate(invalid="ignore"):
        gaps = np.abs(np.where(alike, 0.0, some) - np.where(alike, 0.0, others))
    return float(np.where(np.isnan(gaps), np.inf, gaps).max(initial=0))


def nearer(points: Array, bounds: Array, share: float) -> Array:
    """Points (..., d) moved by a share of themselves, or of their bounds (d, 2), to the middle of these."""
    low, high = bounds.T
    steps = share * np.maximum(np.abs(points), high - low)
    return np.asarray(points + steps * np.sign((low + high) / 2 - points))


@np.errstate(all="ignore")  # of infinities it has been said
def check_condition(
    name: str,
    residuals: Callable[[dict[str, Tensor]], tuple[Tensor, Any]],
    batch: Mapping[str, Tensor],
    found: Array,
    bounds: Array,
) -> None:
    """ValueError if residuals at a point depend on others, or an integrand on other points of its rule.

    Args:
        name: the condition's.
        residuals: gives them, (n, k), and more, for a batch.
        batch: of some points (n, d), and what else the condition draws.
        found: the residuals there, (n, k).
        bounds: of coordinates, (d, 2).
    """
    arrays = {key: t.numpy() for key, t in batch.items()}
    n = len(arrays["points"])
    if "nodes" in arrays:
        every = np.linspace(0, arrays["nodes"].shape[1], NODES, endpoint=False).astype(int)
        arrays |= {key: arrays[key][:, np.unique(every)] for key in RULE if key in arrays}

    def near(batch: Mapping[str, Array], moved: int) -> list[Array]:
        places = {key: nearer(batch[key], bounds, moved * EPS) for key in PLACES if key in batch}
        tensors = {key: leafgrad.tensor(np.ascontiguousarray(values)) for key, values in {**batch, **places}.items()}
        return [*residuals(tensors)[0].detach().numpy().T]

    def at(index: Index, moved: int) -> list[Array]:
        return near({key: values[index] for key, values in arrays.items()}, moved)

    def at_node(index: Index, moved: int) -> list[Array]:
        """The integrand at each of these, as integrals that count no other."""
        some = {key: values[index % n] for key, values in arrays.items()}
        inner = {key: some[key][:, index] for key in RULE if key in arrays}
        return near({**some, **inner, "shares": np.eye(len(index))}, moved)

    if "nodes" not in arrays:
        check_at(f"{name}: expected an equation of the fields", at, n, [*found.T])
    else:
        check_at(f"{name}: expected an equation of the fields", at, n)
        check_at(f"{name}: expected an integrand of the fields", at_node, arrays["nodes"].shape[1])


def check_at(what: str, at: At, n: int, known: Sequence[Array] = ()) -> None:
    """ValueError if values at n points, which may be known, are others among more, or among others."""
    whole = np.arange(n)
    check_among(what, at, whole, known or at(whole, 0), n, DIGITS)


def check_network(what: str, net: nn.Module, at: At, n: int) -> None:
    """ValueError if a network's outputs at n points are others each time, or depend on other points, or change it."""
    before = {name: t.clone() for name, t in net.named_buffers()}
    first = at(np.arange(n), 0)
    changed = [name for name, t in net.named_buffers() if not bool(((t == before[name]) | (t != t)).all())]
    if changed or any(apart(one, other) for one, other in zip(first, at(np.arange(n), 0), strict=True)):
        got = f"one that changes its {changed[0]}" if changed else "one that is another each time, as with Dropout"
        raise ValueError(
            f"{what}: expected a module that is a function of its inputs alone, got {got}; have make "
            "give it in its mode for evaluation, as module.eval(), or take LayerNorm in place of BatchNorm1d"
        )
    check_at(f"{what}: expected a module whose outputs are those", at, n, first)
