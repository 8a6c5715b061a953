"""The part of the Python array API standard that leafgrad has, under the standard's names and signatures.

``x.__array_namespace__()`` gives this module, so that code written for the standard takes tensors. Not here: unsigned
types beyond uint8. The extension ``fft`` is that of the package leafgrad-fft. Results promote as PyTorch's do.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from leafgrad.dtypes import (
    bool_,
    complex64 as complex64,
    complex128 as complex128,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint8 as uint8,
)
from leafgrad.tensor import (
    array_linalg,
    comparison,
    complex_numbers,
    differences,
    gathering,
    joining,
    rearranging,
    reductions,
    statistics,
)
from leafgrad.tensor.array_creation import (
    arange as arange,
    asarray as asarray,
    astype as astype,
    empty as empty,
    eye as eye,
    full as full,
    linspace as linspace,
    meshgrid as meshgrid,
    ones as ones,
    tril as tril,
    triu as triu,
    zeros as zeros,
)
from leafgrad.tensor.array_linalg import (
    matmul as matmul,
    matrix_transpose as matrix_transpose,
    tensordot as tensordot,
    vecdot as vecdot,
)
from leafgrad.tensor.array_sets import (
    isin as isin,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from leafgrad.tensor.array_types import (
    __array_namespace_info__ as __array_namespace_info__,
    can_cast as can_cast,
    finfo as finfo,
    iinfo as iinfo,
    isdtype as isdtype,
    result_type as result_type,
)
from leafgrad.tensor.comparison import (
    eq,
    ge,
    gt,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    le,
    lt,
    maximum as maximum,
    minimum as minimum,
    ne,
)
from leafgrad.tensor.complex_numbers import conj as conj, imag as imag, real as real, sgn
from leafgrad.tensor.creation import (
    empty_like as empty_like,
    full_like as full_like,
    ones_like as ones_like,
    zeros_like as zeros_like,
)
from leafgrad.tensor.interop import from_dlpack as from_dlpack
from leafgrad.tensor.methods import DECLARED
from leafgrad.tensor.pointwise import (
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    bitwise_and as bitwise_and,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    ceil as ceil,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    div,
    exp as exp,
    expm1 as expm1,
    floor as floor,
    floor_divide as floor_divide,
    hypot as hypot,
    log as log,
    log1p as log1p,
    log2 as log2,
    log10 as log10,
    logaddexp as logaddexp,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    mul,
    neg,
    nextafter as nextafter,
    positive as positive,
    pow as pow,
    reciprocal as reciprocal,
    remainder as remainder,
    round as rounded,
    sign as sign_or_zero,
    signbit as signbit,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    sub,
    tan as tan,
    tanh as tanh,
    trunc as trunc,
    where as where,
)
from leafgrad.tensor.rearranging import tile as tile
from leafgrad.tensor.shapes import broadcast_shapes as broadcast_shapes, broadcast_tensors, movedim
from leafgrad.tensor.tensor import Tensor

__array_api_version__ = "2024.12"

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None
bool, bitwise_invert, linalg, moveaxis = bool_, bitwise_not, array_linalg, movedim
divide, multiply, negative, subtract = div, mul, neg, sub
equal, greater, greater_equal, less, less_equal, not_equal = eq, gt, ge, lt, le, ne

Axis = int | Sequence[int] | None


def axes(x: Tensor, axis: Axis) -> tuple[int, ...]:
    """``axis`` as a tuple; None stands for all."""
    if axis is None:
        return tuple(range(x.ndim))
    return (axis,) if isinstance(axis, int) else tuple(axis)


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1, and nan of nan; of complex numbers x / abs(x)."""
    if x.dtype.is_complex:
        return sgn(x)
    return where(isnan(x), x, sign_or_zero(x)) if x.dtype.is_floating_point else sign_or_zero(x)


# ---- shapes ---------------------------------------------------------------------------------------------------------


def round(x: Tensor, /) -> Tensor:
    """To integers, the even ones where two are as near; of complex numbers both parts."""
    return complex_numbers.complex(rounded(x.real), rounded(x.imag)) if x.dtype.is_complex else rounded(x)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """All in the shape in which they meet."""
    return list(broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """In a larger shape."""
    return x.broadcast_to(shape)


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """With dimensions in another order."""
    return x.permute(axes)


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: builtins.bool | None = None) -> Tensor:
    """In another shape: as a copy if ``copy``, and if that is False as a view, or a RuntimeError."""
    if copy is False:
        return x.view(shape)
    return (x.clone() if copy else x).reshape(shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Joined along a dimension they have, or with None flattened."""
    return joining.cat([x.reshape(-1) for x in arrays] if axis is None else arrays, axis or 0)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Joined along a new dimension."""
    return joining.stack(arrays, axis)


def expand_dims(x: Tensor, /, *, axis: int = 0) -> Tensor:
    """With a new dimension of size 1."""
    return x.unsqueeze(axis)


def flip(x: Tensor, /, *, axis: Axis = None) -> Tensor:
    """In reversed order along some dimensions."""
    return rearranging.flip(x, axes(x, axis))


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """With each element repeated."""
    return rearranging.repeat_interleave(x, repeats, axis)


def roll(x: Tensor, /, shift: int | Sequence[int], *, axis: Axis = None) -> Tensor:
    """Shifted, with what falls off coming in at the other end."""
    return rearranging.roll(x, shift, axis)


def squeeze(x: Tensor, /, axis: int | Sequence[int]) -> Tensor:
    """Without dimensions of size 1; ValueError if one is larger."""
    for d in axes(x, axis):
        if x.shape[d] != 1:
            raise ValueError(f"squeeze: axis: expected dimensions of size 1, got size {x.shape[d]} at {d}")
    return x.squeeze(axes(x, axis))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension."""
    return joining.unbind(x, axis)


# ---- reductions, order, choice --------------------------------------------------------------------------------------


def _reduced(function: Any, x: Tensor, axis: Axis, keepdims: builtins.bool, **options: Any) -> Tensor:
    """A reduction; over no dimensions it goes over each element alone."""
    wanted = axes(x, axis)
    if not wanted:
        x, wanted, keepdims = x.unsqueeze(0), (0,), False
    reduced: Tensor = function(x, wanted, keepdim=keepdims, **options)
    return reduced


def all(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether all are not zero."""
    return _reduced(reductions.all, x != 0, axis, keepdims)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether any is not zero."""
    return _reduced(reductions.any, x != 0, axis, keepdims)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The largest."""
    return _reduced(statistics.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest."""
    return _reduced(statistics.amin, x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The mean."""
    return _reduced(reductions.mean, x, axis, keepdims)


def sum(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """The sum."""
    return _reduced(reductions.sum, x, axis, keepdims, dtype=dtype)


def prod(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """The product."""
    return _reduced(_product, x, axis, keepdims, dtype=dtype)


def _product(x: Tensor, dims: tuple[int, ...], keepdim: builtins.bool, dtype: Any) -> Tensor:
    for d in dims:
        x = reductions.prod(x, d, True, dtype=dtype)
    return x if keepdim else x.squeeze(dims)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The standard deviation."""
    return _reduced(reductions.std, x, axis, keepdims, correction=correction)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The variance."""
    return _reduced(reductions.var, x, axis, keepdims, correction=correction)


def _running(function: Any, x: Tensor, axis: int | None, dtype: Any, first: float | None) -> Tensor:
    if axis is None and x.ndim != 1:
        raise ValueError(f"cumulative_{function.__name__[3:]}: axis: must be given for {x.ndim} dimensions")
    axis = 0 if axis is None else axis
    found: Tensor = function(x, axis, dtype=dtype)
    if first is None:
        return found
    sizes = [1 if d == axis % x.ndim else n for d, n in enumerate(x.shape)]
    return joining.cat([found.new_full(sizes, first), found], axis)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Tensor:
    """Sums up to and with each element; before them 0, with ``include_initial``."""
    return _running(differences.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Tensor:
    """Products up to and with each element; before them 1, with ``include_initial``."""
    return _running(differences.cumprod, x, axis, dtype, 1 if include_initial else None)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The ``n``-th differences of neighbours."""
    return differences.diff(x, n, axis, prepend, append)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the largest is."""
    return statistics.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the smallest is."""
    return statistics.argmin(x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """How many are not zero."""
    return _reduced(reductions.sum, x != 0, axis, keepdims)


def argsort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """The indices that sort."""
    return comparison.argsort(x, axis, descending, stable)


def sort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """Sorted."""
    return comparison.sort(x, axis, descending, stable)[0]


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where ``x2`` would be inserted into ``x1``."""
    return comparison.searchsorted(x1, x2, side=side, sorter=sorter)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where the elements are not zero, one tensor for each dimension."""
    found: tuple[Tensor, ...] = gathering.nonzero(x, as_tuple=True)
    return found


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices at ``indices`` of a dimension; negative ones count from the end."""
    return x[(*(slice(None),) * ((axis or 0) % x.ndim), indices)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at ``indices`` along a dimension."""
    return gathering.take_along_dim(x, indices, axis)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Within bounds."""
    return x.clone() if min is None and max is None else x.clamp(min, max)


def __getattr__(name: str) -> object:
    """The functions that plugins' ops declare, and the extension ``fft``."""
    if name == "fft":
        return import_module("leafgrad.fft").array_api
    if name in DECLARED:
        return DECLARED[name]
    raise AttributeError(f"module 'leafgrad.tensor.array_api' has no attribute {name!r}", name=name)
