"""``torch.amp``: mixed precision, where products are taken in 16 bits.

For CUDA where there is none it switches itself off, with PyTorch's warning.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from leafgrad import dtypes, modes
from leafgrad.compat.torch.grad_scaler import GradScaler as GradScaler
from leafgrad.ops.messages import warn
from leafgrad.tensor.storage import pinning
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


class autocast(modes.autocast):
    """A context, or decorator, in which products, convolutions and attention of a device run in 16 bits.

    Parameters stay as they are, and so do the dtypes of their gradients.

    Args:
        device_type: ``"cpu"``, or the type of another device, as ``"cuda"``: one switch for all that are not the CPU.
        dtype: on the CPU bfloat16, the default, or float16; elsewhere float16. For another one it switches itself off,
            with PyTorch's warning, as it does where there is no CUDA.
        enabled: False switches it off, within another one too.
        cache_enabled: has no effect.

    Raises:
        RuntimeError: there is no such device. TypeError: bfloat16 is asked for where it is not.
    """

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return object.__new__(cls)

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        host = device_type == "cpu"
        bits, backend = 0, pinning(device_type)
        if enabled and backend is None:
            if device_type != "cuda":
                raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
            warn("CUDA is not available. Disabling autocast.")
        elif enabled:
            kind = get_lowest(device_type) if dtype is None else dtypes.check(dtype)
            if kind is dtypes.bfloat16 and not backend.has_bfloat16:
                raise backend.without_bfloat16("autocast")
            bits = {dtypes.bfloat16: modes.TO_BFLOAT16, dtypes.float16: modes.TO_FLOAT16}.get(kind, 0)
            bits = bits if host or not bits else modes.TO_FLOAT16_ELSEWHERE
            if not bits:
                name = device_type.upper()
                known = "bfloat16 and float16" if host else "float16"
                warn(
                    f"In {name} autocast, but the target dtype {kind} is not supported. Disabling autocast. {name} "
                    f"autocast supports {known}."
                )
        super().__init__(bits)
        self.off = modes.AUTOCAST if host else modes.TO_FLOAT16_ELSEWHERE
        if host:
            self.off &= ~modes.TO_FLOAT16_ELSEWHERE


def get_lowest(device_type: str) -> dtypes.dtype:
    """The dtype of 16 bits that a type of device takes if none is asked for."""
    return dtypes.bfloat16 if device_type == "cpu" else dtypes.float16


def is_autocast_available(device_type: str) -> bool:
    """Whether there is such a device."""
    return pinning(device_type) is not None


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether it is on now, for that device."""
    on = modes.TO_BFLOAT16 | modes.TO_FLOAT16 if device_type == "cpu" else modes.TO_FLOAT16_ELSEWHERE
    return bool(modes.get() & on)


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype in which it has products taken, or would."""
    return dtypes.float16 if modes.get() & modes.TO_FLOAT16 else get_lowest(device_type)


def is_autocast_cpu_enabled() -> bool:
    """Whether it is on now, for the CPU."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> dtypes.dtype:
    """The dtype in which it has products taken on the CPU, or would."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtypes.dtype:
    """The dtype in which it would have products taken on a GPU."""
    return get_autocast_dtype("cuda")


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """A decorator for the ``forward`` of an autograd Function, whose ``backward`` has ``custom_bwd``.

    Args:
        fwd: the function.
        device_type: the type of device whose autocast it is about.
        cast_inputs: the dtype to which its floating tensors of that device, but float64, are cast under autocast, which
            is off within it then; None: it runs as it is called.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        on, ctx = is_autocast_enabled(device_type), args[0]
        ctx._dtype, ctx._fwd_used_autocast = get_autocast_dtype(device_type), on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """A decorator for the ``backward`` of an autograd Function: it runs under the autocast of its ``forward``.

    Args:
        bwd: the function.
        device_type: the type of device whose autocast it is about.
    """
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *grads: Any, **kwargs: Any) -> Any:
        with autocast(device_type, ctx._dtype, ctx._fwd_used_autocast):
            return bwd(ctx, *grads, **kwargs)

    return backward


def _cast(value: Any, device_type: str, dtype: dtypes.dtype) -> Any:
    """Arguments with their tensors cast, those in containers too."""
    if isinstance(value, Tensor):
        casts = value.device.type == device_type and value.is_floating_point() and value.dtype is not dtypes.float64
        return value.to(dtype) if casts else value
    if isinstance(value, dict):
        return {name: _cast(item, device_type, dtype) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        cast = [_cast(item, device_type, dtype) for item in value]
        return type(value)(*cast) if hasattr(value, "_fields") else type(value)(cast)
    return value
