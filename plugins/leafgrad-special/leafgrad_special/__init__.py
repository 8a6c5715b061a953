"""Special functions with derivatives of any order, on SciPy's and, on CUDA devices, CuPy's implementations.

Names are SciPy's. Everything works element by element on tensors of any shape; float32 stays float32. What
leafgrad has itself is not repeated here: `leafgrad.erf`, `leafgrad.sigmoid`, `leafgrad.xlogy`, `leafgrad.sinc`.
"""

from __future__ import annotations

from leafgrad.ops.op import Op
from leafgrad.plugins import hookimpl
from leafgrad_special import cupy_kernels
from leafgrad_special.bessel import i0, i0e, i1, i1e, iv, ive, j0, j1, jv
from leafgrad_special.entropy import entr, xlog1py
from leafgrad_special.error import erfc, erfcx, erfinv
from leafgrad_special.gamma import digamma, gammaln, polygamma
from leafgrad_special.normal import log_ndtr, mills, ndtr, ndtri

__all__ = [
    "digamma",
    "entr",
    "erfc",
    "erfcx",
    "erfinv",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "iv",
    "ive",
    "j0",
    "j1",
    "jv",
    "log_ndtr",
    "mills",
    "ndtr",
    "ndtri",
    "polygamma",
    "xlog1py",
]

leafgrad_api_version = 1


@hookimpl
def leafgrad_ops() -> list[Op]:
    """The ops of this package."""
    return [*cupy_kernels.OPS]
