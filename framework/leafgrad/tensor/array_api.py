"""The part of the Python array API standard that leafgrad has, under the standard's names and signatures.

``x.__array_namespace__()`` gives this module, so that code written for the standard takes tensors. Not here: complex
numbers, unsigned types beyond uint8, and the ``fft`` and ``linalg`` extensions. Results promote as PyTorch's do.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from leafgrad import dtypes
from leafgrad.dtypes import (
    bool_,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint8 as uint8,
)
from leafgrad.tensor import (
    creation,
    data,
    derived,
    einsum,
    extremes,
    gathering,
    joining,
    rearranging,
    reductions,
    sorting,
)
from leafgrad.tensor.array_types import (
    __array_namespace_info__ as __array_namespace_info__,
    can_cast as can_cast,
    finfo as finfo,
    iinfo as iinfo,
    isdtype as isdtype,
    result_type as result_type,
)
from leafgrad.tensor.creation import (
    arange as arange,
    empty as empty,
    empty_like as empty_like,
    full_like as full_like,
    ones as ones,
    ones_like as ones_like,
    zeros as zeros,
    zeros_like as zeros_like,
)
from leafgrad.tensor.derived import conj as conj, imag as imag, positive as positive, real as real
from leafgrad.tensor.interop import from_dlpack as from_dlpack
from leafgrad.tensor.matmul import matmul as matmul
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
    divide as divide,
    eq,
    exp as exp,
    expm1 as expm1,
    floor as floor,
    floor_divide as floor_divide,
    greater as greater,
    greater_equal as greater_equal,
    hypot as hypot,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    less as less,
    less_equal as less_equal,
    log as log,
    log1p as log1p,
    log2 as log2,
    log10 as log10,
    logaddexp as logaddexp,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    nextafter as nextafter,
    not_equal as not_equal,
    pow as pow,
    reciprocal as reciprocal,
    remainder as remainder,
    round as round,
    sign as sign,
    signbit as signbit,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    trunc as trunc,
    where as where,
)
from leafgrad.tensor.rearranging import tile as tile, tril as tril, triu as triu
from leafgrad.tensor.shapes import (
    broadcast_tensors,
    broadcast_to as broadcast_to,
    moveaxis as moveaxis,
    permute,
    reshape as reshape,
)
from leafgrad.tensor.tensor import Tensor

__array_api_version__ = "2024.12"

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None
bool, bitwise_invert, equal, permute_dims = bool_, bitwise_not, eq, permute

Axis = int | Sequence[int] | None


def axes(x: Tensor, axis: Axis) -> tuple[int, ...]:
    """``axis`` as a tuple; None stands for all."""
    if axis is None:
        return tuple(range(x.ndim))
    return (axis,) if isinstance(axis, int) else tuple(axis)


# ---- creation, dtypes -----------------------------------------------------------------------------------------------


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: builtins.bool | None = None) -> Tensor:
    """``obj`` as a tensor; shares memory with arrays and tensors if it may."""
    if copy is False and not hasattr(obj, "__array__"):
        raise ValueError(f"asarray: copy=False, but a {type(obj).__name__} can become a tensor only in a copy")
    out = data.as_tensor(obj, dtype=dtype, device=device)
    return out.clone() if copy else out


def astype(x: Tensor, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None) -> Tensor:
    """``x`` in another dtype; a copy even of the same unless ``copy=False``."""
    return x.to(x.device if device is None else device, dtype, copy=copy)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on diagonal ``k``, zeros elsewhere."""
    rows, columns = arange(n_rows, device=device), arange(n_rows if n_cols is None else n_cols, device=device)
    return (columns - rows.unsqueeze(1) == k).to(dtypes.get_default_dtype() if dtype is None else dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """``fill_value`` everywhere."""
    return creation.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: builtins.bool = True
) -> Tensor:
    """``num`` numbers from ``start`` to ``stop``, or to the one before it."""
    if endpoint:
        return creation.linspace(start, stop, num, dtype=dtype, device=device)
    return creation.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid."""
    return list(joining.meshgrid(*arrays, indexing=indexing))


# ---- shapes ---------------------------------------------------------------------------------------------------------


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """All in the shape in which they meet."""
    return list(broadcast_tensors(*arrays))


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


def matrix_transpose(x: Tensor, /) -> Tensor:
    """With the last two dimensions exchanged."""
    return x.transpose(-2, -1)


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


def all(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether all are not zero."""
    return reductions.all(x, axes(x, axis), keepdims)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether any is not zero."""
    return reductions.any(x, axes(x, axis), keepdims)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The largest."""
    return extremes.amax(x, axes(x, axis), keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The smallest."""
    return extremes.amin(x, axes(x, axis), keepdims)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """The mean."""
    return reductions.mean(x, axes(x, axis), keepdims)


def sum(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """The sum."""
    return reductions.sum(x, axes(x, axis), keepdims, dtype=dtype)


def prod(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """The product."""
    for d in sorted((d % x.ndim for d in axes(x, axis)), reverse=True):
        x = reductions.prod(x, d, True, dtype=dtype)
    return x if keepdims else x.squeeze(axes(x, axis))


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The standard deviation."""
    return reductions.std(x, axes(x, axis), keepdim=keepdims, correction=correction)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The variance."""
    return reductions.var(x, axes(x, axis), keepdim=keepdims, correction=correction)


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
    return _running(extremes.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Tensor:
    """Products up to and with each element; before them 1, with ``include_initial``."""
    return _running(extremes.cumprod, x, axis, dtype, 1 if include_initial else None)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The ``n``-th differences of neighbours."""
    return derived.diff(x, n, axis, prepend, append)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the largest is."""
    return extremes.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the smallest is."""
    return extremes.argmin(x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """How many are not zero."""
    return reductions.sum(x != 0, axes(x, axis), keepdims)


def argsort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """The indices that sort."""
    return sorting.argsort(x, axis, descending, stable)


def sort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """Sorted."""
    return sorting.sort(x, axis, descending, stable)[0]


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where ``x2`` would be inserted into ``x1``."""
    return sorting.searchsorted(x1, x2, side=side, sorter=sorter)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where the elements are not zero, one tensor for each dimension."""
    found: tuple[Tensor, ...] = sorting.nonzero(x, as_tuple=True)
    return found


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements."""
    found: Tensor = extremes.unique(x)
    return found


class UniqueAll(NamedTuple):
    """The distinct elements, where each is first, the number of each element's own, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The distinct elements, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The distinct elements, and for each element the number of its own among them."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, with all that there is to know of them."""
    values, inverse, counts = extremes.unique(x, return_inverse=True, return_counts=True)
    order = sorting.argsort(inverse.reshape(-1), stable=True)
    return UniqueAll(values, order[extremes.cumsum(counts, 0) - counts], inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements, and how often each occurs."""
    return UniqueCounts(*extremes.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and for each element the number of its own among them."""
    return UniqueInverse(*extremes.unique(x, return_inverse=True))


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices at ``indices`` of a dimension; negative ones count from the end."""
    found: Tensor = x[(*(slice(None),) * ((axis or 0) % x.ndim), indices)]
    return found


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at ``indices`` along a dimension."""
    return gathering.take_along_dim(x, indices, axis)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Within bounds."""
    return x.clamp(min, max)


# ---- products -------------------------------------------------------------------------------------------------------


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The sum of products over some dimensions."""
    return einsum.tensordot(x1, x2, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The dot product along a dimension."""
    return (x1 * x2).sum(axis)


def __getattr__(name: str) -> object:
    """The functions that plugins' ops declare."""
    if name in DECLARED:
        return DECLARED[name]
    raise AttributeError(f"module 'leafgrad.tensor.array_api' has no attribute {name!r}", name=name)
