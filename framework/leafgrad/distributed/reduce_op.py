"""How values of several processes are combined."""

from __future__ import annotations

from enum import Enum


class ReduceOp(Enum):
    """The elementwise sum, mean, product, minimum or maximum over all processes."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "prod"
    MIN = "min"
    MAX = "max"
