"""The exponential of matrices."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import backends
from leafgrad.ops.define import op
from leafgrad.ops.linalg import span
from leafgrad.ops.matmul import swap
from leafgrad.ops.shape import cat
from leafgrad.ops.shifted import shifted

# Coefficients of the [13/13] Padé approximant, and the 1-norm up to which it is exact to float64.
PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
REACH = 5.371920351148152


@op("holomorphic")
def matrix_exp(xp: Any, x: Any) -> Any:
    """Sum of x^k / k!. (..., n, n) -> (..., n, n)

    Scaling and squaring with a Padé approximant: Higham (2005), "The scaling and squaring method for the matrix
    exponential revisited". Each matrix is halved as often as it needs; the largest number of times is read on the
    host.
    """
    if not x.size:
        return x.copy()
    norm = abs(x).sum(axis=-2).max(axis=-1)
    ratio = xp.maximum(norm / REACH, 1)
    halvings = xp.ceil(xp.log2(ratio))[..., None, None]
    worst: Any = backends.backend_of(x).item(halvings.max())
    scaled = x / 2**halvings
    result = _pade(xp, scaled)
    for k in range(int(worst) if math.isfinite(worst) else 0):
        result = xp.where(halvings > k, result @ result, result)
    return result


def _pade(xp: Any, x: Any) -> Any:
    b = [c / PADE[0] for c in PADE]  # of order one, so that no power overflows float32
    one = xp.broadcast_to(xp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x2 @ x4
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    return xp.linalg.solve(even - odd, even + odd)


def _matrix_exp(g: Any, x: Any) -> Any:
    """The corner of the exponential of a block matrix: Mathias (1996), "A chain rule for matrix functions"."""
    xt = swap(x)
    rows, columns = len(x.shape) - 2, len(x.shape) - 1
    n = x.shape[-1]
    top = cat(xt, g, dim=columns)
    bottom = cat(g * 0, xt, dim=columns)
    whole = matrix_exp(cat(top, bottom, dim=rows))
    return span(span(whole, rows, 0, n), columns, n, 2 * n)


matrix_exp.vjp(x=_matrix_exp)
matrix_exp.batched(shifted())
