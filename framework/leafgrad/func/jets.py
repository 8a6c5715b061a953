"""``jet``: derivatives of higher order along curves, by Taylor mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from leafgrad import modes
from leafgrad.autograd.functional import plain_zeros
from leafgrad.autograd.taylor import Expansion
from leafgrad.batching import pytree
from leafgrad.batching.batched import Batch
from leafgrad.batching.boundary import enter, leave
from leafgrad.batching.vmap import running
from leafgrad.func.arguments import tensors
from leafgrad.func.level import Level, is_open
from leafgrad.tensor.tensor import Tensor

__all__ = ["jet"]

JET = "jet(f, primals, series)"


def jet(
    func: Callable[..., Any], primals: tuple[Any, ...], series: tuple[Any, ...], *, collapse: bool = False
) -> tuple[Any, Any]:
    """The value of ``func`` and its derivatives along a curve, up to any order, by Taylor mode.

    The primals move along x(t) with x(0) = primal and the derivatives x'(0), x''(0), ... in ``series``; the result are
    those of func(x(t)). With ``series=([v, None, None],)`` they are the derivatives of ``func`` along the line in
    direction v. Costs grow with the square of the order, where nested ``grad`` or ``jvp`` double them each time.

    Args:
        func: takes the primals, gives tensors, nested or not.
        primals: the point: a tuple of floating tensors.
        series: for each primal a list of its derivatives by t, the first one first, as many for each: tensors of the
            primal's shape, dtype and device, or None for zero.
        collapse: move along several curves at once, which are one more dimension, the first one, of everything in
            ``series`` and of all derivatives but the last: of these comes the sum, which costs much less than each.
            With the unit vectors as directions and order 2, this is the Laplacian.

    Returns:
        ``(output, derivatives)``: the value, and in its form a list of derivatives in place of each tensor.

    Raises:
        TypeError, ValueError: primals and series that do not match. RuntimeError: ``func`` gives other than tensors.
    """
    order, curves = check_series(primals, series, collapse)
    level = Level(forward=True)
    with level:
        leaves = level.differentiable(primals)
        output = func(*leaves)
        outputs, form = tensors(output, JET)
    level.recall(outputs)
    given = [t for terms in series for t in terms if t is not None]
    recorded = modes.is_grad_enabled() and is_open(outputs, given)
    batch = Batch(curves, "error") if collapse else None
    expansion = Expansion(order, recorded, batch)
    with modes.set_grad_enabled(recorded), nullcontext() if batch is None else running(batch):
        for leaf, terms in zip(leaves, series, strict=True):
            expansion.seed(leaf, [entered(t, k, batch) for k, t in enumerate(without_gaps(terms), 1)])
        expansion.sweep(outputs)
        found = [[derivative(expansion, out, k) for k in range(1, order + 1)] for out in outputs]
    return level.settled(output), pytree.unflatten(form, iter(level.settled(found)))


def without_gaps(terms: Any) -> list[Tensor | None]:
    """Derivatives with zeros before the last that is none: an expansion has gaps at its end alone."""
    some = next((t for t in reversed(terms) if t is not None), None)
    last = max([k for k, t in enumerate(terms) if t is not None], default=0)
    return [plain_zeros(some) if t is None and some is not None and k < last else t for k, t in enumerate(terms)]


def entered(t: Tensor | None, k: int, batch: Batch | None) -> Tensor | None:
    """A k-th derivative as a coefficient."""
    if t is not None and batch is not None:
        t = enter(t, batch=batch, dim=0)
    return scaled(t, 1 / math.factorial(k))


def scaled(t: Tensor | None, factor: float) -> Tensor | None:
    return t if t is None or factor == 1 else t * factor


def derivative(expansion: Expansion, output: Tensor, k: int) -> Tensor:
    """The k-th derivative of an output."""
    found = scaled(expansion.of(output, k), math.factorial(k))
    found = plain_zeros(output) if found is None else found
    if expansion.batch is None or k == expansion.order:
        return found
    whole: Tensor = leave(found, batch=expansion.batch, dim=0)
    return whole


def check_series(primals: Any, series: Any, collapse: bool) -> tuple[int, int]:
    """The order of the series, if they go with the primals, and along how many curves they are."""
    if not isinstance(primals, tuple) or not primals:
        raise TypeError(
            f"{JET}: primals: expected a tuple of tensors, as in jet(f, (x,), ([v],)), got {in_words(primals)}"
        )
    if not isinstance(series, (tuple, list)) or len(series) != len(primals):
        raise ValueError(
            f"{JET}: series: expected a tuple with a list for each of {len(primals)} primals, got {in_words(series)}"
        )
    lead = curves(series) if collapse else ()
    for i, (x, terms) in enumerate(zip(primals, series, strict=True)):
        if not isinstance(x, Tensor) or not x.dtype.is_differentiable:
            raise TypeError(f"{JET}: primals[{i}]: expected a floating or complex tensor, got {in_words(x)}")
        if not isinstance(terms, (tuple, list)):
            raise TypeError(f"{JET}: series[{i}]: expected a list of derivatives, got {in_words(terms)}")
        if len(terms) != len(series[0]):
            raise ValueError(
                f"{JET}: series[{i}]: expected {len(series[0])} derivatives, as in series[0], got {len(terms)}; "
                "fill up with None, which stands for zero"
            )
        for k, t in enumerate(terms):
            check_term(f"series[{i}][{k}]", f"primals[{i}]", x, t, lead)
    return len(series[0]), lead[0] if lead else 1


def curves(series: Any) -> tuple[int]:
    """Along how many curves there are derivatives."""
    for terms in series:
        for t in terms if isinstance(terms, (tuple, list)) else ():
            if isinstance(t, Tensor) and t.ndim:
                return (t.shape[0],)
    raise ValueError(f"{JET}: series: expected a tensor with the curves as its first dimension, for collapse=True")


def check_term(name: str, like: str, x: Tensor, t: Any, lead: tuple[int, ...]) -> None:
    """An error unless ``t`` is None or a tensor like ``x``, with the dimensions ``lead`` before its own."""
    if t is None:
        return
    if not isinstance(t, Tensor):
        raise TypeError(f"{JET}: {name}: expected a tensor, or None for zero, got {in_words(t)}")
    for what, ours, theirs in (
        ("shape", (*lead, *x.shape), tuple(t.shape)),
        ("dtype", x.dtype, t.dtype),
        ("device", x.device, t.device),
    ):
        if ours != theirs:
            before = "curves before " if lead and what == "shape" else ""
            raise ValueError(f"{JET}: {name}: expected {what} {ours}, {before}that of {like}, got {theirs}")


def in_words(value: Any) -> str:
    """A value in an error."""
    if isinstance(value, Tensor):
        return f"a tensor of {value.dtype}"
    return f"{len(value)} elements" if isinstance(value, (tuple, list)) else type(value).__name__
