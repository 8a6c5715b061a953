"""Numbers that tell one problem from another, by which a run knows that it goes on with its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from leafgrad import Tensor
from leafgrad_pinn.sampling import Array
from leafgrad_pinn.scales import norm

LARGE = 4.0  # how many times as large as they are fields are for that
SIZES = (1e-6, 1e-3, 1.0, 1e3, 1e6)  # of residuals at which losses are compared


def marks(
    residuals: Tensor, large: Tensor, loss: Callable[[Any], Any] | None, batch: Mapping[str, Tensor]
) -> list[float]:
    """Those of a condition: others for another equation, another loss, or other points, values and weights.

    Args:
        residuals: at its points, (n, k).
        large: the same of large fields, for equations that differ where fields are large alone.
        loss: its own, if it has one.
        batch: what it draws, (n, ...) each.
    """
    found = residuals.numpy()
    losses = [norm((loss or abs)((residuals + 1) * size).numpy()) / size for size in SIZES]
    summed = [
        mark for values in (found, large.numpy(), *[t.numpy() for t in batch.values()]) for mark in in_order(values)
    ]
    return [norm(found), norm(found + 1), *losses, *summed]


def in_order(values: Array) -> list[float]:
    """Weighted sums over all but the last axis of (n, k), which are others in another order. For (n,) of all."""
    columns = values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values[:, None]
    with np.errstate(all="ignore"):  # of infinities
        found: list[float] = ((np.random.default_rng(0).random(len(columns)) - 0.5) @ columns).tolist()
    return found


def alike(old: Sequence[float], new: Sequence[float]) -> bool:
    """Whether these are the same numbers up to rounding."""
    atol = 1e-14 * max((abs(mark) for mark in old if np.isfinite(mark)), default=0.0)
    return len(old) == len(new) and bool(np.allclose(old, new, rtol=1e-6, atol=atol, equal_nan=True))
