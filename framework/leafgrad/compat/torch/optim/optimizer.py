"""What older optimizers import beside ``Optimizer``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from leafgrad.tensor.tensor import Tensor

__all__ = ["ParamsT", "StateDict", "_RequiredParameter", "required"]

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
StateDict: TypeAlias = dict[str, Any]


class _RequiredParameter:
    """The class of ``required``."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()
