"""How values of several processes are combined."""

from __future__ import annotations

from enum import Enum
from typing import Never


class ReduceOp(Enum):
    """The elementwise sum, mean, product, minimum or maximum over all processes."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "prod"
    MIN = "min"
    MAX = "max"

    @classmethod
    def _missing_(cls, value: object) -> Never:
        raise ValueError(f"op: expected {', '.join(map(str, cls))}, got {value!r}")
