"""``jet``: derivatives of higher order along curves, by Taylor mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from leafgrad import modes
from leafgrad.autograd.taylor import Expansion
from leafgrad.batching import pytree
from leafgrad.func.arguments import tensors
from leafgrad.func.level import Level, is_open, zeros
from leafgrad.tensor.tensor import Tensor

__all__ = ["jet"]

JET = "jet(f, primals, series)"


def jet(func: Callable[..., Any], primals: tuple[Any, ...], series: tuple[Any, ...]) -> tuple[Any, Any]:
    """The value of ``func`` and its derivatives along a curve, up to any order, by Taylor mode.

    The primals move along x(t) with x(0) = primal and the derivatives x'(0), x''(0), ... in ``series``; the result are
    those of func(x(t)). With ``series=([v, None, None],)`` they are the derivatives of ``func`` along the line in
    direction v. Costs grow with the square of the order, where nested ``grad`` or ``jvp`` double them each time.

    Args:
        func: takes the primals, gives tensors, nested or not.
        primals: the point: a tuple of floating tensors.
        series: for each primal a list of its derivatives by t, the first one first, as many for each: tensors of the
            primal's shape, dtype and device, or None for zero.

    Returns:
        ``(output, derivatives)``: the value, and in its form a list of derivatives in place of each tensor.

    Raises:
        TypeError, ValueError: primals and series that do not match. RuntimeError: ``func`` gives other than tensors.
    """
    order = check(primals, series)
    level = Level()
    with level:
        leaves = level.differentiable(primals)
        output = func(*leaves)
        outputs, form = tensors(output, JET)
    given = [t for terms in series for t in terms if t is not None]
    recorded = modes.is_grad_enabled() and is_open(outputs, given)
    expansion = Expansion(order, recorded)
    with modes.set_grad_enabled(recorded):
        for leaf, terms in zip(leaves, series, strict=True):
            expansion.seed(leaf, [scaled(t, 1 / math.factorial(k)) for k, t in enumerate(terms, 1)])
        expansion.sweep(outputs)
        found = [
            [derivative(expansion, out, k) for k in range(1, order + 1)]
            for out in outputs
        ]  # fmt: skip
    flat = level.settled(found)
    return level.settled(output), pytree.unflatten(form, iter(flat))


def scaled(t: Tensor | None, factor: float) -> Tensor | None:
    return t if t is None or factor == 1 else t * factor


def derivative(expansion: Expansion, output: Tensor, k: int) -> Tensor:
    """The k-th derivative of an output."""
    term = expansion.of(output, k)
    found = scaled(term, math.factorial(k))
    return zeros(output) if found is None else found


def check(primals: Any, series: Any) -> int:
    """The order of the series, if they go with the primals."""
    if not isinstance(primals, tuple) or not primals:
        raise TypeError(f"{JET}: primals: expected a tuple of tensors, as in jet(f, (x,), ([v],)), got {spelled(primals)}")
    if not isinstance(series, (tuple, list)) or len(series) != len(primals):
        raise ValueError(
            f"{JET}: series: expected a tuple with a list for each of {len(primals)} primals, got {spelled(series)}"
        )
    for i, (x, terms) in enumerate(zip(primals, series, strict=True)):
        if not isinstance(x, Tensor) or not x.dtype.is_floating_point:
            raise TypeError(f"{JET}: primals[{i}]: expected a floating tensor, got {spelled(x)}")
        if not isinstance(terms, (tuple, list)):
            raise TypeError(f"{JET}: series[{i}]: expected a list of derivatives, got {spelled(terms)}")
        if len(terms) != len(series[0]):
            raise ValueError(
                f"{JET}: series[{i}]: expected {len(series[0])} derivatives, as in series[0], got {len(terms)}; "
                "fill up with None, which stands for zero"
            )
        for k, t in enumerate(terms):
            check_term(f"series[{i}][{k}]", f"primals[{i}]", x, t)
    return len(series[0])


def check_term(name: str, like: str, x: Tensor, t: Any) -> None:
    """An error unless ``t`` is None or a tensor like ``x``."""
    if t is None:
        return
    if not isinstance(t, Tensor):
        raise TypeError(f"{JET}: {name}: expected a tensor, or None for zero, got {spelled(t)}")
    for what, ours, theirs in (
        ("shape", tuple(x.shape), tuple(t.shape)),
        ("dtype", x.dtype, t.dtype),
        ("device", x.device, t.device),
    ):
        if ours != theirs:
            raise ValueError(f"{JET}: {name}: expected {what} {ours}, as of {like}, got {theirs}")


def spelled(value: Any) -> str:
    """A value in an error."""
    if isinstance(value, Tensor):
        return f"a tensor of {value.dtype}"
    return f"{len(value)} elements" if isinstance(value, (tuple, list)) else type(value).__name__
