"""Gauss' hypergeometric function, and what has it as derivative: complete elliptic integrals, the dilogarithm."""

from __future__ import annotations

import math
from typing import Any

from leafgrad import Tensor, log, op
from leafgrad.ops.select import where
from leafgrad_special.functions import special
from leafgrad_special.precision import finely, keep


@op("elementwise", "float", name="hyp2f1")
def hyp2f1_op(xp: Any, x: Any, *, a: float, b: float, c: float) -> Any:
    """Gauss' hypergeometric function F(a, b; c; x) (DLMF 15.2.1). (...) -> (...)"""
    return keep(special().hyp2f1(a, b, c, x), x)


finely(hyp2f1_op, x=lambda g, x, *, a, b, c: g * (a * b / c * hyp2f1_op(x, a=a + 1, b=b + 1, c=c + 1)))  # DLMF 15.5.1


@op("elementwise", "float")
def ellipk(xp: Any, m: Any) -> Any:
    """The complete elliptic integral of the first kind, K(m), m = k**2 <= 1 (DLMF 19.2.8). (...) -> (...)"""
    return keep(special().ellipk(m), m)


@op("elementwise", "float")
def ellipe(xp: Any, m: Any) -> Any:
    """The complete elliptic integral of the second kind, E(m), m = k**2 <= 1 (DLMF 19.2.8). (...) -> (...)"""
    return keep(special().ellipe(m), m)


# DLMF 19.5.1, 19.5.2 and 15.5.1: in this form there is no cancellation at 0
finely(ellipk, m=lambda g, m: g * (math.pi / 8 * hyp2f1_op(m, a=1.5, b=1.5, c=2.0)))
finely(ellipe, m=lambda g, m: g * (-math.pi / 8 * hyp2f1_op(m, a=0.5, b=1.5, c=2.0)))


@op("elementwise", "float")
def spence(xp: Any, x: Any) -> Any:
    """The dilogarithm of 1 - x: the integral of log(t) / (1 - t) from 1 to x (DLMF 25.12.2). (...) -> (...)"""
    return keep(special().spence(x), x)


def _spence_x(g: Any, x: Any) -> Any:
    """log(x) / (1 - x), and by F(1, 1; 2; 1 - x) where that would be 0 / 0 (DLMF 15.4.1)."""
    far = abs(x - 1) > 0.5
    away, near = where(far, x, 2.0), where(far, 1.0, x)
    return g * where(far, log(away) / (1 - away), -hyp2f1_op(1 - near, a=1.0, b=1.0, c=2.0))


finely(spence, x=_spence_x)


# ---- by parameters ------------------------------------------------------------------------------------------------


def hyp2f1(a: float, b: float, c: float, input: Tensor) -> Tensor:
    """Gauss' hypergeometric function F(a, b; c; x) of numbers a, b, c (DLMF 15.2.1). (...) -> (...)"""
    result: Tensor = hyp2f1_op(input, a=float(a), b=float(b), c=float(c))
    return result
