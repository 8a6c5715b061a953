"""Places where a function of coordinates jumps, inside of a region."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

import leafgrad
from leafgrad import Tensor
from leafgrad_pinn.domains import Domain
from leafgrad_pinn.places import Part
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.shapes import Box
from leafgrad_pinn.values import recording, reverse

Rate = Callable[[Mapping[str, Tensor]], Tensor]

CELLS, MOST = 4096, 4  # of a region, or some more, and of how many coordinates these are not too many
SOME = 512  # points that are drawn in a region
KEPT, HALVED = 32, 24  # cells that are least straight, and how often these are halved
FINEST = 2e-14  # of a coordinate, how small a cell may be
ROUNDING = 1e-9
GROWN = 4.0  # times as large in cells a thousandth as wide: what has a pole there
STEEP = 0.1  # of a jump, what the next derivative makes of a cell where it is finite
THIRD = 0.4  # of a line, where its point between the ends is: not in the middle, about which functions are odd
INSIDE = 0.02  # of its largest value, what a shape's function is at least inside: corners of edges have kinks
EDGE = 0.005  # of a coordinate's range, how far inside is from both ends
LEAST = 1e-4, 1e-6  # of a function's range, and of its largest value: smaller jumps are none, but rounding


class Region:
    """A domain but for a thin layer along its edges, at whose corners what holds there exactly has kinks.

    Args:
        domain: which may be a part of another.
        edge: of a coordinate's range, how thick that layer is.
    """

    def __init__(self, domain: Domain, edge: float = EDGE) -> None:
        self.domain, self.edge = domain, edge
        self.shape = None if isinstance(domain.shape, Box) else domain.shape
        some, self.least = domain.interior(SOME, "sobol", np.random.default_rng(0)), -math.inf
        if self.shape is not None:
            levels = self.levels(some)
            self.least = INSIDE * float(levels.max(initial=0.0, where=np.isfinite(levels)))
        self.middle = some[self.inside(some).argmax()]  # one of many, for kinks go through centres

    def columns(self, points: Array) -> dict[str, Tensor]:
        """Points (n, d) as a tensor for each coordinate, to be differentiated by."""
        return {
            name: leafgrad.tensor(np.ascontiguousarray(column), requires_grad=True)
            for name, column in zip(self.domain.names, points.T, strict=True)
        }

    def inside(self, points: Array) -> Array:
        """Which points (n, d) belong to it: (n,)"""
        low, high = self.domain.bounds.T
        away = self.edge * (high - low)
        found: Array = ((points > low + away) & (points < high - away)).all(1)
        if isinstance(self.domain, Part):
            found &= self.domain.holds(points)
        return found if self.shape is None else found & (self.levels(points) > self.least)

    def levels(self, points: Array) -> Array:
        """The shape's function, positive inside. (n, d) -> (n,)"""
        assert self.shape is not None
        found: Array = self.shape.level(self.columns(points)).detach().numpy()
        return found

    def names(self, asked: Sequence[str]) -> list[str]:
        """The coordinates that matter to a function of some: those of a shape other than a box all or none."""
        whole = set(asked) | set(self.domain.space if self.shape and set(asked) & set(self.domain.space) else ())
        return [name for name in self.domain.names if name in whole]


@recording()
@np.errstate(all="ignore")
def jump(
    region: Region,
    function: Rate,
    along: str,
    over: Sequence[str],
    order: int = 0,
    *,
    cells: int = CELLS,
    tips: bool = True,
    poles: bool = True,
) -> dict[str, float] | None:
    """A place in a region where a derivative of a function jumps; None if none was found.

    Cells in which it is least like a straight line are halved again and again. In ever smaller ones a smooth function
    is one, and only about a jump there remains a second difference, be it at a surface or at the tip of a cone.

    Args:
        function: of the columns of points.
        along: the coordinate by which the derivative is.
        over: the coordinates that cells have; the others stay as they are in the region's middle.
        order: of the derivative.
        cells: how many, or some more.
        tips: whether it is one where the next derivative is infinite, as at the tip of a cone, or of a crack.
        poles: whether it is one where the function itself is infinite.
    """
    at = [region.domain.names.index(name) for name in over]
    dim, axis, (low, high) = len(over), list(over).index(along), region.domain.bounds[at].T
    count = math.ceil(cells ** (1 / dim) - ROUNDING)
    size, aside = (high - low) / count, np.random.default_rng(0).random(dim)  # sides are where no kinks are
    halvings = int(math.log2(size[axis] / (FINEST * max(abs(low[axis]), abs(high[axis])))))
    corners = low + size * (lattice([count + 1] * dim) - aside)
    ends = lattice([1 if k == axis else 2 for k in range(dim)])
    lines = ends[:, None] + np.array([0, THIRD, 1])[:, None] * np.eye(dim)[axis]
    least, place, largest = math.nan, low, list[float]()
    for _ in range(max(1, min(HALVED, halvings))):
        rows = np.clip(corners[:, None, None] + size * lines, low, high)
        points = np.tile(region.middle, (rows.size // dim, 1))
        points[:, at] = rows.reshape(-1, dim)
        values, within = derived(function, region.columns(points), along, order), region.inside(points)
        within &= np.isfinite(values)
        if math.isnan(least):
            seen = values[within]
            least = max(LEAST[0] * np.ptp(seen), LEAST[1] * np.abs(seen).max()) if len(seen) else math.inf
        gaps = np.abs(values.reshape(rows.shape[:-1]) @ [1 - THIRD, -1, THIRD])
        bends = np.where(within.reshape(rows.shape[:-1]).all(-1), gaps, 0).max(1)
        best = np.argsort(bends)[-KEPT:]
        largest.append(float(bends[best[-1]]))
        if not largest[-1] > least:
            return None
        place = corners[best[-1]]
        corners, size = (corners[best][:, None] + size / 2 * lattice([2] * dim)).reshape(-1, dim), size / 2
    if not poles and largest[-1] > GROWN * largest[len(largest) // 2]:
        return None
    if not tips:
        steep = np.abs(derived(function, region.columns(points), along, order + 1)).reshape(len(rows), -1).max(1)
        if (2 * size[axis] * steep[best] > STEEP * largest[-1]).any():
            return None
    return dict(zip(over, place.tolist(), strict=True))


def derived(function: Rate, columns: Mapping[str, Tensor], along: str, order: int) -> Array:
    """The derivative of a function of so high an order by a coordinate: (n,)"""
    value = function(columns)
    for _ in range(order):
        (value,) = reverse(value, [columns[along]])
    found: Array = value.detach().numpy()
    return found


def lattice(counts: Sequence[int]) -> Array:
    """All points whose coordinates are whole numbers below these, (n, d)."""
    return np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), -1).reshape(-1, len(counts))
