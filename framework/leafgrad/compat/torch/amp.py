"""``torch.amp``: mixed precision, which leafgrad does not do; switched off it is nothing, and that works.

For CUDA where there is none it switches itself off, with PyTorch's warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from leafgrad.compat.torch import cuda
from leafgrad.ops.messages import warn
from leafgrad.tensor.tensor import Tensor

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "is_autocast_enabled"]

F = TypeVar("F", bound=Callable[..., Any])


class autocast:
    """A context, or decorator, in which nothing changes.

    Raises:
        NotImplementedError: ``enabled`` is true, and there is a device of this type.
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if enabled and device_type == "cuda" and not cuda.is_available():
            warn("CUDA is not available. Disabling autocast.")
        elif enabled:
            raise NotImplementedError(
                f"autocast({device_type!r}): leafgrad does not lower precision by itself; pass enabled=False, or "
                "convert the model with .half()"
            )

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def __call__(self, function: F) -> F:
        return function


def is_autocast_available(device_type: str) -> bool:
    """False."""
    return False


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """False."""
    return False


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
