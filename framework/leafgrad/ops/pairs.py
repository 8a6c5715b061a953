"""Complex arithmetic as arithmetic of pairs of real numbers, for generated code, which has real numbers alone.

A rule ``op.lower("pairs", rule)`` is called as the op is, with a Pair for each complex array or number, and returns a
Pair, something real, or several; None if it leaves these arguments to the op. Ops of this package with the trait
"linear" or "bilinear" need no rule; those of others may have ``by_parts`` or ``product`` for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leafgrad import dtypes
from leafgrad.ops import (
    activation,
    compare,
    complex as parts,
    convert,
    convolution,
    create,
    cumulative,
    elementwise as ew,
    exponential,
    index,
    matmul,
    normalize,
    reduce,
    select,
    shape,
    trigonometric as trig,
)
from leafgrad.ops.op import Op

Rule = Callable[..., Any]


@dataclass(frozen=True, eq=False, slots=True)
class Pair:
    """re + i im; ``im`` is None where it is zero."""

    re: Any
    im: Any = None

    def __add__(self, other: Any) -> Pair:
        return by_parts(ew.add, (self, other), {})

    def __radd__(self, other: Any) -> Pair:
        return by_parts(ew.add, (other, self), {})

    def __sub__(self, other: Any) -> Pair:
        return by_parts(ew.sub, (self, other), {})

    def __rsub__(self, other: Any) -> Pair:
        return by_parts(ew.sub, (other, self), {})

    def __neg__(self) -> Pair:
        return by_parts(ew.neg, (self,), {})

    def __mul__(self, other: Any) -> Pair:
        return product(ew.mul, self, other, {})

    def __rmul__(self, other: Any) -> Pair:
        return product(ew.mul, other, self, {})

    def __truediv__(self, other: Any) -> Pair:
        return quotient(self, other)

    def __rtruediv__(self, other: Any) -> Pair:
        return quotient(other, self)


def re(x: Any) -> Any:
    """The real part of a Pair, an array or a number."""
    return x.re if isinstance(x, Pair) else x


def im(x: Any) -> Any:
    """The imaginary part, zero of what has none. Integers are no numbers here: they say where."""
    if isinstance(x, Pair):
        return zeros(x.re) if x.im is None else x.im
    if isinstance(x, (bool, int, float)):
        return 0.0
    return x if x is None or x.dtype.kind in "biu" else zeros(x)


def zeros(x: Any) -> Any:
    return convert.new_full(x, shape=tuple(x.shape), value=0) if hasattr(x, "dtype") else 0.0


def as_pair(x: Any) -> Pair:
    """The Pair whose parts lie along the last dimension. (..., 2) -> (...)"""
    before = [(0, n, 1) for n in x.shape[:-1]]
    return Pair(*[shape.part(x, at=(*before, k)) for k in range(2)])


def beside(x: Pair) -> Any:
    """The parts along a last dimension. (...) -> (..., 2)"""
    halves = [shape.reshape(part, shape=(*part.shape, 1)) for part in (x.re, im(x))]
    return shape.cat(*halves, dim=len(x.re.shape))


def rule_of(op: Op) -> Rule | None:
    """How an op computes pairs; None if only it knows.

    Of other ops than these, traits do not say whether they make real numbers of real ones.
    """
    rule = op.lowering.get("pairs")
    if rule is None and (op.forward.__module__ or "").startswith("leafgrad.ops."):
        return _parts(op) if "linear" in op.traits else _bilinear(op) if "bilinear" in op.traits else None
    return rule


def by_parts(op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """What is linear, and maps real numbers to real ones: real and imaginary parts alone."""
    real = op(*map(re, args), **params)
    alone = all(x.im is None for x in args if isinstance(x, Pair))
    imaginary = None if alone else op(*map(im, args), **params)
    if isinstance(real, tuple):
        return tuple(map(Pair, real, imaginary or (None,) * len(real)))
    return Pair(real, imaginary)


def product(op: Op, x: Any, y: Any, params: dict[str, Any]) -> Pair:
    """What is linear in each of two."""
    (a, b), (c, d) = ((re(z), z.im if isinstance(z, Pair) else None) for z in (x, y))
    real = op(a, c, **params)
    if b is None and d is None:
        return Pair(real)
    if b is None or d is None:
        return Pair(real, op(a, d, **params) if b is None else op(b, c, **params))
    return Pair(real - op(b, d, **params), op(a, d, **params) + op(b, c, **params))


def quotient(x: Any, y: Any) -> Pair:
    """x / y by the larger part of y, so that no square overflows: Smith (1962), as NumPy has it."""
    c, d = re(y), y.im if isinstance(y, Pair) else None
    a, b = re(x), x.im if isinstance(x, Pair) else None
    if type(c) in (int, float) and d is not None:
        inverse = 1 / complex(c, d)
        return product(ew.mul, x, Pair(inverse.real, inverse.imag), {})
    if d is None:
        return Pair(a / c, None if b is None else b / c)
    real = ew.abs(c) >= ew.abs(d)
    large, small = select.where(real, c, d), select.where(real, d, c)
    none = large == 0
    ratio = select.where(none, 0, small / select.where(none, 1, large))
    scale = 1 / select.where(none, 0, large + small * ratio)
    a = a if hasattr(a, "dtype") else convert.new_full(c, shape=tuple(c.shape), value=a)
    b = b if hasattr(b, "dtype") else convert.new_full(a, shape=tuple(a.shape), value=b or 0)
    first, second = select.where(real, a, b), select.where(real, b, a)
    across = (second - first * ratio) * scale
    return Pair((first + second * ratio) * scale, select.where(real, across, -across))


# ---- elements -----------------------------------------------------------------------------------------------------


def _times(x: Any, y: Any) -> Any:
    """x y, and 0 if one is, even where the other is infinite or nan."""
    found = x * y
    return select.where((found != found) & ((x == 0) | (y == 0)), 0, found)


def _exp(x: Pair) -> Pair:
    size = exponential.exp(x.re)
    return Pair(size) if x.im is None else Pair(_times(size, trig.cos(x.im)), _times(size, trig.sin(x.im)))


def _abs(x: Pair) -> Any:
    return ew.abs(x.re) if x.im is None else ew.hypot(x.re, x.im)


def _log(x: Pair) -> Pair:
    """By the length, and near the unit circle by how far its square is from 1, as log(1 + x) is accurate."""
    if x.im is None:
        return Pair(exponential.log(ew.abs(x.re)), _angle(x))
    size, large = _abs(x), select.maximum(ew.abs(x.re), ew.abs(x.im))
    small = select.minimum(ew.abs(x.re), ew.abs(x.im))
    near = (size > 0.7) & (size < 1.4)
    excess = select.where(near, (large - 1) * (large + 1) + small * small, 0)
    far = exponential.log(select.where(near, 1, size))
    return Pair(select.where(near, exponential.log1p(excess) / 2, far), _angle(x))


def _norm(x: Pair, *, p: float, **params: Any) -> Any:
    if p != 2 or x.im is None:
        return reduce.norm(_abs(x), p=p, **params)
    return ew.sqrt(reduce.sum(x.re * x.re + x.im * x.im, **params))


def _div(x: Any, y: Any) -> Pair | None:
    return None if isinstance(re(y), (int, float)) and not (re(y) or im(y)) else quotient(x, y)


def _angle(x: Pair) -> Any:
    return trig.atan2(im(x), x.re)


def _sgn(x: Pair) -> Pair:
    size = _abs(x)
    divisor = select.where(size == 0, 1, size)
    return Pair(x.re / divisor, None if x.im is None else x.im / divisor)


def _sqrt(x: Pair) -> Pair:
    """The root in the right half plane: its larger part from the length, the other by division."""
    other = im(x)
    root = ew.sqrt(_abs(x) / 2 + ew.abs(x.re) / 2)
    alone = (root == 0) | compare.isinf(other)
    rest = select.where(alone, other, other / (2 * select.where(alone, 1, root)))
    right = x.re >= 0
    return Pair(select.where(right, root, ew.abs(rest)), select.where(right, rest, ew.copysign(root, other)))


def _pow(x: Any, y: Any) -> Pair | None:
    known = {2: lambda: x * x, 3: lambda: x * x * x, -1: lambda: quotient(1.0, x), 0.5: lambda: _sqrt(x)}
    return known[y]() if isinstance(x, Pair) and isinstance(y, (int, float)) and y in known else None


def _lerp(x: Any, y: Any, w: Any) -> Pair:
    x, y = Pair(x) if not isinstance(x, Pair) else x, Pair(y) if not isinstance(y, Pair) else y
    low, high = x + (y - x) * w, y - (y - x) * (1.0 - w)
    if isinstance(w, (int, float)):
        return low if -0.5 < w < 0.5 else high
    return _where((_abs(w) if isinstance(w, Pair) else ew.abs(w)) < 0.5, low, high)


def _sin(x: Pair) -> Pair:
    return Pair(_times(trig.sin(x.re), trig.cosh(im(x))), _times(trig.cos(x.re), trig.sinh(im(x))))


def _cos(x: Pair) -> Pair:
    return Pair(_times(trig.cos(x.re), trig.cosh(im(x))), -_times(trig.sin(x.re), trig.sinh(im(x))))


def _sinh(x: Pair) -> Pair:
    return Pair(_times(trig.sinh(x.re), trig.cos(im(x))), _times(trig.cosh(x.re), trig.sin(im(x))))


def _cosh(x: Pair) -> Pair:
    return Pair(_times(trig.cosh(x.re), trig.cos(im(x))), _times(trig.sinh(x.re), trig.sin(im(x))))


def _tanh(x: Pair) -> Pair:
    """By t = tanh(re) and s = tan(im): (t (1 + s s) + i s / cosh(re)**2) / (1 + t t s s)."""
    t, s, small = trig.tanh(x.re), trig.tan(im(x)), exponential.exp(-2 * ew.abs(x.re))
    divisor = 1 + (t * s) * (t * s)
    far = small == 0  # whatever the imaginary part is
    slope = s * (4 * small / ((1 + small) * (1 + small))) / divisor
    return Pair(select.where(far, t, t * (1 + s * s) / divisor), select.where(far, 0, slope))


def _tan(x: Pair) -> Pair:
    turned = _tanh(Pair(-im(x), x.re))
    return Pair(turned.im, -turned.re)


def _sigmoid(x: Pair) -> Pair:
    return quotient(1.0, _exp(-x) + 1.0)


def _where(condition: Any, x: Any, y: Any) -> Pair:
    return Pair(select.where(condition, re(x), re(y)), select.where(condition, im(x), im(y)))


def _nonzero(x: Any) -> Any:
    return compare.logical_or(x.re != 0, im(x) != 0) if isinstance(x, Pair) else x != 0


def _both(test: Op, join: Op) -> Rule:
    """A comparison or a test of real and imaginary parts, joined."""
    return lambda *args: join(test(*map(re, args)), test(*map(im, args)))


# ---- arrays -------------------------------------------------------------------------------------------------------


def _converted(x: Any, *, dtype: str, source: str) -> Any:
    if dtype == "bool":
        return _nonzero(x)
    kinds = {"source": dtypes.BY_NAME[source].to_real().name}
    if not dtype.startswith("complex"):
        return convert.to_dtype(x.re, dtype=dtype, **kinds)
    return by_parts(convert.to_dtype, (_pair(x),), {"dtype": dtypes.BY_NAME[dtype].to_real().name, **kinds})


def _filled(x: Any, *, shape: shape.Shape, value: complex, dtype: str | None) -> Any:
    if dtype is None and not isinstance(x, Pair):
        return None
    kind = None if dtype is None else dtypes.BY_NAME[dtype].to_real().name
    made = [convert.new_full(re(x), shape=shape, value=v, dtype=kind) for v in (value.real, value.imag)]
    return Pair(*made) if dtype is None or dtype.startswith("complex") else made[0]


def _full(*, shape: shape.Shape, value: complex, dtype: str) -> Pair:
    return Pair(value.real, value.imag)


def _padded(op: Op, fill: str) -> Rule:
    """What puts the number ``fill`` beside the elements of an array."""

    def rule(x: Pair, **params: Any) -> Pair:
        number = params.pop(fill)
        return Pair(op(x.re, **params, **{fill: number.real}), op(im(x), **params, **{fill: number.imag}))

    return rule


def _linear(x: Any, weight: Any, bias: Any = None) -> Pair:
    made = product(matmul.linear, x, weight, {})
    return made if bias is None else made + bias


def _convolved(op: Op) -> Rule:
    """A convolution or its transpose, with a bias for each channel."""

    def rule(x: Any, weight: Any, bias: Any = None, **params: Any) -> Pair:
        made = product(op, x, weight, params)
        if bias is None:
            return made
        column = {"shape": (re(bias).shape[0], *(1 for _ in made.re.shape[2:]))}
        return made + by_parts(shape.reshape, (_pair(bias),), column)

    return rule


def _pair(x: Any) -> Pair:
    return x if isinstance(x, Pair) else Pair(x)


def _bilinear(op: Op) -> Rule:
    return lambda x, y, **params: product(op, x, y, params)


def _parts(op: Op) -> Rule:
    return lambda *args, **params: by_parts(op, args, params)


RULES: dict[Op, Rule] = {
    activation.silu: lambda x: product(ew.mul, x, _sigmoid(x), {}),
    compare.eq: _both(compare.eq, compare.logical_and),
    compare.isfinite: _both(compare.isfinite, compare.logical_and),
    compare.isinf: _both(compare.isinf, compare.logical_or),
    compare.isnan: _both(compare.isnan, compare.logical_or),
    compare.logical_and: lambda x, y: compare.logical_and(_nonzero(x), _nonzero(y)),
    compare.logical_not: lambda x: compare.logical_not(_nonzero(x)),
    compare.logical_or: lambda x, y: compare.logical_or(_nonzero(x), _nonzero(y)),
    compare.logical_xor: lambda x, y: compare.logical_xor(_nonzero(x), _nonzero(y)),
    compare.ne: _both(compare.ne, compare.logical_or),
    convert.new_full: _filled,
    convert.to_dtype: _converted,
    convolution.convolution: _convolved(convolution.convolution),
    convolution.convolution_input: _convolved(convolution.convolution_input),
    convolution.convolution_weight: _bilinear(convolution.convolution_weight),
    create.full: _full,
    create.zeros: lambda **_: Pair(0.0),
    cumulative.shift: _padded(cumulative.shift, "fill"),
    ew.abs: _abs,
    ew.div: _div,
    ew.lerp: _lerp,
    ew.pow: _pow,
    ew.reciprocal: lambda x: quotient(1.0, x),
    ew.rsqrt: lambda x: quotient(1.0, _sqrt(x)),
    ew.sqrt: _sqrt,
    ew.square: lambda x: product(ew.mul, x, x, {}),
    exponential.exp: _exp,
    exponential.log: _log,
    exponential.sigmoid: _sigmoid,
    index.gather: _parts(index.gather),
    index.gather_sum: _parts(index.gather_sum),
    index.index_put: _parts(index.index_put),
    index.scatter: _parts(index.scatter),
    matmul.linear: _linear,
    normalize.affine: lambda x, weight, bias: product(ew.mul, x, weight, {}) + bias,
    parts.angle: _angle,
    parts.conj: lambda x: Pair(x.re, None if x.im is None else -x.im),
    parts.imag: im,
    parts.join: Pair,
    parts.real: re,
    parts.sgn: _sgn,
    parts.view_as_complex: as_pair,
    parts.view_as_real: beside,
    reduce.all: lambda x, **params: reduce.all(_nonzero(x), **params),
    reduce.any: lambda x, **params: reduce.any(_nonzero(x), **params),
    reduce.count_nonzero: lambda x, **params: reduce.count_nonzero(_nonzero(x), **params),
    reduce.norm: _norm,
    select.where: _where,
    shape.pad: _padded(shape.pad, "value"),
    trig.cos: _cos,
    trig.cosh: _cosh,
    trig.sin: _sin,
    trig.sinh: _sinh,
    trig.tan: _tan,
    trig.tanh: _tanh,
    trig.tanh_slope: lambda x, y: product(ew.mul, x, 1.0 - product(ew.mul, y, y, {}), {}),
}
for _op, _rule in RULES.items():
    _op.lower("pairs", _rule)
