"""How loops step through arrays: strides broadcast, merged, and as C."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leafgrad.lowering import forms
from leafgrad.lowering.forms import Form, Stride

Strides = tuple[Stride, ...]


def spread(form: Form, shape: forms.Shape) -> Strides:
    """The strides of ``form`` broadcast to ``shape``."""
    return form.expand(shape).strides


def still(form: Form, strides: Sequence[int], inner: int | None, batched: bool) -> bool:
    """Whether the innermost loop always reads the same element."""
    if batched:
        return form.root.axis is None
    return inner is None or strides[inner] == 0


def collapsed(
    shape: forms.Shape, axis: int | None, arrays: Sequence[Strides]
) -> tuple[list[int], list[tuple[int, ...]]]:
    """The dimensions besides the batch, with those merged that all arrays step through as one, and the strides."""
    dims: list[int] = []
    steps: list[list[int]] = []  # per dimension, the stride of each array
    for k, n in enumerate(shape):
        if k == axis or n == 1:
            continue
        here = [s[k] or 0 for s in arrays]
        if dims and all(before == n * now for before, now in zip(steps[-1], here, strict=True)):
            dims[-1] *= n
            steps[-1] = here
        else:
            dims.append(n)
            steps.append(here)
    return dims, [tuple(step[a] for step in steps) for a in range(len(arrays))]


def linear(offset: int, strides: Iterable[int], variables: Iterable[str]) -> str:
    """``offset + sum(strides * variables)`` as C."""
    terms = [v if s == 1 else f"{v} * {s}" for s, v in zip(strides, variables, strict=True) if s]
    if offset or not terms:
        terms.append(str(offset))
    return " + ".join(terms)
