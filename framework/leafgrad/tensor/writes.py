"""In-place writes of values, random numbers and what Python functions give: copy_, fill_, normal_, apply_, …"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

from leafgrad.ops import create, dispatch, random as random_ops
from leafgrad.ops.complex import view_as_real
from leafgrad.tensor import arguments
from leafgrad.tensor.creation import converted, expect_within, last_whole, number
from leafgrad.tensor.data import copied
from leafgrad.tensor.inplace import check, filled, update, write
from leafgrad.tensor.public import public
from leafgrad.tensor.random import Generator, draw, stream
from leafgrad.tensor.rearranging import diagonal, tril, triu
from leafgrad.tensor.sampling import expect_probabilities, probability
from leafgrad.tensor.shapes import reshaped
from leafgrad.tensor.tensor import Tensor

Shape = tuple[int, ...]


def value_for(x: Tensor, value: Any, argument: str) -> Any:
    """``value`` as a Python number of x's category."""
    return converted(number(value, argument, may_be_complex=True), x.dtype, argument)


@public(only="Tensor")
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Write the elements of ``src``, broadcast and converted to this dtype and device; gradients flow to ``src``.

    Args:
        src: a tensor that broadcasts.
        non_blocking: accepted, and not used.
    """
    if not isinstance(src, Tensor) and isinstance(src, numbers.Number):
        return fill_(self, src)
    check(self, "copy")
    new = arguments.expect_tensor(src, "src", "copy_")
    if (place := self.device) is not new.device:
        new = new.to(place)
    return write(self, arguments.discarding(new, self.dtype), held=True)


@public(only="Tensor")
def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one number, or the element of a tensor without dimensions, everywhere."""
    if filled(self, value):
        return self
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
        return copy_(self, value)
    check(self, "fill", fill=True)
    plain = value_for(self, value, "fill_: value")
    return write(
        self, dispatch.create(create.full, self.device.resolve(), shape=(), value=plain, dtype=self.dtype.name)
    )


@public(only="Tensor")
def zero_(self: Tensor) -> Tensor:
    """Write zero everywhere."""
    return fill_(self, 0)


@public(only="Tensor")
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write one number to the elements [i, i] of a matrix, or [i, i, …] of a tensor of equal dimensions.

    Args:
        fill_value: a number.
        wrap: of a tall matrix, begin again one row below each time that the diagonal has come to the last column.
    """
    shape = tuple(self.shape)
    if len(shape) < 2:
        raise RuntimeError(f"fill_diagonal_: dimensions must larger than 1, got {len(shape)}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError(f"fill_diagonal_: all dimensions of input must be of equal length, got {shape}")
    for row in range(0, shape[0], shape[1] + 1) if wrap and len(shape) == 2 else [0]:
        line = self[row:]
        while line.ndim > 1:
            line = diagonal(line)
        fill_(line, fill_value)
    return self


@public(only="Tensor")
def tril_(self: Tensor, diagonal: int = 0) -> Tensor:
    """Write zeros above a diagonal of the last two dimensions."""
    return update(self, tril, diagonal)


@public(only="Tensor")
def triu_(self: Tensor, diagonal: int = 0) -> Tensor:
    """Write zeros below a diagonal of the last two dimensions."""
    return update(self, triu, diagonal)


# ---- random -------------------------------------------------------------------------------------------------------


def _drawn(self: Tensor, name: str, op: Any, generator: Generator | None, **params: Any) -> Tensor:
    check(self, name)
    shape = tuple(self._data.shape)
    return write(self, draw(op, f"{name}_", generator, self.device, self.dtype, shape=shape, **params))


def _parts(self: Tensor, name: str) -> Tensor:
    """The real and imaginary parts of a tensor that is about to be written."""
    check(self, name)
    return view_as_real(self)


@public(only="Tensor")
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write normal numbers of this mean and standard deviation, of complex ones that of both parts together."""
    if self.dtype.is_complex and std >= 0:
        zero_mean = _parts(self, "normal").normal_(0.0, std * math.sqrt(0.5), generator=generator)
        zero_mean[..., 0] += mean
        return self
    if not std >= 0:
        raise RuntimeError(f"normal_ expects std >= 0.0, but found std {std}")
    arguments.expect_floating(self, "normal_")
    return _drawn(self, "normal", random_ops.normal, generator, mean=float(mean), std=float(std))


@public(only="Tensor")
def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write numbers uniform in [from, to).

    Args:
        from_, to: the bounds; the first is ``from``, too.

    Raises:
        RuntimeError: from > to, or one is infinite or nan.
    """
    for name, bound in (("from", from_), ("to", to)):
        if not math.isfinite(bound):
            raise RuntimeError(f"uniform_: {name} is out of bounds for {self.dtype}: got {bound}")
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_} > to={to}")
    if self.dtype.is_complex:
        _parts(self, "uniform").uniform_(from_, to, generator=generator)
        return self
    arguments.expect_floating(self, "uniform_")
    return _drawn(self, "uniform", random_ops.uniform, generator, low=float(from_), high=float(to))


@public(only="Tensor")
def random_(
    self: Tensor, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Write integers uniform in [from, to); ``random_(to)`` starts at 0.

    Without bounds, up to the largest integer of the dtype (for floats: up to which all integers are exact).

    Args:
        from_, to: integers; the first, which is ``from``, too, may be drawn, the second may not.
    """
    low, high = (0, from_) if to is None else (from_ or 0, to)
    kind = self.dtype
    if high is None:
        high = last_whole(kind) + 1
    expect_within(low, high, kind, "random_")
    return _drawn(self, "random", random_ops.integers, generator, low=low, high=high)


@public(only="Tensor")
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Write ones with probability p (a number, or a tensor that broadcasts), zeros otherwise.

    Args:
        p: from 0 to 1.
    """
    if not isinstance(p, Tensor):
        return _drawn(self, "bernoulli", random_ops.bernoulli_full, generator, p=probability(p, "bernoulli_"))
    check(self, "bernoulli")
    expect_probabilities(p, "bernoulli_")
    source = stream(generator, self.device.resolve(), "bernoulli_")
    return write(self, arguments.cast(random_ops.bernoulli(p.expand(self.shape), generator=source), self.dtype))


@public(only="Tensor")
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write exponential numbers of rate ``lambd``."""
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    arguments.expect_floating(self, "exponential_")
    return _drawn(self, "exponential", random_ops.exponential, generator, rate=float(lambd))


@public(only="Tensor")
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Write numbers whose logarithm is normal, of this mean and standard deviation."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    arguments.expect_floating(self, "log_normal_")
    return _drawn(self, "log_normal", random_ops.log_normal, generator, mean=float(mean), std=float(std))


@public(only="Tensor")
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write Cauchy numbers of this median; ``sigma`` is half the width of the density at half its height."""
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    arguments.expect_floating(self, "cauchy_")
    return _drawn(self, "cauchy", random_ops.cauchy, generator, median=float(median), sigma=float(sigma))


@public(only="Tensor")
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Write how many trials it takes until one succeeds, each with probability ``p``: 1, 2, 3, …"""
    if not 0 < arguments.number(p, "p", "geometric_") < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    arguments.expect_real(self, "geometric_")
    return _drawn(self, "geometric", random_ops.geometric, generator, p=float(p))


# ---- functions of Python ------------------------------------------------------------------------------------------


def _mapped(self: Tensor, function: str, callable: Callable[..., Any], others: tuple[Tensor, ...]) -> Tensor:
    if self.requires_grad or any(o.requires_grad for o in others):
        raise RuntimeError(f"Can't call {function}() on Variable that requires grad. Use var.detach().{function}().")
    if self.device.type != "cpu":
        raise TypeError(f"{function} is only implemented on CPU tensors, got one on {self.device}")
    columns = [x.reshape(-1).tolist() for x in (self, *[o.expand(self.shape) for o in others])]
    values = copied([callable(*row) for row in zip(*columns, strict=True)], self.dtype, self.device)
    return self.copy_(reshaped(values, tuple(self.shape)))


@public(only="Tensor")
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by ``callable(element)``. Slow: for the CPU, and for what nothing else does.

    Args:
        callable: of a number, gives a number.
    """
    return _mapped(self, "apply_", callable, ())


@public(only="Tensor")
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by ``callable(element, other)``, with that of a tensor that broadcasts.

    Args:
        tensor: of the same shape.
        callable: of two numbers, gives one.
    """
    return _mapped(self, "map_", callable, (arguments.expect_tensor(tensor, "tensor", "map_"),))


@public(only="Tensor")
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by ``callable(element, of_x, of_y)``.

    Args:
        x, y: of the same shape.
        callable: of three numbers, gives one.
    """
    others = arguments.expect_tensor(x, "x", "map2_"), arguments.expect_tensor(y, "y", "map2_")
    return _mapped(self, "map2_", callable, others)
