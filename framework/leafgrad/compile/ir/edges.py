"""Numbers at which ways to compute one elementwise function part: nan, infinities, zeros, the ends of a dtype's range.

Tolerances that go by the largest element are of no use among such numbers. Here each element is judged by itself: by
how far the forward is from itself in higher precision, and by how much it moves when its arguments move by some units
in the last place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from leafgrad import backends

DTYPES: Final = ("float32", "float64")
WIDER: Final = {"float32": "float64", "float64": "longdouble"}
PLAIN: Final = (
    0.0,
    0.3,
    0.5,
    1.0,
    1.5,
    2.0,
    3.0,
    7.0,
    20.0,
    40.0,
    89.0,
    104.0,
    710.0,
    801.0,
    1e4,
    1e10,
    1e20,
    1e-4,
    1e-8,
)
MOST: Final = 2500  # combinations of several arguments
RUNS: Final = 4  # with moved arguments
ULPS, MORE, OWN = 64, 32, 8  # what is allowed: units in the last place, times the moves, times the forward's own error


def values(dtype: str) -> Any:
    """Numbers of a floating dtype that functions trip over."""
    xp = backends.by_device_type("cpu").xp
    info = xp.finfo(dtype)
    small, eps, large = float(info.smallest_normal), float(info.eps), float(info.max)
    found = [
        *PLAIN,
        float(info.smallest_subnormal),
        small / 4,
        small,
        eps,
        1 + eps,
        1 - eps,
        large**0.5,
        large / 2,
        large,
    ]
    return xp.asarray([xp.nan, xp.inf, -xp.inf, *found, *(-v for v in found)], dtype)


def arguments(count: int, dtype: str) -> list[Any]:
    """Arrays of one length for so many arguments: all combinations of the values, or as many as there is time for."""
    xp = backends.by_device_type("cpu").xp
    known = values(dtype)
    if count <= 1:
        return [known] * count
    total = len(known) ** count
    rng = xp.random.default_rng(0)
    at = xp.arange(total) if total <= MOST else rng.integers(0, total, MOST)
    return [known[at // len(known) ** k % len(known)] for k in range(count)]


def first_difference(compute: Callable[..., Any], args: Sequence[Any], ours: Any) -> tuple[int, ...] | None:
    """The place of the first element of ``ours`` that is not what ``compute(*args)`` gives, but for rounding."""
    xp = backends.by_device_type("cpu").xp
    with xp.errstate(all="ignore"):
        right = compute(*args)
        if ours.shape != right.shape or ours.dtype != right.dtype:
            return (0,) * right.ndim
        truth = in_higher_precision(compute, args, right)
        others = [compute(*moved(args, seed)) for seed in range(RUNS)]
        wrong = xp.argwhere(~agreeing(ours, right, truth, others))
    return tuple(map(int, wrong[0])) if len(wrong) else None


def in_higher_precision(compute: Callable[..., Any], args: Sequence[Any], right: Any) -> Any:
    """What the function gives in the next higher precision; ``right`` where it knows none."""
    try:
        found = compute(*[a.astype(WIDER[a.dtype.name]) if is_float(a) else a for a in args])
    except Exception:  # a forward's own: SciPy's functions take no long doubles
        return right
    return found if found.shape == right.shape else right


def moved(args: Sequence[Any], seed: int) -> list[Any]:
    """Arguments, moved by some units in the last place."""
    xp = backends.by_device_type("cpu").xp
    rng = xp.random.default_rng(seed)
    return [
        a * (1 + rng.uniform(-4, 4, a.shape) * xp.finfo(a.dtype).eps).astype(a.dtype) if is_float(a) else a
        for a in args
    ]


def is_float(a: Any) -> bool:
    return getattr(a, "dtype", None) is not None and a.dtype.name in WIDER


def agreeing(ours: Any, right: Any, truth: Any, others: Sequence[Any]) -> Any:
    """Where elements are what they should be."""
    xp = backends.by_device_type("cpu").xp
    good = (ours == right) | (ours == truth.astype(right.dtype))
    for other in others:
        good |= ours == other
    if right.dtype.kind != "f":
        return good
    for other in (right, *others):
        good |= xp.isnan(ours) & xp.isnan(other)
    info = xp.finfo(right.dtype)

    def apart(a: Any, b: Any) -> Any:
        return xp.where(xp.isfinite(a) & xp.isfinite(b), xp.abs(a - b), 0).astype("float64")

    moves = xp.maximum.reduce([apart(other, right) for other in others])
    allowed = MORE * moves + OWN * apart(right, truth) + ULPS * info.eps * xp.abs(right) + 4 * info.smallest_normal
    finite = xp.isfinite(ours)
    good |= finite & xp.isfinite(right) & (xp.abs(ours - right) <= allowed)
    better = finite & xp.isfinite(truth) & (xp.abs(ours - truth) <= ULPS * info.eps * xp.abs(truth))
    brim = ~finite & xp.isfinite(right) & (xp.abs(right) > info.max / 4) & (xp.sign(ours) == xp.sign(right))
    lost = xp.isnan(right) & ~xp.isnan(truth) & xp.isinf(ours)  # by inf - inf on the way, of which C rounds one away
    return good | better | brim | lost
