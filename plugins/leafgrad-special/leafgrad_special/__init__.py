"""Special functions with derivatives of any order, on SciPy's and, on CUDA devices, CuPy's implementations.

Names are SciPy's. Everything works element by element on tensors of any shape; float32 stays float32, and its
derivatives are computed in float64 before they are rounded. What leafgrad has itself is not repeated here:
`leafgrad.erf`, `leafgrad.sigmoid`, `leafgrad.xlogy`, `leafgrad.sinc`.
"""

from __future__ import annotations

from leafgrad.ops.op import Op
from leafgrad.plugins import hookimpl
from leafgrad_special import cupy_kernels
from leafgrad_special.bessel import i0, i0e, i1, i1e, iv, ive, j0, j1, jv
from leafgrad_special.entropy import entr, kl_div, rel_entr, xlog1py
from leafgrad_special.error import dawsn, erfc, erfcinv, erfcx, erfi, erfinv
from leafgrad_special.exponential import exp1, expi, expn, exprel, fresnel, lambertw, shichi, sici
from leafgrad_special.gamma import beta, betaln, digamma, gamma, gammaln, gammasgn, multigammaln, poch, polygamma, zeta
from leafgrad_special.hypergeometric import ellipe, ellipk, hyp2f1, spence
from leafgrad_special.incomplete import betainc, betaincinv, gammainc, gammaincc, gammainccinv, gammaincinv
from leafgrad_special.normal import log_ndtr, mills, ndtr, ndtri
from leafgrad_special.polynomials import (
    chebyt,
    eval_chebyt,
    eval_chebyu,
    eval_gegenbauer,
    eval_genlaguerre,
    eval_hermite,
    eval_hermitenorm,
    eval_laguerre,
    eval_legendre,
    gegenbauer,
    genlaguerre,
    hermite,
    hermitenorm,
)
from leafgrad_special.robust import boxcox, boxcox1p, huber, pseudo_huber
from leafgrad_special.second_kind import k0, k0e, k1, k1e, kv, kve, y0, y1, yn
from leafgrad_special.spherical import airy, spherical_in, spherical_jn, spherical_kn, spherical_yn, struve

__all__ = [
    "airy",
    "beta",
    "betainc",
    "betaincinv",
    "betaln",
    "boxcox",
    "boxcox1p",
    "dawsn",
    "digamma",
    "ellipe",
    "ellipk",
    "entr",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfi",
    "erfinv",
    "eval_chebyt",
    "eval_chebyu",
    "eval_gegenbauer",
    "eval_genlaguerre",
    "eval_hermite",
    "eval_hermitenorm",
    "eval_laguerre",
    "eval_legendre",
    "exp1",
    "expi",
    "expn",
    "exprel",
    "fresnel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "gammasgn",
    "huber",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "iv",
    "ive",
    "j0",
    "j1",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kl_div",
    "kv",
    "kve",
    "lambertw",
    "log_ndtr",
    "mills",
    "multigammaln",
    "ndtr",
    "ndtri",
    "poch",
    "polygamma",
    "pseudo_huber",
    "rel_entr",
    "shichi",
    "sici",
    "spence",
    "spherical_in",
    "spherical_jn",
    "spherical_kn",
    "spherical_yn",
    "struve",
    "xlog1py",
    "y0",
    "y1",
    "yn",
    "zeta",
]

leafgrad_api_version = 1


@hookimpl
def leafgrad_ops() -> list[Op]:
    """The ops of this package."""
    return [*cupy_kernels.OPS, pseudo_huber, exprel, chebyt, gegenbauer, genlaguerre, hermite, hermitenorm]
