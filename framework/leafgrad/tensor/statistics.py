"""Order statistics (max, median, quantile, …), distinct elements, and covariance."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from leafgrad import dtypes, return_types
from leafgrad.ops import compare, dispatch, extremes, index, reduce as ops, rounding, select
from leafgrad.ops.convert import new_full
from leafgrad.ops.elementwise import lerp
from leafgrad.ops.marks import mark, shown_as
from leafgrad.ops.op import Op
from leafgrad.ops.refuse import refuse
from leafgrad.ops.shape import expand, permute, reshape
from leafgrad.ops.sort import argsort
from leafgrad.return_types import Found
from leafgrad.tensor.arguments import Dim, cast, dims, expect_tensor, integer, number, one_dim
from leafgrad.tensor.autocast import autocast
from leafgrad.tensor.complex_numbers import complex, conj
from leafgrad.tensor.pointwise import clamp
from leafgrad.tensor.public import public
from leafgrad.tensor.shapes import reshaped
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.view import alone

R = TypeVar("R", bound=Found)
_gather, _reshape = index.gather.function, reshape.function

# ---- largest and smallest -----------------------------------------------------------------------------------------


def _nonempty(input: Tensor, over: tuple[int, ...], function: str) -> None:
    """An IndexError if there is nothing to choose from."""
    for d in over:
        if not input._data.shape[d]:
            raise IndexError(f"{function}(): Expected reduction dim {d} to have non-zero size.")


@public(out="exact")
def amax(input: Tensor, dim: Dim = (), keepdim: bool = False) -> Tensor:
    """The largest value over ``dim``. Equal ones share the gradient. IndexError if there is none."""
    over = dims(expect_tensor(input, "input", "amax"), dim, "amax")
    _nonempty(input, over, "amax")
    return ops.amax.function(input, dim=over, keepdim=keepdim)


@public(out="exact")
def amin(input: Tensor, dim: Dim = (), keepdim: bool = False) -> Tensor:
    """The smallest value over ``dim``. Equal ones share the gradient. IndexError if there is none."""
    over = dims(expect_tensor(input, "input", "amin"), dim, "amin")
    _nonempty(input, over, "amin")
    return ops.amin.function(input, dim=over, keepdim=keepdim)


@public(out="cast")
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> return_types.aminmax:
    """``amin`` and ``amax`` over one dimension or all, named ``min`` and ``max``."""
    over = dims(expect_tensor(input, "input", "aminmax"), dim, "aminmax")
    _nonempty(input, over, "aminmax")
    return return_types.aminmax(
        ops.amin.function(input, dim=over, keepdim=keepdim), ops.amax.function(input, dim=over, keepdim=keepdim)
    )


@public(out="exact")
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Index of the largest element along ``dim``, or in the flattened tensor. int64"""
    return _arg(extremes.argmax, input, dim, keepdim)


@public(out="exact")
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Index of the smallest element along ``dim``, or in the flattened tensor. int64"""
    return _arg(extremes.argmin, input, dim, keepdim)


def _arg(op: Op, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    expect_tensor(input, "input", op.name)
    if dim is not None:
        dim = one_dim(input, dim, op.name)
        _nonempty(input, (dim,) if input.ndim else (), op.name)
    elif not input._data.size:
        raise IndexError(f"{op.name}(): Expected reduction dim to be specified for input.numel() == 0.")
    return op(input, dim=dim, keepdim=keepdim)


def found_at(kind: type[R], indices: Tensor, input: Tensor, dim: int, keepdim: bool) -> R:
    """The elements of ``input`` at ``indices``, whose ``dim`` has size 1, and the indices."""
    values, full = _gather(input, indices, dim=dim, inside=True), input._data.shape
    if not keepdim and full:
        shape = (*full[:dim], *full[dim + 1 :])
        values, indices = alone(_reshape(values, shape=shape)), alone(_reshape(indices, shape=shape))
    return kind(values, indices)


def _extreme(kind: type[Found], ops: Any, input: Tensor, keepdim: bool, given: Any, dim: Any, other: Any) -> Any:
    """What ``max`` and ``min`` give: a tensor ``given`` by position is the other one, unless ``keepdim`` says not."""
    name, (whole, pairwise, indices) = kind.__name__, ops
    input = input if isinstance(input, Tensor) else expect_tensor(input, "input", name)
    if given is not None:
        if dim is not None or other is not None:
            raise TypeError(f"{name}() got multiple values for argument {'other' if dim is None else 'dim'!r}")
        dim, other = (None, given) if isinstance(given, Tensor) and not keepdim else (given, None)
    if other is not None:
        return pairwise(input, other)
    if dim is None:
        if not input._data.size:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                "with the 'dim' argument."
            )
        return whole.function(input)
    d = one_dim(input, dim, name)
    _nonempty(input, (d,) if input._data.ndim else (), name)
    found = found_at(kind, indices.function(input, dim=d, keepdim=True), input, d, keepdim)
    return mark(found, f"{name.capitalize()}Backward0", input)


@overload
def max(input: Tensor) -> Tensor: ...


@overload
def max(input: Tensor, dim: int, /, keepdim: bool = False) -> return_types.max: ...


@overload
def max(input: Tensor, *, dim: int, keepdim: bool = False) -> return_types.max: ...


@overload
def max(input: Tensor, other: Tensor, /) -> Tensor: ...


@overload
def max(input: Tensor, *, other: Tensor) -> Tensor: ...


@public(out="cast")
def max(
    input: Tensor, dim_or_other: Any = None, keepdim: bool = False, *, dim: Any = None, other: Tensor | None = None
) -> Any:
    """The largest value; with ``dim``, (values, indices) along it; with a tensor, ``maximum(input, other)``.

    Without ``dim`` equal values share the gradient; with it, it goes to the index given, the first of equal ones.

    Args:
        dim_or_other: the one or the other, given by position.

    Raises:
        IndexError, RuntimeError: there is nothing to choose from.
    """
    by = extremes.largest, select.maximum, extremes.argmax
    return _extreme(return_types.max, by, input, keepdim, dim_or_other, dim, other)


@overload
def min(input: Tensor) -> Tensor: ...


@overload
def min(input: Tensor, dim: int, /, keepdim: bool = False) -> return_types.min: ...


@overload
def min(input: Tensor, *, dim: int, keepdim: bool = False) -> return_types.min: ...


@overload
def min(input: Tensor, other: Tensor, /) -> Tensor: ...


@overload
def min(input: Tensor, *, other: Tensor) -> Tensor: ...


@public(out="cast")
def min(
    input: Tensor, dim_or_other: Any = None, keepdim: bool = False, *, dim: Any = None, other: Tensor | None = None
) -> Any:
    """The smallest value; with ``dim``, (values, indices) along it; with a tensor, ``minimum(input, other)``.

    Args:
        dim_or_other: the one or the other, given by position.
    """
    by = extremes.smallest, select.minimum, extremes.argmin
    return _extreme(return_types.min, by, input, keepdim, dim_or_other, dim, other)


@overload
def median(input: Tensor) -> Tensor: ...


@overload
def median(input: Tensor, dim: int, keepdim: bool = False) -> return_types.median: ...


@public(out="cast")
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median, nan if there is one; with ``dim``, (values, indices) along it.

    Without ``dim`` equal values share the gradient; with it, it goes to the index given.
    """
    expect_tensor(input, "input", "median")
    if dim is not None:
        d = one_dim(input, dim, "median")
        _nonempty(input, (d,) if input.ndim else (), "median")
        at = extremes.argmedian(input, dim=d)
        found = found_at(return_types.median, at, input, d, keepdim)
        return mark(found, "MedianBackward1", input)
    return extremes.median(input)


@overload
def nanmedian(input: Tensor) -> Tensor: ...


@overload
def nanmedian(input: Tensor, dim: int, keepdim: bool = False) -> return_types.nanmedian: ...


@public(out="cast")
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median of what is not nan, nan if nothing is; with ``dim``, (values, indices) along it."""
    expect_tensor(input, "input", "nanmedian")
    if dim is None:
        return extremes.nanmedian(input)
    d = one_dim(input, dim, "nanmedian")
    _nonempty(input, (d,) if input.ndim else (), "nanmedian")
    at = extremes.argmedian(input, dim=d, skips_nan=True)
    return found_at(return_types.nanmedian, at, input, d, keepdim)


@public(out="cast")
@shown_as("ModeBackward0")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> return_types.mode:
    """(values, indices) of the commonest value along ``dim``: the smallest of equally common, its last index."""
    d = one_dim(expect_tensor(input, "input", "mode"), dim, "mode")
    _nonempty(input, (d,) if input.ndim else (), "mode")
    return found_at(return_types.mode, extremes.argmode(input, dim=d), input, d, keepdim)


@public
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements, or slices along ``dim``, in ascending order (also for ``sorted=False``).

    Args:
        return_inverse: give also, for each element (slice), its index in the result.
        return_counts: give also how often each occurs.
        sorted: accepted: they are sorted in any case.

    Returns:
        The values, or a tuple with what else was asked for. Their size depends on values, so a device is waited for.
    """
    expect_tensor(input, "input", "unique")
    d = None if dim is None else one_dim(input, dim, "unique")
    values, inverse, counts = dispatch.computed(extremes.unique, input, dim=d)
    extra = ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return (values, *extra) if extra else values


@public(out="exact")
@autocast("float32")
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The ``q``-quantiles along ``dim``, or of all elements; nan where there is a nan.

    Args:
        q: number in [0, 1], or a 1-d tensor of such, of the input's dtype; it then is the result's first dimension.
        interpolation: between the two nearest elements: "linear", "lower", "higher", "midpoint" or "nearest".

    Raises:
        RuntimeError: the dtype is not float32 or float64, ``q`` is out of range, or an unknown interpolation.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


@public(out="exact")
@autocast("float32")
def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """``quantile`` of what is not nan; nan where nothing is.

    Args:
        q, interpolation: as of ``quantile``.
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


def _quantile(name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
    expect_tensor(input, "input", name)
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype, got {input.dtype}")
    if interpolation not in _ROUNDINGS:
        raise RuntimeError(f"{name}() interpolation must be one of {', '.join(_ROUNDINGS)}, but got {interpolation}")
    at, scalar = _levels(name, input, q)
    d = 0 if dim is None else one_dim(input, dim, name)
    x = reshape(input, shape=(-1,)) if dim is None or not input.ndim else permute(input, dims=_last(input.ndim, d))
    last, n = x.ndim - 1, x.shape[-1]
    if not n:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    ranked = index.gather(x, argsort(x, dim=last, descending=False), dim=last, inside=True)  # nan comes last
    spoilt = compare.isnan(x)
    if name == "quantile":
        position = select.where(ops.any(spoilt, dim=(last,), keepdim=True), float(n - 1), at * (n - 1))
    else:
        good = ops.sum(cast(compare.logical_not(spoilt), input.dtype), dim=(last,), keepdim=True)
        position = at * select.maximum(good - 1, 0)
    rank = _ROUNDINGS[interpolation](position)
    below = rounding.floor(rank)
    shape = (*x.shape[:-1], at.shape[0])
    low, high = (
        index.gather(ranked, expand(cast(p, dtypes.int64), shape=shape), dim=last, inside=True)
        for p in (below, rounding.ceil(rank))
    )
    found = low if interpolation in _PICKING else lerp(low, high, rank - below)  # (..., levels)
    found = permute(found, dims=(last, *range(last)))
    kept = tuple(1 if dim is None or i == d else m for i, m in enumerate(input.shape)) if keepdim else found.shape[1:]
    return alone(reshape(found, shape=(() if scalar else (at.shape[0],)) + tuple(kept)))


_ROUNDINGS: dict[str, Any] = {
    "linear": lambda rank: rank,
    "lower": rounding.floor,
    "higher": rounding.ceil,
    "midpoint": lambda rank: (rounding.floor(rank) + rounding.ceil(rank)) / 2,
    "nearest": lambda rank: rounding.round(rank),
}


_PICKING = ("lower", "higher", "nearest")  # one element, without the other, which may be infinite


def _last(ndim: int, dim: int) -> tuple[int, ...]:
    """The order of dimensions that puts ``dim`` last."""
    return (*(i for i in range(ndim) if i != dim), dim)


def _levels(name: str, input: Tensor, q: Any) -> tuple[Tensor, bool]:
    """``q`` of ``quantile`` as a 1-d tensor, and whether it was 0-d."""
    if isinstance(q, Tensor):
        if q.dtype is not input.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor, got {q.dtype}")
        if q.ndim > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor, got {q.ndim}D")
        beyond = compare.logical_not((q >= 0) & (q <= 1))  # nan as well
        refuse(beyond, error=RuntimeError, message=f"{name}() q values must be in the range [0, 1]")
        return reshape(q, shape=(-1,)), not q.ndim
    if not 0 <= number(q, "q", name) <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
    at = new_full(input, shape=(1,), value=q)
    return at, True


@public
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The first element, or slice along ``dim``, of each run of equal ones.

    Args:
        return_inverse: give also, for each element (slice), the number of its run.
        return_counts: give also how long each run is.

    Returns:
        The values, or a tuple with what else was asked for. Their size depends on values, so a device is waited for.
    """
    expect_tensor(input, "input", "unique_consecutive")
    x = input if dim is not None else reshaped(input, (input.numel(),))
    d = 0 if dim is None else one_dim(input, dim, "unique_consecutive")
    starts, inverse, counts = dispatch.computed(extremes.runs, x.detach(), dim=d)
    values = index.index(x, starts, dims=(d,)) if x.ndim else x
    inverse = reshaped(inverse, tuple(input.shape)) if dim is None else inverse
    extra = ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return (values, *extra) if extra else values


def as_floating(x: Tensor, other: Tensor | None = None) -> Tensor:
    """Integers as floats, of the dtype of ``other`` if it has some, of which no sum and no difference wraps around."""
    if x.dtype.is_differentiable:
        return x
    kind = x.dtype if other is None else expect_tensor(other, "x", "trapezoid").dtype
    return x.to(kind if kind.is_differentiable else dtypes.get_default_dtype())


# ---- covariance ---------------------------------------------------------------------------------------------------


@public
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Covariances of variables (rows) over observations (columns). (n, m) -> (n, n); (m) or (1, m) -> ()

    Args:
        correction: subtracted from the number of observations.
        fweights: how often each observation was made, integers. (m,)
        aweights: how much each observation counts. (m,)

    Raises:
        RuntimeError: more than two dimensions; weights that do not fit, are negative, or not of such a dtype.
    """
    if expect_tensor(input, "input", "cov").ndim > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got {input.ndim}")
    x = as_floating(input)
    x = x if x.ndim == 2 else x.reshape(1, -1)
    taken = integer(correction, "correction", "cov")
    weights = _weights(x.shape[1], fweights, aweights)
    if weights is None:
        centered, free = x - x.mean(1, keepdim=True), x.shape[1] - taken
        return (centered @ conj(centered.mT) / (free if free > 0 else 0)).squeeze()
    total = weights.sum()
    centered = x - (x * weights).sum(1, keepdim=True) / total
    unit = 1 if aweights is None else (weights * aweights).sum() / total
    result: Tensor = (centered * weights) @ conj(centered.mT) / clamp(total - taken * unit, min=0)
    return result.squeeze()


def _weights(count: int, fweights: Tensor | None, aweights: Tensor | None) -> Tensor | None:
    """The product of the weights of ``count`` observations."""
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        whole = not expect_tensor(weights, name, "cov").dtype.is_floating_point
        if weights.ndim > 1 or weights.numel() != count:
            raise RuntimeError(f"cov(): expected {name} to have {count} elements, got shape {list(weights.shape)}")
        if whole is not (name == "fweights") or weights.dtype is dtypes.bool_:
            kind = "integral" if name == "fweights" else "floating point"
            raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with {weights.dtype} dtype")
        refuse(weights < 0, error=RuntimeError, message=f"cov(): {name} cannot be negative")
    return fweights if aweights is None else aweights if fweights is None else fweights * aweights


@public
def corrcoef(input: Tensor) -> Tensor:
    """Pearson's correlation of variables (rows) over observations (columns). (n, m) -> (n, n); (m) or (1, m) -> ()"""
    c = cov(input)
    if not c.ndim:
        return c / c
    deviation = c.diagonal().sqrt()
    c = c / deviation.reshape(-1, 1) / deviation
    return complex(clamp(c.real, -1, 1), clamp(c.imag, -1, 1)) if c.dtype.is_complex else clamp(c, -1, 1)
