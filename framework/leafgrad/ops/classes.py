"""Reading and writing one class of many, as losses of class scores do."""

from __future__ import annotations

from typing import Any

from leafgrad.ops.define import op
from leafgrad.ops.index import check
from leafgrad.ops.reduce import log_softmax, softmax, sum

POSITIVE = (1 << 62) - 1


def _key(xp: Any, shape: tuple[int, ...], target: Any, dim: int, ignore: int) -> tuple[Any, Any]:
    """Where ``target`` is not ignored, and the index arrays of its places in an array of ``shape``.

    A negative class must not count from the end: its sign bit is cut off, which puts it out of range.
    """
    kept = target != ignore
    at = xp.where(kept, target, 0) & POSITIVE
    others = [n for d, n in enumerate(shape) if d != dim]
    ladders = [
        xp.arange(n).reshape((1,) * axis + (n,) + (1,) * (len(others) - axis - 1)) for axis, n in enumerate(others)
    ]
    return kept, (*ladders[:dim], at, *ladders[dim:])


def _checked(xp: Any, shape: tuple[int, ...], target: Any, dim: int, ignore: int) -> tuple[Any, Any]:
    """The same after a check of the targets, which ``place`` and slopes have from ops that did it."""
    kept, key = _key(xp, shape, target, dim, ignore)
    check(key[dim], shape[dim], dim)
    return kept, key


@op("any_dtype")
def pick(xp: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    """x at the class that ``target`` (int64) names along ``dim``, 0 where it is ``ignore``. (n, c, ...) -> (n, ...)"""
    kept, key = _checked(xp, x.shape, target, dim, ignore)
    return xp.where(kept, x[key], 0)


@op("any_dtype")
def place(xp: Any, v: Any, target: Any, *, shape: tuple[int, ...], dim: int, ignore: int) -> Any:
    """Zeros of ``shape`` with v written where ``pick`` would read; the transpose of pick. (n, ...) -> (n, c, ...)"""
    out = xp.zeros(shape, dtype=v.dtype)
    kept, key = _key(xp, shape, target, dim, ignore)
    out[key] = xp.where(kept, v, 0)
    return out


pick.vjp(
    x=lambda g, target, x_shape, *, dim, ignore: place(g, target, shape=x_shape, dim=dim, ignore=ignore),
)  # fmt: skip
place.vjp(v=lambda g, target, *, dim, ignore: pick(g, target, dim=dim, ignore=ignore))


# ---- the mean cross-entropy, whole --------------------------------------------------------------------------------


@op("any_dtype")
def cross_entropy(xp: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    """Mean of -log(softmax(x)) at the target classes that are not ``ignore``; nan if all are. (n, c, ...) -> ()

    What ``log_softmax``, ``pick`` and a mean do, as one op: classifiers spend much of a small step here.
    """
    kept, key = _checked(xp, x.shape, target, dim, ignore)
    picked = log_softmax.forward(xp, x, dim=dim)[key]
    return -xp.where(kept, picked, 0).sum() / kept.sum().astype(x.dtype)


@op("any_dtype", "nondifferentiable")
def shares(xp: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    """1 over the count of targets that are not ``ignore``, 0 for the others, be they all. (n, c, ...) -> (n, 1, ...)"""
    kept = target != ignore
    return xp.expand_dims(kept / xp.maximum(kept.sum(), 1), dim).astype(x.dtype)


@op("any_dtype")
def cross_entropy_slope(xp: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    """The derivative of ``cross_entropy`` by x: softmax(x) less one at the target class, over the count."""
    _, key = _key(xp, x.shape, target, dim, ignore)
    out = softmax.forward(xp, x, dim=dim)
    out[key] -= 1
    out *= shares.forward(xp, x, target, dim=dim, ignore=ignore)
    return out


def _softmax_rule(g: Any, x: Any, target: Any, *, dim: int, ignore: int) -> Any:
    s, h = softmax(x, dim=dim), g * shares(x, target, dim=dim, ignore=ignore)
    return s * (h - sum(s * h, dim=(dim,), keepdim=True))


cross_entropy.vjp(x=lambda g, x, target, *, dim, ignore: g * cross_entropy_slope(x, target, dim=dim, ignore=ignore))
cross_entropy_slope.vjp(x=_softmax_rule)
