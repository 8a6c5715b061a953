"""A process has one device, so DataParallel calls its module, as PyTorch's does then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafgrad.nn.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """A module under the name ``module``, which it calls.

    Args:
        module: the module.
        dim: along which dimension.

    Raises:
        NotImplementedError: more than one device is asked for.
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise NotImplementedError(
                f"DataParallel: device_ids: leafgrad computes on one device, got {len(device_ids)} of them"
            )
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """``module(*inputs, **kwargs)``."""
        return self.module(*inputs, **kwargs)


def data_parallel(module: Module, inputs: Any, device_ids: Any = None, *_: Any, module_kwargs: Any = None) -> Any:
    """``module`` called with ``inputs``, a tuple of them or one."""
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids)(*given, **(module_kwargs or {}))
