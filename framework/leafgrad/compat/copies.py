"""``view_copy``, ``transpose_copy``, …: views of ``torch`` as copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafgrad.dtypes import contiguous_format
from leafgrad.ops.dispatch import takes_out
from leafgrad.tensor.complex_numbers import view_as_complex, view_as_real
from leafgrad.tensor.tensor import Tensor

# Methods that give views; narrow_copy is leafgrad's.
VIEWS = (
    "as_strided detach diagonal expand permute select split split_with_sizes squeeze t transpose unbind unfold "
    "unsqueeze view"
).split()


def copying(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """What ``method`` gives, copied."""

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        found = method(input, *args, **kwargs)
        parts = [
            p.clone(memory_format=contiguous_format) for p in (found if isinstance(found, (tuple, list)) else [found])
        ]
        return tuple(parts) if isinstance(found, (tuple, list)) else parts[0]

    function.__name__ = function.__qualname__ = f"{name}_copy"
    function.__doc__ = f"``{name}`` as a copy."
    return takes_out(function)


def sliced(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """``start:end:step`` of a dimension."""
    return input[(*[slice(None)] * (dim % input.ndim), slice(start, end, step))]


METHODS = {name: getattr(Tensor, name) for name in VIEWS} | {
    "alias": lambda input: input.view_as(input), "slice": sliced,
    "view_as_complex": view_as_complex, "view_as_real": view_as_real,
}  # fmt: skip
FUNCTIONS = {f"{name}_copy": copying(name, method) for name, method in METHODS.items()}
