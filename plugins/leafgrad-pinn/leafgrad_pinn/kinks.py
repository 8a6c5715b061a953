"""Kinks of the functions by which exact values are kept: where a slope jumps inside of a shape."""

from __future__ import annotations

import numpy as np

import leafgrad
from leafgrad.autograd import grad
from leafgrad_pinn.calls import warn
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.shapes import Shape
from leafgrad_pinn.values import recording

CELLS, MOST = 4096, 4  # of the box about a shape, or some more, and of how many coordinates these are not too many
KEPT, HALVED = 16, 24  # cells in which slopes change most, and how often these are halved
INSIDE = 0.02  # of its largest value, what a shape's function is at least where kinks count: corners of edges have some
JUMP = 0.01  # of the largest slope, by how much one changes in the last cells: where it is smooth, by 1e-8 or so


def check_smooth(what: str, shape: Shape) -> None:
    """A warning for each function of the caller's own in a shape that has a kink inside of the shape."""
    for part in shape.written if len(shape.names) <= MOST else ():
        if (place := kink(shape, part)) is not None:
            at = dict(zip(shape.names, (place.round(6) + 0.0).tolist(), strict=True))
            warn(
                f"{what}: Hard multiplies by the function of a shape, whose slope jumps inside, as at {at}. The field "
                "keeps that kink for ever, and no equation sees it; take a function that is smooth inside, such as "
                "(x*x + y*y - 1) / 2 in place of sqrt(x*x + y*y) - 1, or Dirichlet(...)"
            )


def kink(shape: Shape, part: Shape) -> Array | None:
    """A point inside of a shape where the slope of ``level`` of a part of it jumps, (d,); None if none was found.

    Cells in which the slope changes most are halved again and again. In ever smaller ones a smooth function has one
    slope, and only about a kink there remain several, be it a surface or the tip of a cone.
    """
    dim = len(shape.bounds)
    count, aside = int(np.ceil(CELLS ** (1 / dim))), np.random.default_rng(0).random(dim)
    size = np.ptp(shape.bounds, axis=1) / count
    cells = shape.bounds[:, 0] + size * (lattice(count + 1, dim) - aside)  # whose sides are where no kinks are
    ends = lattice(2, dim)
    for step in range(HALVED):
        corners = np.clip(cells[:, None] + size * ends, *shape.bounds.T)  # beyond, functions may be nan
        levels, slopes = levels_and_slopes(shape, part, corners)
        if step == 0:
            least = INSIDE * levels[np.isfinite(levels)].max(initial=0)
        within = (levels > least)[..., None] & np.isfinite(slopes)
        if step == 0:
            largest = np.linalg.norm(np.where(within, slopes, 0), axis=-1).max()
        highest, lowest = np.where(within, slopes, -np.inf).max(1), np.where(within, slopes, np.inf).min(1)
        change = np.linalg.norm(np.maximum(highest - lowest, 0), axis=-1)
        best = np.argsort(change)[-KEPT:]
        place, jump = cells[best[-1]], change[best[-1]]
        cells, size = (cells[best][:, None] + size / 2 * ends).reshape(-1, dim), size / 2
    return place if jump > JUMP * largest else None


def lattice(count: int, dim: int) -> Array:
    """All points whose coordinates are whole numbers below a count, (n, dim)."""
    return np.stack(np.meshgrid(*[np.arange(count)] * dim, indexing="ij"), -1).reshape(-1, dim)


@recording()
@np.errstate(all="ignore")
def levels_and_slopes(shape: Shape, part: Shape, points: Array) -> tuple[Array, Array]:
    """``level`` of a shape at points (n, m, d), (n, m), and the slopes of that of a part of it, (n, m, d)."""
    rows = points.reshape(-1, points.shape[-1]).T
    columns = {name: leafgrad.tensor(np.ascontiguousarray(row), requires_grad=True)
               for name, row in zip(shape.names, rows, strict=True)}  # fmt: skip
    slopes = grad(part.level(columns).sum(), list(columns.values()), materialize_grads=True)
    levels = shape.level(columns).detach().numpy().reshape(points.shape[:-1])
    return levels, np.stack([slope.numpy() for slope in slopes], -1).reshape(points.shape)
