"""``torch.cuda.amp``: the older names of ``torch.amp``, for CUDA."""

from __future__ import annotations

from typing import Any

from leafgrad.compat.torch import amp

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """See ``torch.amp.autocast``."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """See ``torch.amp.GradScaler``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cuda", *args, **kwargs)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """See ``torch.amp.custom_fwd``."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """See ``torch.amp.custom_bwd``."""
    return amp.custom_bwd(bwd, device_type="cuda")
