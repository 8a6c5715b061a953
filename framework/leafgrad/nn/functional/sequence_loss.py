"""Losses of sequences whose alignment is not known: connectionist temporal classification."""

from __future__ import annotations

import math
from typing import Any

from leafgrad.dtypes import bool_, int64
from leafgrad.nn.functional.reduction import reduced
from leafgrad.ops.select import where
from leafgrad.tensor.arguments import expect_floating, expect_tensor
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.creation import arange, full
from leafgrad.tensor.data import tensor
from leafgrad.tensor.joining import cat, stack
from leafgrad.tensor.pointwise import logaddexp
from leafgrad.tensor.reductions import logsumexp
from leafgrad.tensor.tensor import Tensor

__all__ = ["ctc_loss"]

NEVER = -1e30  # the logarithm of a probability that is 0; finite, so that differences and slopes are, too


@autocast("float32")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the logarithm of the probability of each target under all its alignments. Graves et al. (2006).

    Args:
        log_probs: logarithms of probabilities, (t, n, classes) or (t, classes).
        targets: classes, integers: (n, s), padded, or all after one another, (sum of target_lengths,).
        input_lengths, target_lengths: how many of t and s count: integers, (n,).
        blank: the class that stands for no symbol.
        reduction: "none" gives (n,), or () without a batch; "mean" divides by the target lengths first.
        zero_infinity: put 0 in place of infinite losses, of targets that are too long for their input.

    Its gradient at ``log_probs`` is the derivative itself; PyTorch adds ``exp(log_probs)``, which ``log_softmax``
    takes away again.

    Raises:
        ValueError, RuntimeError: shapes, dtypes or lengths do not fit.
    """
    expect_floating(log_probs, "ctc_loss")
    if expect_tensor(targets, "targets", "ctc_loss").dtype.category != 1:
        raise RuntimeError(f"ctc_loss: targets: expected integers, got {targets.dtype}")
    alone = log_probs.ndim == 2
    x = log_probs.unsqueeze(1) if alone else log_probs
    if x.ndim != 3:
        raise RuntimeError(
            f"ctc_loss: log_probs: expected (t, n, classes) or (t, classes), got {list(log_probs.shape)}"
        )
    steps, batch, classes = x.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss: blank must be in label range, from 0 to {classes - 1}, got {blank}")
    times = _lengths(input_lengths, batch, steps, "input_lengths")
    sizes = _lengths(target_lengths, batch, None, "target_lengths")
    rows = _rows(targets.reshape(1, -1) if alone and targets.ndim == 1 else targets, sizes, batch)
    loss = _loss(x, rows.to(x.device), times, sizes, blank)
    lost = loss > -NEVER / 10
    if not zero_infinity:  # nowhere does an infinite loss fall
        loss = loss * where(lost, math.nan, loss.new_ones(()))
    loss = where(lost, 0.0 if zero_infinity else math.inf, loss)
    if reduction == "mean":
        loss = loss / tensor([float(max(s, 1)) for s in sizes], dtype=loss.dtype, device=loss.device)
    return reduced(loss.reshape(()) if alone else loss, reduction)


def _lengths(given: Any, batch: int, most: int | None, name: str) -> list[int]:
    found = (
        given.reshape(-1).tolist() if isinstance(given, Tensor) else [given] if isinstance(given, int) else list(given)
    )
    if len(found) != batch:
        raise RuntimeError(f"ctc_loss: {name} must be of size batch_size, {batch}, got {len(found)}")
    for length in found:
        if length < 0 or (most is not None and length > most):
            raise RuntimeError(f"ctc_loss: Expected {name} to have value at least 0 and at most {most}, got {length}")
    return [int(length) for length in found]


def _rows(targets: Tensor, sizes: list[int], batch: int) -> Tensor:
    """The targets as (n, longest)."""
    longest = max(sizes, default=0)
    if targets.ndim == 2:
        if targets.shape[0] != batch or targets.shape[1] < longest:
            raise RuntimeError(
                f"ctc_loss: targets: expected size [{batch}, {longest}] at least, got {list(targets.shape)}"
            )
        return targets[:, :longest].to(int64)
    if targets.ndim != 1 or targets.shape[0] != sum(sizes):
        raise RuntimeError(f"ctc_loss: targets: expected {sum(sizes)}, the sum of target_lengths, got {targets.shape}")
    flat, rows, start = targets.tolist(), [], 0
    for size in sizes:
        rows.append(flat[start : start + size] + [0] * (longest - size))
        start += size
    return tensor(rows, dtype=int64).reshape(batch, longest)


def _loss(x: Tensor, rows: Tensor, times: list[int], sizes: list[int], blank: int) -> Tensor:
    """Forward variables: the probability of each prefix, with blanks between symbols, after each step. -> (n,)"""
    (steps, batch, _), longest = x.shape, rows.shape[1]
    place = arange(longest, device=x.device)
    known = place < tensor(sizes, device=x.device).reshape(batch, 1)
    rows = where(known, rows, blank)
    blanks = full((batch, longest + 1, 1), blank, dtype=int64, device=x.device)
    labels = cat([cat([blanks[:, :-1], rows.unsqueeze(2)], 2).reshape(batch, 2 * longest), blanks[:, -1]], 1)
    skips = full(tuple(labels.shape), False, dtype=bool_, device=x.device)
    if longest > 1:
        fresh = labels[:, 2:] != labels[:, :-2]
        skips = cat([skips[:, :2], fresh], 1)
    skip = where(skips, 0.0, NEVER).to(x.dtype)
    picked = x.gather(2, labels.expand(steps, *labels.shape))
    never = full((batch, 2), NEVER, dtype=x.dtype, device=x.device)
    width = labels.shape[1]
    alpha = cat([never[:, :1] * 0, never[:, :1].expand(batch, width - 1)], 1)  # before the first step
    for t in range(max(times, default=0)):
        one = cat([never[:, :1], alpha[:, :-1]], 1)
        two = cat([never, alpha[:, :-2]], 1)[:, :width] + skip
        new = logsumexp(stack([alpha, one, two]), 0) + picked[t]
        goes_on = tensor([t < end for end in times], device=x.device).reshape(batch, 1)
        alpha = new if t < min(times) else where(goes_on, new, alpha)
    ends = tensor([[2 * s, max(2 * s - 1, 0)] for s in sizes], dtype=int64, device=x.device).reshape(batch, 2)
    last = alpha.gather(1, ends)
    empty = tensor([s == 0 for s in sizes], device=x.device)
    return -where(empty, last[:, 0], logaddexp(last[:, 0], last[:, 1]))
