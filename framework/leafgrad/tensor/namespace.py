"""``__array_namespace__``, by which code written for the array API standard finds its functions."""

from __future__ import annotations

from typing import Any

from leafgrad.tensor.methods import attach
from leafgrad.tensor.tensor import Tensor


def array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The functions of the Python array API standard that leafgrad has: the module ``leafgrad.tensor.array_api``.

    Raises:
        ValueError: another version of the standard is asked for.
    """
    from leafgrad.tensor import array_api  # few need it

    if api_version not in (None, array_api.__array_api_version__):
        raise ValueError(
            f"__array_namespace__: api_version: expected {array_api.__array_api_version__!r}, got {api_version!r}"
        )
    return array_api


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on another device, as the array API standard spells ``to``.

    Args:
        device: where to.
        stream: None.

    Raises:
        ValueError: a stream is given, and leafgrad has none.
    """
    if stream is not None:
        raise ValueError(f"to_device: stream: expected None, got {stream!r}")
    return self.to(device)


attach("__array_namespace__", array_namespace)
attach("to_device", to_device)
