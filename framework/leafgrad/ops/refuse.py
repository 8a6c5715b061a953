"""Errors that depend on elements, in eager and in compiled steps alike."""

from __future__ import annotations

from typing import Any

from leafgrad import backends
from leafgrad.ops.define import op
from leafgrad.ops.messages import RefusedError


@op("comparison", "raises")
def refuse(xp: Any, bad: Any, *, error: type[Exception], message: str) -> Any:
    """``error(message)`` if any element of ``bad`` is true; otherwise all of it, which is false. (...) -> (...) bool

    The host waits for the answer.
    """
    if bad.size and backends.backend_of(bad).item(bad.any()):
        raise RefusedError(error(message))
    return xp.zeros(bad.shape, dtype="bool")


refuse.lower("native", lambda c, e: c.elementwise("refused(bad)", kind="float32"))  # C stops, and the forward raises
