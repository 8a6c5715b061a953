"""``torch.cuda.amp``: the older names of ``torch.amp``, for CUDA."""

from __future__ import annotations

from typing import Any

from leafgrad.compat.torch import amp

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """See ``torch.amp.autocast``."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """See ``torch.amp.GradScaler``."""

    def __init__(self, *scale: float, enabled: bool = True, **options: float) -> None:
        super().__init__("cuda", *scale, enabled=enabled, **options)
