"""Entropies, divergences, and products with logarithms that are 0 where the factor is."""

from __future__ import annotations

from typing import Any

from leafgrad import log, log1p, op
from leafgrad.ops.select import where
from leafgrad_special.functions import special
from leafgrad_special.precision import array, finely, keep


@op("elementwise", "float", c="x > 0 ? -x * log(x) : x < 0 ? log(0) : x")
def entr(xp: Any, x: Any) -> Any:
    """-x log(x), the entropy of a probability; 0 at 0, -inf below. (...) -> (...)"""
    return keep(special().entr(x), x)


entr.vjp(x=lambda g, x: g * (-log(x) - 1))


@op("elementwise", "float", c="x == 0 && y == y ? 0 : x * log1p(y)")
def xlog1py(xp: Any, x: Any, y: Any) -> Any:
    """x log(1 + y), and 0 where x is 0 unless y is nan. (...), (...) -> (...)"""
    return keep(special().xlog1py(x, y), x, y)


xlog1py.vjp(
    x=lambda g, x, y: where((x == 0) & (y <= -1), 0, g * log1p(array(y, g))),
    y=lambda g, x, y: g * x / (y + 1),
)  # fmt: skip


@op("elementwise", "float")
def rel_entr(xp: Any, x: Any, y: Any) -> Any:
    """x log(x / y), the relative entropy; 0 at x = 0 <= y, inf where either is negative. (...), (...) -> (...)"""
    return keep(special().rel_entr(x, y), x, y)


finely(rel_entr,
    x=lambda g, x, y: g * (log(x / y) + 1),
    y=lambda g, x, y: g * (-x / y),
)  # fmt: skip


@op("elementwise", "float")
def kl_div(xp: Any, x: Any, y: Any) -> Any:
    """x log(x / y) - x + y, which is least, 0, at x = y; else as rel_entr. (...), (...) -> (...)"""
    return keep(special().kl_div(x, y), x, y)


finely(kl_div,
    x=lambda g, x, y: g * log(x / y),
    y=lambda g, x, y: g * (1 - x / y),
)  # fmt: skip
