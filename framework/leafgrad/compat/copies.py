"""``view_copy``, ``transpose_copy``, …: views of ``torch`` as copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad.dtypes import contiguous_format
from leafgrad.tensor.tensor import Tensor

# Methods that give views.
VIEWS = (
    "as_strided detach diagonal expand narrow permute select slice split split_with_sizes squeeze t transpose unbind "
    "unfold unsqueeze view"
).split()


def copying(name: str) -> Callable[..., Any]:
    """The method ``name``, whose results are copied."""
    method: Callable[..., Any] = sliced if name == "slice" else getattr(Tensor, name)

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        found = method(input, *args, **kwargs)
        parts = [
            p.clone(memory_format=contiguous_format) for p in (found if isinstance(found, (tuple, list)) else [found])
        ]
        return tuple(parts) if isinstance(found, (tuple, list)) else parts[0]

    function.__name__ = function.__qualname__ = f"{name}_copy"
    function.__doc__ = f"``{name}`` as a copy."
    return function


def sliced(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """``start:end:step`` of a dimension."""
    return input[(*[slice(None)] * (dim % input.ndim), slice(start, end, step))]


FUNCTIONS = {f"{name}_copy": copying(name) for name in VIEWS if name != "narrow"}  # leafgrad has that one
