"""What is counted among numbers depends on them in steps."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op


@op
def histogram(xp: Any, x: Any, input: Any) -> Any:
    """x, which was counted or measured among the elements of ``input``: it has no gradient by these. (...) -> (...)"""
    return x.copy()


histogram.vjp(x=lambda g: g)
histogram.shape(lambda x, input: x.shape)
histogram.batched(lambda call: call.again(call.front(0), call.front(1)))
