"""``torch.amp``: mixed precision on the CPU, and losses that nobody scales.

For CUDA where there is none it switches itself off, with PyTorch's warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from leafgrad import dtypes, modes
from leafgrad.compat.torch import cuda
from leafgrad.ops.messages import warn
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
    """A context, or decorator, in which products, convolutions and attention on the CPU run in 16 bits.

    Parameters stay as they are, and so do the dtypes of their gradients.

    Args:
        device_type: ``"cpu"``.
        dtype: bfloat16, the default, or float16; for another one it switches itself off, with PyTorch's warning.
        enabled: False switches it off, within another one too.
        cache_enabled: has no effect.

    Raises:
        NotImplementedError: it is enabled for another device, and there is one of this type.
    """

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return object.__new__(cls)

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        kind = dtypes.bfloat16 if dtype is None else dtypes.check(dtype)
        bits = {dtypes.bfloat16: modes.TO_BFLOAT16, dtypes.float16: modes.TO_FLOAT16}.get(kind, 0)
        if enabled and device_type == "cuda" and not cuda.is_available():
            warn("CUDA is not available. Disabling autocast.")
            enabled = False
        elif enabled and device_type != "cpu":
            raise NotImplementedError(
                f"autocast({device_type!r}): leafgrad lowers precision by itself on the CPU only; pass enabled=False, "
                "or convert the model with .half()"
            )
        elif enabled and not bits:
            warn(
                f"In CPU autocast, but the target dtype {kind} is not supported. Disabling autocast. CPU autocast "
                "supports bfloat16 and float16."
            )
        super().__init__(bits if enabled else 0)
        if device_type != "cpu":
            self.off = 0  # what another device does is nothing to the CPU


def is_autocast_available(device_type: str) -> bool:
    """Whether it is for the CPU."""
    return device_type == "cpu"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether it is on now, for that device."""
    return device_type == "cpu" and bool(modes.get() & modes.AUTOCAST)


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype in which it has products taken, or would."""
    lowest = modes.get() & modes.TO_FLOAT16 or device_type != "cpu"
    return dtypes.float16 if lowest else dtypes.bfloat16


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
    """The ``forward`` of an autograd Function, as it is; ``custom_bwd`` is the same for ``backward``."""
    return (lambda given: given) if fwd is None else fwd


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """The ``backward`` of an autograd Function, as it is."""
    return (lambda given: given) if bwd is None else bwd


class GradScaler:
    """Losses and gradients as they are, unscaled. Enabled, it warns as PyTorch does where there is no CUDA."""

    def __init__(self, device: str = "cuda", *_: float, enabled: bool = True, **__: float) -> None:
        if enabled:
            warn("GradScaler is enabled, but leafgrad does not scale gradients. Disabling.")

    def scale(self, outputs: Tensor | Iterable[Tensor]) -> Tensor | Iterable[Tensor]:
        """``outputs`` themselves."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Gradients are not scaled."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step``."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """There is no scale."""

    def is_enabled(self) -> bool:
        """False."""
        return False

    def get_scale(self) -> float:
        """1."""
        return 1.0

    def state_dict(self) -> dict[str, Any]:
        """Empty."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Nothing to load."""
