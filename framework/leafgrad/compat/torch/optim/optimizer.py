"""What older optimizers import beside ``Optimizer``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from leafgrad.modes import set_grad_enabled
from leafgrad.tensor.tensor import Tensor

__all__ = [
    "ParamsT", "StateDict", "_RequiredParameter", "_default_to_fused_or_foreach",
    "_get_capturable_supported_devices", "_get_value", "_use_grad_for_differentiable", "required",
]  # fmt: skip

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
StateDict: TypeAlias = dict[str, Any]


class _RequiredParameter:
    """The class of ``required``."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A ``step`` that runs with gradients on where its optimizer is ``differentiable``, and else off."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    """The number that a tensor of one element is; another number as it is."""
    return x.item() if isinstance(x, Tensor) else x


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Neither: updates are written tensor by tensor."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """None: no step is captured."""
    return []
