"""``out=``: the result of a function written into a tensor that is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from leafgrad import dtypes, modes
from leafgrad.ops import messages
from leafgrad.ops.node import SymbolBase
from leafgrad.tensor.inplace import check
from leafgrad.tensor.public import door
from leafgrad.tensor.tensor import Tensor
from leafgrad.tensor.writes import copy_

__all__: list[str] = []

FUNCTIONS = frozenset(
    """
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax angle any arange
    arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin asin asinh atan atan2 atanh baddbmm bernoulli
    bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm bucketize cat ceil
    chain_matmul cholesky cholesky_inverse cholesky_solve clamp clamp_max clamp_min clip column_stack concat
    concatenate conj_physical copysign cos cosh cross cummax cummin cumprod cumsum deg2rad diag diff div divide dot
    dstack empty eq erf erfc erfinv exp exp2 expm1 eye fix float_power floor floor_divide fmax fmin fmod frac full
    gather gcd ge ger greater greater_equal gt heaviside histc histogram hstack hypot index_add index_copy
    index_reduce index_select inner inverse isin isneginf isposinf kron kthvalue lcm ldexp le lerp less less_equal
    linspace log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or
    logical_xor logit logspace logsumexp lt lu_solve masked_select matmul matrix_power max maximum mean median min
    minimum mm mode msort mul multinomial multiply mv nan_to_num nanmean nanmedian nanquantile nansum ne neg
    negative nextafter nonzero norm normal not_equal ones outer pow prod qr quantile rad2deg rand randint randn
    randperm reciprocal remainder renorm round row_stack rsqrt scatter scatter_add scatter_reduce searchsorted sgn
    sigmoid sign signbit sin sinc sinh slice_scatter slogdet softmax sort sqrt square stack std sub subtract sum svd
    take take_along_dim tan tanh tensordot topk triangular_solve tril triu true_divide trunc var vdot vstack where
    xlogy zeros

    linalg.cholesky linalg.cholesky_ex linalg.cond linalg.cross linalg.det linalg.eigh linalg.eigvalsh linalg.inv
    linalg.inv_ex linalg.lstsq linalg.lu linalg.lu_factor linalg.lu_factor_ex linalg.lu_solve linalg.matmul
    linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.multi_dot linalg.norm linalg.pinv linalg.qr
    linalg.slogdet linalg.solve linalg.solve_ex linalg.solve_triangular linalg.svd linalg.svdvals linalg.tensorinv
    linalg.tensorsolve linalg.vecdot linalg.vector_norm

    special.entr special.erf special.erfc special.erfinv special.exp2 special.expit special.expm1 special.log1p
    special.logit special.logsumexp special.ndtr special.round special.sinc special.xlog1py special.xlogy
    """.split()
)
"""The functions that take ``out`` in PyTorch."""

STRICT = frozenset(
    """
    abs absolute addbmm addmm addmv all amax amin any argmax argmin baddbmm bitwise_not bmm bucketize ceil
    chain_matmul cholesky conj_physical cross det diag dot eigvalsh fix float_power floor frac gather heaviside
    histc index_add index_copy index_reduce index_select inv isin isneginf isposinf log_softmax logcumsumexp
    lu_solve masked_select matmul matrix_norm mm msort multi_dot mv nan_to_num nanquantile neg negative nonzero
    quantile renorm round scatter scatter_add scatter_reduce searchsorted sgn sign signbit slice_scatter softmax
    solve solve_triangular svdvals take take_along_dim tensordot tril triu trunc vdot vecdot vector_norm where
    """.split()
)
"""Those whose ``out`` must have the dtype of the result, as that of functions with several results must."""

RANGES = frozenset({"arange", "linspace", "logspace"})
"""Those that number the elements of an ``out`` of as many as they make, whatever its shape."""

LIKE = frozenset({"normal"})
"""Those whose result is like the tensors among their arguments, if there are any, whatever ``out`` is."""


def take_out(namespace: dict[str, Any]) -> None:
    """Let the functions of a public module's ``namespace`` take ``out`` where PyTorch's do."""
    room = namespace["__name__"].partition(".")[2]
    for name, value in list(namespace.items()):
        if callable(value) and (f"{room}.{name}" if room else name) in FUNCTIONS:
            namespace[name] = with_out(getattr(value, "function", value), name)
            if hasattr(value, "function"):
                namespace[name].__wrapped__ = value  # the op, for `inspect`


def with_out(function: Any, name: str) -> Callable[..., Any]:
    """``function``, which writes its result into ``out`` where that is given."""
    behind = getattr(function, "__globals__", {}).get("_door")
    made = door(behind.function if behind else function, name=name, into=into)
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


def into(
    out: Any,
    checked: Callable[..., Any],
    function: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """``out``, a tensor or several, after the results of ``checked(*args, **kwargs)`` are written there.

    Args:
        function: what ``checked`` calls.

    Raises:
        TypeError: ``out`` is no tensor, or not as many as there are results.
        RuntimeError: something requires grad; or the result does not fit the dtype of ``out``.
    """
    targets = out if isinstance(out, (tuple, list)) else (out,)
    for target in targets:
        if not isinstance(target, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(target).__name__}")
    if modes.get() & modes.GRAD:
        for t in (*tensors(args), *tensors(kwargs.values()), *targets):
            if t.requires_grad:
                raise RuntimeError(
                    f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of "
                    "the arguments requires grad."
                )
    alike = name in LIKE and next(tensors((*args, *kwargs.values())), None) is not None
    if makes(function) and len(targets) == 1 and not alike:  # out says what to make
        given = kwargs.get("dtype")
        if given is not None and dtypes.check(given) is not targets[0].dtype:
            raise RuntimeError(f"{name}(): dtype {given} does not match dtype of out parameter ({targets[0].dtype})")
        kwargs = {"dtype": targets[0].dtype, "device": targets[0].device, **kwargs}
    with modes.no_grad():
        made = checked(*args, **kwargs)
        results = made if isinstance(made, tuple) else (made,)
        if len(results) != len(targets):
            raise TypeError(f"{name}(): argument 'out': expected {len(results)} tensors, got {len(targets)}")
        for result, target in zip(results, targets, strict=True):
            if target.dtype is not result.dtype and (name in STRICT or len(targets) > 1):
                raise RuntimeError(f"Expected out tensor to have dtype {result.dtype}, but got {target.dtype} instead")
            if name in RANGES and result.numel() == target.numel():
                result = result.reshape(target.shape)
            store(result, target)
    if not isinstance(made, tuple):
        return out
    return type(made)(*targets) if hasattr(made, "_fields") else tuple(targets)


def makes(function: Callable[..., Any]) -> bool:
    """Whether a function makes a tensor of sizes or numbers, of a dtype and on a device."""
    return {"dtype", "device"} <= inspect.signature(function).parameters.keys()


def tensors(values: Any) -> Iterator[Tensor]:
    """The tensors among ``values`` and in lists and tuples there."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from tensors(value)


def store(result: Tensor, target: Tensor) -> None:
    """Write ``result`` into ``target``, which gets its shape."""
    if result.dtype.category > target.dtype.category:
        raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {target.dtype}")
    if result.device != target.device:
        raise RuntimeError(
            f"Expected all tensors to be on the same device: out is on {target.device}, the result on {result.device}"
        )
    check(target, "copy")
    if isinstance(result._data, SymbolBase):
        result._data.check_target(target._data)
    if result.shape != target.shape:
        if target.numel():
            messages.warn(
                f"An output with one or more elements was resized since it had shape {list(target.shape)}, which does "
                f"not match the required output shape {list(result.shape)}. This behavior is deprecated. You can "
                "explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
            )
        target.resize_(result.shape)
    copy_(target, result)
