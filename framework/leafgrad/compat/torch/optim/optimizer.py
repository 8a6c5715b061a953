"""What older optimizers import beside ``Optimizer``."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["StateDict", "_RequiredParameter", "required"]

StateDict: TypeAlias = dict[str, Any]


class _RequiredParameter:
    """The class of ``required``."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()
